#include "api/jit/kept_values.hpp"

#include <algorithm>
#include <set>

namespace tessera {
namespace {

std::int64_t bytes_of_block(const Output& value) {
  const Shape block = value.sharding ? value.sharding->shard_shape(value.type.shape) : value.type.shape;
  return block.elements() * static_cast<std::int64_t>(itemsize(value.type.dtype));
}

KeptValue described(const Array& x, const std::vector<Array>& arguments) {
  const auto& output = output_of(x);
  KeptValue value{call_text(x.node()->called()), to_string(output.type), bytes_of_block(output), false};
  if (x.node()->call == nullptr) value.what = x.node()->op->name;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].node() == x.node())
      value.what = "argument " + std::to_string(i), value.is_argument = true;
  return value;
}

}  // namespace

std::vector<KeptValue> kept_values(const Graph& graph, const std::vector<Array>& arguments,
                                   const BackwardPasses& passes) {
  if (passes.are_none()) return {};
  std::set<std::pair<const Node*, int>> seen;
  std::vector<KeptValue> kept;
  for (const auto& node : graph.nodes) {
    if (!passes.has(*node)) continue;
    for (const auto& input : node->inputs) {
      const Array x = origin_of(input);
      if (passes.has(*x.node()) || !x.node()->has_placeholder) continue;
      if (seen.emplace(x.node().get(), x.output()).second) kept.push_back(described(x, arguments));
    }
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const KeptValue& a, const KeptValue& b) { return a.bytes > b.bytes; });
  return kept;
}

}  // namespace tessera
