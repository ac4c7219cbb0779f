#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/squeeze.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/random/squeeze.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void Squeeze(const Hats<T>& hats, T shift, const T* u, const T* v, std::int64_t n, T* k, T* is_sure) {
  const hn::ScalableTag<T> d;
  const auto half = hn::Set(d, T(0.5)), least = hn::Set(d, T(0.07)), one = hn::Set(d, T(1)),
             shifted = hn::Set(d, shift);
  for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto x = hn::Sub(hn::LoadU(d, u + i), half), s = hn::Sub(half, hn::Abs(x));
    const auto slope = hn::Add(hn::Div(hn::LoadU(d, hats.twice_a + i), s), hn::LoadU(d, hats.b + i));
    const auto at = hn::Add(hn::Add(hn::Mul(slope, x), hn::LoadU(d, hats.c + i)), shifted);
    const auto sure = hn::And(hn::Ge(s, least), hn::Le(hn::LoadU(d, v + i), hn::LoadU(d, hats.v_r + i)));
    hn::StoreU(hn::Floor(at), d, k + i);
    hn::StoreU(hn::IfThenElseZero(sure, one), d, is_sure + i);
  }
}
template <class T> void AddJumps(const T* log_u, const T* log_q, std::int64_t n, T* sum) {
  const hn::ScalableTag<T> d;
  for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto jump = hn::Ceil(hn::Div(hn::LoadU(d, log_u + i), hn::LoadU(d, log_q + i)));
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), jump), d, sum + i);
  }
}

void SqueezeFloats(const Hats<float>& hats, float shift, const float* u, const float* v, std::int64_t n,
                   float* k, float* is_sure) {
  Squeeze(hats, shift, u, v, n, k, is_sure);
}
void SqueezeDoubles(const Hats<double>& hats, double shift, const double* u, const double* v, std::int64_t n,
                    double* k, double* is_sure) {
  Squeeze(hats, shift, u, v, n, k, is_sure);
}
void JumpsOfFloats(const float* log_u, const float* log_q, std::int64_t n, float* sum) {
  AddJumps(log_u, log_q, n, sum);
}
void JumpsOfDoubles(const double* log_u, const double* log_q, std::int64_t n, double* sum) {
  AddJumps(log_u, log_q, n, sum);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(SqueezeFloats);
HWY_EXPORT(SqueezeDoubles);
HWY_EXPORT(JumpsOfFloats);
HWY_EXPORT(JumpsOfDoubles);

void squeeze(const Hats<float>& hats, float shift, const float* u, const float* v, std::int64_t n, float* k,
             float* is_sure) {
  HWY_DYNAMIC_DISPATCH(SqueezeFloats)(hats, shift, u, v, n, k, is_sure);
}
void squeeze(const Hats<double>& hats, double shift, const double* u, const double* v, std::int64_t n,
             double* k, double* is_sure) {
  HWY_DYNAMIC_DISPATCH(SqueezeDoubles)(hats, shift, u, v, n, k, is_sure);
}
void add_jumps(const float* log_u, const float* log_q, std::int64_t n, float* sum) {
  HWY_DYNAMIC_DISPATCH(JumpsOfFloats)(log_u, log_q, n, sum);
}
void add_jumps(const double* log_u, const double* log_q, std::int64_t n, double* sum) {
  HWY_DYNAMIC_DISPATCH(JumpsOfDoubles)(log_u, log_q, n, sum);
}
}  // namespace tessera::kernels
#endif
