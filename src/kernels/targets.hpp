// Selects the instruction sets of the vector kernels: AVX-512, AVX2 and the baseline (SSE2 on x86-64; on
// other machines Highway's choice). Must be the first include of a file that is compiled once per target.
#pragma once
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
