// The number of threads of this rank that kernels may use: 1 by default, because jobs usually run one rank
// per core.
#pragma once

namespace tessera::kernels {

// Returns 1 inside a loop that is already shared among threads (parallel.hpp).
int threads();
// At least 1.
void set_threads(int count);
// The number of cores in this process's affinity mask.
int cores_to_run_on();

// Whether BLAS starts its own threads; calls of BLAS are not shared among ours then.
bool blas_has_threads();
// Whether several threads may call BLAS at once. OpenBLAS built for one thread (Debian's libopenblas0-serial)
// does not lock its packing buffers: two concurrent calls may overwrite each other's.
bool blas_takes_callers();
// The number of threads that may call BLAS at the same time, each for a part of the work.
int threads_in_blas();

}  // namespace tessera::kernels
