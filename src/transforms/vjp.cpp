#include "transforms/vjp.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "graph/hooks.hpp"
#include "graph/same_bits.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera::detail {

std::vector<NodePtr> recorded_since(std::uint64_t first_serial, const std::vector<Array>& from) {
  std::vector<NodePtr> found;
  std::unordered_map<const Node*, bool> seen;
  std::vector<NodePtr> open;
  const auto enter = [&](const Array& x) {
    if (x.node() && x.node()->serial >= first_serial && seen.emplace(x.node().get(), true).second)
      open.push_back(x.node());
  };
  for (const auto& x : from) enter(x);
  while (!open.empty()) {
    found.push_back(std::move(open.back()));
    open.pop_back();
    const NodePtr node = found.back();
    for (const auto& input : node->inputs) enter(input);
  }
  std::sort(found.begin(), found.end(),
            [](const NodePtr& a, const NodePtr& b) { return a->serial < b->serial; });
  return found;
}

namespace {

// Records nodes again on known values, and on what follows from them.
void follow_known(const std::vector<NodePtr>& nodes, const std::unordered_set<const Node*>& arguments,
                  Tape::Values& values) {
  for (const auto& node : nodes) {
    if (node->inputs.empty() || arguments.contains(node.get()) || values.contains({node.get(), 0})) continue;
    auto inputs = node->inputs;
    bool is_new = false;
    for (auto& x : inputs)
      if (const auto known = values.find({x.node().get(), x.output()}); known != values.end())
        x = known->second, is_new = true;
    if (!is_new) continue;
    const auto outputs = record_again(*node, node->params, std::move(inputs));
    for (std::size_t o = 0; o < outputs.size(); ++o) values[{node.get(), static_cast<int>(o)}] = outputs[o];
  }
}

// Releases inputs that were kept for the recording; the tape has its own copies.
void release(const std::vector<NodePtr>& nodes) {
  for (const auto& node : nodes) {
    if (node->inputs.empty()) continue;
    node->traced = std::any_of(node->inputs.begin(), node->inputs.end(),
                               [](const Array& x) { return x.node()->traced; });
    if (!node->traced && node->is_evaluated()) drop_inputs(*node);
  }
}

bool has_tangents(const Array& x) { return is_inexact(x.dtype()); }

// Adds cotangents that reach a value along two paths. Their devices may differ if an uncommitted value was
// used on two meshes.
Array accumulated(const Array& sum, const Array& term) {
  if (!sum.node()) return term;
  const auto &a = output_of(sum).sharding, &b = output_of(term).sharding;
  if (a && b && a->mesh().device_ids() != b->mesh().device_ids()) return sum + device_put(term, *a);
  return sum + term;
}

}  // namespace

Tape::Tape(std::vector<Array> arguments, const std::vector<Array>& results, const std::vector<Array>& others,
           const char* call, Values known)
    : call_(call) {
  std::uint64_t first = ~std::uint64_t{0};
  for (const auto& x : arguments) first = std::min(first, x.node()->serial);
  std::vector<Array> ends = results;
  ends.insert(ends.end(), others.begin(), others.end());
  ends.insert(ends.end(), arguments.begin(), arguments.end());
  const auto nodes = recorded_since(first, ends);

  std::unordered_map<const Node*, int> entry_of;
  std::unordered_set<const Node*> argument_nodes;
  for (const auto& x : arguments) argument_nodes.insert(x.node().get());
  if (!known.empty()) follow_known(nodes, argument_nodes, known);
  const auto seen_by_rules = [&](const Array& x) {
    const auto value = known.find({x.node().get(), x.output()});
    return value == known.end() ? x : value->second;
  };
  for (const auto& node : nodes) {
    Entry entry{node, {}, {}, {}, {}};
    bool depends = argument_nodes.contains(node.get());
    if (!depends) {
      for (const auto& input : node->inputs) {
        const auto found = entry_of.find(input.node().get());
        entry.producer.push_back(found != entry_of.end() && has_tangents(input) ? found->second : -1);
        depends |= entry.producer.back() >= 0;
        entry.inputs.push_back(seen_by_rules(input));
        entry.output.push_back(input.output());
      }
    }
    if (!depends) continue;
    for (int o = 0; o < static_cast<int>(known.empty() ? 0 : node->outputs.size()); ++o)
      entry.outputs.push_back(seen_by_rules(Array(node, o)));
    entry_of[node.get()] = static_cast<int>(entries_.size());
    entries_.push_back(std::move(entry));
  }
  const auto place_of = [&](const Array& x) {
    const auto found = entry_of.find(x.node().get());
    return EntryOutput{found == entry_of.end() || !has_tangents(x) ? -1 : found->second, x.output()};
  };
  for (const auto& x : arguments) arguments_.push_back(place_of(x));
  for (const auto& x : results) results_.push_back(place_of(x));
  release(nodes);
}

