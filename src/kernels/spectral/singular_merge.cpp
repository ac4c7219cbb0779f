#include "kernels/spectral/singular_merge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace tessera::kernels {

extern "C" {
void dlasd4_(const int* n, const int* i, const double* d, const double* z, double* delta, const double* rho,
             double* sigma, double* work, int* info);
void dlasd0_(const int* n, const int* wide, double* d, double* e, double* u, const int* ldu, double* vt,
             const int* ldvt, const int* smallest, int* iwork, double* work, int* info);
#define TESSERA_DECLARE(p, R)                                                                           \
  void p##bdsqr_(const char* uplo, const int* n, const int* ncvt, const int* nru, const int* ncc, R* d, \
                 R* e, R* vt, const int* ldvt, R* u, const int* ldu, R* c, const int* ldc, R* work,     \
                 int* info);
TESSERA_REAL_TYPES(TESSERA_DECLARE)
#undef TESSERA_DECLARE
}

namespace {

// The root of 1 + rho sum z^2 / ((d - x) (d + x)) that follows the pole d[index], as its distance from the
// nearer one of the two neighbouring poles.
struct Equation {
  const std::vector<double>&d, &z;
  double rho;
  double at(double pole, double distance) const {
    double sum = 1;
    for (std::size_t i = 0; i < d.size(); ++i)
      sum += rho * z[i] * z[i] / (((d[i] - pole) - distance) * ((d[i] + pole) + distance));
    return sum;
  }
  // Bisects the exponent's range, then the mantissa's: slow, but it always finds the root.
  std::pair<std::int64_t, double> root(std::int64_t index) const {
    const bool is_last = index + 1 == static_cast<std::int64_t>(d.size());
    const double gap = is_last ? std::sqrt(rho) : d[index + 1] - d[index];
    const bool is_behind = is_last || at(d[index], gap / 2) >= 0;
    const std::int64_t pole = is_behind ? index : index + 1;
    const double sign = is_behind ? 1 : -1;
    double small = gap * 1e-100, large = is_last ? gap : gap / 2;
    for (int steps = 0; steps < 200 && large > small * (1 + 2e-16); ++steps) {
      const double middle = large > 2 * small ? std::sqrt(small) * std::sqrt(large) : (small + large) / 2;
      if (middle <= small || middle >= large) break;
      // The sum grows from the pole in front to the one behind.
      (at(d[pole], sign * middle) * sign >= 0 ? large : small) = middle;
    }
    return {pole, sign * large};
  }
};

}  // namespace

template <class R> SingularMerge<R>::SingularMerge(std::vector<R> d, std::vector<R> z, std::int64_t top,
                                                   Between row, bool is_wide)
    : d_(std::move(d)), z_(std::move(z)), is_wide_(is_wide), rows_(d_.size(), Rows::top) {
  R largest = std::max(std::abs(row.alpha), std::abs(row.beta));
  for (std::size_t i = 0; i < d_.size(); ++i) {
    if (static_cast<std::int64_t>(i) >= top) rows_[i] = Rows::bottom;
    z_[i] *= static_cast<std::int64_t>(i) < top ? row.alpha : row.beta;
    largest = std::max(largest, d_[i]);
  }
  deflate(top, 4 * std::numeric_limits<R>::epsilon() * largest);
  for (const R weight : weights_) rho_ += static_cast<double>(weight) * weight;
  const R norm = static_cast<R>(std::sqrt(rho_));
  for (R& weight : weights_) weight /= norm;
}

