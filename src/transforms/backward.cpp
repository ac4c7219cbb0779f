#include "transforms/backward.hpp"

#include <algorithm>

#include "base/session.hpp"
#include "graph/op.hpp"

namespace tessera {
namespace {
struct OpenPasses {
  BackwardPasses* innermost = nullptr;
};
}  // namespace

BackwardPasses::BackwardPasses() : outer_(std::exchange(state<OpenPasses>().innermost, this)) {}
BackwardPasses::~BackwardPasses() { state<OpenPasses>().innermost = outer_; }
bool BackwardPasses::has(const Node& node) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
    return range.first < node.serial && node.serial <= range.second;
  });
}

BackwardPass::BackwardPass() : before_(newest_serial()) {}
BackwardPass::~BackwardPass() {
  if (auto* passes = state<OpenPasses>().innermost) passes->add(before_, newest_serial());
}

}  // namespace tessera
