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

// Wrapping arithmetic: unsigned, and at least as wide as int so that nothing promotes to a signed type.
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
// A count outside [0, width) gives 0.
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

// Quotient and remainder by one divisor, as from a broadcast number: a product with its reciprocal in double,
// corrected by the remainder, which is exact below 2^51.
template <class T> bool is_one_number(const T* b, std::int64_t n) {
  std::make_unsigned_t<T> others = 0;
  for (std::int64_t i = 0; i < n; ++i) others = static_cast<decltype(others)>(others | (b[i] ^ b[0]));
  return others == 0;
}
template <class T> bool fits_double(const T* a, std::int64_t n) {
  if constexpr (sizeof(T) < 8) return true;
  constexpr auto limit = u64{1} << 51;
  u64 beyond = 0;
  for (std::int64_t i = 0; i < n; ++i)
    beyond |= std::is_signed_v<T> ? u64(u64(a[i]) + limit > 2 * limit) : u64(u64(a[i]) > limit);
  return beyond == 0;
}
template <bool quotient, class T> void divide_by(const T* a, T divisor, T* out, std::int64_t n) {
  const auto b = static_cast<double>(divisor), inverse = 1 / b;
  const double sign = b > 0 ? 1 : -1, size = b * sign;
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(a[i]);
    double q = __builtin_floor(x * inverse), r = (x - q * b) * sign;
    const double step = (r >= size ? 1.0 : 0.0) - (r < 0 ? 1.0 : 0.0);
    q += step, r -= step * size;
    out[i] = static_cast<T>(static_cast<i64>(quotient ? q : r * sign));
  }
}
// The same of integers that a signed Lane holds: floor(x / b) is a product with 2^k / b, rounded up, for
// 0 <= x <= 2^31, 2^15 with products of 32 bits, or 2^8 and b > 1 in lanes of 16 bits;
// floor(x / b) = ~floor(~x / b) below 0.
template <bool quotient, class Lane, class T>
HWY_NOINLINE void divide_small_by(const T* a, T divisor, T* out, std::int64_t n) {
  constexpr bool is_short = sizeof(T) == 1 || std::is_same_v<T, i16>, is_half = sizeof(Lane) == 2;
  using Product = std::conditional_t<is_short, u32, u64>;
  using Signed = std::make_signed_t<Lane>;
  const auto b = static_cast<i64>(divisor);
  const u64 size = b < 0 ? u64(-b) : u64(b);
  int bits = 0;
  while ((u64{1} << bits) < size) ++bits;
  const int shift = is_half ? 16 : (is_short ? 15 : 31) + bits;
  const auto inverse = static_cast<Lane>(((u64{1} << shift) + size - 1) / size);
  const auto sign = static_cast<Lane>(b < 0 ? -1 : 0), by = static_cast<Lane>(b);
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<Lane>(static_cast<Signed>(a[i]));
    const auto turned = static_cast<Lane>(static_cast<Lane>(x ^ sign) - sign);  // a, or -a
    const bool is_below = b < 0 ? static_cast<Signed>(x) > 0 : static_cast<Signed>(x) < 0;
    const auto below = static_cast<Lane>(is_below ? -1 : 0);
    const auto distance = static_cast<Lane>(turned ^ below);
    const auto whole = static_cast<Lane>((Product{distance} * inverse) >> (is_half ? 16 : shift));
    const auto q = static_cast<Lane>(whole ^ below);
    out[i] = static_cast<T>(quotient ? q : static_cast<Lane>(x - static_cast<Lane>(q * by)));
  }
}
template <class F, bool quotient, class T> void map_divide(const void* const* in, void* out, std::int64_t n) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  constexpr std::int64_t worthwhile = 32;
  const bool is_simple = n >= worthwhile && b[0] != 0 && b[0] != T(-1);
  if constexpr (sizeof(T) == 1)
    if (is_simple && b[0] != 1 && is_one_number(b, n))
      return divide_small_by<quotient, u16>(a, T(b[0]), static_cast<T*>(out), n);
  if constexpr (sizeof(T) < 4 || std::is_same_v<T, i32>)
    if (is_simple && is_one_number(b, n))
      return divide_small_by<quotient, u32>(a, T(b[0]), static_cast<T*>(out), n);
  if (is_simple && is_one_number(b, n) && fits_double(a, n) && fits_double(b, 1))
    return divide_by<quotient>(a, T(b[0]), static_cast<T*>(out), n);
  map2<F, T>(in, out, n);
}
template <class F, bool quotient, class... T> void add_divide(MapTable& table, Map& map) {
  (table.add(map, 2, dtype_of<T>(), map_divide<F, quotient, T>), ...);
}

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
// Squares and cubes by one number, an operand of equal elements, are products.
template <class T> void power_map(const void* const* in, void* out, std::int64_t n) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  if (n == 0 || (b[0] != 2 && b[0] != 3)) return map2<Power, T>(in, out, n);
  T differences = 0;
  for (std::int64_t i = 0; i < n; ++i) differences |= T(b[i] ^ b[0]);
  if (differences != 0) return map2<Power, T>(in, out, n);
  const bool is_cube = b[0] == 3;
  T* r = static_cast<T*>(out);
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const auto base = Wide<T>(a[i]);
    r[i] = T(base * base * (is_cube ? base : Wide<T>(1)));
  }
}

