// Options for the leaves of a tree: one value for a whole subtree, or a list.
#pragma once
#include <initializer_list>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera::detail {

template <class Tree, class Value> class TreeOf {
 public:
  TreeOf(Value value) : is_leaf_(true), value_(std::move(value)) {}
  TreeOf(std::initializer_list<Tree> children) : children_(children) {}
  explicit TreeOf(std::vector<Tree> children) : children_(std::move(children)) {}
  template <class... T> TreeOf(const std::tuple<T...>& children)
      : TreeOf(std::apply([](const T&... c) { return std::vector<Tree>{Tree(c)...}; }, children)) {}
  bool is_leaf() const { return is_leaf_; }                        // whether it is not a list
  const Value& value() const { return value_; }                    // of a leaf; nullopt for None
  const std::vector<Tree>& children() const { return children_; }  // the entries of a list

 private:
  bool is_leaf_ = false;
  Value value_;
  std::vector<Tree> children_;
};

}  // namespace tessera::detail
