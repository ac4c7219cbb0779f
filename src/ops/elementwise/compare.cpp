// Comparisons, predicates, logic and bits: results that do not vary smoothly.
#include "ops/elementwise/define.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

const char* not_smooth = "its result is bool or integer";

TESSERA_ROW(equal, elementwise_without_vjp("equal", DtypeRule::comparison, not_smooth))
TESSERA_ROW(not_equal, elementwise_without_vjp("not_equal", DtypeRule::comparison, not_smooth))
TESSERA_ROW(less, elementwise_without_vjp("less", DtypeRule::comparison, not_smooth))
TESSERA_ROW(less_equal, elementwise_without_vjp("less_equal", DtypeRule::comparison, not_smooth))
TESSERA_ROW(greater, elementwise_without_vjp("greater", DtypeRule::comparison, not_smooth))
TESSERA_ROW(greater_equal, elementwise_without_vjp("greater_equal", DtypeRule::comparison, not_smooth))
TESSERA_ROW(logical_and, elementwise_without_vjp("logical_and", DtypeRule::predicate, not_smooth))
TESSERA_ROW(logical_or, elementwise_without_vjp("logical_or", DtypeRule::predicate, not_smooth))
TESSERA_ROW(logical_xor, elementwise_without_vjp("logical_xor", DtypeRule::predicate, not_smooth))
TESSERA_ROW(bitwise_and,
            elementwise_without_vjp("bitwise_and", DtypeRule::integral, not_smooth, "bitwise_and"))
TESSERA_ROW(bitwise_or, elementwise_without_vjp("bitwise_or", DtypeRule::integral, not_smooth, "bitwise_or"))
TESSERA_ROW(bitwise_xor,
            elementwise_without_vjp("bitwise_xor", DtypeRule::integral, not_smooth, "bitwise_xor"))
TESSERA_ROW(bitwise_left_shift,
            elementwise_without_vjp("bitwise_left_shift", DtypeRule::shift, not_smooth, "left_shift"))
TESSERA_ROW(bitwise_right_shift,
            elementwise_without_vjp("bitwise_right_shift", DtypeRule::shift, not_smooth, "right_shift"))
TESSERA_ROW(isnan, elementwise_without_vjp("isnan", DtypeRule::predicate, not_smooth))
TESSERA_ROW(isfinite, elementwise_without_vjp("isfinite", DtypeRule::predicate, not_smooth))
TESSERA_ROW(isinf, elementwise_without_vjp("isinf", DtypeRule::predicate, not_smooth))
TESSERA_ROW(logical_not, elementwise_without_vjp("logical_not", DtypeRule::predicate, not_smooth))
TESSERA_ROW(bitwise_invert, elementwise_without_vjp("bitwise_invert", DtypeRule::integral, not_smooth))

}  // namespace

Array equal(const Operand& a, const Operand& b) { return apply(equal_row(), {a, b}); }
Array not_equal(const Operand& a, const Operand& b) { return apply(not_equal_row(), {a, b}); }
Array less(const Operand& a, const Operand& b) { return apply(less_row(), {a, b}); }
Array less_equal(const Operand& a, const Operand& b) { return apply(less_equal_row(), {a, b}); }
Array greater(const Operand& a, const Operand& b) { return apply(greater_row(), {a, b}); }
Array greater_equal(const Operand& a, const Operand& b) { return apply(greater_equal_row(), {a, b}); }
Array logical_and(const Operand& a, const Operand& b) { return apply(logical_and_row(), {a, b}); }
Array logical_or(const Operand& a, const Operand& b) { return apply(logical_or_row(), {a, b}); }
Array logical_xor(const Operand& a, const Operand& b) { return apply(logical_xor_row(), {a, b}); }
Array bitwise_and(const Operand& a, const Operand& b) { return apply(bitwise_and_row(), {a, b}); }
Array bitwise_or(const Operand& a, const Operand& b) { return apply(bitwise_or_row(), {a, b}); }
Array bitwise_xor(const Operand& a, const Operand& b) { return apply(bitwise_xor_row(), {a, b}); }
Array bitwise_left_shift(const Operand& a, const Operand& b) {
  return apply(bitwise_left_shift_row(), {a, b});
}
Array bitwise_right_shift(const Operand& a, const Operand& b) {
  return apply(bitwise_right_shift_row(), {a, b});
}
Array isnan(const Operand& x) { return apply(isnan_row(), {x}); }
Array isfinite(const Operand& x) { return apply(isfinite_row(), {x}); }
Array isinf(const Operand& x) { return apply(isinf_row(), {x}); }
Array logical_not(const Operand& x) { return apply(logical_not_row(), {x}); }
Array bitwise_invert(const Operand& x) { return apply(bitwise_invert_row(), {x}); }

Array operator==(const Operand& a, const Operand& b) { return equal(a, b); }
Array operator!=(const Operand& a, const Operand& b) { return not_equal(a, b); }
Array operator<(const Operand& a, const Operand& b) { return less(a, b); }
Array operator<=(const Operand& a, const Operand& b) { return less_equal(a, b); }
Array operator>(const Operand& a, const Operand& b) { return greater(a, b); }
Array operator>=(const Operand& a, const Operand& b) { return greater_equal(a, b); }
Array operator&(const Operand& a, const Operand& b) { return bitwise_and(a, b); }
Array operator|(const Operand& a, const Operand& b) { return bitwise_or(a, b); }
Array operator^(const Operand& a, const Operand& b) { return bitwise_xor(a, b); }
Array operator!(const Operand& x) { return logical_not(x); }
Array operator~(const Operand& x) { return bitwise_invert(x); }

}  // namespace tessera
