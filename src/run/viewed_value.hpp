// What a chain reads of a shift, slice, pad or concatenation without having it copied: where each part lies
// on this rank.
//
//   result of the remap:   [ from the left neighbour | ------- shifted by one ------- | fill ]
//   part of                  what was received         the source's own block           one element
#pragma once
#include <span>
#include <vector>

#include "kernels/elementwise/parts.hpp"
#include "run/steps.hpp"

namespace tessera {

class ViewedValue {
 public:
  ViewedValue(const BindContext&, const FusedChain::View&, int value);
  // Until the next call.
  std::span<const kernels::FusedPart> parts(const Frame&);

 private:
  static constexpr int fill = -1;
  void add_own(const Tile& source, int value, const Piece&, const Transfer&);

  Tile tile_;
  std::vector<kernels::FusedPart> parts_;
  std::vector<int> lies_in_;  // per part: the value, or `fill`
  std::vector<std::byte> fill_;
};

}  // namespace tessera
