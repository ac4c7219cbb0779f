// Transcendental functions of float32 and float64, a whole vector at a time.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/maps_math.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/elementwise/erf_inv-inl.hpp"
#include "kernels/elementwise/map_loops-inl.hpp"
#include "kernels/elementwise/sleef-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

// Whole vectors, then the rest through a padded vector. The padding is 1, a value that every function here
// takes.
template <class F, class T> void vector_map1(const void* const* in, void* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* a = static_cast<const T*>(in[0]);
  T* r = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::of(d, hn::LoadU(d, a + i)), d, r + i);
  if (i == n) return;
  HWY_ALIGN T rest[hn::MaxLanes(hn::ScalableTag<T>())];
  const auto bytes = (n - i) * sizeof(T);
  hn::Store(hn::Set(d, T(1)), d, rest);
  std::memcpy(rest, a + i, bytes);
  hn::Store(F::of(d, hn::Load(d, rest)), d, rest);
  std::memcpy(r + i, rest, bytes);
}

template <class F, class T> void vector_map2(const void* const* in, void* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* r = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::of(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, r + i);
  if (i == n) return;
  HWY_ALIGN T rest_a[hn::MaxLanes(hn::ScalableTag<T>())], rest_b[hn::MaxLanes(hn::ScalableTag<T>())];
  const auto bytes = (n - i) * sizeof(T);
  hn::Store(hn::Set(d, T(1)), d, rest_a);
  hn::Store(hn::Set(d, T(1)), d, rest_b);
  std::memcpy(rest_a, a + i, bytes);
  std::memcpy(rest_b, b + i, bytes);
  hn::Store(F::of(d, hn::Load(d, rest_a), hn::Load(d, rest_b)), d, rest_a);
  std::memcpy(r + i, rest_a, bytes);
}

// minimum(maximum(x, low), high); NaN in any operand comes through.
template <class D, class V> HWY_INLINE V Clip(D d, V x, V low, V high) {
  (void)d;
  const auto raised = hn::IfThenElse(hn::Or(hn::Gt(x, low), hn::IsNaN(x)), x, low);
  return hn::IfThenElse(hn::Or(hn::Lt(raised, high), hn::IsNaN(raised)), raised, high);
}
template <class T> void clip_map(const void* const* in, void* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T *x = static_cast<const T*>(in[0]), *low = static_cast<const T*>(in[1]),
          *high = static_cast<const T*>(in[2]);
  T* r = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(Clip(d, hn::LoadU(d, x + i), hn::LoadU(d, low + i), hn::LoadU(d, high + i)), d, r + i);
  for (; i < n; ++i)
    hn::StoreU(Clip(one, hn::LoadU(one, x + i), hn::LoadU(one, low + i), hn::LoadU(one, high + i)), one,
               r + i);
}

// x * y + z, rounded once.
template <class T> void multiply_add_map(const void* const* in, void* out, std::int64_t n) {
  const T *x = static_cast<const T*>(in[0]), *y = static_cast<const T*>(in[1]),
          *z = static_cast<const T*>(in[2]);
  T* r = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) r[i] = std::fma(x[i], y[i], z[i]);
}

#define TESSERA_MATH_1(Name)                                                            \
  struct Name##Op {                                                                     \
    template <class D, class V> static HWY_INLINE V of(D d, V x) { return Name(d, x); } \
  };
#define TESSERA_MATH_2(Name)                                                                    \
  struct Name##Op {                                                                             \
    template <class D, class V> static HWY_INLINE V of(D d, V x, V y) { return Name(d, x, y); } \
  };

template <class D, class V> HWY_INLINE V Sigmoid(D d, V x) {
  // The exponential of what is not positive cannot overflow: 1 / (1 + e^-x), or e^x / (1 + e^x) for x < 0.
  const auto one = hn::Set(d, 1);
  const auto e = Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}
template <class D, class V> HWY_INLINE V Silu(D d, V x) { return hn::Mul(x, Sigmoid(d, x)); }
// x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
template <class D, class V> HWY_INLINE V Gelu(D d, V x) {
  using T = hn::TFromD<D>;
  const auto cubed = hn::Mul(hn::Mul(x, x), x);
  const auto inner =
      hn::Mul(hn::Set(d, T(0.79788456080286535588)), hn::Add(x, hn::Mul(hn::Set(d, T(0.044715)), cubed)));
  return hn::Mul(x, hn::Mul(hn::Set(d, T(0.5)), hn::Add(hn::Set(d, T(1)), Tanh(d, inner))));
}
template <class D, class V> HWY_INLINE V Softplus(D d, V x) {
  const auto tail = Log1p(d, Exp(d, hn::Neg(hn::Abs(x))));
  return hn::Add(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x), tail);
}
template <class D, class V> HWY_INLINE V LogAddExp(D d, V a, V b) {
  using T = hn::TFromD<D>;
  const auto difference = hn::Sub(a, b);
  const auto larger = hn::IfThenElse(hn::Gt(a, b), a, b);
  const auto apart = hn::Add(larger, Log1p(d, Exp(d, hn::Neg(hn::Abs(difference)))));
  // Equal operands, infinities included, whose difference would be NaN. A NaN operand reaches `apart`
  // through the difference.
  return hn::IfThenElse(hn::Eq(a, b), hn::Add(a, hn::Set(d, T(0.69314718055994530942))), apart);
}

