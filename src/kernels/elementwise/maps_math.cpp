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
#include "kernels/elementwise/math/bessel-inl.hpp"
#include "kernels/elementwise/math/exponents-inl.hpp"
#include "kernels/elementwise/math/own-inl.hpp"
#include "kernels/elementwise/math/remainders-inl.hpp"
#include "kernels/elementwise/sleef-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

// Processes whole vectors, then the remainder in a vector padded with 1, a value in every function's domain.
template <class F, class T> void vector_map1(const void* const* in, void* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* a = static_cast<const T*>(in[0]);
  T* r = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F{}(d, hn::LoadU(d, a + i)), d, r + i);
  if (i == n) return;
  HWY_ALIGN T rest[hn::MaxLanes(hn::ScalableTag<T>())];
  const auto bytes = (n - i) * sizeof(T);
  hn::Store(hn::Set(d, T(1)), d, rest);
  std::memcpy(rest, a + i, bytes);
  hn::Store(F{}(d, hn::Load(d, rest)), d, rest);
  std::memcpy(r + i, rest, bytes);
}

template <class F, class T> void vector_map2(const void* const* in, void* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* r = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F{}(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, r + i);
  if (i == n) return;
  HWY_ALIGN T rest_a[hn::MaxLanes(hn::ScalableTag<T>())], rest_b[hn::MaxLanes(hn::ScalableTag<T>())];
  const auto bytes = (n - i) * sizeof(T);
  hn::Store(hn::Set(d, T(1)), d, rest_a);
  hn::Store(hn::Set(d, T(1)), d, rest_b);
  std::memcpy(rest_a, a + i, bytes);
  std::memcpy(rest_b, b + i, bytes);
  hn::Store(F{}(d, hn::Load(d, rest_a), hn::Load(d, rest_b)), d, rest_a);
  std::memcpy(r + i, rest_a, bytes);
}

template <class T> bool are_equal(const T* values, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto first = hn::Set(d, values[0]);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    if (!hn::AllTrue(d, hn::Eq(hn::LoadU(d, values + i), first))) return false;
  for (; i < n; ++i)
    if (values[i] != values[0]) return false;
  return true;
}

// Powers by one number, which is an operand of equal elements, run a loop of their own if they are simple.
template <class T> void power_map(const void* const* in, void* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  T* r = static_cast<T*>(out);
  std::int64_t i = 0;
  VisitSimplePowers(d, [&](T exponent, auto power) HWY_ATTR {
    if (n < lanes || b[0] != exponent || !are_equal(b, n)) return false;
    for (; i + lanes <= n; i += lanes) hn::StoreU(power(hn::LoadU(d, a + i)), d, r + i);
    return true;
  });
  const void* rest[] = {a + i, b + i};
  const auto any = [](auto tag, auto... x) __attribute__((always_inline)) HWY_ATTR {
    return OwnPow(tag, x...);
  };
  vector_map2<decltype(any), T>(rest, r + i, n - i);
}

// minimum(maximum(x, low), high); NaN in any operand propagates.
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

template <class D, class V> HWY_INLINE V Sigmoid(D d, V x) {
  // Negative arguments of the exponential cannot overflow: 1 / (1 + e^-x), or e^x / (1 + e^x) for x < 0.
  const auto one = hn::Set(d, 1);
  const auto e = Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}
template <class D, class V> HWY_INLINE V Silu(D d, V x) { return hn::Mul(x, Sigmoid(d, x)); }
// x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
template <class D, class V, class Tanh> HWY_INLINE V GeluBy(D d, V x, Tanh tanh) {
  using T = hn::TFromD<D>;
  const auto cubed = hn::Mul(hn::Mul(x, x), x);
  const auto inner =
      hn::Mul(hn::Set(d, T(0.79788456080286535588)), hn::Add(x, hn::Mul(hn::Set(d, T(0.044715)), cubed)));
  return hn::Mul(x, hn::Mul(hn::Set(d, T(0.5)), hn::Add(hn::Set(d, T(1)), tanh(d, inner))));
}
template <class D, class V> HWY_INLINE V Gelu(D d, V x) {
  return GeluBy(d, x, [](auto tag, auto v) HWY_ATTR { return Tanh(tag, v); });
}
template <class D, class V> HWY_INLINE V FastGelu(D d, V x) {
  return GeluBy(d, x, [](auto tag, auto v) HWY_ATTR { return FastTanh(tag, v); });
}
template <class D, class V> HWY_INLINE V Softplus(D d, V x) {
  const auto tail = OwnLog1p(d, Exp(d, hn::Neg(hn::Abs(x))));
  return hn::Add(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x), tail);
}
template <class D, class V> HWY_INLINE V LogAddExp(D d, V a, V b) {
  using T = hn::TFromD<D>;
  const auto difference = hn::Sub(a, b);
  const auto larger = hn::IfThenElse(hn::Gt(a, b), a, b);
  const auto apart = hn::Add(larger, OwnLog1p(d, Exp(d, hn::Neg(hn::Abs(difference)))));
  // Equal operands are handled apart: infinite ones would have a NaN difference. A NaN operand propagates to
  // `apart` through the difference.
  return hn::IfThenElse(hn::Eq(a, b), hn::Add(a, hn::Set(d, T(0.69314718055994530942))), apart);
}

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

// F(d, vectors...) as an object without state.
#define TESSERA_VECTORS(F) \
  [](auto d, auto... x) __attribute__((always_inline)) HWY_ATTR { return F(d, x...); }
