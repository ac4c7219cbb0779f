// A prefix tree of settings (specs, axes) for a tree of arrays: one setting may apply to a whole subtree.
#pragma once
#include <tessera/maps.hpp>

#include <string>
#include <utility>
#include <vector>

namespace tessera {

inline std::size_t count_leaves(const detail::TreeShape& tree) {
  std::size_t n = tree.is_leaf ? 1 : 0;
  for (const auto& child : tree.children) n += count_leaves(child);
  return n;
}

// Expands to one setting per leaf of the tree. ArgumentError, beginning with `what` ("shard_map at a.cpp:3:
// in_specs"), if the trees differ.
template <class Prefix, class Value> void spread_prefix(const Prefix& prefix, const detail::TreeShape& tree,
                                                        const std::string& what, const std::string& place,
                                                        std::vector<Value>& values) {
  if (prefix.is_leaf()) {
    for (auto n = count_leaves(tree); n > 0; --n) values.push_back(prefix.value());
    return;
  }
  const auto& children = prefix.children();
  if (tree.is_leaf && children.size() == 1) return spread_prefix(children[0], tree, what, place, values);
  if (tree.is_leaf || children.size() != tree.children.size())
    throw ArgumentError(
        what + ": " + place +
        (tree.is_leaf ? " is one array" : " has " + std::to_string(tree.children.size()) + " parts") +
        ", but the list given for it has " + std::to_string(children.size()) +
        "; give one entry per part, or one entry for all");
  for (std::size_t i = 0; i < children.size(); ++i)
    spread_prefix(children[i], tree.children[i], what, place + "[" + std::to_string(i) + "]", values);
}

}  // namespace tessera
