// The derivative in the row of an elementwise op: per operand a function (g, operands..., y) that returns the
// operand's cotangent from the cotangent g of the result y.
#pragma once
#include <utility>

#include "graph/op.hpp"
#include "ops/build.hpp"

namespace tessera {

struct Derivative {
  decltype(OpDef::vjp) vjp;  // a rule, or the reason why there is none
  Linear linear = Linear::no;
};

// An operand without a derivative: the condition of where.
struct NoDerivative {};

// One cotangent per operand, summed over broadcast dims; none is built for operands that need none.
template <class... F> Cotangents cotangents_by(const VjpArgs& v) {
  constexpr std::size_t n = sizeof...(F);
  Cotangents result(n);
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto cotangent = [&]<class Of>(Of of, std::size_t operand) {
      if constexpr (!std::is_same_v<Of, NoDerivative>) {
        if (n > 1 && !v.wanted[operand]) return;
        const Array whole = of(v.cotangents[0], v.in[i]..., v.out[0]);
        result[operand] = n > 1 ? sum_to_operand(whole, v.in[operand]) : whole;
      }
    };
    (cotangent(F{}, i), ...);
  }
  (std::index_sequence_for<F...>{});
  return result;
}

template <class... F> Derivative derivative(F...) { return {cotangents_by<F...>}; }
// The derivative of an op that is jointly linear in its operands: x + y.
template <class... F> Derivative linear(F...) {
  return {cotangents_by<F...>, sizeof...(F) == 1 ? Linear::in_first : Linear::jointly};
}
// Linear in the first operand with the others fixed: x / y.
template <class... F> Derivative linear_in_first(F...) { return {cotangents_by<F...>, Linear::in_first}; }
// Linear in each of two operands with the other fixed: x * y.
template <class F, class G> Derivative linear_in_each(F, G) {
  return {cotangents_by<F, G>, Linear::in_either};
}
// The derivative of steps (floor, sign): zero wherever it is defined.
inline Derivative piecewise_constant() {
  return {[](const VjpArgs& v) { return Cotangents(v.in.size()); }};
}
inline Derivative no_derivative(const char* why) { return {NoRule{why}}; }

}  // namespace tessera
