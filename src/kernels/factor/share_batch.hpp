// Matrices of a batch, shared among the threads of one rank.
#pragma once
#include <algorithm>
#include <mutex>

#include "kernels/factor/lapack.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {

// The number of threads that work on a batch, each with memory of its own: one if BLAS is multithreaded or
// takes one caller at a time.
inline std::int64_t workers_of(std::int64_t batch) {
  const std::int64_t team = threads_in_blas();
  return batch < team ? std::min<std::int64_t>(batch, 1) : std::min(batch, team);
}

// Calls run(first, last), which returns the first breakdown in that range of the batch, on all these threads.
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
