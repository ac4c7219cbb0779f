// Elementwise ops on bool and integers. Plain loops, vectorised by the compiler for each instruction set.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/maps_integer.cpp"
#include <hwy/foreach_target.h>

#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/map_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

// Arithmetic that wraps: unsigned, and not narrower than int so that nothing promotes to a signed type.
template <class T> using Wide = std::conditional_t<(sizeof(T) < 4), u32, std::make_unsigned_t<T>>;
template <class T> constexpr bool is_negative(T x) {
  if constexpr (std::is_signed_v<T>)
    return x < 0;
  else
    return (void)x, false;
}

struct Add {
  template <class T> static T of(T a, T b) { return T(Wide<T>(a) + Wide<T>(b)); }
};
struct Subtract {
  template <class T> static T of(T a, T b) { return T(Wide<T>(a) - Wide<T>(b)); }
};
struct Multiply {
  template <class T> static T of(T a, T b) { return T(Wide<T>(a) * Wide<T>(b)); }
};
struct Square {
  template <class T> static T of(T a) { return T(Wide<T>(a) * Wide<T>(a)); }
};
struct Negative {
  template <class T> static T of(T a) { return T(Wide<T>(0) - Wide<T>(a)); }
};
struct And {
  template <class T> static T of(T a, T b) { return T(a & b); }
};
struct Or {
  template <class T> static T of(T a, T b) { return T(a | b); }
};
struct Xor {
  template <class T> static T of(T a, T b) { return T(a ^ b); }
};
struct Invert {
  template <class T> static T of(T a) { return T(~a); }
};
struct Abs {
  template <class T> static T of(T a) { return a < 0 ? T(Wide<T>(0) - Wide<T>(a)) : a; }
};
struct Sign {
  template <class T> static T of(T a) { return T((a > 0) - is_negative(a)); }
};
struct Relu {
  template <class T> static T of(T a) { return a > 0 ? a : T(0); }
};
struct Maximum {
  template <class T> static T of(T a, T b) { return a > b ? a : b; }
};
struct Minimum {
  template <class T> static T of(T a, T b) { return a < b ? a : b; }
};
struct Clip {
  template <class T> static T of(T x, T low, T high) { return Minimum::of(Maximum::of(x, low), high); }
};
struct Reciprocal {
  template <class T> static T of(T a) {
    return a == 1 ? T(1) : is_negative(a) && T(a + 1) == 0 ? T(-1) : T(0);
  }
};
// A count outside [0, width) shifts everything out.
struct LeftShift {
  template <class T> static T of(T a, T count) {
    using C = std::make_unsigned_t<T>;
    constexpr C width = sizeof(T) * 8;
    return C(count) < width ? T(Wide<T>(a) << C(count)) : T(0);
  }
};
struct RightShift {
  template <class T> static T of(T a, T count) {
    using C = std::make_unsigned_t<T>;
    constexpr C width = sizeof(T) * 8;
    return T(a >> (C(count) < width ? C(count) : C(width - 1)) >>
             (std::is_unsigned_v<T> && C(count) >= width ? 1 : 0));
  }
};
struct FloorDivide {
  template <class T> static T of(T a, T b) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Negative::of(a);
      const T quotient = T(a / b);
      return T(quotient - ((a % b != 0) && ((a < 0) != (b < 0))));
    } else {
      return T(a / b);
    }
  }
};
struct Remainder {
  template <class T> static T of(T a, T b) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
      const T rest = T(a % b);
      return rest != 0 && ((rest < 0) != (b < 0)) ? T(rest + b) : rest;
    } else {
      return T(a % b);
    }
  }
};
struct Power {
  template <class T> static T of(T base, T exponent) {
    if (is_negative(exponent))
      return base == 1                               ? T(1)
             : is_negative(base) && T(base + 1) == 0 ? ((exponent & 1) ? T(-1) : T(1))
                                                     : T(0);
    Wide<T> result = 1, factor = Wide<T>(base);
    for (auto left = std::make_unsigned_t<T>(exponent); left != 0;
         left = std::make_unsigned_t<T>(left >> 1)) {
      if (left & 1) result *= factor;
      factor *= factor;
    }
    return T(result);
  }
};

template <class T> void copy_map(const void* const* in, void* out, std::int64_t n) {
  if (in[0] != out && n > 0) std::memmove(out, in[0], n * sizeof(T));
}
template <class T> void zeros_map(const void* const*, void* out, std::int64_t n) {
  if (n > 0) std::memset(out, 0, n * sizeof(T));
}
void false_map(const void* const*, void* out, std::int64_t n) { map_constant_bool<u8>(0, out, n); }
void true_map(const void* const*, void* out, std::int64_t n) { map_constant_bool<u8>(1, out, n); }

