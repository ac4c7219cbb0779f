// Forward mode: visits the recorded nodes in order and computes their tangents from those of their inputs.
//
// Ops need no second set of rules: the vjp is linear in the cotangents u, so the vjp's own pullback at t, u
// -> t . (u J), is J t.
#include "transforms/forward.hpp"

#include <algorithm>
#include <unordered_map>

#include "graph/hooks.hpp"
#include "graph/same_bits.hpp"
#include "ops/build.hpp"
#include "transforms/vjp.hpp"

namespace tessera {
namespace {

std::unordered_map<const OpDef*, JvpRule>& rules() {
  static std::unordered_map<const OpDef*, JvpRule> instance;
  return instance;
}

}  // namespace

void set_jvp_rule(const OpDef& op, JvpRule rule) { rules()[&op] = rule; }
JvpRule jvp_rule_of(const OpDef& op) {
  const auto found = rules().find(&op);
  return found == rules().end() ? nullptr : found->second;
}

namespace detail {

// A stand-in for the cotangent of x while its rule is recorded; no result depends on it.
static Array any_cotangent(const Array& x) {
  const auto& output = output_of(x);
  return make_placeholder(output.type, output.sharding, x.node()->region, output.varying);
}

// Inside a mapped function: marks a cotangent that is the same on all ranks as varying, if its operand
// varies. The tangents that the ranks send back to it are then summed.
static Array varying_like(const Array& cotangent, const Array& operand) {
  const auto& region = cotangent.node()->region;
  if (!region || !region->check_varying || operand.node()->region != region) return cotangent;
  const auto missing = output_of(operand).varying & ~output_of(cotangent).varying;
  return missing == 0 ? cotangent : region_hooks().vary(cotangent, missing);
}

// For each entry and output: whether a result depends on it.
std::vector<std::vector<bool>> Tape::needed_outputs() const {
  std::vector<std::vector<bool>> needed(entries_.size());
  const auto need = [&](int entry, int output) {
    if (entry < 0) return;
    needed[entry].resize(entries_[entry].node->outputs.size());
    needed[entry][output] = true;
  };
  for (const auto& place : results_) need(place.entry, place.output);
  for (std::size_t n = entries_.size(); n-- > 0;) {
    if (needed[n].empty()) continue;
    const Entry& entry = entries_[n];
    for (std::size_t i = 0; i < entry.producer.size(); ++i) need(entry.producer[i], entry.output[i]);
  }
  return needed;
}

std::vector<Array> Tape::jvp_of(const Entry& entry, const std::vector<bool>& needed,
                                const std::vector<Array>& tangents) const {
  const Node& node = *entry.node;
  const OnBehalfOf users_call(node.called());
  const AsRecorded same_bits(node);
  std::vector<Array> outputs;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) outputs.emplace_back(entry.node, static_cast<int>(o));
  if (const auto rule = jvp_rule_of(*node.op)) return rule({node, entry.inputs, outputs, tangents, call_});
  std::vector<Array> u, cotangents;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const Array& y = outputs[o];
    cotangents.push_back(needed[o] && is_inexact(y.dtype()) ? any_cotangent(y) : Array());
    if (cotangents.back().node()) u.push_back(cotangents.back());
  }
  const auto pulled = vjp_of(entry, cotangents);
  std::vector<Array> reached, along;
  for (std::size_t i = 0; i < pulled.size(); ++i)
    if (pulled[i].node() && tangents[i].node())
      reached.push_back(varying_like(pulled[i], entry.inputs[i])), along.push_back(tangents[i]);
  const auto found = Tape(u, reached, {}, call_).pull_back(along);
  std::vector<Array> pushed;
  for (std::size_t o = 0, next = 0; o < outputs.size(); ++o)
    pushed.push_back(cotangents[o].node() ? found[next++] : Array());
  return pushed;
}

std::vector<Array> Tape::push_forward(const std::vector<Array>& tangents) const {
  std::vector<std::vector<Array>> of(entries_.size());  // per entry and output; empty: zeros
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (arguments_[i].entry >= 0 && tangents[i].node()) {
      auto& outputs = of[arguments_[i].entry];
      outputs.resize(static_cast<std::size_t>(arguments_[i].output) + 1);
      outputs[arguments_[i].output] = tangents[i];
    }
  const auto at = [&](int entry, int output) {
    if (entry < 0 || of[entry].empty()) return Array();
    return of[entry][output];
  };
  const auto needed = needed_outputs();
  for (std::size_t n = 0; n < entries_.size(); ++n) {
    const Entry& entry = entries_[n];
    if (entry.producer.empty() || needed[n].empty()) continue;  // an argument; or no result depends on it
    std::vector<Array> in;
    for (std::size_t i = 0; i < entry.inputs.size(); ++i)
      in.push_back(at(entry.producer[i], entry.output[i]));
    bool has_tangents = false;
    for (std::size_t o = 0; o < needed[n].size(); ++o)
      has_tangents |= needed[n][o] && is_inexact(entry.node->outputs[o].type.dtype);
    if (has_tangents && std::any_of(in.begin(), in.end(), [](const Array& t) { return t.node() != nullptr; }))
      of[n] = jvp_of(entry, needed[n], in);
  }
  std::vector<Array> results;
  for (const auto& place : results_) results.push_back(at(place.entry, place.output));
  return results;
}

}  // namespace detail
}  // namespace tessera
