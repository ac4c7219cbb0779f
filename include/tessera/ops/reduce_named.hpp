/// @file
/// Reductions with their options by name: sum(x, {.axis = 0, .keepdims = true}).
///
/// Each is the function of ops/reduce.hpp with the same axes. They are templates so that a braced list
/// without names, sum(x, {}) or sum(x, {0, 1}), still means axes.
#pragma once
#include <concepts>

#include <tessera/ops/reduce.hpp>

namespace tessera {

/// sum(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array sum(const Operand& x, O options) {
  return sum(x, options.axis, options.keepdims);
}
/// prod(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array prod(const Operand& x, O options) {
  return prod(x, options.axis, options.keepdims);
}
/// mean(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array mean(const Operand& x, O options) {
  return mean(x, options.axis, options.keepdims);
}
/// var(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array var(const Operand& x, O options) {
  return var(x, options.axis, options.keepdims);
}
/// std(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array std(const Operand& x, O options) {
  return std(x, options.axis, options.keepdims);
}
/// stddev(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array stddev(const Operand& x, O options) {
  return std(x, options.axis, options.keepdims);
}
/// max(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array max(const Operand& x, O options) {
  return max(x, options.axis, options.keepdims);
}
/// min(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array min(const Operand& x, O options) {
  return min(x, options.axis, options.keepdims);
}
/// ptp(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array ptp(const Operand& x, O options) {
  return ptp(x, options.axis, options.keepdims);
}
/// all(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array all(const Operand& x, O options) {
  return all(x, options.axis, options.keepdims);
}
/// any(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array any(const Operand& x, O options) {
  return any(x, options.axis, options.keepdims);
}
/// count_nonzero(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions>
[[nodiscard]] Array count_nonzero(const Operand& x, O options) {
  return count_nonzero(x, options.axis, options.keepdims);
}
/// logsumexp(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions>
[[nodiscard]] Array logsumexp(const Operand& x, O options) {
  return logsumexp(x, options.axis, options.keepdims);
}

}  // namespace tessera