std::vector<Array> Tape::vjp_of(const Entry& entry, const std::vector<Array>& cotangents) const {
  const Node& node = *entry.node;
  const OnBehalfOf users_call(node.called());
  const AsRecorded same_bits(node);
  if (!node.op->vjp)
    throw ArgumentError(std::string(call_) + ": " + call_text() + " has no derivative" +
                        (node.op->vjp.why() ? std::string(": ") + node.op->vjp.why() : std::string()) +
                        ". Where no gradient should flow, apply stop_gradient to its operand; to give a "
                        "derivative of your own, use custom_vjp");
  std::vector<Array> outputs = entry.outputs;
  for (std::size_t o = outputs.size(); o < node.outputs.size(); ++o)
    outputs.emplace_back(entry.node, static_cast<int>(o));
  const auto wanted = std::make_unique<bool[]>(entry.inputs.size());
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) wanted[i] = entry.producer[i] >= 0;
  auto result =
      node.op->vjp.rule()({node, entry.inputs, outputs, cotangents, {wanted.get(), entry.inputs.size()}});
  if (result.size() != entry.inputs.size())
    throw InternalError("vjp of " + node.op->name + " gives " + std::to_string(result.size()) +
                        " cotangents for " + std::to_string(entry.inputs.size()) + " inputs");
  return result;
}

std::vector<Array> Tape::pull_back(const std::vector<Array>& cotangents) const {
  std::vector<std::vector<Array>> of(entries_.size());  // per entry and output; empty: none so far
  const auto add = [&](EntryOutput place, const Array& cotangent) {
    if (place.entry < 0 || !cotangent.node()) return;
    auto& outputs = of[place.entry];
    if (outputs.empty()) outputs.resize(entries_[place.entry].node->outputs.size());
    auto& sum = outputs[place.output];
    sum = accumulated(sum, cotangent);
  };
  for (std::size_t i = 0; i < results_.size(); ++i) add(results_[i], cotangents[i]);
  for (std::size_t n = entries_.size(); n-- > 0;) {
    const Entry& entry = entries_[n];
    if (of[n].empty() || entry.producer.empty()) continue;  // no cotangent, or an argument
    const auto inputs = vjp_of(entry, of[n]);
    of[n].clear();
    const OnBehalfOf users_call(entry.node->called());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (entry.producer[i] < 0 || !inputs[i].node()) continue;
      const Array& operand = entry.inputs[i];
      if (inputs[i].shape() != operand.shape() || !(inputs[i].dtype() == operand.dtype()))
        throw InternalError("vjp of " + entry.node->op->name + " gives " + to_string(type_of(inputs[i])) +
                            " as cotangent of input " + std::to_string(i) + ", which is " +
                            to_string(type_of(operand)));
      add({entry.producer[i], entry.output[i]}, inputs[i]);
    }
  }
  std::vector<Array> gradients;
  for (const auto& place : arguments_) {
    const bool none = place.entry < 0 || of[place.entry].empty();
    gradients.push_back(none ? Array() : of[place.entry][place.output]);
  }
  return gradients;
}

Array zeros_for(const Array& operand) {
  const auto& output = output_of(operand);
  if (const auto& region = operand.node()->region; region && region->uneven) {
    // The shape differs between ranks: a number, which does not, enters and becomes an array inside.
    const Array zero = region_hooks().enter(zeros({}, output.type.dtype), region);
    return broadcast_to(zero, output.type.shape);
  }
  const Array zero = zeros(output.type.shape, output.type.dtype);
  return output.sharding ? device_put(zero, *output.sharding) : zero;
}

Array fitted(const Array& given, const Array& like, const char* what) {
  check_usable(given);
  if (given.shape() == like.shape() && given.dtype() == like.dtype()) return given;
  if (given.shape() == like.shape() && given.is_weakly_typed() && !is_complex(given.dtype()) &&
      has_tangents(like))
    return cast_to(given, like.dtype());
  throw ArgumentError(call_text() + ": " + what + " is " + describe(given) + " but belongs to " +
                      describe(like) + "; both must have the same shape and dtype");
}

}  // namespace tessera::detail
