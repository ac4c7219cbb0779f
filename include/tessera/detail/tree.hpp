// Traversal of trees: the implementation of tree.hpp.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/detail/fields.hpp>

namespace tessera::detail {

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

// Numbers, names and dtypes: leaves of a tree that are no arrays.
template <class T>
concept PlainLeaf = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, Dtype>;

// Calls visit on each child of an inner node, in order; a map's children are its values.
template <class T, class Visit> void for_each_child(T& node, Visit&& visit) {
  using U = std::remove_const_t<T>;
  if constexpr (IsVector<U>::value || IsStdArray<U>::value) {
    for (auto&& child : node) visit(child);
  } else if constexpr (IsMap<U>::value) {
    for (auto& [key, child] : node) visit(child);
  } else if constexpr (IsOptional<U>::value) {
    if (node) visit(*node);
  } else if constexpr (TupleLike<U>) {
    std::apply([&](auto&... child) { (visit(child), ...); }, node);
  } else if constexpr (!std::is_empty_v<U>) {
    with_fields(node, [&](auto&... child) { (visit(child), ...); });
  }
}

// Calls leaf on every Array and number on every PlainLeaf, in the order of for_each_child.
template <class T, class Leaf, class Number> void walk_tree(T& tree, Leaf&& leaf, Number&& number) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, Array>)
    leaf(tree);
  else if constexpr (PlainLeaf<U>)
    number(tree);
  else
    for_each_child(tree, [&](auto& child) { walk_tree(child, leaf, number); });
}

// The type-erased shape of a tree.
struct TreeShape {
  bool is_leaf = false;  // an array; numbers have no children
  std::vector<TreeShape> children;
};
template <class T> TreeShape shape_of_tree(const T& tree) {
  TreeShape shape{std::is_same_v<T, Array>, {}};
  if constexpr (!std::is_same_v<T, Array> && !PlainLeaf<T>)
    for_each_child(tree, [&](const auto& child) { shape.children.push_back(shape_of_tree(child)); });
  return shape;
}

// The text of a tree's structure without the values of its arrays: trees with equal texts are
// interchangeable. Manifests of checkpoints hold it.
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
    for_each_child(tree, [&](const auto& child) {
      structure_text(child, text);
      if constexpr (!IsOptional<T>::value) text += ",";
    });
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

}  // namespace tessera::detail
