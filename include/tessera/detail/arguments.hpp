// The arguments of a function that is differentiated: which ones are watched, and their types inside the
// function.
#pragma once
#include <array>
#include <complex>
#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/detail/recording.hpp>
#include <tessera/tree.hpp>

namespace tessera::detail {

template <class T> struct IsComplexNumber : std::false_type {};
template <class R> struct IsComplexNumber<std::complex<R>> : std::true_type {};
// Inside the function a differentiated number is an Array, and its gradient is one too.
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

// A function's arguments during a recording: the selected ones hold watched leaves, the others are the
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
      past_leaf{};  // per argument: the end of its watched leaves

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
      std::tuple<Seen<i, A>...> seen{see<i>(recording, arguments, strict)...};  // braces: left to right
      return std::apply([&f](const auto&... x) { return std::invoke(f, x...); }, seen);
    }
    (Indices{});
  }
  // The argument's tree with its leaves replaced by their gradients.
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
  // The watched leaves in the order of the selected arguments.
  std::vector<std::size_t> picked_leaves() const {
    std::vector<std::size_t> leaves;
    for (const int k : sizeof...(chosen) == 0 ? std::vector<int>{0} : std::vector<int>{chosen...})
      for (auto leaf = first_leaf[static_cast<std::size_t>(k)]; leaf < past_leaf[static_cast<std::size_t>(k)];
           ++leaf)
        leaves.push_back(leaf);
    return leaves;
  }
  template <class F, class Self = Arguments> using Result = decltype(std::declval<Self&>().call(
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

// The structure that trees must share, without numbers.
template <class T> std::string structure_without_numbers(T tree) {
  walk_tree(
      tree, [](Array& leaf) { leaf = Array(); }, [](auto& number) { number = {}; });
  return structure_of(tree);
}
template <class T> T without_arrays(T tree) {
  walk_tree(
      tree, [](Array& leaf) { leaf = Array(); }, [](auto&) {});
  return tree;
}

// The arguments of a call as a tree without arrays, and its leaves.
template <class... A> struct Flattened {
  explicit Flattened(const A&... args) : structure(without_arrays(Differentiated<A>(args))...) {
    (append_leaves(Differentiated<A>(args), leaves), ...);
  }
  std::tuple<Differentiated<A>...> structure;
  std::vector<Array> leaves;
};

template <class T> struct IsTupleOfOne : std::false_type {};
template <class T> struct IsTupleOfOne<std::tuple<T>> : std::true_type {};
template <class T> void append_cotangents(const T& tree, std::vector<Array>& leaves) {
  if constexpr (std::is_arithmetic_v<T>)
    leaves.emplace_back(tree);  // bwd may return a number for a 0-d array
  else
    append_leaves(tree, leaves);
}
// The cotangents in bwd's result for the arguments `like`: a tuple of trees, or one tree if there is only one
// argument. None: no gradient.
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

}  // namespace tessera::detail