template <class T> void copy_map(const void* const* in, void* out, std::int64_t n) {
  if (in[0] != out && n > 0) std::memmove(out, in[0], n * sizeof(T));
}
template <class T> void zeros_map(const void* const*, void* out, std::int64_t n) {
  if (n > 0) std::memset(out, 0, n * sizeof(T));
}
void false_map(const void* const*, void* out, std::int64_t n) { map_constant_bool<u8>(0, out, n); }
void true_map(const void* const*, void* out, std::int64_t n) { map_constant_bool<u8>(1, out, n); }

// Ops that are independent of the sign: the unsigned function serves both.
template <class U> void add_signless(MapTable& table) {
  for (const Dtype d : {dtype_of<U>(), dtype_of<std::make_signed_t<U>>()}) {
    table.add(map<"add">, 2, d, map2<Add, U>);
    table.add(map<"subtract">, 2, d, map2<Subtract, U>);
    table.add(map<"multiply">, 2, d, map2<Multiply, U>);
    table.add(map<"square">, 1, d, map1<Square, U>);
    table.add(map<"negative">, 1, d, map1<Negative, U>);
    table.add(map<"bitwise_and">, 2, d, map2<And, U>);
    table.add(map<"bitwise_or">, 2, d, map2<Or, U>);
    table.add(map<"bitwise_xor">, 2, d, map2<Xor, U>);
    table.add(map<"bitwise_invert">, 1, d, map1<Invert, U>);
    table.add(map<"bitwise_left_shift">, 2, d, map2<LeftShift, U>);
    table.add(map<"equal">, 2, d, map2<Equal, U, u8>, bool_);
    table.add(map<"not_equal">, 2, d, map2<NotEqual, U, u8>, bool_);
    table.add(map<"logical_and">, 2, d, map2<LogicalAnd, U, u8>, bool_);
    table.add(map<"logical_or">, 2, d, map2<LogicalOr, U, u8>, bool_);
    table.add(map<"logical_xor">, 2, d, map2<LogicalXor, U, u8>, bool_);
    table.add(map<"logical_not">, 1, d, map1<LogicalNot, U, u8>, bool_);
    table.add(map<"where">, 3, d, map_where<U>);
    for (Map* each : {&map<"copy">, &map<"floor">, &map<"ceil">, &map<"round">, &map<"trunc">, &map<"real">,
                      &map<"conj">})
      table.add(*each, 1, d, copy_map<U>);
    table.add(map<"imag">, 1, d, zeros_map<U>);
    for (Map* each : {&map<"isnan">, &map<"isinf">}) table.add(*each, 1, d, false_map, bool_);
    table.add(map<"isfinite">, 1, d, true_map, bool_);
  }
  table.add(map<"abs">, 1, dtype_of<U>(), copy_map<U>);
  table.add(map<"relu">, 1, dtype_of<U>(), copy_map<U>);
}

