// How many threads of this rank the kernels may use: 1 unless set, because ranks are usually as many as
// cores.
#pragma once

namespace tessera::kernels {

// 1 inside of a loop that is shared already (parallel.hpp).
int threads();
// At least 1.
void set_threads(int count);
// Cores that this process may run on.
int cores_to_run_on();

// Whether BLAS starts threads of its own: its calls are not shared then.
bool blas_has_threads();
// Whether several threads may call BLAS at once. OpenBLAS that is built for one thread (Debian's
// libopenblas0-serial) keeps no lock on the memory that it packs operands in: two calls at once may pack over
// each other.
bool blas_takes_callers();
// Threads of this rank that share work by calling BLAS, each for its part.
int threads_in_blas();

}  // namespace tessera::kernels
