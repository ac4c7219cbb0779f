// Gradients (API section 5): reverse mode as graph -> graph, and what follows from it.
//
// A gradient is recorded like any other computation: nothing runs until a value is asked for, results can be
// differentiated again, and jit, vmap and shard_map apply to them. A gradient has the shape, dtype and (for
// a committed operand) the sharding of its operand. Complex operands follow JAX: transposes of
// complex-linear maps without conjugation, so that the gradient of a real f is df/dRe - i df/dIm.
#pragma once
#include <array>
#include <complex>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/tree.hpp>

namespace tessera {
namespace detail {

class Tape;

// One call of a function whose arguments' leaves are watched: what happened between them and the results.
class Recording {
 public:
  Recording(const char* call, std::source_location where);
  // The leaf as the function shall see it. Integers and bools have no tangent space: refused (`strict`), or
  // passed with cotangent zeros.
  Array watch(const Array& leaf, int argument, bool strict);
  std::size_t watched() const { return leaves_.size(); }

  // The function has returned. `others` are leaves that it returned beside the results (aux).
  void finish(std::vector<Array> results, const std::vector<Array>& others = {});
  // Error unless the one result is a real number.
  void check_scalar() const;

  std::vector<Array> gradient() const;  // of the scalar: one per watched leaf
  // One cotangent per result -> one per watched leaf: as gradients for the user, which lie where the
  // operands lie, or as cotangents for a rule, where an Array that holds nothing stands for zeros.
  enum Form { as_gradients, as_cotangents };
  std::vector<Array> pull_back(std::vector<Array> cotangents, Form form = as_gradients) const;
  std::vector<Array> push_forward(
      std::vector<Array> tangents) const;                 // one per watched leaf -> one per result
  std::vector<Array> jacobian(std::size_t result) const;  // (result shape + leaf shape) per watched leaf
  const std::vector<Array>& results() const { return results_; }

