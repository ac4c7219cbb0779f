// Powers of exp(-+ 2 pi i / n), from two tables of about sqrt(n) entries: w^e = high[e / s] * low[e % s].
// Each is the product of two correctly rounded numbers, so that errors do not grow with e.
#pragma once
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "kernels/fourier/fft.hpp"

namespace tessera {

template <class R> class RootsOfUnity {
 public:
  RootsOfUnity(std::int64_t n, kernels::FftSign sign) : n_(n) {
    while ((std::int64_t{1} << (2 * shift_)) < n) ++shift_;
    const double turn =
        (sign == kernels::FftSign::forward ? -2 : 2) * std::numbers::pi / static_cast<double>(n);
    const auto root = [&](std::int64_t e) {
      const double angle = turn * static_cast<double>(e);
      return std::complex<R>(static_cast<R>(std::cos(angle)), static_cast<R>(std::sin(angle)));
    };
    for (std::int64_t e = 0; e < std::int64_t{1} << shift_; ++e) low_.push_back(root(e));
    for (std::int64_t e = 0; e <= n >> shift_; ++e) high_.push_back(root(e << shift_));
  }

  // value * w^e, 0 <= e < n
  std::complex<R> times_power(const std::complex<R>& value, std::int64_t e) const {
    const auto high = high_[e >> shift_], low = low_[e & ((std::int64_t{1} << shift_) - 1)];
    const R re = high.real() * low.real() - high.imag() * low.imag(),
            im = high.real() * low.imag() + high.imag() * low.real();
    const R x = value.real(), y = value.imag();
    return {x * re - y * im, x * im + y * re};
  }
  // values[k] *= w^(k * step), 0 <= step < n
  void multiply_by_powers(std::complex<R>* values, std::int64_t count, std::int64_t step) const {
    if (step == 0) return;
    std::int64_t e = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      values[k] = times_power(values[k], e);
      e += step;
      if (e >= n_) e -= n_;
    }
  }

 private:
  std::int64_t n_;
  int shift_ = 0;
  std::vector<std::complex<R>> low_, high_;
};

}  // namespace tessera