// Removes small weights, and poles that are close to each other, from the equation (LAPACK's rule). The null
// vectors of both halves make one pole at zero and the null vector of the joined matrix.
template <class R> void SingularMerge<R>::deflate(std::int64_t top, R tolerance) {
  const auto size = static_cast<std::int64_t>(d_.size());
  const std::int64_t null = top - 1, values = is_wide_ ? size - 1 : size;
  R weight = z_[null];
  if (is_wide_) {
    weight = std::hypot(z_[null], z_[size - 1]);
    const bool is_small = weight <= tolerance;
    right_rotations_.push_back(
        {null, size - 1, is_small ? R(1) : z_[null] / weight, is_small ? R(0) : z_[size - 1] / weight});
  }
  if (std::abs(weight) <= tolerance) weight = tolerance;
  rows_[null] = Rows::both;
  const auto keep = [&](std::int64_t column, R pole, R kept_weight) {
    columns_.push_back(column), poles_.push_back(pole), weights_.push_back(kept_weight);
  };
  keep(null, 0, weight);
  std::vector<std::int64_t> sorted(values);
  std::iota(sorted.begin(), sorted.end(), 0);
  sorted.erase(sorted.begin() + null);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::int64_t a, std::int64_t b) { return d_[a] < d_[b]; });
  std::int64_t before = -1;  // the last pole that may still be removed
  for (const std::int64_t i : sorted) {
    if (std::abs(z_[i]) <= tolerance) {
      kept_.push_back(i);
      continue;
    }
    if (before >= 0 && d_[i] - d_[before] <= tolerance) {
      const R length = std::hypot(z_[i], z_[before]), c = z_[i] / length, s = -z_[before] / length;
      z_[i] = length, z_[before] = 0;
      if (rows_[i] != rows_[before]) rows_[i] = rows_[before] = Rows::both;
      left_rotations_.push_back({before, i, c, s}), right_rotations_.push_back({before, i, c, s});
      kept_.push_back(before);
    } else if (before >= 0) {
      keep(before, d_[before], z_[before]);
    }
    before = i;
  }
  if (before >= 0) keep(before, d_[before], z_[before]);
  if (roots() > 1) poles_[1] = std::max(poles_[1], tolerance / 2);
}

template <class R> std::vector<std::int64_t> SingularMerge<R>::filled(bool in_top) const {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < roots(); ++i)
    if (rows_[columns_[i]] == Rows::both || (rows_[columns_[i]] == Rows::top) == in_top) places.push_back(i);
  return places;
}

// In float64 for both types: LAPACK's float32 routine does not converge for some poles near zero.
template <class R> typename SingularMerge<R>::Root SingularMerge<R>::find_root(std::int64_t index) const {
  const std::int64_t k = roots();
  if (k == 1) return {0, static_cast<R>(std::sqrt(rho_))};
  const std::vector<double> poles(poles_.begin(), poles_.end()), weights(weights_.begin(), weights_.end());
  std::vector<double> below(k), above(k);  // pole - root, pole + root
  double value = 0;
  const int size = static_cast<int>(k), place = static_cast<int>(index) + 1;
  int info = 0;
  dlasd4_(&size, &place, poles.data(), weights.data(), below.data(), &rho_, &value, above.data(), &info);
  std::int64_t pole = index;
  if (index + 1 < k && std::abs(below[index + 1]) < std::abs(below[index])) ++pole;
  if (info == 0 && std::isfinite(below[pole]) && below[pole] != 0)
    return {pole, static_cast<R>(-below[pole])};
  const auto [found_pole, distance] = Equation{poles, weights, rho_}.root(index);
  return {found_pole, static_cast<R>(distance)};
}

template <class R> void SingularMerge<R>::take(std::vector<Root> found) {
  roots_ = std::move(found);
  const std::int64_t k = roots();
  // Weights for which the roots as found are exact, so that the vectors are orthogonal (Loewner's formula).
  std::vector<R> products(k, R(1));
  const R* const poles = poles_.data();
  for (std::int64_t j = 0; j < k; ++j) {
    const Gap gap = gap_to(roots_[j]);
    const R pole = poles[j];
    const auto multiply = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i)
        products[i] *= gap(poles[i]) / ((poles[i] - pole) * (poles[i] + pole));
    };
    multiply(0, j), multiply(j + 1, k);
    products[j] *= gap(pole);
  }
  for (std::int64_t i = 0; i < k; ++i)
    weights_[i] = std::copysign(std::sqrt(std::abs(products[i])), weights_[i]);
  left_norms_.assign(k, 0), right_norms_.assign(k, 0);
  for (std::int64_t j = 0; j < k; ++j) {
    const Gap gap = gap_to(roots_[j]);
    double left = 1, right = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      const double part = weights_[i] / gap(poles[i]), scaled = poles[i] * part;
      right += part * part, left += scaled * scaled;
    }
    left_norms_[j] = std::sqrt(left), right_norms_[j] = std::sqrt(right);
  }
  order_.clear();
  for (std::int64_t j = 0; j < k; ++j) order_.push_back({poles_[roots_[j].pole] + roots_[j].distance, j, -1});
  for (const std::int64_t column : kept_) order_.push_back({d_[column], -1, column});
  std::stable_sort(order_.begin(), order_.end(),
                   [](const Source& a, const Source& b) { return a.value > b.value; });
  if (is_wide_) order_.push_back({R(0), -1, static_cast<std::int64_t>(d_.size()) - 1});
}

