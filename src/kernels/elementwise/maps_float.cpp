// Arithmetic, comparisons and rounding of float32 and float64. Plain loops, vectorised by the compiler for
// each instruction set.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/maps_float.cpp"
#include <hwy/foreach_target.h>

#include <cmath>
#include <cstring>
#include <limits>

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
  template <class T> static T of(T a) { return (a > T(0)) | (a != a) ? a : T(0); }
};
struct Sign {
  template <class T> static T of(T a) { return (a == T(0)) | (a != a) ? a : copysign_of(T(1), a); }
};
struct Maximum {
  template <class T> static T of(T a, T b) { return (a > b) | (a != a) ? a : b; }
};
struct Minimum {
  template <class T> static T of(T a, T b) { return (a < b) | (a != a) ? a : b; }
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

// The remainder has the divisor's sign, and a == floor_divide(a, b) * b + remainder(a, b) up to rounding
// (NumPy, Python).
struct Remainder {
  template <class T> static T of(T a, T b) {
    const T rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(T(0), b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
struct FloorDivide {
  template <class T> static T of(T a, T b) {
    if (b == 0) return a / b;
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != 0 && ((rest < 0) != (b < 0))) quotient -= 1;
    if (quotient == 0) return std::copysign(T(0), a / b);
    const T whole = floor_of(quotient);
    return quotient - whole > T(0.5) ? whole + 1 : whole;
  }
};
struct NextAfter {
  template <class T> static T of(T a, T b) { return std::nextafter(a, b); }
};

template <class T> void copy_map(const void* const* in, void* out, std::int64_t n) {
  if (in[0] != out && n > 0) std::memmove(out, in[0], n * sizeof(T));
}

template <class T> void add_maps(MapTable& table) {
  add2<Add, T>(table, "add");
  add2<Subtract, T>(table, "subtract");
  add2<Multiply, T>(table, "multiply");
  add2<Divide, T>(table, "divide");
  add2<FloorDivide, T>(table, "floor_divide");
  add2<Remainder, T>(table, "remainder");
  add2<Maximum, T>(table, "maximum");
  add2<Minimum, T>(table, "minimum");
  add2<CopySign, T>(table, "copysign");
  add2<NextAfter, T>(table, "nextafter");
  add1<Negative, T>(table, "negative");
  add1<Abs, T>(table, "abs");
  add1<Square, T>(table, "square");
  add1<Reciprocal, T>(table, "reciprocal");
  add1<Sqrt, T>(table, "sqrt");
  add1<Rsqrt, T>(table, "rsqrt");
  add1<Relu, T>(table, "relu");
  add1<Sign, T>(table, "sign");
  add1<Floor, T>(table, "floor");
  add1<Ceil, T>(table, "ceil");
  add1<Trunc, T>(table, "trunc");
  add1<Round, T>(table, "round");
  add1<Zero, T>(table, "imag");
  test1<IsNan, T>(table, "isnan");
  test1<IsInf, T>(table, "isinf");
  test1<IsFinite, T>(table, "isfinite");
  test1<LogicalNot, T>(table, "logical_not");
  test2<LogicalAnd, T>(table, "logical_and");
  test2<LogicalOr, T>(table, "logical_or");
  test2<LogicalXor, T>(table, "logical_xor");
  test2<Equal, T>(table, "equal");
  test2<NotEqual, T>(table, "not_equal");
  test2<Less, T>(table, "less");
  test2<LessEqual, T>(table, "less_equal");
  test2<Greater, T>(table, "greater");
  test2<GreaterEqual, T>(table, "greater_equal");
  table.add("where", dtype_of<T>(), map_where<T>);
  for (const char* op : {"copy", "real", "conj"}) table.add(op, dtype_of<T>(), copy_map<T>);
}

void AddFloatMaps(MapTable& table) {
  add_maps<float>(table);
  add_maps<double>(table);
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
