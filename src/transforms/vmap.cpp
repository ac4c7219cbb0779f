// vmap: the function is called once, on placeholders for one example; then each recorded node that depends on
// them is recorded again by its op's batch rule, in the same order, on the real arrays. Nodes that do not
// depend on the example are used unchanged.
//
//   f(x) = x * 2 + sum(y),  x[3] of 5 examples, y not mapped:
//     recorded   %p [3]    %1 = %p * 2    %2 = sum(y)    %3 = %1 + %2
//     replayed   x [5,3]   %4 = x * 2                    %5 = %4 + %2     [5,3]
#include "transforms/vmap.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/text.hpp"
#include "graph/same_bits.hpp"
#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/collective/prefix.hpp"
#include "ops/effect/effect.hpp"
#include "ops/functions.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

// The nodes that depend on the placeholders, in recording order.
class Dependents {
 public:
  Dependents(const std::vector<Array>& roots, const std::vector<Array>& placeholders) {
    for (const auto& p : placeholders) {
      depends_[p.node().get()] = true;
      first_ = std::min(first_, p.node()->serial);
    }
    for (const auto& root : roots) visit(root.node());
    std::sort(nodes_.begin(), nodes_.end(),
              [](const NodePtr& a, const NodePtr& b) { return a->serial < b->serial; });
  }
  const std::vector<NodePtr>& nodes() const { return nodes_; }

 private:
  void visit(const NodePtr& root) {
    struct Frame {
      NodePtr node;
      std::size_t next = 0;
      bool depends = false;
    };
    if (depends_.contains(root.get())) return;
    std::vector<Frame> stack{{root}};
    while (!stack.empty()) {
      auto& frame = stack.back();
      if (frame.next < frame.node->inputs.size()) {
        const auto& input = frame.node->inputs[frame.next].node();
        const auto known = depends_.find(input.get());
        if (known != depends_.end()) {
          frame.depends |= known->second;
          ++frame.next;
        } else if (!input->has_placeholder || input->serial < first_) {
          depends_[input.get()] = false;
        } else {
          stack.push_back({input});
        }
      } else {
        depends_[frame.node.get()] = frame.depends;
        if (frame.depends) nodes_.push_back(frame.node);
        stack.pop_back();
      }
    }
  }

  std::uint64_t first_ = std::numeric_limits<std::uint64_t>::max();  // older nodes depend on no placeholder
  std::unordered_map<const Node*, bool> depends_;
  std::vector<NodePtr> nodes_;
};

struct Key {
  const Node* node;
  int output;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return mix(reinterpret_cast<std::uintptr_t>(key.node), static_cast<std::uint64_t>(key.output));
  }
};

// Records one node again, on batches.
Batched replay_node(const Node& node, const std::vector<Array>& in, const std::vector<int>& dims,
                    std::int64_t size) {
  const OnBehalfOf users_call(node.called());
  const AsRecorded same_bits(node);
  const bool batched = std::any_of(dims.begin(), dims.end(), [](int d) { return d != not_batched; });
  if (!batched) {
    auto out = record_again(node, node.params, in);
    std::vector<int> none(out.size(), not_batched);
    return {std::move(out), std::move(none)};
  }
  if (!node.op->batch)
    throw ArgumentError("vmap: " + call_text() + " cannot be mapped: " +
                        (node.op->batch.why() != nullptr ? node.op->batch.why() : "it has no batching rule") +
                        ". Loop over the examples instead");
  return node.op->batch.rule()({node, in, dims, size});
}

Array with_batch_at(const BatchedValue& y, std::optional<int> axis, std::int64_t size, std::size_t number,
                    const VmapRequest& request) {
  if (!axis) {
    if (y.dim == not_batched) return y.value;
    throw ArgumentError(
        request.call + ": result " + std::to_string(number) +
        " depends on the example, but its out_axes is None, which " +
        "promises one value for all; give it an axis, or reduce it inside (psum over the axis name)");
  }
  if (y.dim != not_batched) return y.dim == *axis ? y.value : moveaxis(y.value, y.dim, *axis);
  return broadcast_to(expand_dims(y.value, *axis), with_dim(y.value.shape(), *axis, size));
}

}  // namespace

Array example_of(const Array& x, int dim) {
  const auto& output = output_of(x);
  std::optional<Sharding> sharding;
  if (output.sharding) {
    auto axes = output.sharding->dim_axes(x.ndim());
    axes.erase(axes.begin() + dim);
    sharding = Sharding::from_dim_axes(output.sharding->mesh(), axes);
  }
  return make_placeholder({without_dim(x.shape(), dim), output.type.dtype, output.type.weak},
                          std::move(sharding), x.node()->region, output.varying);
}

std::vector<BatchedValue> replay_batched(const std::vector<Array>& roots,
                                         const std::vector<Array>& placeholders,
                                         const std::vector<BatchedValue>& values, std::int64_t size,
                                         std::uint64_t frame) {
  const ReplayScope scope(frame);
  std::unordered_map<Key, BatchedValue, KeyHash> replayed;
  for (std::size_t i = 0; i < placeholders.size(); ++i)
    replayed[{placeholders[i].node().get(), placeholders[i].output()}] = values[i];
  const auto find = [&](const Array& x) {
    const auto found = replayed.find({x.node().get(), x.output()});
    return found == replayed.end() ? BatchedValue{x, not_batched} : found->second;
  };
  const Dependents dependents(roots, placeholders);
  for (const auto& node : dependents.nodes()) {
    std::vector<Array> in;
    std::vector<int> dims;
    for (const auto& x : node->inputs) {
      auto value = find(x);
      in.push_back(std::move(value.value));
      dims.push_back(value.dim);
    }
    auto result = replay_node(*node, in, dims, size);
    for (std::size_t i = 0; i < result.out.size(); ++i) {
      const int dim = result.dims[i];
      replayed[{node.get(), static_cast<int>(i)}] = {std::move(result.out[i]), dim};
    }
  }
  std::vector<BatchedValue> results;
  for (const auto& root : roots) results.push_back(find(root));
  return results;
}