 private:
  const char* call_;
  std::source_location where_;
  std::vector<Array> leaves_, watched_, results_;  // as given; as the function saw them; what it returned
  std::shared_ptr<const Tape> tape_;
};

template <class T> struct IsComplexNumber : std::false_type {};
template <class R> struct IsComplexNumber<std::complex<R>> : std::true_type {};
// A differentiated number is an Array to the function and has an Array as gradient.
template <class A> using Differentiated =
    std::conditional_t<std::is_arithmetic_v<A> || IsComplexNumber<A>::value, Array, A>;

template <int i, int... chosen>
inline constexpr bool is_chosen = sizeof...(chosen) == 0 ? i == 0 : ((i == chosen) || ...);
template <int... chosen> constexpr bool all_distinct() {
  constexpr std::array<int, sizeof...(chosen)> numbers{chosen...};
  for (std::size_t a = 0; a < numbers.size(); ++a)
    for (std::size_t b = a + 1; b < numbers.size(); ++b)
      if (numbers[a] == numbers[b]) return false;
  return true;
}

// The types of the chosen arguments: one type, or a tuple of them.
template <class Args, int... K> struct Picked {
  using type = std::tuple<Differentiated<std::tuple_element_t<static_cast<std::size_t>(K), Args>>...>;
};
template <class Args, int K> struct Picked<Args, K> {
  using type = Differentiated<std::tuple_element_t<static_cast<std::size_t>(K), Args>>;
};
template <class Args> struct Picked<Args> { using type = Differentiated<std::tuple_element_t<0, Args>>; };

// A function's arguments during a recording: the chosen ones hold watched leaves, the others are the
// caller's own.
template <class Chosen, class... A> struct Arguments;
template <int... chosen, class... A> struct Arguments<std::integer_sequence<int, chosen...>, A...> {
  static_assert(sizeof...(A) > 0, "a function without arguments has no gradient");
  static_assert(((chosen >= 0 && chosen < static_cast<int>(sizeof...(A))) && ...),
                "argnum out of range: the function is called with fewer arguments");
  static_assert(all_distinct<chosen...>(), "an argnum is named twice");
  using Indices = std::make_integer_sequence<int, static_cast<int>(sizeof...(A))>;
  template <int i, class T> using Seen =
      std::conditional_t<is_chosen<i, chosen...>, Differentiated<T>, const T&>;

  std::array<std::size_t, sizeof...(A)> first_leaf{},
      past_leaf{};  // of each argument, among the watched leaves

  template <int i, class T> Seen<i, T> see(Recording& recording, const T& argument, bool strict) {
    if constexpr (is_chosen<i, chosen...>) {
      first_leaf[static_cast<std::size_t>(i)] = recording.watched();
      Differentiated<T> copy(argument);
      walk_tree(
          copy, [&](Array& leaf) { leaf = recording.watch(leaf, i, strict); }, [](auto&) {});
      past_leaf[static_cast<std::size_t>(i)] = recording.watched();
      return copy;
    } else {
      return argument;
    }
  }
  template <class F> auto call(F& f, Recording& recording, bool strict, const A&... arguments) {
    return [&]<int... i>(std::integer_sequence<int, i...>) {
      std::tuple<Seen<i, A>...> seen{see<i>(recording, arguments, strict)...};  // braces: from left to right
      return std::apply([&f](const auto&... x) { return std::invoke(f, x...); }, seen);
    }
    (Indices{});
  }
  // The argument's tree with its leaves' gradients in place of them.
  template <int i, class T>
  Differentiated<T> gradient_tree(const T& argument, const std::vector<Array>& gradients) const {
    std::size_t next = first_leaf[static_cast<std::size_t>(i)];
    return with_leaves(Differentiated<T>(argument), gradients, next);
  }
  auto picked(const std::vector<Array>& gradients, const A&... arguments) const {
    const auto all = std::tie(arguments...);
    const auto at = [&]<int i>(std::integral_constant<int, i>) {
      return gradient_tree<i>(std::get<static_cast<std::size_t>(i)>(all), gradients);
    };
    if constexpr (sizeof...(chosen) == 0)
      return at(std::integral_constant<int, 0>{});
    else if constexpr (sizeof...(chosen) == 1)
      return at(std::integral_constant<int, chosen>{}...);
    else
      return std::tuple<
          Differentiated<std::tuple_element_t<static_cast<std::size_t>(chosen), std::tuple<A...>>>...>{
          at(std::integral_constant<int, chosen>{})...};
  }
  // The watched leaves in the order of the chosen arguments.
  std::vector<std::size_t> picked_leaves() const {
    std::vector<std::size_t> leaves;
    for (const int k : sizeof...(chosen) == 0 ? std::vector<int>{0} : std::vector<int>{chosen...})
      for (auto leaf = first_leaf[static_cast<std::size_t>(k)]; leaf < past_leaf[static_cast<std::size_t>(k)];
           ++leaf)
        leaves.push_back(leaf);
    return leaves;
  }
  template <class F> using Result = decltype(std::declval<Arguments&>().call(
      std::declval<F&>(), std::declval<Recording&>(), true, std::declval<const A&>()...));
};
template <int n> struct AllChosen {
  template <int... i> static std::integer_sequence<int, i...> make(std::integer_sequence<int, i...>);
  using type = decltype(make(std::make_integer_sequence<int, n>{}));
};
template <class... A> using AllArguments =
    Arguments<typename AllChosen<static_cast<int>(sizeof...(A))>::type, A...>;

template <class T> struct IsValueWithAux : std::false_type {};
template <class Aux> struct IsValueWithAux<std::pair<Array, Aux>> : std::true_type {};

// What trees must have in common, numbers apart.
template <class T> std::string structure_without_numbers(T tree) {
  walk_tree(
      tree, [](Array& leaf) { leaf = Array(); }, [](auto& number) { number = {}; });
  return structure_of(tree);
}
[[noreturn]] void throw_structure_mismatch(const char* call, const char* what, const std::string& expected,
                                           const std::string& given);
template <class T> T without_arrays(T tree) {
  walk_tree(
      tree, [](Array& leaf) { leaf = Array(); }, [](auto&) {});
  return tree;
}
Array stop_gradient_leaf(const Array&);

// (leaves of the arguments, cotangents of the results) -> cotangents of the arguments' leaves.
using BackwardRule =
    std::function<std::vector<Array>(std::span<const Array>, std::span<const Array>, std::source_location)>;
// The results, whose cotangents go to the arguments by the rule and nowhere else.
std::vector<Array> with_backward_rule(const std::vector<Array>& arguments, const std::vector<Array>& results,
                                      BackwardRule, std::source_location);
// The same values, computed anew from here on and not before `after`.
std::vector<Array> computed_after(const std::vector<Array>& values, std::span<const Array> after,
                                  std::source_location);
std::vector<Array> checked_rule_result(std::vector<Array> cotangents, std::span<const Array> arguments,
                                       std::source_location);

template <class T> struct IsTupleOfOne : std::false_type {};
template <class T> struct IsTupleOfOne<std::tuple<T>> : std::true_type {};
template <class T> void append_cotangents(const T& tree, std::vector<Array>& leaves) {
  if constexpr (std::is_arithmetic_v<T>)
    leaves.emplace_back(tree);  // bwd may return a number for a 0-d array
  else
    append_leaves(tree, leaves);
}
// What bwd returned for the arguments `like`: a tuple of trees, or one tree when there is one argument.
// None: no gradient.
template <class... A, class R>
std::vector<Array> cotangent_leaves(const R& returned, const std::tuple<A...>& like) {
  std::vector<Array> leaves;
  if constexpr (sizeof...(A) == 1 && !IsTupleOfOne<R>::value) {
    append_cotangents(returned, leaves);
  } else {
    static_assert(TupleLike<R>, "custom_vjp: bwd must return a tuple with one cotangent per argument");
    static_assert(std::tuple_size_v<R> == sizeof...(A),
                  "custom_vjp: bwd must return a tuple with one cotangent per argument");
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      const auto add = [&](const auto& cotangent, const auto& argument) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(cotangent)>, NoneType>)
          leaves.resize(leaves.size() + tree_leaves(argument).size());
        else
          append_cotangents(cotangent, leaves);
      };
      (add(std::get<i>(returned), std::get<i>(like)), ...);
    }
    (std::index_sequence_for<A...>{});
  }
  return leaves;
}

}  // namespace detail

