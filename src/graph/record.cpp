// Recording: creates the node when a user calls an op.
#include <algorithm>
#include <deque>
#include <sstream>

#include "base/session.hpp"
#include "graph/halves.hpp"
#include "graph/hooks.hpp"
#include "graph/op.hpp"
#include "graph/same_bits.hpp"
#include "mesh/reshard.hpp"
#include "types/checked.hpp"

namespace tessera {
namespace {

// Never repeats a number, since arrays outlive runtimes.
std::uint64_t& latest_serial() {
  static std::uint64_t serial = 0;
  return serial;
}
std::uint64_t next_serial() { return ++latest_serial(); }

std::string devices_text(const Sharding& sharding) {
  std::string text = "[";
  const auto& ids = sharding.mesh().device_ids();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i == 12 && ids.size() > 16) {
      text += ", ... " + std::to_string(ids.size()) + " devices";
      break;
    }
    text += (i ? ", " : "") + std::to_string(ids[i]);
  }
  return text + "]";
}

[[noreturn]] void throw_device_mismatch(const Array& a, std::size_t i, const Array& b, std::size_t j) {
  const auto& sa = *output_of(a).sharding;
  const auto& sb = *output_of(b).sharding;
  const bool same_set = sa.device_set() == sb.device_set();
  std::ostringstream text;
  text << call_text() << ": the operands are committed to different "
       << (same_set ? "device orders" : "device sets") << ".\n  operand " << i << ": " << describe(a)
       << " on devices " << devices_text(sa) << "\n  operand " << j << ": " << describe(b) << " on devices "
       << devices_text(sb) << "\n  "
       << (same_set ? "The devices are the same, only their order differs. " : "")
       << "Move one to the other's devices first, e.g. device_put(b, a.sharding()).";
  throw ShardingError(text.str());
}

bool lies_in(const RegionPtr& inner, const RegionPtr& outer) {
  for (RegionPtr r = inner;; r = r->parent) {
    if (r == outer) return true;
    if (!r) return false;
  }
}

// The innermost region of the operands; values of enclosing regions may enter it.
RegionPtr common_region(std::span<const Array> inputs) {
  RegionPtr region;
  for (const auto& x : inputs) {
    const auto& own = x.node()->region;
    if (lies_in(region, own)) continue;
    if (!lies_in(own, region))
      throw ShardingError(call_text() +
                          ": the operands belong to two different mapped functions (shard_map/pmap); pass "
                          "values out through their results");
    region = own;
  }
  return region;
}

// Enters values of enclosing regions into `region`. Every rank computes uncommitted constants for itself, so
// these need no entry.
void bring_inside(const OpDef& op, const RegionPtr& region, std::vector<Array>& inputs) {
  std::uint64_t varying = 0;
  for (auto& x : inputs) {
    const Node& node = *x.node();
    if (node.region != region && (node.region || node.traced || output_of(x).sharding))
      x = region_hooks().enter(x, region);
    varying |= output_of(x).varying;
  }
  if (!region->check_varying || op.varying != nullptr || op.output_varying != nullptr) return;
  for (auto& x : inputs)
    if (x.node()->traced && x.node()->region == region && (varying & ~output_of(x).varying) != 0)
      x = region_hooks().vary(x, varying & ~output_of(x).varying);
}

struct Ops {
  std::vector<const OpDef*> all;
};
Ops& ops() {
  static Ops instance;
  return instance;
}

}  // namespace

std::uint64_t newest_serial() { return latest_serial(); }

void (*compute_pending)(const std::vector<Array>&) = nullptr;
Array (*convert_half)(const Array&, Dtype) = nullptr;

void register_op(const OpDef* op) { ops().all.push_back(op); }
const std::vector<const OpDef*>& registered_ops() { return ops().all; }
RegionHooks& region_hooks() {
  static RegionHooks hooks;
  return hooks;
}

std::optional<Mesh> unify_meshes(std::span<const Array> inputs,
                                 std::span<std::optional<Sharding>> shardings) {
  std::optional<std::size_t> first;
  bool several_meshes = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!shardings[i]) continue;
    if (!first) {
      first = i;
      continue;
    }
    const Mesh mesh_a = shardings[*first]->mesh(), mesh_b = shardings[i]->mesh();
    if (mesh_a == mesh_b) continue;
    if (mesh_a.device_ids() != mesh_b.device_ids())
      throw_device_mismatch(inputs[*first], *first, inputs[i], i);
    several_meshes = true;
  }
  if (!first) return std::nullopt;
  if (several_meshes) {
    std::vector<Sharding> committed;
    for (const auto& s : shardings)
      if (s) committed.push_back(*s);
    const auto refined = on_common_mesh(committed);
    std::size_t next = 0;
    for (auto& s : shardings) {
      if (!s) continue;
      if (!refined.empty()) s = refined[next++];
    }
    if (refined.empty()) {  // no common refinement: uses the largest operand's mesh, replicates the others
      std::size_t largest = *first;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (shardings[i] && inputs[i].nbytes() > inputs[largest].nbytes()) largest = i;
      const Mesh mesh = shardings[largest]->mesh();
      for (auto& s : shardings)
        if (s && !(s->mesh() == mesh)) s = Sharding::replicated(mesh);
      return mesh;
    }
  }
  return shardings[*first]->mesh();
}

