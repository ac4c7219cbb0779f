// The root of a tree (kernels/reduce/tree.hpp) from nodes over slabs of one length, which come in order. A
// node waits for the one on its right, so that few are there at a time.
//
//   slab       0     1       2           3
//   waiting   (0)   (0 1)   (0 1) (2)   (0 1 2 3)
#pragma once
#include <tessera/array.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace tessera::stream {

class TreeOfSlabs {
 public:
  using Join = std::function<Array(const Array& left, const Array& right)>;
  void add(Array node, const Join& join) {
    int level = 0;
    for (; !waiting_.empty() && waiting_.back().level == level; ++level) node = joined_to_last(node, join);
    waiting_.push_back({level, std::move(node)});
  }
  // After the last slab: a node beyond whose right there is nothing stands for its parent.
  Array root(const Join& join) {
    Array node = std::move(waiting_.back().value);
    waiting_.pop_back();
    while (!waiting_.empty()) node = joined_to_last(node, join);
    return node;
  }

 private:
  struct Waiting {
    int level;
    Array value;
  };
  Array joined_to_last(const Array& right, const Join& join) {
    const Array left = std::move(waiting_.back().value);
    waiting_.pop_back();
    return join(left, right);
  }
  std::vector<Waiting> waiting_;
};

}  // namespace tessera::stream
