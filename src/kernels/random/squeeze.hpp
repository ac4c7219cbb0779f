// The vector loops of draw_counts.cpp; they write up to `padding` elements past the end.
#pragma once
#include <cstdint>

namespace tessera::kernels {

// The hat of each lane's transformed rejection.
template <class T> struct Hats { const T *twice_a, *b, *c, *v_r; };
// k = floor((twice_a / s + b) * (u - 1/2) + c + shift) with s = 1/2 - |u - 1/2|; is_sure: 1 where
// s >= 0.07 and v <= v_r, which accepts k without a logarithm, else 0.
void squeeze(const Hats<float>&, float shift, const float* u, const float* v, std::int64_t n, float* k,
             float* is_sure);
void squeeze(const Hats<double>&, double shift, const double* u, const double* v, std::int64_t n, double* k,
             double* is_sure);

// sum += ceil(log_u / log_q), the length of a geometric jump.
void add_jumps(const float* log_u, const float* log_q, std::int64_t n, float* sum);
void add_jumps(const double* log_u, const double* log_q, std::int64_t n, double* sum);

}  // namespace tessera::kernels