TESSERA_MATH_1(Exp)
TESSERA_MATH_1(Exp2)
TESSERA_MATH_1(Expm1)
TESSERA_MATH_1(Log)
TESSERA_MATH_1(Log2)
TESSERA_MATH_1(Log10)
TESSERA_MATH_1(Log1p)
TESSERA_MATH_1(Sin)
TESSERA_MATH_1(Cos)
TESSERA_MATH_1(Tan)
TESSERA_MATH_1(Asin)
TESSERA_MATH_1(Acos)
TESSERA_MATH_1(Atan)
TESSERA_MATH_1(Sinh)
TESSERA_MATH_1(Cosh)
TESSERA_MATH_1(Tanh)
TESSERA_MATH_1(Asinh)
TESSERA_MATH_1(Acosh)
TESSERA_MATH_1(Atanh)
TESSERA_MATH_1(Erf)
TESSERA_MATH_1(Erfc)
TESSERA_MATH_1(ErfInv)
TESSERA_MATH_1(Cbrt)
TESSERA_MATH_1(Lgamma)
TESSERA_MATH_1(Sigmoid)
TESSERA_MATH_1(Silu)
TESSERA_MATH_1(Gelu)
TESSERA_MATH_1(Softplus)
TESSERA_MATH_2(Pow)
TESSERA_MATH_2(Atan2)
TESSERA_MATH_2(Hypot)
TESSERA_MATH_2(LogAddExp)
#undef TESSERA_MATH_1
#undef TESSERA_MATH_2

// psi(x): reflection for x < 0, recurrence up to 10, asymptotic series. In double for both types; relative
// error about 1e-15 away from the roots.
double digamma(double x) {
  constexpr double pi = 3.14159265358979323846;
  double below = 0;
  if (x <= 0) {
    if (x == std::floor(x))
      return x == 0 ? std::copysign(std::numeric_limits<double>::infinity(), -x)
                    : std::numeric_limits<double>::quiet_NaN();
    below = -pi / std::tan(pi * (x - std::floor(x)));
    x = 1 - x;
  }
  for (; x < 10; x += 1) below -= 1 / x;
  const double y = 1 / (x * x);
  const double series =
      y * (1.0 / 12 -
           y * (1.0 / 120 -
                y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y * (1.0 / 12)))))));
  return below + std::log(x) - 0.5 / x - series;
}
struct Digamma {
  template <class T> static T of(T x) { return static_cast<T>(digamma(static_cast<double>(x))); }
};

template <class T> void add_unary(MapTable& table) {
  constexpr Dtype d = dtype_of<T>();
  table.add("exp", d, vector_map1<ExpOp, T>);
  table.add("exp2", d, vector_map1<Exp2Op, T>);
  table.add("expm1", d, vector_map1<Expm1Op, T>);
  table.add("log", d, vector_map1<LogOp, T>);
  table.add("log2", d, vector_map1<Log2Op, T>);
  table.add("log10", d, vector_map1<Log10Op, T>);
  table.add("log1p", d, vector_map1<Log1pOp, T>);
  table.add("sin", d, vector_map1<SinOp, T>);
  table.add("cos", d, vector_map1<CosOp, T>);
  table.add("tan", d, vector_map1<TanOp, T>);
  table.add("asin", d, vector_map1<AsinOp, T>);
  table.add("acos", d, vector_map1<AcosOp, T>);
  table.add("atan", d, vector_map1<AtanOp, T>);
  table.add("sinh", d, vector_map1<SinhOp, T>);
  table.add("cosh", d, vector_map1<CoshOp, T>);
  table.add("tanh", d, vector_map1<TanhOp, T>);
  table.add("asinh", d, vector_map1<AsinhOp, T>);
  table.add("acosh", d, vector_map1<AcoshOp, T>);
  table.add("atanh", d, vector_map1<AtanhOp, T>);
  table.add("erf", d, vector_map1<ErfOp, T>);
  table.add("erfc", d, vector_map1<ErfcOp, T>);
  table.add("erf_inv", d, vector_map1<ErfInvOp, T>);
  table.add("cbrt", d, vector_map1<CbrtOp, T>);
  table.add("lgamma", d, vector_map1<LgammaOp, T>);
  table.add("sigmoid", d, vector_map1<SigmoidOp, T>);
  table.add("silu", d, vector_map1<SiluOp, T>);
  table.add("gelu", d, vector_map1<GeluOp, T>);
  table.add("softplus", d, vector_map1<SoftplusOp, T>);
  table.add("digamma", d, map1<Digamma, T>);
}

template <class T> void add_binary(MapTable& table) {
  constexpr Dtype d = dtype_of<T>();
  table.add("clip", d, clip_map<T>);
  table.add("multiply_add", d, multiply_add_map<T>);
  table.add("power", d, vector_map2<PowOp, T>);
  table.add("atan2", d, vector_map2<Atan2Op, T>);
  table.add("hypot", d, vector_map2<HypotOp, T>);
  table.add("logaddexp", d, vector_map2<LogAddExpOp, T>);
}

void AddMathMaps(MapTable& table) {
  add_unary<float>(table);
  add_unary<double>(table);
  add_binary<float>(table);
  add_binary<double>(table);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(AddMathMaps);
void add_math_maps(MapTable& table) { HWY_DYNAMIC_DISPATCH(AddMathMaps)(table); }
}  // namespace tessera::kernels
#endif
