// Which instruction sets the vector kernels are compiled for: AVX-512, AVX2 and the baseline (SSE2 on
// x86-64; on other machines what Highway finds). Include first of all in a file that is compiled once per
// target.
#pragma once
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
