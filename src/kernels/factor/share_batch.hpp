// Matrices of a batch, shared among the threads of one rank.
#pragma once
#include <algorithm>
#include <mutex>

#include "kernels/factor/lapack.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {

// So many threads work on a batch at most, each with memory of its own; this one alone where BLAS shares its
// work itself or takes one caller at a time.
inline std::int64_t workers_of(std::int64_t batch) {
  const std::int64_t team = threads_in_blas();
  return batch < team ? std::min<std::int64_t>(batch, 1) : std::min(batch, team);
}

// run(first, last), which returns the first breakdown among these matrices of a batch, on all these threads.
template <class Run> Breakdown share_batch(std::int64_t batch, std::int64_t elements_of_one, Run&& run) {
  if (workers_of(batch) <= 1) return run(std::int64_t{0}, batch);
  Breakdown first;
  std::mutex one_at_a_time;
  share(batch, worth_a_thread(16 * elements_of_one), [&](std::int64_t begin, std::int64_t end) {
    const Breakdown here = run(begin, end);
    const std::lock_guard lock(one_at_a_time);
    if (here.happened() && (!first.happened() || here.matrix < first.matrix)) first = here;
  });
  return first;
}

}  // namespace tessera::kernels