Placement place_by(const Rule& sentence, const PlacementArgs& args, std::int64_t* bytes) {
  std::vector<Shape> in_shapes, out_shapes;
  std::vector<Dtype> in_dtypes, out_dtypes;
  in_shapes.reserve(args.in.size()), in_dtypes.reserve(args.in.size());
  out_shapes.reserve(args.out.size()), out_dtypes.reserve(args.out.size());
  for (const auto& t : args.in) in_shapes.push_back(t.shape), in_dtypes.push_back(t.dtype);
  for (const auto& t : args.out) out_shapes.push_back(t.shape), out_dtypes.push_back(t.dtype);
  const FactorRule rule = sentence.on(in_shapes, out_shapes, args.params);
  Placement result;
  if (bytes != nullptr) *bytes = 0;
  const bool adds_bools =
      rule.reduce_kind == ReduceKind::sum && !out_dtypes.empty() && is_bool(out_dtypes[0]);
  result.reduce_kind = adds_bools ? ReduceKind::any : rule.reduce_kind;
  if (args.wanted) {
    FactorAxes axes = factors_of(rule, *args.wanted, 0, true);
    // Drops a split that the other operands cannot have; the consumer slices instead.
    for (std::size_t f = axes.size(); f-- > 0 && !is_allowed(rule, axes, args.mesh);) axes[f].clear();
    for (int i = 0; i < static_cast<int>(args.in.size()); ++i)
      result.inputs.push_back(sharding_of(rule, axes, args.mesh, i, false));
    for (int i = 0; i < static_cast<int>(args.out.size()); ++i)
      result.outputs.push_back(sharding_of(rule, axes, args.mesh, i, true));
    return result;
  }
  auto found =
      propagate_forward(rule, args.shardings, in_shapes, in_dtypes, out_shapes, out_dtypes, args.mesh);
  result.inputs = std::move(found.inputs);
  result.outputs = std::move(found.outputs);
  result.partial_axes = std::move(found.partial_axes);
  if (bytes != nullptr) *bytes = found.bytes;
  return result;
}

Placement place(const OpDef& op, const PlacementArgs& args) {
  const auto* const own = std::get_if<PlacementRule>(&op.sharding);
  const bool keeps_order = op.same_bits == SameBits::always ||
                           (op.same_bits == SameBits::made_for_it && own != nullptr);  // in any layout
  if (args.same_bits && !keeps_order)
    if (const auto* sentence = rule_of(op)) return place_whole_sums(*sentence, args);
  if (own != nullptr) return own->place(args);
  return place_by(std::get<Rule>(op.sharding), args);
}

void check_usable(const Array& x) {
  if (!x.node())
    throw ArgumentError(call_text() + ": the array holds nothing (it was default-constructed or moved from)");
  if (output_of(x).deleted)
    throw ArgumentError(call_text() + ": the array " + describe(x) +
                        " was deleted or donated; its value is gone. Keep a copy that is computed before "
                        "that, or do not delete it before its last use");
}

namespace {

// The operands' types and shardings, as arguments for an op's rules.
struct Operands {
  template <class T> using List = detail::InlineVector<T, 3>;  // where() has three
  List<Type> types;
  List<std::optional<Sharding>> shardings;
  List<std::uint64_t> varying;
  std::uint64_t varying_together = 0;
};

Operands look_at(const std::vector<Array>& inputs) {
  Operands operands;
  operands.types.reserve(inputs.size());
  operands.shardings.reserve(inputs.size());
  operands.varying.reserve(inputs.size());
  for (const auto& x : inputs) {
    const auto& output = output_of(x);
    operands.types.push_back(output.type);
    operands.shardings.push_back(output.sharding);
    operands.varying.push_back(output.varying);
    operands.varying_together |= output.varying;
  }
  return operands;
}

// Checks that every result's bytes, strides and offsets fit 64 bits, counting extents of 0 as 1. Without an
// error this costs a few multiplications.
void check_size(const Type& type) {
  auto bytes = static_cast<std::int64_t>(itemsize(type.dtype));
  bool fits = true;
  for (const auto extent : type.shape)
    fits = fits && extent >= 0 && !__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
  if (!fits) checked_bytes(type.shape, type.dtype, call_text());
}

// Sets the node's results: types, varying axes, and layouts if any operand has one.
void set_outputs(Node& node, const OpDef& op, Operands& operands, const std::vector<Array>& inputs,
                 const RegionPtr& region) {
  const auto types = op.infer(operands.types, *node.params);
  for (const auto& type : types) check_size(type);
  auto mesh = unify_meshes(inputs, operands.shardings);
  if (!mesh && op.commit != nullptr) mesh = op.commit(*node.params);
  const auto together =
      op.varying != nullptr ? op.varying(operands.varying, *node.params) : operands.varying_together;
  node.outputs.resize(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    node.outputs[i].type = types[i];
    node.outputs[i].varying = op.output_varying != nullptr ? op.output_varying(i, *node.params) : together;
  }
  if (!mesh) return;
  static const std::vector<int> no_axes;
  const auto& fixed = region ? region->manual_axes : no_axes;
  const auto placed =
      place(op, {operands.types, types, operands.shardings, *node.params, *mesh, fixed, std::nullopt});
  for (std::size_t i = 0; i < types.size(); ++i) node.outputs[i].sharding = placed.outputs[i];
}

// Derives the properties of a node from its inputs.
void follow_inputs(Node& node) {
  for (const auto& x : node.inputs) {
    ++x.node()->readers;
    node.traced |= x.node()->traced;
    node.has_placeholder |= x.node()->has_placeholder;
    if (!x.node()->is_evaluated()) node.pending = std::max(node.pending, x.node()->pending + 1);
  }
}

}  // namespace

