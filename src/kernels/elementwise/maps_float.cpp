// Arithmetic, comparisons and rounding of float32 and float64. Plain loops, vectorised by the compiler for
// each instruction set.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/maps_float.cpp"
#include <hwy/foreach_target.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/map_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

// The builtins become single instructions where the target has them.
inline float floor_of(float x) { return __builtin_floorf(x); }
inline double floor_of(double x) { return __builtin_floor(x); }
inline float sqrt_of(float x) { return __builtin_sqrtf(x); }
inline double sqrt_of(double x) { return __builtin_sqrt(x); }
inline float copysign_of(float x, float y) { return __builtin_copysignf(x, y); }
inline double copysign_of(double x, double y) { return __builtin_copysign(x, y); }

struct Add {
  template <class T> static T of(T a, T b) { return a + b; }
};
struct Subtract {
  template <class T> static T of(T a, T b) { return a - b; }
};
struct Multiply {
  template <class T> static T of(T a, T b) { return a * b; }
};
struct Divide {
  template <class T> static T of(T a, T b) { return a / b; }
};
struct Negative {
  template <class T> static T of(T a) { return -a; }
};
struct Square {
  template <class T> static T of(T a) { return a * a; }
};
struct Reciprocal {
  template <class T> static T of(T a) { return T(1) / a; }
};
struct Sqrt {
  template <class T> static T of(T a) { return sqrt_of(a); }
};
struct Rsqrt {
  template <class T> static T of(T a) { return T(1) / sqrt_of(a); }
};
struct Abs {
  template <class T> static T of(T a) { return copysign_of(a, T(1)); }
};
struct CopySign {
  template <class T> static T of(T a, T b) { return copysign_of(a, b); }
};
struct Relu {
  template <class T> static T of(T a) { return ((a > T(0)) | (a != a)) ? a : T(0); }
};
struct Sign {  // sign(-0) is 0
  template <class T> static T of(T a) { return ((a == T(0)) | (a != a)) ? a + T(0) : copysign_of(T(1), a); }
};
struct Maximum {
  template <class T> static T of(T a, T b) { return ((a > b) | (a != a)) ? a : b; }
};
struct Minimum {
  template <class T> static T of(T a, T b) { return ((a < b) | (a != a)) ? a : b; }
};
// The results of fmax and fmin: the other operand where one is NaN, the second of two zeros.
struct FMax {
  template <class T> static T of(T a, T b) { return ((a > b) | (b != b)) ? a : b; }
};
struct FMin {
  template <class T> static T of(T a, T b) { return ((a < b) | (b != b)) ? a : b; }
};
struct Floor {
  template <class T> static T of(T a) { return floor_of(a); }
};
struct Ceil {
  static float of(float a) { return __builtin_ceilf(a); }
  static double of(double a) { return __builtin_ceil(a); }
};
struct Trunc {
  static float of(float a) { return __builtin_truncf(a); }
  static double of(double a) { return __builtin_trunc(a); }
};
struct Round {  // half to even: the default rounding mode
  static float of(float a) { return __builtin_rintf(a); }
  static double of(double a) { return __builtin_rint(a); }
};
struct IsNan {
  template <class T> static std::uint8_t of(T a) { return a != a; }
};
struct IsInf {
  template <class T> static std::uint8_t of(T a) { return Abs::of(a) == std::numeric_limits<T>::infinity(); }
};
struct IsFinite {
  template <class T> static std::uint8_t of(T a) { return Abs::of(a) < std::numeric_limits<T>::infinity(); }
};
struct Zero {
  template <class T> static T of(T) { return T(0); }
};

// The bits of a float grow with its magnitude: one more or less is the next number.
struct NextAfter {
  template <class T> static T of(T a, T b) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const Bits away = (a < b) == (a > T(0)) ? Bits{1} : ~Bits{0};
    const T next = std::bit_cast<T>(std::bit_cast<Bits>(a) + away);
    const T beside_zero = copysign_of(std::numeric_limits<T>::denorm_min(), b);
    const T other = a == T(0) ? beside_zero : next;
    return ((a != a) | (b != b)) ? a + b : a == b ? b : other;
  }
};

template <class T> void copy_map(const void* const* in, void* out, std::int64_t n) {
  if (in[0] != out && n > 0) std::memmove(out, in[0], n * sizeof(T));
}

template <class T> void add_maps(MapTable& table) {
  add2<Add, T>(table, map<"add">);
  add2<Subtract, T>(table, map<"subtract">);
  add2<Multiply, T>(table, map<"multiply">);
  add2<Divide, T>(table, map<"divide">);
  add2<Maximum, T>(table, map<"maximum">);
  add2<Minimum, T>(table, map<"minimum">);
  add2<FMax, T>(table, map<"fmax">);
  add2<FMin, T>(table, map<"fmin">);
  add2<CopySign, T>(table, map<"copysign">);
  add2<NextAfter, T>(table, map<"nextafter">);
  add1<Negative, T>(table, map<"negative">);
  add1<Abs, T>(table, map<"abs">);
  add1<Square, T>(table, map<"square">);
  add1<Reciprocal, T>(table, map<"reciprocal">);
  add1<Sqrt, T>(table, map<"sqrt">);
  add1<Rsqrt, T>(table, map<"rsqrt">);
  add1<Relu, T>(table, map<"relu">);
  add1<Sign, T>(table, map<"sign">);
  add1<Floor, T>(table, map<"floor">);
  add1<Ceil, T>(table, map<"ceil">);
  add1<Trunc, T>(table, map<"trunc">);
  add1<Round, T>(table, map<"round">);
  add1<Zero, T>(table, map<"imag">);
  test1<IsNan, T>(table, map<"isnan">);
  test1<IsInf, T>(table, map<"isinf">);
  test1<IsFinite, T>(table, map<"isfinite">);
  test1<LogicalNot, T>(table, map<"logical_not">);
  test2<LogicalAnd, T>(table, map<"logical_and">);
  test2<LogicalOr, T>(table, map<"logical_or">);
  test2<LogicalXor, T>(table, map<"logical_xor">);
  test2<Equal, T>(table, map<"equal">);
  test2<NotEqual, T>(table, map<"not_equal">);
  test2_both_ways<Less, T>(table, map<"less">, map<"greater">);
  test2_both_ways<LessEqual, T>(table, map<"less_equal">, map<"greater_equal">);
  table.add(map<"where">, 3, dtype_of<T>(), map_where<T>);
  for (Map* kept : {&map<"copy">, &map<"real">, &map<"conj">})
    table.add(*kept, 1, dtype_of<T>(), copy_map<T>);
}

void AddFloatMaps(MapTable& table) {
  add_maps<float>(table);
  add_maps<double>(table);
  for (const Dtype half : {bfloat16, float16}) {  // functions without arithmetic; the others run in float32
    table.add(map<"where">, 3, half, map_where<std::uint16_t>);
    table.add(map<"copy">, 1, half, copy_map<std::uint16_t>);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(AddFloatMaps);
void add_float_maps(MapTable& table) { HWY_DYNAMIC_DISPATCH(AddFloatMaps)(table); }
}  // namespace tessera::kernels
#endif
