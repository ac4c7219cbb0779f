#include "kernels/threads.hpp"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>

extern "C" int openblas_get_parallel() __attribute__((weak));

namespace tessera::kernels {
namespace {
std::atomic<int> thread_count{1};
}

int threads() { return omp_in_parallel() ? 1 : thread_count.load(std::memory_order_relaxed); }
void set_threads(int count) { thread_count.store(std::max(count, 1), std::memory_order_relaxed); }

int cores_to_run_on() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return std::max(omp_get_num_procs(), 1);
  return std::max(CPU_COUNT(&mask), 1);
}

bool blas_has_threads() {
  static const bool has = openblas_get_parallel != nullptr && openblas_get_parallel() != 0;
  return has;
}

}  // namespace tessera::kernels
