// How many threads of this rank the kernels may use: 1 unless set, because ranks are usually as many as
// cores.
#pragma once

namespace tessera::kernels {

int threads();
void set_threads(int count);  // at least 1

}  // namespace tessera::kernels
