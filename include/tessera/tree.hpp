// Trees: what transformed functions take and return. A tree is an Array, a number, a tuple, pair, vector,
// array or map of trees, or a plain aggregate (up to 16 members) whose members are trees. Arrays are its
// leaves; numbers are part of its structure.
#pragma once
#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {
namespace detail {

template <class T> struct IsVector : std::false_type {};
template <class T> struct IsVector<std::vector<T>> : std::true_type {};
template <class T> struct IsStdArray : std::false_type {};
template <class T, std::size_t n> struct IsStdArray<std::array<T, n>> : std::true_type {};
template <class T> struct IsMap : std::false_type {};
template <class T> struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T> struct IsOptional : std::false_type {};
template <class T> struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
}
&&!IsStdArray<T>::value;

// ---- members of a plain aggregate, through structured bindings ----
struct AnyField {
  template <class T> operator T() const;
};
template <class T, class... Fields> constexpr std::size_t field_count() {
  if constexpr (sizeof...(Fields) > 16)
    return 0;
  else if constexpr (!requires { T{Fields{}..., AnyField{}}; })
    return sizeof...(Fields);
  else
    return field_count<T, Fields..., AnyField>();
}
template <class T, class F> auto with_fields(T& value, F&& visit) {
  constexpr std::size_t n = field_count<std::remove_const_t<T>>();
  static_assert(n >= 1 && n <= 16, "a tree may be an aggregate of 1 to 16 members");
#define TESSERA_FIELDS(count, ...) \
  if constexpr (n == count) {      \
    auto& [__VA_ARGS__] = value;   \
    return visit(__VA_ARGS__);     \
  }
  TESSERA_FIELDS(1, a)
  TESSERA_FIELDS(2, a, b)
  TESSERA_FIELDS(3, a, b, c)
  TESSERA_FIELDS(4, a, b, c, d)
  TESSERA_FIELDS(5, a, b, c, d, e)
  TESSERA_FIELDS(6, a, b, c, d, e, f)
  TESSERA_FIELDS(7, a, b, c, d, e, f, g)
  TESSERA_FIELDS(8, a, b, c, d, e, f, g, h)
  TESSERA_FIELDS(9, a, b, c, d, e, f, g, h, i)
  TESSERA_FIELDS(10, a, b, c, d, e, f, g, h, i, j)
  TESSERA_FIELDS(11, a, b, c, d, e, f, g, h, i, j, k)
  TESSERA_FIELDS(12, a, b, c, d, e, f, g, h, i, j, k, l)
  TESSERA_FIELDS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  TESSERA_FIELDS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, o)
  TESSERA_FIELDS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p)
  TESSERA_FIELDS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q)
#undef TESSERA_FIELDS
}

// Calls leaf(array) on every Array, number(value) on every number, node(kind, children) before the children
// of an inner node.
template <class T, class Leaf, class Number> void walk_tree(T& tree, Leaf&& leaf, Number&& number) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, Array>)
    leaf(tree);
  else if constexpr (std::is_arithmetic_v<U> || std::is_enum_v<U> || std::is_same_v<U, std::string> ||
                     std::is_same_v<U, Dtype>)
    number(tree);
  else if constexpr (IsVector<U>::value || IsStdArray<U>::value) {
    for (auto& child : tree) walk_tree(child, leaf, number);
  } else if constexpr (IsMap<U>::value) {
    for (auto& [key, child] : tree) walk_tree(child, leaf, number);
  } else if constexpr (IsOptional<U>::value) {
    if (tree) walk_tree(*tree, leaf, number);
  } else if constexpr (TupleLike<U>) {
    std::apply([&](auto&... child) { (walk_tree(child, leaf, number), ...); }, tree);
  } else if constexpr (std::is_empty_v<U>) {
  } else {
    static_assert(std::is_aggregate_v<U>,
                  "not a tree: use Array, numbers, tuple, pair, vector, array, map<string, tree> or a plain "
                  "aggregate of those");
    with_fields(tree, [&](auto&... child) { (walk_tree(child, leaf, number), ...); });
  }
}

// What a tree looks like, without its types.
struct TreeShape {
  bool is_leaf = false;  // an array; numbers have no children
  std::vector<TreeShape> children;
};
template <class T> TreeShape shape_of_tree(const T& tree) {
  TreeShape shape;
  if constexpr (std::is_same_v<T, Array>)
    shape.is_leaf = true;
  else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                     std::is_same_v<T, Dtype>) {
  } else if constexpr (IsVector<T>::value || IsStdArray<T>::value) {
    for (const auto& child : tree) shape.children.push_back(shape_of_tree(child));
  } else if constexpr (IsMap<T>::value) {
    for (const auto& [key, child] : tree) shape.children.push_back(shape_of_tree(child));
  } else if constexpr (IsOptional<T>::value) {
    if (tree) shape.children.push_back(shape_of_tree(*tree));
  } else if constexpr (TupleLike<T>) {
    std::apply([&](const auto&... child) { (shape.children.push_back(shape_of_tree(child)), ...); }, tree);
  } else if constexpr (!std::is_empty_v<T>) {
    with_fields(tree, [&](const auto&... child) { (shape.children.push_back(shape_of_tree(child)), ...); });
  }
  return shape;
}