template <class T, class F> void add_vector1(MapTable& table, Map& map, F) {
  table.add(map, 1, dtype_of<T>(), vector_map1<F, T>);
}
template <class T, class F> void add_vector2(MapTable& table, Map& map, F) {
  table.add(map, 2, dtype_of<T>(), vector_map2<F, T>);
}

template <class T, class F, class Precise> void add_vector1(MapTable& table, Map& map, F, Precise) {
  table.add(map, 1, dtype_of<T>(), vector_map1<F, T>);
  table.add_precise(map, dtype_of<T>(), vector_map1<Precise, T>);
}
template <class T, class F, class Precise> void add_vector2(MapTable& table, Map& map, F, Precise) {
  table.add(map, 2, dtype_of<T>(), vector_map2<F, T>);
  table.add_precise(map, dtype_of<T>(), vector_map2<Precise, T>);
}

template <class T> void add_unary(MapTable& table) {
  add_vector1<T>(table, map<"exp">, TESSERA_VECTORS(Exp));
  add_vector1<T>(table, map<"exp2">, TESSERA_VECTORS(Exp2));
  add_vector1<T>(table, map<"expm1">, TESSERA_VECTORS(OwnExpm1));
  add_vector1<T>(table, map<"log">, TESSERA_VECTORS(FastLog), TESSERA_VECTORS(Log));
  add_vector1<T>(table, map<"log2">, TESSERA_VECTORS(FastLog2), TESSERA_VECTORS(Log2));
  add_vector1<T>(table, map<"log10">, TESSERA_VECTORS(OwnLog10));
  add_vector1<T>(table, map<"log1p">, TESSERA_VECTORS(OwnLog1p));
  add_vector1<T>(table, map<"sin">, TESSERA_VECTORS(FastSin), TESSERA_VECTORS(Sin));
  add_vector1<T>(table, map<"cos">, TESSERA_VECTORS(FastCos), TESSERA_VECTORS(Cos));
  add_vector1<T>(table, map<"tan">, TESSERA_VECTORS(FastTan), TESSERA_VECTORS(Tan));
  add_vector1<T>(table, map<"asin">, TESSERA_VECTORS(FastAsin), TESSERA_VECTORS(Asin));
  add_vector1<T>(table, map<"acos">, TESSERA_VECTORS(FastAcos), TESSERA_VECTORS(Acos));
  add_vector1<T>(table, map<"atan">, TESSERA_VECTORS(FastAtan), TESSERA_VECTORS(Atan));
  add_vector1<T>(table, map<"sinh">, TESSERA_VECTORS(FastSinh), TESSERA_VECTORS(Sinh));
  add_vector1<T>(table, map<"cosh">, TESSERA_VECTORS(FastCosh), TESSERA_VECTORS(Cosh));
  add_vector1<T>(table, map<"tanh">, TESSERA_VECTORS(FastTanh), TESSERA_VECTORS(Tanh));
  add_vector1<T>(table, map<"asinh">, TESSERA_VECTORS(OwnAsinh));
  add_vector1<T>(table, map<"acosh">, TESSERA_VECTORS(OwnAcosh));
  add_vector1<T>(table, map<"atanh">, TESSERA_VECTORS(OwnAtanh));
  add_vector1<T>(table, map<"erf">, TESSERA_VECTORS(Erf));
  add_vector1<T>(table, map<"erfc">, TESSERA_VECTORS(Erfc));
  add_vector1<T>(table, map<"erf_inv">, TESSERA_VECTORS(ErfInv));
  add_vector1<T>(table, map<"cbrt">, TESSERA_VECTORS(OwnCbrt));
  add_vector1<T>(table, map<"lgamma">, TESSERA_VECTORS(Lgamma));
  add_vector1<T>(table, map<"i0">, TESSERA_VECTORS(BesselI0));
  add_vector1<T>(table, map<"i1">, TESSERA_VECTORS(BesselI1));
  add_vector1<T>(table, map<"i0e">, TESSERA_VECTORS(BesselI0e));
  add_vector1<T>(table, map<"i1e">, TESSERA_VECTORS(BesselI1e));
  add_vector1<T>(table, map<"sigmoid">, TESSERA_VECTORS(Sigmoid));
  add_vector1<T>(table, map<"silu">, TESSERA_VECTORS(Silu));
  add_vector1<T>(table, map<"gelu">, TESSERA_VECTORS(FastGelu), TESSERA_VECTORS(Gelu));
  add_vector1<T>(table, map<"softplus">, TESSERA_VECTORS(Softplus));
  add_vector1<T>(table, map<"frexp_exponent">, TESSERA_VECTORS(FrexpExponent));
  add1<Digamma, T>(table, map<"digamma">);
}

template <class T> void add_binary(MapTable& table) {
  table.add(map<"clip">, 3, dtype_of<T>(), clip_map<T>);
  table.add(map<"multiply_add">, 3, dtype_of<T>(), multiply_add_map<T>);
  table.add(map<"power">, 2, dtype_of<T>(), power_map<T>);
  table.add(map<"ldexp">, 2, dtype_of<T>(), ldexp_map<T>);
  table.add(map<"floor_divide">, 2, dtype_of<T>(), remainder_map<FloorDivide, T>);
  table.add(map<"remainder">, 2, dtype_of<T>(), remainder_map<Remainder, T>);
  table.add(map<"fmod">, 2, dtype_of<T>(), remainder_map<Fmod, T>);
  add_vector2<T>(table, map<"atan2">, TESSERA_VECTORS(FastAtan2), TESSERA_VECTORS(Atan2));
  add_vector2<T>(table, map<"hypot">, TESSERA_VECTORS(Hypot));
  add_vector2<T>(table, map<"logaddexp">, TESSERA_VECTORS(LogAddExp));
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
