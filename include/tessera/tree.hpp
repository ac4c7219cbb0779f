/// @file
/// Trees: arguments and results of transformed functions. A tree is an Array, a number, a tuple, pair,
/// vector, array or map of trees, or a plain aggregate (up to 16 members) whose members are trees. Arrays are
/// its leaves; numbers are part of its structure. A class with private members or constructors is a tree if
/// it names its members, TESSERA_TREE(Net, w, b).
#pragma once
#include <array>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/detail/tree.hpp>

/// Makes a class a tree of the named members, in that order; other members are copied along. Used anywhere
/// inside the class:  class Net { TESSERA_TREE(Net, w, b)  Array w, b; };  A derived class needs its own.
#define TESSERA_TREE(Class, ...)                             \
  friend struct ::tessera::detail::TreeAccess;               \
  using TesseraTree = Class;                                 \
  auto tessera_members() { return ::std::tie(__VA_ARGS__); } \
  auto tessera_members() const { return ::std::tie(__VA_ARGS__); }

namespace tessera {

/// The arrays of a tree, in order. Not collective.
template <class T> std::vector<Array> tree_leaves(const T& tree) {
  std::vector<Array> leaves;
  detail::append_leaves(tree, leaves);
  return leaves;
}

/// Applies fn to every leaf (and the leaves of the other trees at the same positions). Not collective.
/// ArgumentError if the trees differ in structure.
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

/// Every array of a tree moved to one sharding (or device). Not collective: records.
template <class T, class Where>
requires(!std::is_convertible_v<T, Operand> &&
         (std::is_convertible_v<Where, Sharding> || std::is_same_v<Where, Device>)) T
    device_put(const T& tree, const Where& target,
               std::source_location where = std::source_location::current()) {
  return tree_map([&](const Array& x) { return device_put(Operand(x, where), target); }, tree);
}

/// eval(x, tree, ...): computes all leaves at once. Collective over the ranks of their meshes.
template <class... T>
requires(sizeof...(T) > 0 && !(sizeof...(T) == 1 &&
                               (std::is_same_v<T, std::vector<Array>> && ...))) void eval(const T&... trees) {
  std::vector<Array> leaves;
  (detail::append_leaves(trees, leaves), ...);
  eval(leaves, std::source_location());
}
/// eval(tree); returns the tree. Collective over the ranks of its meshes.
template <class T> T block_until_ready(T tree, std::source_location where = std::source_location::current()) {
  eval(tree_leaves(tree), where);
  return tree;
}
/// The same as a method.
inline Array Array::block_until_ready(Where where) const { return tessera::block_until_ready(*this, where); }

}  // namespace tessera
