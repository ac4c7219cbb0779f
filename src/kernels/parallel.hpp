// Loops of a kernel, shared among the threads of one rank (TESSERA_THREADS). Results do not depend on the
// number of threads: each thread owns a range of the result, or a subtree of a fixed tree of additions.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>

#include "kernels/threads.hpp"

namespace tessera::kernels {

// Calls work(begin, end) for ranges that partition [0, n): at most one per thread, each of at least `least`
// items, with ends at multiples of `step`. Exceptions of a range are rethrown here. A nested loop runs on the
// thread that calls it.
template <class Work> void share(std::int64_t n, std::int64_t least, std::int64_t step, Work&& work) {
  const std::int64_t steps = (n + step - 1) / step;
  const std::int64_t team = std::min<std::int64_t>(n / std::max<std::int64_t>(least, 1), steps);
  const int used = team <= 1 ? 1 : static_cast<int>(std::min<std::int64_t>(threads(), team));
  if (used <= 1) {
    if (n > 0) work(std::int64_t{0}, n);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel for schedule(static) num_threads(used)
  for (int t = 0; t < used; ++t) {
    try {
      work(steps * t / used * step, std::min(steps * (t + 1) / used * step, n));
    } catch (...) {
#pragma omp critical(tessera_failure_of_a_range)
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}
template <class Work> void share(std::int64_t n, std::int64_t least, Work&& work) {
  share(n, least, 1, work);
}

// The fewest items that make starting a thread worthwhile.
constexpr std::int64_t worth_a_thread(std::int64_t bytes_of_one) {
  return std::max<std::int64_t>((std::int64_t{128} << 10) / std::max<std::int64_t>(bytes_of_one, 1), 1);
}

}  // namespace tessera::kernels
