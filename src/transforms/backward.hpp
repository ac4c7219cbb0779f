// Recorded nodes that belong to backward passes, and the values behind what these read: for explain.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/node.hpp"

namespace tessera {

// The backward passes recorded during the lifetime of this object, as ranges of serial numbers.
class BackwardPasses {
 public:
  BackwardPasses();
  ~BackwardPasses();
  BackwardPasses(const BackwardPasses&) = delete;
  BackwardPasses& operator=(const BackwardPasses&) = delete;
  bool has(const Node&) const;
  bool are_none() const { return ranges_.empty(); }
  void add(std::uint64_t before, std::uint64_t last) { ranges_.emplace_back(before, last); }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  // (before, last]
  BackwardPasses* outer_;
};

// A backward pass that is recorded now.
class BackwardPass {
 public:
  BackwardPass();
  ~BackwardPass();
  BackwardPass(const BackwardPass&) = delete;
  BackwardPass& operator=(const BackwardPass&) = delete;

 private:
  std::uint64_t before_;
};

// The value behind aliases, markers of checkpoint and custom_vjp, and broadcasts.
Array origin_of(Array);

}  // namespace tessera