// Ops that do not look at the sign: the unsigned function serves both.
template <class U> void add_signless(MapTable& table) {
  for (const Dtype d : {dtype_of<U>(), dtype_of<std::make_signed_t<U>>()}) {
    table.add("add", d, map2<Add, U>);
    table.add("subtract", d, map2<Subtract, U>);
    table.add("multiply", d, map2<Multiply, U>);
    table.add("square", d, map1<Square, U>);
    table.add("negative", d, map1<Negative, U>);
    table.add("bitwise_and", d, map2<And, U>);
    table.add("bitwise_or", d, map2<Or, U>);
    table.add("bitwise_xor", d, map2<Xor, U>);
    table.add("bitwise_invert", d, map1<Invert, U>);
    table.add("left_shift", d, map2<LeftShift, U>);
    table.add("equal", d, map2<Equal, U, u8>);
    table.add("not_equal", d, map2<NotEqual, U, u8>);
    table.add("logical_and", d, map2<LogicalAnd, U, u8>);
    table.add("logical_or", d, map2<LogicalOr, U, u8>);
    table.add("logical_xor", d, map2<LogicalXor, U, u8>);
    table.add("logical_not", d, map1<LogicalNot, U, u8>);
    table.add("where", d, map_where<U>);
    for (const char* op : {"copy", "floor", "ceil", "round", "trunc", "real", "conj"})
      table.add(op, d, copy_map<U>);
    table.add("imag", d, zeros_map<U>);
    for (const char* op : {"isnan", "isinf"}) table.add(op, d, false_map);
    table.add("isfinite", d, true_map);
  }
  table.add("abs", dtype_of<U>(), copy_map<U>);
  table.add("relu", dtype_of<U>(), copy_map<U>);
}

template <class... T> void add_signed(MapTable& table) {
  test2<Less, T...>(table, "less");
  test2<LessEqual, T...>(table, "less_equal");
  test2<Greater, T...>(table, "greater");
  test2<GreaterEqual, T...>(table, "greater_equal");
  add1<Sign, T...>(table, "sign");
  add1<Reciprocal, T...>(table, "reciprocal");
  add2<Maximum, T...>(table, "maximum");
  add2<Minimum, T...>(table, "minimum");
  add2<RightShift, T...>(table, "right_shift");
  add2<FloorDivide, T...>(table, "floor_divide");
  add2<Remainder, T...>(table, "remainder");
  add2<Power, T...>(table, "power");
  add3<Clip, T...>(table, "clip");
}

// Bool is a byte that is 0 or 1: + is or, * is and, as in NumPy; there is no minus.
void add_bool(MapTable& table) {
  for (const char* op : {"add", "maximum", "logical_or", "bitwise_or"}) table.add(op, bool_, map2<Or, u8>);
  for (const char* op : {"multiply", "minimum", "logical_and", "bitwise_and"})
    table.add(op, bool_, map2<And, u8>);
  for (const char* op : {"not_equal", "logical_xor", "bitwise_xor"}) table.add(op, bool_, map2<Xor, u8>);
  for (const char* op : {"logical_not", "bitwise_invert"}) table.add(op, bool_, map1<LogicalNot, u8>);
  for (const char* op :
       {"copy", "abs", "square", "sign", "real", "conj", "relu", "floor", "ceil", "round", "trunc"})
    table.add(op, bool_, copy_map<u8>);
  table.add("imag", bool_, zeros_map<u8>);
  table.add("equal", bool_, map2<Equal, u8>);
  table.add("less", bool_, map2<Less, u8>);
  table.add("less_equal", bool_, map2<LessEqual, u8>);
  table.add("greater", bool_, map2<Greater, u8>);
  table.add("greater_equal", bool_, map2<GreaterEqual, u8>);
  table.add("power", bool_, map2<Power, u8>);
  table.add("clip", bool_, map3<Clip, u8>);
  table.add("where", bool_, map_where<u8>);
  for (const char* op : {"isnan", "isinf"}) table.add(op, bool_, false_map);
  table.add("isfinite", bool_, true_map);
}

void AddIntegerMaps(MapTable& table) {
  add_signless<u8>(table);
  add_signless<u16>(table);
  add_signless<u32>(table);
  add_signless<u64>(table);
  add_signed<i8, i16, i32, i64, u8, u16, u32, u64>(table);
  add1<Abs, i8, i16, i32, i64>(table, "abs");
  add1<Relu, i8, i16, i32, i64>(table, "relu");
  add_bool(table);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(AddIntegerMaps);
void add_integer_maps(MapTable& table) { HWY_DYNAMIC_DISPATCH(AddIntegerMaps)(table); }
}  // namespace tessera::kernels
#endif
