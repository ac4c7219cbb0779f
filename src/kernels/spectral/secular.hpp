// The secular equation of a rank-one change (rank_one_merge.hpp) and sums over its poles, in vectors.
//
//   f(x) = 1 / rho + sum w_j^2 / (d_j - x) = 0,  d ascending;  one root behind each pole
//
// A point x is given by a pole, its `origin`, and the distance from it: near that pole, d_j - x = (d_j -
// origin) - distance is accurate.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::kernels {

// sum w_j^2 / (d_j - x) and its derivative sum w_j^2 / (d_j - x)^2
template <class R> struct PoleSums { R value = 0, slope = 0; };
template <class R>
PoleSums<R> pole_sums(std::int64_t count, const R* poles, const R* weights, R origin, R distance);
// products[j] *= (d_j - x) / (d_j - pole)
template <class R>
void multiply_ratios(std::int64_t count, const R* poles, R origin, R distance, R pole, R* products);

// The root that follows the pole `index` of three or more; the norm of the weights is one. Interpolates by
// two poles ("the middle way", Li 1993) within a bracket. Nothing if it does not converge.
template <class R> struct SecularRoot {
  std::int64_t pole;  // the nearer one of the two neighbours
  R distance;
};
template <class R> std::optional<SecularRoot<R>> secular_root(std::int64_t index, const std::vector<R>& poles,
                                                              const std::vector<R>& weights, R rho);

}  // namespace tessera::kernels