// grad(f)(args...): the gradient of the scalar f(args...) with respect to the chosen arguments (the first,
// unless argnums are given). The others may be of any type.
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
template <int... Argnums, class F>
GradOf<F, Argnums...> grad(F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

// The function may also return pair{value, aux}: aux is a tree that is handed through.
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
template <int... Argnums, class F>
ValueAndGradOf<F, Argnums...> value_and_grad(F f,
                                             std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}
template <int... Argnums, class F> ValueAndGradOf<F, Argnums...> value_and_grad_aux(
    F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

// pullback(cotangents of the results) -> cotangents of all arguments. May be called any number of times;
// holds what it needs of the forward pass. Cotangents of integer leaves are ignored, and zeros for integer
// arguments.
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
      detail::throw_structure_mismatch("pullback of vjp", "the cotangent", result_, structure);
    const auto gradients = recording_.pull_back(tree_leaves(cotangents));
    std::size_t next = 0;
    return std::apply(
        [&](const auto&... arg) {
          return std::tuple<detail::Differentiated<A>...>{detail::with_leaves(arg, gradients, next)...};
        },
        args_);
  }

 private:
  detail::AllArguments<A...> arguments_;
  detail::Recording recording_;
  std::string result_;
  std::tuple<detail::Differentiated<A>...> args_;  // their structure
};

// {f(args...), pullback}. All arguments must be trees.
template <class F, class... A> auto vjp(F f, const A&... args) {
  detail::AllArguments<A...> arguments;
  detail::Recording recording("vjp", std::source_location());
  auto result = arguments.call(f, recording, false, args...);
  recording.finish(tree_leaves(result));
  using R = decltype(result);
  Pullback<R, A...> pullback(arguments, std::move(recording), result, args...);
  return std::pair<R, Pullback<R, A...>>(std::move(result), std::move(pullback));
}

// {f(primals...), its derivative along the tangents}. Forward mode by transposing the pullback: what that
// leaves over is never computed.
template <class F, class... A, class... T>
auto jvp(F f, std::tuple<A...> primals, std::tuple<T...> tangents) {
  static_assert(sizeof...(A) == sizeof...(T), "jvp: as many tangents as primals");
  std::vector<Array> directions;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto add = [&](const auto& primal, const auto& tangent) {
      const auto expected = detail::structure_without_numbers(primal),
                 given = detail::structure_without_numbers(tangent);
      if (expected != given) detail::throw_structure_mismatch("jvp", "a tangent", expected, given);
      detail::append_leaves(tangent, directions);
    };
    (add(detail::Differentiated<A>(std::get<i>(primals)), detail::Differentiated<T>(std::get<i>(tangents))),
     ...);
  }
  (std::index_sequence_for<A...>{});
  detail::AllArguments<A...> arguments;
  detail::Recording recording("jvp", std::source_location());
  auto result =
      std::apply([&](const A&... primal) { return arguments.call(f, recording, false, primal...); }, primals);
  recording.finish(tree_leaves(result));
  auto tangent = detail::with_leaves(result, recording.push_forward(std::move(directions)));
  return std::pair<decltype(result), decltype(result)>(std::move(result), std::move(tangent));
}

