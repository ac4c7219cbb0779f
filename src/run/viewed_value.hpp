// The parts of a shift, slice, pad or concatenation that a chain reads without a copy, and their memory on
// this rank.
//
//   result of the remap:   [ from the left neighbour | ------- shifted by one ------- | fill ]
//   part of                  what was received         the source's own block           one element
//
// If the source is itself viewed (a shift of a shift), its parts replace its block.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/elementwise/parts.hpp"
#include "run/steps.hpp"

namespace tessera {

class ViewedValue {
 public:
  // before: the views that this one may read.
  ViewedValue(const BindContext&, const FusedChain::View&, const std::map<int, ViewedValue>& before);
  // Valid until the next call.
  std::span<const kernels::FusedPart> parts(const Frame&);

 private:
  using Element = std::shared_ptr<const std::vector<std::byte>>;
  struct MemorySource {
    int value = -1;  // the value whose memory holds the part; -1: in `fill`
    Element fill = nullptr;
  };
  void add_own(const Tile& source, const ViewedValue& from, const RemapPiece&, const Transfer&);
  void add(kernels::FusedPart, MemorySource);
  // A value in one block of memory.
  ViewedValue(const Tile&, int value);

  Tile tile_;
  std::vector<kernels::FusedPart> parts_;
  std::vector<MemorySource> places_;  // one per part
};

}  // namespace tessera
