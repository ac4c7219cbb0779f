/// @file
/// Reductions with their options by name: sum(x, {.axis = 0, .keepdims = true}), sum(x, {.dtype = float64}).
/// Options here are never plain integers: GCC 12 reads {.correction = 1} as the axes {1}.
///
/// Each is the function of ops/reduce.hpp with the same axes. They are templates so that a braced list
/// without names, sum(x, {}) or sum(x, {0, 1}), still means axes.
#pragma once
#include <concepts>
#include <optional>

#include <tessera/ops/reduce.hpp>

namespace tessera {

/// Options of sum and prod by name.
struct SumOptions {
  Axes axis = {};                   ///< one or several; all unless given
  bool keepdims = false;            ///< reduced axes are kept with extent 1
  std::optional<Dtype> dtype = {};  ///< x is converted to it first; none: as in sum
};

namespace detail {
template <class O>
concept OptionsOfSum = std::same_as<O, SumOptions> || std::same_as<O, AxisOptions>;
template <class O>
concept OptionsOfSpread = std::same_as<O, SpreadOptions> || std::same_as<O, AxisOptions>;

template <OptionsOfSpread O> double correction_of(const O& options) {
  if constexpr (std::same_as<O, SpreadOptions>) return options.correction;
  return 0;
}
}  // namespace detail

/// sum(x, axis, dtype, keepdims).
template <detail::OptionsOfSum O = SumOptions> [[nodiscard]] Array sum(const Operand& x, O options) {
  if constexpr (std::same_as<O, SumOptions>)
    if (options.dtype) return sum(x, options.axis, *options.dtype, options.keepdims);
  return sum(x, options.axis, options.keepdims);
}
/// prod(x, axis, dtype, keepdims).
template <detail::OptionsOfSum O = SumOptions> [[nodiscard]] Array prod(const Operand& x, O options) {
  if constexpr (std::same_as<O, SumOptions>)
    if (options.dtype) return prod(x, options.axis, *options.dtype, options.keepdims);
  return prod(x, options.axis, options.keepdims);
}
/// mean(x, axis, keepdims).
template <std::same_as<AxisOptions> O = AxisOptions> [[nodiscard]] Array mean(const Operand& x, O options) {
  return mean(x, options.axis, options.keepdims);
}
/// var(x, axis, keepdims, correction).
template <detail::OptionsOfSpread O = SpreadOptions> [[nodiscard]] Array var(const Operand& x, O options) {
  return var(x, options.axis, options.keepdims, detail::correction_of(options));
}
/// std(x, axis, keepdims, correction).
template <detail::OptionsOfSpread O = SpreadOptions> [[nodiscard]] Array std(const Operand& x, O options) {
  return std(x, options.axis, options.keepdims, detail::correction_of(options));
}
/// stddev(x, axis, keepdims, correction).
template <detail::OptionsOfSpread O = SpreadOptions> [[nodiscard]] Array stddev(const Operand& x, O options) {
  return std(x, options.axis, options.keepdims, detail::correction_of(options));
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