template <class... T> void add_signed(MapTable& table) {
  test2_both_ways<Less, T...>(table, map<"less">, map<"greater">);
  test2_both_ways<LessEqual, T...>(table, map<"less_equal">, map<"greater_equal">);
  add1<Sign, T...>(table, map<"sign">);
  add1<Reciprocal, T...>(table, map<"reciprocal">);
  for (Map* larger : {&map<"maximum">, &map<"fmax">}) add2<Maximum, T...>(table, *larger);
  for (Map* smaller : {&map<"minimum">, &map<"fmin">}) add2<Minimum, T...>(table, *smaller);
  add2<RightShift, T...>(table, map<"bitwise_right_shift">);
  add_divide<FloorDivide, true, T...>(table, map<"floor_divide">);
  add_divide<Remainder, false, T...>(table, map<"remainder">);
  (table.add(map<"power">, 2, dtype_of<T>(), power_map<T>), ...);
  add3<Clip, T...>(table, map<"clip">);
}

// Bool is a byte that is 0 or 1: + is or, * is and, as in NumPy; there is no subtraction.
void add_bool(MapTable& table) {
  for (Map* each : {&map<"add">, &map<"maximum">, &map<"fmax">, &map<"logical_or">, &map<"bitwise_or">})
    table.add(*each, 2, bool_, map2<Or, u8>);
  for (Map* each :
       {&map<"multiply">, &map<"minimum">, &map<"fmin">, &map<"logical_and">, &map<"bitwise_and">})
    table.add(*each, 2, bool_, map2<And, u8>);
  for (Map* each : {&map<"not_equal">, &map<"logical_xor">, &map<"bitwise_xor">})
    table.add(*each, 2, bool_, map2<Xor, u8>);
  for (Map* each : {&map<"logical_not">, &map<"bitwise_invert">})
    table.add(*each, 1, bool_, map1<LogicalNot, u8>);
  for (Map* each : {&map<"copy">, &map<"abs">, &map<"square">, &map<"sign">, &map<"real">, &map<"conj">,
                    &map<"relu">, &map<"floor">, &map<"ceil">, &map<"round">, &map<"trunc">})
    table.add(*each, 1, bool_, copy_map<u8>);
  table.add(map<"imag">, 1, bool_, zeros_map<u8>);
  table.add(map<"equal">, 2, bool_, map2<Equal, u8>);
  table.add(map<"less">, 2, bool_, map2<Less, u8>);
  table.add(map<"less_equal">, 2, bool_, map2<LessEqual, u8>);
  table.add(map<"greater">, 2, bool_, exchanged<map2<Less, u8>>);
  table.add(map<"greater_equal">, 2, bool_, exchanged<map2<LessEqual, u8>>);
  table.add(map<"power">, 2, bool_, map2<Power, u8>);
  table.add(map<"clip">, 3, bool_, map3<Clip, u8>);
  table.add(map<"where">, 3, bool_, map_where<u8>);
  for (Map* each : {&map<"isnan">, &map<"isinf">}) table.add(*each, 1, bool_, false_map, bool_);
  table.add(map<"isfinite">, 1, bool_, true_map, bool_);
}

void AddIntegerMaps(MapTable& table) {
  add_signless<u8>(table);
  add_signless<u16>(table);
  add_signless<u32>(table);
  add_signless<u64>(table);
  add_signed<i8, i16, i32, i64, u8, u16, u32, u64>(table);
  add1<Abs, i8, i16, i32, i64>(table, map<"abs">);
  add1<Relu, i8, i16, i32, i64>(table, map<"relu">);
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
