#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/spectral/secular.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/spectral/secular.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class R>
PoleSums<R> Sums(std::int64_t count, const R* poles, const R* weights, R origin, R distance) {
  constexpr hn::ScalableTag<R> d{};
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto start = hn::Set(d, origin), step = hn::Set(d, distance);
  auto value = hn::Zero(d), slope = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto weight = hn::LoadU(d, weights + i);
    const auto part = hn::Div(weight, hn::Sub(hn::Sub(hn::LoadU(d, poles + i), start), step));
    value = hn::MulAdd(weight, part, value);
    slope = hn::MulAdd(part, part, slope);
  }
  PoleSums<R> sums{hn::GetLane(hn::SumOfLanes(d, value)), hn::GetLane(hn::SumOfLanes(d, slope))};
  for (; i < count; ++i) {
    const R part = weights[i] / ((poles[i] - origin) - distance);
    sums.value += weights[i] * part, sums.slope += part * part;
  }
  return sums;
}

template <class R>
void Ratios(std::int64_t count, const R* poles, R origin, R distance, R pole, R* HWY_RESTRICT products) {
  constexpr hn::ScalableTag<R> d{};
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto start = hn::Set(d, origin), step = hn::Set(d, distance), other = hn::Set(d, pole);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto at = hn::LoadU(d, poles + i);
    const auto ratio = hn::Div(hn::Sub(hn::Sub(at, start), step), hn::Sub(at, other));
    hn::StoreU(hn::Mul(hn::LoadU(d, products + i), ratio), d, products + i);
  }
  for (; i < count; ++i) products[i] *= ((poles[i] - origin) - distance) / (poles[i] - pole);
}

