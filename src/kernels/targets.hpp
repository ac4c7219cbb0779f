// Selects the instruction sets of the vector kernels: AVX-512, AVX2 and the baseline (SSE2 on x86-64, NEON on
// aarch64; on other machines Highway's choice). SVE is left out: its vectors have no size that arrays of
// registers, which the tiles of products need, could be declared with.
// Must be the first include of a file that is compiled once per target.
#pragma once
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