// jacrev(f)(args...): per leaf of the chosen arguments the array d f / d leaf of shape f's shape + leaf's
// shape.
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
template <int... Argnums, class F>
JacobianOf<F, Argnums...> jacrev(F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

// hessian(f)(args...): per leaf x of the chosen arguments the array d2 f / dx2 of shape x.shape + x.shape.
// Mixed blocks: jacrev<1>(grad<0>(f)).
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
template <int... Argnums, class F>
HessianOf<F, Argnums...> hessian(F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

// checkpoint(f): f, but its backward pass computes f's intermediate values again instead of keeping them:
// memory for arithmetic. The values are computed again when the cotangents are there, one checkpoint at a
// time.
template <class F> struct Checkpointed {
  mutable F f;
  std::source_location where;
  template <class... A> auto operator()(const A&... args) const {
    auto result = f(args...);
    std::vector<Array> leaves;
    (detail::append_leaves(detail::Differentiated<A>(args), leaves), ...);
    auto again = [f = f, structure = std::tuple(detail::without_arrays(detail::Differentiated<A>(args))...)](
                     std::span<const Array> arguments, std::span<const Array> cotangents,
                     std::source_location where) mutable {
      const auto values = detail::computed_after({arguments.begin(), arguments.end()}, cotangents, where);
      detail::Recording recording("checkpoint", where);
      std::vector<Array> watched;
      for (std::size_t i = 0; i < values.size(); ++i) watched.push_back(recording.watch(values[i], 0, false));
      std::size_t next = 0;
      auto result = std::apply(
          [&](const auto&... arg) {
            return std::apply(
                f, std::tuple<detail::Differentiated<A>...>{detail::with_leaves(arg, watched, next)...});
          },
          structure);
      recording.finish(tree_leaves(result));
      return recording.pull_back({cotangents.begin(), cotangents.end()}, detail::Recording::as_cotangents);
    };
    return detail::with_leaves(
        result, detail::with_backward_rule(leaves, tree_leaves(result), std::move(again), where));
  }
};
template <class F>
Checkpointed<F> checkpoint(F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

// custom_vjp(f, fwd, bwd): f, with a backward pass of your own.
//   fwd(args...) -> pair{f(args...), residuals}     bwd(residuals, cotangent of the result) -> tuple of
//     cotangents of the arguments
// The value is f's. fwd is recorded when a gradient is asked for; what it shares with f is computed once.
// bwd may return None for an argument without gradient, and one tree instead of a tuple when there is one
// argument. Gradients of gradients go through fwd and bwd.
template <class F, class Fwd, class Bwd> struct CustomVjp {
  mutable F f;
  Fwd fwd;
  Bwd bwd;
  std::source_location where;
  template <class... A> auto operator()(const A&... args) const {
    auto result = f(args...);
    std::vector<Array> leaves;
    (detail::append_leaves(detail::Differentiated<A>(args), leaves), ...);
    auto rule = [fwd = fwd, bwd = bwd,
                 structure = std::tuple(detail::without_arrays(detail::Differentiated<A>(args))...),
                 shape = detail::without_arrays(result)](std::span<const Array> arguments,
                                                         std::span<const Array> cotangents,
                                                         std::source_location where) mutable {
      const std::vector<Array> values(arguments.begin(), arguments.end());
      std::size_t next = 0;
      const auto inputs = std::apply(
          [&](const auto&... arg) {
            return std::tuple<detail::Differentiated<A>...>{detail::with_leaves(arg, values, next)...};
          },
          structure);
      const auto [again, residuals] = std::apply(fwd, inputs);
      const auto returned =
          bwd(residuals, detail::with_leaves(shape, {cotangents.begin(), cotangents.end()}));
      return detail::checked_rule_result(detail::cotangent_leaves(returned, inputs), arguments, where);
    };
    return detail::with_leaves(
        result, detail::with_backward_rule(leaves, tree_leaves(result), std::move(rule), where));
  }
};
template <class F, class Fwd, class Bwd>
CustomVjp<F, Fwd, Bwd> custom_vjp(F f, Fwd fwd, Bwd bwd,
                                  std::source_location where = std::source_location::current()) {
  return {std::move(f), std::move(fwd), std::move(bwd), where};
}

// The tree itself, through which no gradient flows.
template <class T> T stop_gradient(const T& tree) {
  if constexpr (std::is_arithmetic_v<T>)
    return tree;
  else
    return tree_map([](const Array& leaf) { return detail::stop_gradient_leaf(leaf); }, tree);
}

}  // namespace tessera