std::vector<Array> record_all(const OpDef& op, ParamsPtr params, std::vector<Array> inputs) {
  const Call unless_called(op.name.c_str(), {});
  for (const auto& x : inputs) check_usable(x);
  if (const auto half = half_to_widen(op, *params, inputs))
    return record_widened(op, std::move(params), std::move(inputs), *half);
  if (op.instead != nullptr && is_reproducible())
    if (auto others = op.instead(op, params, inputs); !others.empty()) return others;
  return record_itself(op, std::move(params), std::move(inputs));
}

std::vector<Array> record_itself(const OpDef& op, ParamsPtr params, std::vector<Array> inputs) {
  const auto region = common_region(inputs);
  if (region) bring_inside(op, region, inputs);
  auto operands = look_at(inputs);
  auto node = std::make_shared<Node>();
  node->op = &op;
  node->params = std::move(params);
  set_outputs(*node, op, operands, inputs, region);
  node->same_bits = is_reproducible() || op.same_bits == SameBits::made_for_it;
  if (node->same_bits) check_same_bits(op, *node->params, inputs, node->outputs);
  node->region = op.region != nullptr ? op.region(*node->params, region) : region;
  node->inputs = std::move(inputs);
  follow_inputs(*node);
  node->call = current_call().name;
  node->where = current_call().where;
  node->serial = next_serial();
  std::vector<Array> results;
  for (std::size_t i = 0; i < node->outputs.size(); ++i) results.emplace_back(node, static_cast<int>(i));
  if (node->pending > longest_pending_chain && !node->traced && compute_pending != nullptr)
    compute_pending(results);
  return results;
}

Array record(const OpDef& op, ParamsPtr params, std::vector<Array> inputs) {
  return record_all(op, std::move(params), std::move(inputs))[0];
}

namespace {
std::vector<Type> infer_nothing(std::span<const Type>, const Params&) { return {}; }
const OpDef& leaf_op() {
  static const OpDef leaf{.name = "leaf", .infer = infer_nothing};
  return leaf;
}
const OpDef& parameter_op() {
  static const OpDef parameter{.name = "parameter", .infer = infer_nothing};
  return parameter;
}
}  // namespace

bool is_leaf(const Node& node) { return node.op == &leaf_op(); }
bool is_parameter(const Node& node) { return node.op == &parameter_op(); }

Array make_leaf(Type type, Sharding layout, Buffer buffer, bool committed) {
  check_thread("array");
  auto node = std::make_shared<Node>();
  node->op = &leaf_op();
  node->params = no_params();
  node->call = current_call().name;
  node->where = current_call().where;
  node->serial = next_serial();
  Output output;
  output.type = std::move(type);
  if (committed) output.sharding = layout;
  output.stored = Stored{std::move(layout), std::move(buffer)};
  node->outputs.push_back(std::move(output));
  return {std::move(node), 0};
}

Array make_placeholder(Type type, std::optional<Sharding> sharding, RegionPtr region, std::uint64_t varying) {
  check_thread("array");
  auto node = std::make_shared<Node>();
  node->op = &parameter_op();
  node->params = no_params();
  node->call = current_call().name;
  node->where = current_call().where;
  node->serial = next_serial();
  node->traced = node->has_placeholder = true;
  node->region = std::move(region);
  Output output;
  output.type = std::move(type);
  output.sharding = std::move(sharding);
  output.varying = varying;
  node->outputs.push_back(std::move(output));
  return {std::move(node), 0};
}

}  // namespace tessera
