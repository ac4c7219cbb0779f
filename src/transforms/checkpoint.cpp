// Policies of checkpoint: kept values of the first recording replace the nodes of the second one that would
// compute them again.
//
//   forward    x ──> dot ──> tanh ──> dot ──> y          kept: both dots, operands of the marker
//   backward   barrier(x) ──> [dot] ──> tanh ──> [dot]   tanh is recorded again on the kept dot
#include <tessera/grad.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "base/call.hpp"
#include "ops/build.hpp"
#include "ops/contract/dot_general.hpp"
#include "ops/functions.hpp"
#include "transforms/vjp.hpp"

namespace tessera {
namespace {

struct NamedParams {
  std::string name;
  template <class V> void fields(V&& visit) const { visit("name", name); }
};

const OpDef named_op{
    .name = "checkpoint_name",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {in.begin(), in.end()};
    },
    .sharding = Rule("{D..} -> {D..}"),
    .runs = Alias{},
    .vjp = [](const VjpArgs& v) -> Cotangents { return {v.cotangents[0]}; },
    .batch = [](const BatchArgs& args) -> Batched {
      return {{record(*args.node.op, args.node.params, {args.in[0]})}, {args.dims[0]}};
    },
    .linear = Linear::in_first,
};
const Registered registered_named(named_op);

// The nodes of the recording whose values the policy keeps, in recording order.
std::vector<NodePtr> kept_nodes(const std::vector<Array>& aliases, const std::vector<Array>& results,
                                const CheckpointPolicy& policy) {
  if (aliases.empty()) return {};
  std::set<const Node*> arguments;
  std::uint64_t first = ~std::uint64_t{0};
  for (const auto& x : aliases) arguments.insert(x.node().get()), first = std::min(first, x.node()->serial);
  std::vector<NodePtr> kept;
  for (const auto& node : detail::recorded_since(first, results))
    if (!arguments.contains(node.get()) && policy.keeps(*node)) kept.push_back(node);
  return kept;
}

}  // namespace

bool CheckpointPolicy::keeps(const Node& node) const {
  const bool is_named =
      node.op == &named_op &&
      std::find(names_.begin(), names_.end(), node.params->as<NamedParams>().name) != names_.end();
  const DotDims* product = dims_of_product(node);
  switch (kind_) {
    case Kind::nothing: return false;
    case Kind::everything: return true;
    case Kind::dots: return product != nullptr || is_convolution(node);
    case Kind::dots_without_batch: return product != nullptr && product->batch_a.empty();
    case Kind::named: return is_named;
    case Kind::all_but_named: return !is_named;
  }
  return false;
}

Array checkpoint_name(Operand x, std::string name) {
  const Call call("checkpoint_name", x.where);
  check_usable(x.array);
  return record(named_op, make_params(NamedParams{std::move(name)}), {x.array});
}

namespace detail {

std::vector<Array> Recording::kept_values(const std::vector<Array>& results,
                                          const CheckpointPolicy& policy) const {
  std::vector<Array> values;
  for (const auto& node : kept_nodes(aliases(), results, policy))
    for (std::size_t o = 0; o < node->outputs.size(); ++o) values.emplace_back(node, static_cast<int>(o));
  return values;
}

void Recording::finish_with(std::vector<Array> results, const CheckpointPolicy& policy,
                            std::span<const Array> kept) {
  const Call call(call_, where_);
  for (const auto& x : results) check_usable(x);
  Tape::Values known;
  std::size_t next = 0;
  for (const auto& node : kept_nodes(aliases(), results, policy))
    for (std::size_t o = 0; o < node->outputs.size(); ++o, ++next) {
      const Array own(node, static_cast<int>(o));
      if (next >= kept.size() || kept[next].shape() != own.shape() || !(kept[next].dtype() == own.dtype()))
        throw ArgumentError(
            call_text() + ": the function recorded other ops for the backward pass than before: value " +
            std::to_string(next) + " of those that the policy keeps is " + describe(own) + " now and " +
            (next < kept.size() ? "was " + to_string(type_of(kept[next])) : std::string("was not there")) +
            ". It must record the same each time that it is called; checkpoint without a policy does not "
            "need that");
      known[{node.get(), static_cast<int>(o)}] = kept[next];
    }
  tape_ = std::make_shared<const Tape>(aliases(), results, std::vector<Array>(), call_, std::move(known));
  results_ = std::move(results);
}

}  // namespace detail
}  // namespace tessera