template <class R> void SingularMerge<R>::vectors(Side side, const std::vector<std::int64_t>& places,
                                                  const std::int64_t* which, std::int64_t count,
                                                  R* to) const {
  const auto rows = static_cast<std::int64_t>(places.size());
  std::vector<R> poles(rows), weights(rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    poles[i] = poles_[places[i]];
    weights[i] = weights_[places[i]] * (side == Side::left ? poles[i] : R(1));
  }
  const bool has_middle = side == Side::left && rows > 0 && places[0] == 0;
  for (std::int64_t c = 0; c < count; ++c) {
    const Gap gap = gap_to(roots_[which[c]]);
    const R inverse = static_cast<R>(1 / (side == Side::left ? left_norms_ : right_norms_)[which[c]]);
    R* const vector = to + c * rows;
    for (std::int64_t i = 0; i < rows; ++i) vector[i] = weights[i] * inverse / gap(poles[i]);
    if (has_middle) vector[0] = -inverse;
  }
}

template <class R> bool bidiagonal_svd(std::int64_t n, bool is_wide, const R* d_given, const R* e_given,
                                       R* values, R* u, R* v, std::int64_t ld) {
  const std::int64_t columns = n + (is_wide ? 1 : 0);
  std::vector<double> d(d_given, d_given + n), e(e_given, e_given + std::max<std::int64_t>(columns - 1, 0)),
      left(n * n, 0), right(columns * columns, 0);  // right: transposed
  for (std::int64_t i = 0; i < n; ++i) left[i * (n + 1)] = 1;
  for (std::int64_t i = 0; i < columns; ++i) right[i * (columns + 1)] = 1;
  int info = 0;
  if (n > 0) {
    const int size = lapack_int(n, "a matrix extent"), ld_right = static_cast<int>(columns),
              wide = is_wide ? 1 : 0, smallest = 25;
    std::vector<int> integers(8 * n);
    std::vector<double> work(3 * columns * columns + 2 * columns);
    dlasd0_(&size, &wide, d.data(), e.data(), left.data(), &size, right.data(), &ld_right, &smallest,
            integers.data(), work.data(), &info);
  }
  std::vector<std::int64_t> sorted(n);
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) { return d[a] > d[b]; });
  const auto to_type = [](double x) { return static_cast<R>(x); };
  for (std::int64_t j = 0; j < columns; ++j) {
    const std::int64_t from = j < n ? sorted[j] : j;
    if (j < n) {
      values[j] = static_cast<R>(d[from]);
      std::transform(left.data() + from * n, left.data() + (from + 1) * n, u + j * ld, to_type);
    }
    for (std::int64_t i = 0; i < columns; ++i) v[i + j * ld] = static_cast<R>(right[from + i * columns]);
  }
  return info == 0;
}

template <class R> bool bidiagonal_values(std::int64_t n, R* d, R* e) {
  if (n == 0) return true;
  const int size = lapack_int(n, "a matrix extent"), none = 0, one = 1;
  int info = 0;
  R nothing = 0;
  std::vector<R> work(4 * n);
  variant<R>(sbdsqr_, dbdsqr_)("U", &size, &none, &none, &none, d, e, &nothing, &one, &nothing, &one,
                               &nothing, &one, work.data(), &info);
  return info == 0;
}

template class SingularMerge<float>;
template class SingularMerge<double>;
template bool bidiagonal_svd<float>(std::int64_t, bool, const float*, const float*, float*, float*, float*,
                                    std::int64_t);
template bool bidiagonal_svd<double>(std::int64_t, bool, const double*, const double*, double*, double*,
                                     double*, std::int64_t);
template bool bidiagonal_values<float>(std::int64_t, float*, float*);
template bool bidiagonal_values<double>(std::int64_t, double*, double*);

}  // namespace tessera::kernels
