/// @file
/// Forward mode, with the contract of grad.hpp's reverse mode: everything here records.
#pragma once
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/maps.hpp>

namespace tessera {

namespace detail {
// For each watched leaf d result / d leaf, of shape result.shape + leaf.shape, one column per element of the
// leaf.
std::vector<Array> jacobian_by_columns(const Recording&, const std::vector<Array>& leaves,
                                       std::source_location);

// The leaves of the chosen arguments in the order in which a recording watches them.
template <int... K, class... A> std::vector<Array> watched_leaves(const A&... args) {
  std::vector<Array> leaves;
  int i = 0;
  const auto add = [&](const auto& arg) {
    const bool is_watched = sizeof...(K) == 0 ? i == 0 : ((i == K) || ...);
    if (is_watched) append_leaves(Differentiated<std::remove_cvref_t<decltype(arg)>>(arg), leaves);
    ++i;
  };
  (add(args), ...);
  return leaves;
}
}  // namespace detail

/// The function returned by jacfwd.
template <class F, int... K> struct ForwardJacobianOf {
  mutable F f;                 ///< the function
  std::source_location where;  ///< where jacfwd was called
  /// The derivative at these arguments.
  template <class... A>
  typename detail::Picked<std::tuple<A...>, K...>::type operator()(const A&... args) const {
    detail::Arguments<std::integer_sequence<int, K...>, A...> arguments;
    detail::Recording recording("jacfwd", where);
    const auto value = arguments.call(f, recording, true, args...);
    static_assert(std::is_same_v<std::remove_const_t<decltype(value)>, Array>,
                  "jacfwd: the function must return an Array");
    recording.finish({value});
    return arguments.picked(
        detail::jacobian_by_columns(recording, detail::watched_leaves<K...>(args...), where), args...);
  }
};
/// jacfwd(f)(args...): the result of jacrev, computed by one forward pass for all elements of an argument
/// together (vmap): cheaper if arguments are smaller than the result.
template <int... Argnums, class F>
ForwardJacobianOf<F, Argnums...> jacfwd(F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

/// The derivative of a function at a point, returned by linearize: maps tangents of the arguments to the
/// result's.
template <class R, class... A> class Linearized {
 public:
  /// For linearize.
  Linearized(detail::Recording recording, R result)
      : recording_(std::move(recording)), result_(std::move(result)) {}
  /// The tangent of the result; linear in the tangents. May be called any number of times.
  R operator()(const detail::Differentiated<A>&... tangents) const {
    std::vector<Array> directions;
    (detail::append_leaves(tangents, directions), ...);
    return detail::with_leaves(result_, recording_.push_forward(std::move(directions)));
  }

 private:
  detail::Recording recording_;
  R result_;
};
/// {f(args...), its derivative there}: jvp for many tangents, with f recorded only once.
template <class F, class... A> auto linearize(F f, const A&... args) {
  detail::AllArguments<A...> arguments;
  detail::Recording recording("linearize", std::source_location());
  auto result = arguments.call(f, recording, false, args...);
  recording.finish(tree_leaves(result));
  using R = decltype(result);
  return std::pair<R, Linearized<R, A...>>(result, Linearized<R, A...>(std::move(recording), result));
}

/// The function returned by custom_jvp.
template <class F, class Rule> struct CustomJvp {
  mutable F f;                 ///< the function
  Rule rule;                   ///< its derivative
  std::source_location where;  ///< where custom_jvp was called
  /// The function.
  template <class... A> auto operator()(const A&... args) const {
    auto result = f(args...);
    const detail::Flattened<A...> given(args...);
    auto backward = [rule = rule, structure = given.structure](std::span<const Array> arguments,
                                                               std::span<const Array> cotangents,
                                                               std::source_location site) mutable {
      detail::Recording recording("custom_jvp", site);
      const std::vector<Array> values(arguments.begin(), arguments.end());
      std::vector<Array> tangents;  // any tangents, since the rule is linear in them
      for (const auto& x : values) tangents.push_back(recording.watch(zeros_like(x), 0, false));
      const auto [again, tangent] =
          rule(detail::with_leaves(structure, values), detail::with_leaves(structure, tangents));
      recording.finish(tree_leaves(tangent));
      return recording.pull_back({cotangents.begin(), cotangents.end()}, detail::Recording::as_cotangents);
    };
    return detail::with_leaves(
        result, detail::with_backward_rule(given.leaves, tree_leaves(result), std::move(backward), where));
  }
};
/// custom_jvp(f, rule): f, with your own derivative.
///   rule(tuple of arguments, tuple of their tangents) -> pair{f(args...), tangent of the result}
/// The tangent must be linear in the tangents; gradients are its transpose. The rule is recorded when a
/// derivative is requested, and differentiated itself for higher derivatives.
template <class F, class Rule>
CustomJvp<F, Rule> custom_jvp(F f, Rule rule, std::source_location where = std::source_location::current()) {
  return {std::move(f), std::move(rule), where};
}

}  // namespace tessera