std::vector<std::optional<int>> leaf_axes(const AxesTree& axes, const detail::MappedCall& call,
                                          const std::string& what) {
  std::vector<std::optional<int>> dims;
  spread_prefix(axes, call.args, what, "the arguments", dims);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto& x = call.leaves[i];
    check_usable(x);
    if (!dims[i]) continue;
    if (*dims[i] < -x.ndim() || *dims[i] >= x.ndim())
      throw IndexError(what + ": axis " + std::to_string(*dims[i]) + " is out of range for argument array " +
                       std::to_string(i) + ", " + describe(x) + ", of " + std::to_string(x.ndim()) +
                       " dimensions" +
                       (x.ndim() == 0 ? "; a scalar is the same for all examples: give it None" : ""));
    if (*dims[i] < 0) *dims[i] += x.ndim();
  }
  return dims;
}

std::int64_t mapped_size(const std::vector<std::optional<int>>& dims, const std::vector<Array>& leaves,
                         std::optional<int> given, const std::string& call) {
  std::optional<std::int64_t> size;
  if (given) size = *given;
  bool differs = false;
  std::string list;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i]) continue;
    const auto n = leaves[i].shape()[*dims[i]];
    list += "\n  array " + std::to_string(i) + ": size " + std::to_string(n) + " at axis " +
            std::to_string(*dims[i]) + " of " + describe(leaves[i]);
    if (!size) size = n;
    differs |= *size != n;
  }
  if (differs)
    throw ArgumentError(call + ": the mapped axes must have one size" +
                        (given ? ", " + std::to_string(*given) + " as axis_size says" : std::string()) +
                        ", but they have" + list +
                        "\n  Slice or pad the arrays, map another axis, or give None where an array is the "
                        "same for all examples");
  if (!size)
    throw ArgumentError(call +
                        ": no argument is mapped, so that the number of examples is not known; give an "
                        "argument an axis, or axis_size");
  return *size;
}

std::vector<std::optional<int>> result_axes(const AxesTree& axes, const detail::TreeShape& result,
                                            const std::vector<Array>& leaves, const std::string& what) {
  std::vector<std::optional<int>> dims;
  spread_prefix(axes, result, what, "the result", dims);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    check_usable(leaves[i]);
    if (!dims[i]) continue;
    const int ndim = leaves[i].ndim() + 1;
    if (*dims[i] < -ndim || *dims[i] >= ndim)
      throw IndexError(what + ": axis " + std::to_string(*dims[i]) + " is out of range for result array " +
                       std::to_string(i) + ", which has " + format_count(ndim, "dimension") +
                       " with the mapped one");
    if (*dims[i] < 0) *dims[i] += ndim;
  }
  return dims;
}

std::vector<Array> apply_vmap(detail::MappedCall& call, const VmapRequest& request) {
  std::vector<Array> inner, placeholders, results;
  std::vector<BatchedValue> values;
  for (std::size_t i = 0; i < call.leaves.size(); ++i) {
    const auto dim = request.in_dims[i];
    if (dim) {
      placeholders.push_back(example_of(call.leaves[i], *dim));
      values.push_back({call.leaves[i], *dim});
    }
    inner.push_back(dim ? placeholders.back() : call.leaves[i]);
  }
  const auto frame = next_frame();
  AxisBinding binding{request.axis_name, request.size, request.call, frame, {}, {}, -1};
  binding.index = make_placeholder({Shape{}, int32}, std::nullopt, nullptr, 0);
  placeholders.push_back(binding.index);
  values.push_back({arange_of(std::int64_t{0}, request.size, 1, int32), 0});
  bool has_effects = false;
  {
    const AxisScope scope({std::move(binding)});
    const EffectScope effects(effect_token());
    const UserCode users;
    results = call.body(inner);
    has_effects = effects.has_effects();
    if (has_effects) results.push_back(effects.token());
  }
  const auto replayed = replay_batched(results, placeholders, values, request.size, frame);
  if (has_effects) {
    hand_on_effects(replayed.back().value);
    results.pop_back();
  }
  const auto out = result_axes(request.out_axes, call.result, results, request.call + ": out_axes");
  std::vector<Array> mapped;
  for (std::size_t i = 0; i < results.size(); ++i)
    mapped.push_back(with_batch_at(replayed[i], out[i], request.size, i, request));
  return mapped;
}

namespace {

class Vmap final : public detail::MapRule {
 public:
  Vmap(VmapOptions options, std::source_location where) : options_(std::move(options)), where_(where) {}
  std::vector<Array> apply(detail::MappedCall& call) const override {
    const Call here("vmap", where_);
    VmapRequest request{{}, options_.out_axes, options_.axis_name, 1, call_text()};
    request.in_dims = leaf_axes(options_.in_axes, call, request.call + ": in_axes");
    request.size = mapped_size(request.in_dims, call.leaves, options_.axis_size, request.call);
    return apply_vmap(call, request);
  }

 private:
  VmapOptions options_;
  std::source_location where_;
};

}  // namespace

std::shared_ptr<const detail::MapRule> detail::vmap_rule(VmapOptions options, std::source_location where) {
  return std::make_shared<const Vmap>(std::move(options), where);
}

}  // namespace tessera
