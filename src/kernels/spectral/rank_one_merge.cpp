#include "kernels/spectral/rank_one_merge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/spectral/secular.hpp"

namespace tessera::kernels {

extern "C" {
#define TESSERA_DECLARE(p, R)                                                                         \
  void p##laed4_(const int* n, const int* i, const R* d, const R* z, R* delta, const R* rho, R* root, \
                 int* info);
TESSERA_REAL_TYPES(TESSERA_DECLARE)
#undef TESSERA_DECLARE
}

namespace {

// The roots of 1 + rho (z1^2 / (d1 - x) + z2^2 / (d2 - x)) = 0.
template <class R> typename RankOneMerge<R>::Root root_of_two(std::int64_t index, const std::vector<R>& d,
                                                              const std::vector<R>& z, R rho) {
  const R gap = d[1] - d[0], sum = rho * (z[0] * z[0] + z[1] * z[1]);
  if (index == 0 && 1 + 2 * rho * (z[1] * z[1] - z[0] * z[0]) / gap > 0) {
    const R b = gap + sum, c = rho * z[0] * z[0] * gap;
    return {0, 2 * c / (b + std::sqrt(std::abs(b * b - 4 * c)))};
  }
  const R b = -gap + sum, c = rho * z[1] * z[1] * gap, root = std::sqrt(b * b + 4 * c);
  if (index == 0) return {1, b > 0 ? -2 * c / (b + root) : (b - root) / 2};
  return {1, b > 0 ? (b + root) / 2 : 2 * c / (root - b)};
}

}  // namespace

template <class R>
RankOneMerge<R>::RankOneMerge(std::vector<R> d, std::vector<R> z, std::int64_t top, R coupling)
    : d_(std::move(d)), z_(std::move(z)), rows_(d_.size(), Rows::top) {
  for (std::size_t i = static_cast<std::size_t>(top); i < d_.size(); ++i) {
    rows_[i] = Rows::bottom;
    if (coupling < 0) z_[i] = -z_[i];
  }
  R square = 0;  // of a vector of two parts, each of length one
  for (const R value : z_) square += value * value;
  const R norm = std::sqrt(square);
  if (norm > 0)
    for (R& value : z_) value /= norm;
  rho_ = std::abs(coupling) * square;
  deflate(top);
}

// Removes small weights, and poles that are close to each other, from the equation (LAPACK's rule).
template <class R> void RankOneMerge<R>::deflate(std::int64_t top) {
  const auto n = static_cast<std::int64_t>(d_.size());
  std::vector<std::int64_t> sorted(n);
  std::iota(sorted.begin(), sorted.end(), 0);
  const auto less = [&](std::int64_t a, std::int64_t b) { return d_[a] < d_[b]; };
  std::inplace_merge(sorted.begin(), sorted.begin() + top, sorted.end(), less);
  R largest_d = 0, largest_z = 0;
  for (std::int64_t i = 0; i < n; ++i)
    largest_d = std::max(largest_d, std::abs(d_[i])), largest_z = std::max(largest_z, std::abs(z_[i]));
  const R tolerance = 4 * std::numeric_limits<R>::epsilon() * std::max(largest_d, largest_z);
  std::int64_t before = -1;  // the last pole that may still be removed
  const auto keep = [&](std::int64_t column) {
    columns_.push_back(column), poles_.push_back(d_[column]), weights_.push_back(z_[column]);
  };
  for (const std::int64_t i : sorted) {
    if (rho_ * std::abs(z_[i]) <= tolerance) {
      kept_.push_back(i);
      continue;
    }
    if (before >= 0) {
      const R length = std::hypot(z_[i], z_[before]), c = z_[i] / length, s = -z_[before] / length;
      if (std::abs((d_[i] - d_[before]) * c * s) <= tolerance) {
        z_[i] = length, z_[before] = 0;
        if (rows_[i] != rows_[before]) rows_[i] = rows_[before] = Rows::both;
        rotations_.push_back({before, i, c, s});
        const R a = d_[before] * c * c + d_[i] * s * s, b = d_[before] * s * s + d_[i] * c * c;
        d_[before] = a, d_[i] = b;
        kept_.push_back(before);
      } else {
        keep(before);
      }
    }
    before = i;
  }
  if (before >= 0) keep(before);
}