// What a tree is, but for the values of its leaves: equal texts mean that one can stand for the other.
template <class T> void structure_text(const T& tree, std::string& text) {
  if constexpr (std::is_same_v<T, Array>)
    text += "*";
  else if constexpr (std::is_arithmetic_v<T>)
    text += std::to_string(tree);
  else if constexpr (std::is_same_v<T, Dtype>)
    text += name(tree);
  else if constexpr (std::is_enum_v<T>)
    text += std::to_string(static_cast<long>(tree));
  else if constexpr (std::is_same_v<T, std::string>)
    text += "'" + tree + "'";
  else if constexpr (IsMap<T>::value) {
    text += "{";
    for (const auto& [key, child] : tree) text += key + ":", structure_text(child, text), text += ",";
    text += "}";
  } else {
    text += "(";
    if constexpr (IsVector<T>::value || IsStdArray<T>::value) {
      for (const auto& child : tree) structure_text(child, text), text += ",";
    } else if constexpr (IsOptional<T>::value) {
      if (tree) structure_text(*tree, text);
    } else if constexpr (TupleLike<T>) {
      std::apply([&](const auto&... child) { ((structure_text(child, text), text += ","), ...); }, tree);
    } else if constexpr (!std::is_empty_v<T>) {
      with_fields(tree, [&](const auto&... child) { ((structure_text(child, text), text += ","), ...); });
    }
    text += ")";
  }
}
template <class T> std::string structure_of(const T& tree) {
  std::string text;
  structure_text(tree, text);
  return text;
}

template <class T> void append_leaves(const T& tree, std::vector<Array>& leaves) {
  walk_tree(
      tree, [&](const Array& x) { leaves.push_back(x); }, [](const auto&) {});
}

// The tree with its leaves replaced, in order, by leaves[next...].
template <class T> T with_leaves(T tree, const std::vector<Array>& leaves, std::size_t& next) {
  walk_tree(
      tree, [&](Array& x) { x = leaves[next++]; }, [](auto&) {});
  return tree;
}
template <class T> T with_leaves(T tree, const std::vector<Array>& leaves) {
  std::size_t next = 0;
  return with_leaves(std::move(tree), leaves, next);
}

}  // namespace detail

// The arrays of a tree, in order.
template <class T> std::vector<Array> tree_leaves(const T& tree) {
  std::vector<Array> leaves;
  detail::append_leaves(tree, leaves);
  return leaves;
}

// fn on every leaf (and the leaves of the other trees at the same places). ArgumentError when the trees
// differ in structure.
template <class F, class T, class... R> T tree_map(F fn, const T& tree, const R&... others) {
  const std::vector<Array> first = tree_leaves(tree);
  const std::array<std::vector<Array>, sizeof...(R)> rest = {tree_leaves(others)...};
  for (const auto& leaves : rest)
    if (leaves.size() != first.size())
      throw ArgumentError("tree_map: the trees have " + std::to_string(first.size()) + " and " +
                          std::to_string(leaves.size()) + " leaves; they must have the same structure");
  std::vector<Array> results;
  for (std::size_t i = 0; i < first.size(); ++i) [&]<std::size_t... n>(std::index_sequence<n...>) {
      results.push_back(fn(first[i], rest[n][i]...));
    }
  (std::make_index_sequence<sizeof...(R)>{});
  return detail::with_leaves(tree, results);
}

// Every array of a tree moved to one sharding (or device).
template <class T, class Where>
requires(!std::is_convertible_v<T, Operand> &&
         (std::is_convertible_v<Where, Sharding> || std::is_same_v<Where, Device>)) T
    device_put(const T& tree, const Where& where) {
  return tree_map([&](const Array& x) { return device_put(x, where); }, tree);
}

// eval(x, tree, ...): computes all leaves at once. Collective.
template <class... T>
requires(sizeof...(T) > 0 && !(sizeof...(T) == 1 &&
                               (std::is_same_v<T, std::vector<Array>> && ...))) void eval(const T&... trees) {
  std::vector<Array> leaves;
  (detail::append_leaves(trees, leaves), ...);
  eval(leaves);
}
template <class T> T block_until_ready(T tree) {
  eval(tree_leaves(tree));
  return tree;
}

}  // namespace tessera
