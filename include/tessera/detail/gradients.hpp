// The function objects returned by grad.hpp's functions.
#pragma once
#include <source_location>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/detail/arguments.hpp>
#include <tessera/grad/policies.hpp>

namespace tessera {

template <class F, int... K> struct GradOf {
  mutable F f;
  std::source_location where;
  template <class... A>
  typename detail::Picked<std::tuple<A...>, K...>::type operator()(const A&... args) const {
    detail::Arguments<std::integer_sequence<int, K...>, A...> arguments;
    detail::Recording recording("grad", where);
    const auto value = arguments.call(f, recording, true, args...);
    static_assert(std::is_same_v<std::remove_const_t<decltype(value)>, Array>,
                  "grad: the function must return an Array; use value_and_grad_aux for pair{value, aux}");
    recording.finish({value});
    recording.check_scalar();
    return arguments.picked(recording.gradient(), args...);
  }
};

template <class F, int... K> struct ValueAndGradOf {
  mutable F f;
  std::source_location where;
  template <class... A>
  std::pair<std::remove_cvref_t<
                typename detail::Arguments<std::integer_sequence<int, K...>, A...>::template Result<F>>,
            typename detail::Picked<std::tuple<A...>, K...>::type>
  operator()(const A&... args) const {
    detail::Arguments<std::integer_sequence<int, K...>, A...> arguments;
    detail::Recording recording("value_and_grad", where);
    auto result = arguments.call(f, recording, true, args...);
    if constexpr (detail::IsValueWithAux<decltype(result)>::value) {
      recording.finish({result.first}, tree_leaves(result.second));
    } else {
      static_assert(std::is_same_v<decltype(result), Array>,
                    "value_and_grad: the function must return an Array, or pair{value, aux}");
      recording.finish({result});
    }
    recording.check_scalar();
    return {std::move(result), arguments.picked(recording.gradient(), args...)};
  }
};

// pullback(cotangents of the results) -> cotangents of all arguments. May be called any number of times;
// holds the values of the forward pass that it needs. Cotangents of integer leaves are ignored, and zeros for
// integer arguments.
template <class R, class... A> class Pullback {
 public:
  Pullback(detail::AllArguments<A...> arguments, detail::Recording recording, const R& result,
           const A&... args)
      : arguments_(arguments),
        recording_(std::move(recording)),
        result_(detail::structure_without_numbers(result)),
        args_(detail::without_arrays(detail::Differentiated<A>(args))...) {}
  std::tuple<detail::Differentiated<A>...> operator()(const R& cotangents) const {
    const auto structure = detail::structure_without_numbers(cotangents);
    if (structure != result_)
      detail::throw_structure_mismatch("pullback of vjp", {}, "the cotangent", result_, structure);
    return detail::with_leaves(args_, recording_.pull_back(tree_leaves(cotangents)));
  }

 private:
  detail::AllArguments<A...> arguments_;
  detail::Recording recording_;
  std::string result_;
  std::tuple<detail::Differentiated<A>...> args_;  // their structure
};

template <class F, int... K> struct JacobianOf {
  mutable F f;
  std::source_location where;
  template <class... A>
  typename detail::Picked<std::tuple<A...>, K...>::type operator()(const A&... args) const {
    detail::Arguments<std::integer_sequence<int, K...>, A...> arguments;
    detail::Recording recording("jacrev", where);
    const auto value = arguments.call(f, recording, true, args...);
    static_assert(std::is_same_v<std::remove_const_t<decltype(value)>, Array>,
                  "jacrev: the function must return an Array");
    recording.finish({value});
    return arguments.picked(recording.jacobian(0), args...);
  }
};

template <class F, int... K> struct HessianOf {
  mutable F f;
  std::source_location where;
  template <class... A>
  typename detail::Picked<std::tuple<A...>, K...>::type operator()(const A&... args) const {
    detail::Arguments<std::integer_sequence<int, K...>, A...> arguments;
    detail::Recording recording("hessian", where);
    const auto gradient = [this](const auto&... x) { return tree_leaves(GradOf<F, K...>{f, where}(x...)); };
    recording.finish(arguments.call(gradient, recording, true, args...));
    std::vector<Array> blocks(recording.watched());
    const auto leaf_of_result = arguments.picked_leaves();
    for (std::size_t i = 0; i < blocks.size(); ++i)
      blocks[leaf_of_result[i]] = recording.jacobian(i)[leaf_of_result[i]];
    return arguments.picked(blocks, args...);
  }
};

template <class F> struct Checkpointed {
  mutable F f;
  std::source_location where;
  CheckpointPolicy policy = checkpoint_policies::nothing_saveable;
  template <class... A> auto operator()(const A&... args) const {
    auto [structure, leaves] = detail::Flattened<A...>(args...);
    const auto call = [structure = structure](F& function, const std::vector<Array>& values) {
      return std::apply(function, detail::with_leaves(structure, values));
    };
    const std::size_t count = leaves.size();
    auto again = [f = f, policy = policy, call, count](std::span<const Array> arguments,
                                                       std::span<const Array> cotangents,
                                                       std::source_location site) mutable {
      const auto values = detail::computed_after({arguments.begin(), arguments.end()}, cotangents, site);
      detail::Recording recording("checkpoint", site);
      std::vector<Array> watched;
      for (std::size_t i = 0; i < count; ++i) watched.push_back(recording.watch(values[i], 0, false));
      const auto recorded = call(f, watched);
      recording.finish_with(tree_leaves(recorded), policy, std::span(values).subspan(count));
      return recording.pull_back({cotangents.begin(), cotangents.end()}, detail::Recording::as_cotangents);
    };
    if (policy.keeps_nothing()) {
      auto result = f(args...);
      return detail::with_leaves(
          result, detail::with_second_computation(leaves, tree_leaves(result), std::move(again), where));
    }
    detail::Recording first("checkpoint", where);
    std::vector<Array> watched;
    for (const auto& leaf : leaves) watched.push_back(first.watch(leaf, 0, false));
    auto result = call(f, watched);
    const auto results = tree_leaves(result);
    for (auto& value : first.kept_values(results, policy)) leaves.push_back(std::move(value));
    first.finish(results);
    return detail::with_leaves(result,
                               detail::with_second_computation(leaves, results, std::move(again), where));
  }
};

template <class F, class Fwd, class Bwd> struct CustomVjp {
  mutable F f;
  Fwd fwd;
  Bwd bwd;
  std::source_location where;
  template <class... A> auto operator()(const A&... args) const {
    auto result = f(args...);
    const detail::Flattened<A...> given(args...);
    auto rule = [fwd = fwd, bwd = bwd, structure = given.structure, shape = detail::without_arrays(result)](
                    std::span<const Array> arguments, std::span<const Array> cotangents,
                    std::source_location site) mutable {
      const auto inputs = detail::with_leaves(structure, {arguments.begin(), arguments.end()});
      const auto [again, residuals] = std::apply(fwd, inputs);
      const auto returned =
          bwd(residuals, detail::with_leaves(shape, {cotangents.begin(), cotangents.end()}));
      return detail::checked_rule_result(detail::cotangent_leaves(returned, inputs), arguments, site);
    };
    return detail::with_leaves(
        result, detail::with_backward_rule(given.leaves, tree_leaves(result), std::move(rule), where));
  }
};

}  // namespace tessera
