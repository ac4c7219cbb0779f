#include "kernels/threads.hpp"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <string_view>

extern "C" {
int openblas_get_parallel() __attribute__((weak));
int openblas_get_num_threads() __attribute__((weak));
char* openblas_get_config() __attribute__((weak));
}

namespace tessera::kernels {
namespace {
std::atomic<int> thread_count{1};

enum ThreadsOfOpenBlas { none = 0, of_its_own = 1, of_openmp = 2 };
int kind_of_threads() {
  static const int kind = openblas_get_parallel == nullptr ? none : openblas_get_parallel();
  return kind;
}
}  // namespace

int threads() { return omp_in_parallel() ? 1 : thread_count.load(std::memory_order_relaxed); }
void set_threads(int count) { thread_count.store(std::max(count, 1), std::memory_order_relaxed); }

int cores_to_run_on() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return std::max(omp_get_num_procs(), 1);
  return std::max(CPU_COUNT(&mask), 1);
}

bool blas_has_threads() {
  const int kind = kind_of_threads();
  return kind == of_openmp || (kind == of_its_own && openblas_get_num_threads() > 1);
}

bool blas_takes_callers() {
  static const bool takes =
      kind_of_threads() != none || openblas_get_config == nullptr ||
      std::string_view(openblas_get_config()).find("USE_LOCKING") != std::string_view::npos;
  return takes;
}

int threads_in_blas() { return blas_has_threads() || !blas_takes_callers() ? 1 : threads(); }

}  // namespace tessera::kernels
