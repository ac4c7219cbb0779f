// Matrices of a batch, shared among the threads of one rank.
#pragma once
#include <mutex>

#include "kernels/factor/lapack.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {

// run(first, last), which returns the first breakdown among these matrices of a batch, on all threads; on
// this one where BLAS has threads of its own.
template <class Run> Breakdown share_batch(std::int64_t batch, std::int64_t elements_of_one, Run&& run) {
  if (batch < threads() || blas_has_threads()) return run(std::int64_t{0}, batch);
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