template <class R> std::vector<std::int64_t> RankOneMerge<R>::filled(bool in_top) const {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < roots(); ++i)
    if (rows_[columns_[i]] == Rows::both || (rows_[columns_[i]] == Rows::top) == in_top) places.push_back(i);
  return places;
}

template <class R> bool RankOneMerge<R>::find_root(std::int64_t index, Root& root) const {
  const std::int64_t k = roots();
  if (k == 1) return root = {0, rho_ * weights_[0] * weights_[0]}, true;
  if (k == 2) return root = root_of_two(index, poles_, weights_, rho_), true;
  if (const auto found = secular_root(index, poles_, weights_, rho_)) {
    root = {found->pole, found->distance};
    return true;
  }
  std::vector<R> gaps(k);  // pole - root
  R value = 0;
  const int size = static_cast<int>(k), place = static_cast<int>(index) + 1;
  int info = 0;
  variant<R>(slaed4_, dlaed4_)(&size, &place, poles_.data(), weights_.data(), gaps.data(), &rho_, &value,
                               &info);
  std::int64_t pole = index;
  if (index + 1 < k && std::abs(gaps[index + 1]) < std::abs(gaps[index])) ++pole;
  root = {pole, -gaps[pole]};
  return info == 0;
}

template <class R> void RankOneMerge<R>::take(std::vector<Root> found) {
  roots_ = std::move(found);
  const std::int64_t k = roots();
  // Weights for which the roots as found are exact, so that the vectors are orthogonal (Loewner's formula).
  std::vector<R> products(k, R(1));
  for (std::int64_t j = 0; j < k; ++j) {
    const R from = poles_[roots_[j].pole], distance = roots_[j].distance, pole = poles_[j];
    multiply_ratios(j, poles_.data(), from, distance, pole, products.data());
    products[j] *= (pole - from) - distance;
    multiply_ratios(k - j - 1, poles_.data() + j + 1, from, distance, pole, products.data() + j + 1);
  }
  for (std::int64_t i = 0; i < k; ++i)
    weights_[i] = std::copysign(std::sqrt(std::abs(products[i])), weights_[i]);
  norms_.assign(k, R(0));
  for (std::int64_t j = 0; j < k; ++j)
    norms_[j] = std::sqrt(
        pole_sums(k, poles_.data(), weights_.data(), poles_[roots_[j].pole], roots_[j].distance).slope);
  order_.clear();
  for (std::int64_t j = 0; j < k; ++j) order_.push_back({poles_[roots_[j].pole] + roots_[j].distance, j, -1});
  for (const std::int64_t column : kept_) order_.push_back({d_[column], -1, column});
  std::stable_sort(order_.begin(), order_.end(),
                   [](const Source& a, const Source& b) { return a.value < b.value; });
}

template <class R> void RankOneMerge<R>::vectors(const std::vector<std::int64_t>& places,
                                                 const std::int64_t* which, std::int64_t count, R* to) const {
  const auto rows = static_cast<std::int64_t>(places.size());
  std::vector<R> poles(rows), weights(rows);
  for (std::int64_t i = 0; i < rows; ++i) poles[i] = poles_[places[i]], weights[i] = weights_[places[i]];
  for (std::int64_t c = 0; c < count; ++c) {
    const std::int64_t j = which[c];
    const R from = poles_[roots_[j].pole], distance = roots_[j].distance, inverse = 1 / norms_[j];
    for (std::int64_t i = 0; i < rows; ++i)
      to[c * rows + i] = weights[i] * inverse / ((poles[i] - from) - distance);
  }
}

template class RankOneMerge<float>;
template class RankOneMerge<double>;
}  // namespace tessera::kernels
