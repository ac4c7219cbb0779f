// Loops of a kernel, shared among the threads of one rank (TESSERA_THREADS). What is written does not
// depend on their number: threads divide the places of a result, or parts of a sum whose tree is fixed.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>

#include "kernels/threads.hpp"

namespace tessera::kernels {

// work(begin, end) for ranges that together are [0, n): one for each thread, of at least `least`, and with
// ends that are multiples of `step`. What a range throws is thrown here. A loop inside stays on the thread
// that it is on.
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

// Items of which a thread wants at least so many that starting it pays.
constexpr std::int64_t worth_a_thread(std::int64_t bytes_of_one) {
  return std::max<std::int64_t>((std::int64_t{128} << 10) / std::max<std::int64_t>(bytes_of_one, 1), 1);
}

}  // namespace tessera::kernels
