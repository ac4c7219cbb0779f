// Draws by rejection: an element's value consumes as many random numbers as it needs.
//
// gamma gives every element a key of its own, so elements are independent. poisson and binomial draw rounds
// for the whole array until every element has accepted once, and an element keeps its *last* accepted value:
// the number of rounds affects the result. It is counted first (count_rounds_*), over the whole array, and
// then passed to the draw.
#pragma once
#include "kernels/random/draws.hpp"

namespace tessera::kernels {

enum class GammaSpace {
  linear,
  log
};  // log: the logarithm of the sample, which does not underflow for small alpha

// Gamma(alpha, 1) by Marsaglia and Tsang's method. alpha and out: float32 or float64, one per element.
void draw_gamma(const DrawBlock&, Dtype, GammaSpace, const void* alpha, void* out);

// Poisson: Knuth's method for lambda < 10, otherwise Hoermann's transformed rejection. Rounds are counted per
// key.
void count_rounds_poisson(const DrawBlock&, const float* lambda, std::int32_t* rounds);
void draw_poisson(const DrawBlock&, const float* lambda, const std::int32_t* rounds, Dtype, void* out);

// Binomial(count, p) in float32 or float64: geometric jumps if count * min(p, 1 - p) <= 10, otherwise
// Hoermann's BTRS.
void count_rounds_binomial(const DrawBlock&, Dtype, const void* count, const void* p, std::int32_t* rounds);
void draw_binomial(const DrawBlock&, Dtype, const void* count, const void* p, const std::int32_t* rounds,
                   void* out);

}  // namespace tessera::kernels