PoleSums<float> Sums32(std::int64_t n, const float* poles, const float* weights, float origin,
                       float distance) {
  return Sums(n, poles, weights, origin, distance);
}
PoleSums<double> Sums64(std::int64_t n, const double* poles, const double* weights, double origin,
                        double distance) {
  return Sums(n, poles, weights, origin, distance);
}
void Ratios32(std::int64_t n, const float* poles, float origin, float distance, float pole, float* products) {
  Ratios(n, poles, origin, distance, pole, products);
}
void Ratios64(std::int64_t n, const double* poles, double origin, double distance, double pole,
              double* products) {
  Ratios(n, poles, origin, distance, pole, products);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>
#include <limits>
namespace tessera::kernels {
HWY_EXPORT(Sums32);
HWY_EXPORT(Sums64);
HWY_EXPORT(Ratios32);
HWY_EXPORT(Ratios64);

template <class R>
PoleSums<R> pole_sums(std::int64_t count, const R* poles, const R* weights, R origin, R distance) {
  if constexpr (sizeof(R) == 4)
    return HWY_DYNAMIC_DISPATCH(Sums32)(count, poles, weights, origin, distance);
  else
    return HWY_DYNAMIC_DISPATCH(Sums64)(count, poles, weights, origin, distance);
}
template <class R>
void multiply_ratios(std::int64_t count, const R* poles, R origin, R distance, R pole, R* products) {
  if constexpr (sizeof(R) == 4)
    HWY_DYNAMIC_DISPATCH(Ratios32)(count, poles, origin, distance, pole, products);
  else
    HWY_DYNAMIC_DISPATCH(Ratios64)(count, poles, origin, distance, pole, products);
}

namespace {

template <class R> class RootFinder {
 public:
  RootFinder(std::int64_t index, const std::vector<R>& poles, const std::vector<R>& weights, R rho)
      : index_(index),
        count_(static_cast<std::int64_t>(poles.size())),
        is_last_(index + 1 == count_),
        left_(is_last_ ? index - 1 : index),
        poles_(poles.data()),
        weights_(weights.data()),
        rho_(rho) {}

  std::optional<SecularRoot<R>> find() {
    choose_origin();
    constexpr R eps = std::numeric_limits<R>::epsilon();
    constexpr int most_steps = 40;  // usually three to six are taken
    for (int step = 0; step < most_steps; ++step) {
      const auto front = sums(0, left_ + 1, distance_), behind = sums(left_ + 1, count_, distance_);
      const R value = 1 / rho_ + front.value + behind.value, slope = front.slope + behind.slope;
      if (!std::isfinite(value) || !std::isfinite(slope)) return std::nullopt;
      // The rounding errors of the sums, as in LAPACK, and of the distance.
      const R noise = eps * (8 * (std::abs(front.value) + std::abs(behind.value)) + 1 / rho_ +
                             std::abs(distance_) * slope);
      if (std::abs(value) <= noise) return SecularRoot<R>{origin_, distance_};
      (value < 0 ? lower_ : upper_) = distance_;
      const R next = distance_ + change(value, front.slope, behind.slope);
      if (next == distance_ || upper_ - lower_ <= eps * std::abs(distance_))
        return SecularRoot<R>{origin_, distance_};
      distance_ = next;
    }
    return std::nullopt;
  }

 private:
  PoleSums<R> sums(std::int64_t from, std::int64_t to, R distance) const {
    return pole_sums(to - from, poles_ + from, weights_ + from, poles_[origin_], distance);
  }
  R square(std::int64_t i) const { return weights_[i] * weights_[i]; }

  // The half of the interval that the root is in, and the root of the equation whose terms other than the two
  // nearest are constant.
  void choose_origin() {
    const R gap = poles_[left_ + 1] - poles_[left_];
    origin_ = index_;
    const R middle = (is_last_ ? rho_ : gap) / 2;
    const R c = 1 / rho_ + sums(0, left_, middle).value + sums(left_ + 2, count_, middle).value;
    const R left = square(left_), right = square(left_ + 1);
    if (is_last_) {
      const R value = c - left / (gap + middle) - right / middle;
      lower_ = value <= 0 ? middle : 0, upper_ = value <= 0 ? rho_ : middle;
      const R a = left + right - c * gap, b = right * gap, root = std::sqrt(std::abs(a * a + 4 * b * c));
      distance_ = a < 0 ? 2 * b / (root - a) : (a + root) / (2 * c);
    } else if (c + (right - left) / middle >= 0) {
      lower_ = 0, upper_ = middle;
      const R a = c * gap + left + right, b = left * gap, root = std::sqrt(std::abs(a * a - 4 * b * c));
      distance_ = a > 0 ? 2 * b / (a + root) : (a - root) / (2 * c);
    } else {
      origin_ = index_ + 1;
      lower_ = -middle, upper_ = 0;
      const R a = c * gap - left - right, b = right * gap, root = std::sqrt(std::abs(a * a + 4 * b * c));
      distance_ = a < 0 ? 2 * b / (a - root) : -(a + root) / (2 * c);
    }
    if (!(distance_ > lower_ && distance_ < upper_)) distance_ = (lower_ + upper_) / 2;
  }

  // The step to the root of  c + s / (d_left - x) + t / (d_right - x)  that has the sums' values and slopes.
  R change(R value, R front_slope, R behind_slope) const {
    const R left = (poles_[left_] - poles_[origin_]) - distance_,
            right = (poles_[left_ + 1] - poles_[origin_]) - distance_, slope = front_slope + behind_slope;
    R c = value - left * front_slope - right * behind_slope;
    const R a = (left + right) * value - left * right * slope, b = left * right * value;
    R step = 0;
    if (is_last_) {
      c = std::abs(c);
      const R root = std::sqrt(std::abs(a * a - 4 * b * c));
      step = a >= 0 ? (a + root) / (2 * c) : 2 * b / (a - root);
    } else {
      const R root = std::sqrt(std::abs(a * a - 4 * b * c));
      step = a <= 0 ? (a - root) / (2 * c) : 2 * b / (a + root);
    }
    if (!(value * step < 0)) step = -value / slope;  // Newton's: the sums increase
    const R next = distance_ + step;
    if (!(next > lower_ && next < upper_)) step = ((value < 0 ? upper_ : lower_) - distance_) / 2;
    return step;
  }

  const std::int64_t index_, count_;
  const bool is_last_;
  const std::int64_t left_;  // of the two nearest poles
  const R *const poles_, *const weights_;
  const R rho_;
  std::int64_t origin_ = 0;
  R distance_ = 0, lower_ = 0, upper_ = 0;
};

}  // namespace

template <class R> std::optional<SecularRoot<R>> secular_root(std::int64_t index, const std::vector<R>& poles,
                                                              const std::vector<R>& weights, R rho) {
  return RootFinder<R>(index, poles, weights, rho).find();
}

#define TESSERA_INSTANTIATE(R)                                                                \
  template PoleSums<R> pole_sums<R>(std::int64_t, const R*, const R*, R, R);                  \
  template void multiply_ratios<R>(std::int64_t, const R*, R, R, R, R*);                      \
  template std::optional<SecularRoot<R>> secular_root<R>(std::int64_t, const std::vector<R>&, \
                                                         const std::vector<R>&, R);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::kernels
#endif
