// Comparisons, predicates, logic and bits: ops with piecewise constant results.
#include "ops/create/scalar.hpp"
#include "ops/elementwise/define.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

using kernels::map;

Derivative not_smooth() { return no_derivative("its result is bool or integer"); }

const ElementwiseOp equal_op{map<"equal">, DtypeRule::comparison, "a == b", integers(-1, 1), not_smooth()};
const ElementwiseOp not_equal_op{map<"not_equal">, DtypeRule::comparison, "a != b", integers(-1, 1),
                                 not_smooth()};
const ElementwiseOp less_op{map<"less">, DtypeRule::comparison,
                            "a < b; complex: by real part, then imaginary", integers(-1, 1), not_smooth()};
const ElementwiseOp less_equal_op{map<"less_equal">, DtypeRule::comparison, "a <= b", integers(-1, 1),
                                  not_smooth()};
const ElementwiseOp greater_op{map<"greater">, DtypeRule::comparison, "a > b", integers(-1, 1), not_smooth()};
const ElementwiseOp greater_equal_op{map<"greater_equal">, DtypeRule::comparison, "a >= b", integers(-1, 1),
                                     not_smooth()};

const ElementwiseOp logical_and_op{map<"logical_and">, DtypeRule::predicate, "a != 0 and b != 0",
                                   integers(-1, 1), not_smooth()};
const ElementwiseOp logical_or_op{map<"logical_or">, DtypeRule::predicate, "a != 0 or b != 0",
                                  integers(-1, 1), not_smooth()};
const ElementwiseOp logical_xor_op{map<"logical_xor">, DtypeRule::predicate, "either a != 0 or b != 0",
                                   integers(-1, 1), not_smooth()};
const ElementwiseOp logical_not_op{map<"logical_not">, DtypeRule::predicate, "x == 0", integers(-1, 1),
                                   not_smooth()};

const ElementwiseOp bitwise_and_op{map<"bitwise_and">, DtypeRule::integral, "bits set in both",
                                   integers(-9, 9), not_smooth()};
const ElementwiseOp bitwise_or_op{map<"bitwise_or">, DtypeRule::integral, "bits set in one or both",
                                  integers(-9, 9), not_smooth()};
const ElementwiseOp bitwise_xor_op{map<"bitwise_xor">, DtypeRule::integral, "bits set in one of them",
                                   integers(-9, 9), not_smooth()};
const ElementwiseOp bitwise_invert_op{map<"bitwise_invert">, DtypeRule::integral, "every bit flipped",
                                      integers(-9, 9), not_smooth()};
const ElementwiseOp bitwise_left_shift_op{
    map<"bitwise_left_shift">, DtypeRule::shift,
    "a moved left by b bits; 0 where b is negative or the width or more", integers(0, 6), not_smooth()};
const ElementwiseOp bitwise_right_shift_op{
    map<"bitwise_right_shift">, DtypeRule::shift,
    "a moved right by b bits; the sign alone where b is negative or the width or more", integers(0, 6),
    not_smooth()};

const ElementwiseOp isnan_op{map<"isnan">, DtypeRule::predicate, "whether x is NaN", logarithms(),
                             not_smooth()};
const ElementwiseOp isfinite_op{map<"isfinite">, DtypeRule::predicate,
                                "whether x is neither NaN nor infinite", logarithms(), not_smooth()};
const ElementwiseOp isinf_op{map<"isinf">, DtypeRule::predicate, "whether x is infinite", logarithms(),
                             not_smooth()};

// The side on which a plain integer lies outside all values of integers of another dtype; 0 for others.
int side_of_number(const Operand& number, const Operand& of) {
  if (!number.array.node() || !of.array.node()) return 0;
  if (!number.array.is_weakly_typed() || of.array.is_weakly_typed()) return 0;
  if (!is_integer(of.array.dtype())) return 0;
  const auto value = scalar_value(number.array);
  return value && value->is_integer ? side_of(*value, of.array.dtype()) : 0;
}

// a op b, which is `below` or `above` if b is a number below or above all values of a's dtype, as in NumPy.
Array compared(const ElementwiseOp& op, const Operand& a, const Operand& b, bool below, bool above) {
  const int b_side = side_of_number(b, a), a_side = side_of_number(a, b);
  if (b_side == 0 && a_side == 0) return op({a, b});
  const bool is_true = b_side > 0 || a_side < 0 ? above : below;
  const Operand& integers = b_side != 0 ? a : b;
  return is_true ? equal_op({integers, integers}) : not_equal_op({integers, integers});
}

}  // namespace

Array equal(const Operand& a, const Operand& b) { return compared(equal_op, a, b, false, false); }
Array not_equal(const Operand& a, const Operand& b) { return compared(not_equal_op, a, b, true, true); }
Array less(const Operand& a, const Operand& b) { return compared(less_op, a, b, false, true); }
Array less_equal(const Operand& a, const Operand& b) { return compared(less_equal_op, a, b, false, true); }
Array greater(const Operand& a, const Operand& b) { return compared(greater_op, a, b, true, false); }
Array greater_equal(const Operand& a, const Operand& b) {
  return compared(greater_equal_op, a, b, true, false);
}
Array logical_and(const Operand& a, const Operand& b) { return logical_and_op({a, b}); }
Array logical_or(const Operand& a, const Operand& b) { return logical_or_op({a, b}); }
Array logical_xor(const Operand& a, const Operand& b) { return logical_xor_op({a, b}); }
Array bitwise_and(const Operand& a, const Operand& b) { return bitwise_and_op({a, b}); }
Array bitwise_or(const Operand& a, const Operand& b) { return bitwise_or_op({a, b}); }
Array bitwise_xor(const Operand& a, const Operand& b) { return bitwise_xor_op({a, b}); }
Array bitwise_left_shift(const Operand& a, const Operand& b) { return bitwise_left_shift_op({a, b}); }
Array bitwise_right_shift(const Operand& a, const Operand& b) { return bitwise_right_shift_op({a, b}); }
Array isnan(const Operand& x) { return isnan_op({x}); }
Array isfinite(const Operand& x) { return isfinite_op({x}); }
Array isinf(const Operand& x) { return isinf_op({x}); }
Array logical_not(const Operand& x) { return logical_not_op({x}); }
Array bitwise_invert(const Operand& x) { return bitwise_invert_op({x}); }

Array operator==(const Operand& a, const Operand& b) { return equal(a, b); }
Array operator!=(const Operand& a, const Operand& b) { return not_equal(a, b); }
Array operator<(const Operand& a, const Operand& b) { return less(a, b); }
Array operator<=(const Operand& a, const Operand& b) { return less_equal(a, b); }
Array operator>(const Operand& a, const Operand& b) { return greater(a, b); }
Array operator>=(const Operand& a, const Operand& b) { return greater_equal(a, b); }
Array operator&(const Operand& a, const Operand& b) { return bitwise_and(a, b); }
Array operator|(const Operand& a, const Operand& b) { return bitwise_or(a, b); }
Array operator^(const Operand& a, const Operand& b) { return bitwise_xor(a, b); }
Array operator!(const Array& x) {  // no Operand: ambiguous beside the conversion to bool
  return logical_not(Operand(x, std::source_location()));
}
Array operator~(const Operand& x) { return bitwise_invert(x); }

}  // namespace tessera
