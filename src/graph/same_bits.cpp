#include "graph/same_bits.hpp"

#include <algorithm>
#include <limits>

#include "base/session.hpp"
#include "base/settings.hpp"
#include "graph/elementwise_row.hpp"
#include "mesh/reshard.hpp"

namespace tessera {
namespace {

// The choice of the innermost scope; nobody: no scope is open, so the setting decides.
enum Said : int { nobody = -1, off = 0, on = 1 };
struct Innermost {
  int said = nobody;
};

bool adds_floats(const FactorRule& rule, std::span<const Type> out) {
  const bool adds = rule.reduce_kind == ReduceKind::sum || rule.reduce_kind == ReduceKind::prod;
  return adds && std::any_of(out.begin(), out.end(), [](const Type& t) { return is_inexact(t.dtype); });
}

std::vector<Shape> shapes_of(std::span<const Type> types) {
  std::vector<Shape> shapes;
  for (const auto& t : types) shapes.push_back(t.shape);
  return shapes;
}

// The dims that may take over the axes of a summed dim.
class Relocation {
 public:
  Relocation(const FactorRule& rule, const PlacementArgs& args, const Placement& recorded)
      : rule_(rule), args_(args), recorded_(recorded) {}

  FactorAxes of(FactorAxes axes) {
    for (std::size_t f = 0; f < axes.size(); ++f)
      if (rule_.factors[f].kind == FactorKind::reduce && !axes[f].empty()) axes = without(f, axes);
    return axes;
  }

 private:
  // Tries the remaining dims in order and takes the first of those that move the fewest bytes. A dim shorter
  // than the number of ranks is left out, because some ranks would have no work.
  FactorAxes without(std::size_t summed, const FactorAxes& axes) const {
    FactorAxes best = axes;
    best[summed].clear();
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t f = 0; f < axes.size(); ++f) {
      if (rule_.factors[f].kind != FactorKind::pass) continue;
      FactorAxes moved = axes;
      moved[f].insert(moved[f].end(), axes[summed].begin(), axes[summed].end());
      moved[summed].clear();
      if (rule_.factors[f].size < devices_along(args_.mesh, moved[f]) ||
          !is_allowed(rule_, moved, args_.mesh))
        continue;
      if (const auto bytes = bytes_of(moved); bytes < fewest) fewest = bytes, best = std::move(moved);
    }
    return best;
  }

  // Bytes that move the operands to these axes and the results to their recorded layout.
  std::int64_t bytes_of(const FactorAxes& axes) const {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < args_.in.size(); ++i)
      if (args_.shardings[i])
        bytes += plan_reshard(*args_.shardings[i],
                              sharding_of(rule_, axes, args_.mesh, static_cast<int>(i), false),
                              args_.in[i].shape, args_.in[i].dtype)
                     .bytes;
    for (std::size_t o = 0; o < args_.out.size(); ++o)
      bytes += plan_reshard(sharding_of(rule_, axes, args_.mesh, static_cast<int>(o), true),
                            recorded_.outputs[o], args_.out[o].shape, args_.out[o].dtype)
                   .bytes;
    return bytes;
  }

  const FactorRule& rule_;
  const PlacementArgs& args_;
  const Placement& recorded_;
};

[[noreturn]] void refuse(const OpDef& op, const std::string& why, const std::string& cure) {
  throw ShardingError(call_text() + ": " + op.name + " " + why +
                      ", so that its result would not have the same bits on every number of ranks, which "
                      "ReproducibleScope (TESSERA_REPRODUCIBLE, jit's reproducible) promises. " +
                      cure);
}

// Refuses a split matrix, because it would be factored in blocks whose sizes depend on the number of ranks.
void check_whole_matrices(const OpDef& op, const Params& params, const std::vector<Array>& inputs,
                          const Outputs& outputs) {
  std::vector<Type> in, out;
  std::vector<std::optional<Sharding>> shardings;
  for (const auto& x : inputs) in.push_back(type_of(x)), shardings.push_back(output_of(x).sharding);
  for (const auto& o : outputs) out.push_back(o.type);
  const auto mesh = unify_meshes(inputs, shardings);
  if (!mesh) return;
  const auto& region = inputs[0].node()->region;
  const auto placed = place_whole_sums(
      *rule_of(op), {in, out, shardings, params, *mesh, manual_axes_of(region), std::nullopt, true});
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (shardings[i] && plan_reshard(*shardings[i], placed.inputs[i], in[i].shape, in[i].dtype).bytes > 0)
      refuse(
          op,
          "works on a matrix that ranks hold together, " + describe(inputs[i]) +
              ", in blocks that follow the number of ranks",
          "Replicate the operand first, device_put(x, Sharding(mesh, P())), where it fits a rank's memory; "
          "batches of matrices may be split along their batch dims; or open ReproducibleScope(false) "
          "around this call.");
}

}  // namespace

ReproducibleScope::ReproducibleScope(bool is_on) : before_(state<Innermost>().said) {
  state<Innermost>().said = is_on ? on : off;
}
ReproducibleScope::~ReproducibleScope() { state<Innermost>().said = before_; }

bool is_reproducible() {
  const int said = state<Innermost>().said;
  return said == nobody ? settings().reproducible : said == on;
}

std::vector<Array> record_again(const Node& node, ParamsPtr params, std::vector<Array> inputs) {
  const OnBehalfOf users_call(node.called());
  const ReproducibleScope as_recorded(node.same_bits);
  return record_itself(*node.op, std::move(params), std::move(inputs));
}

void check_same_bits(const OpDef& op, const Params& params, const std::vector<Array>& inputs,
                     const Outputs& outputs) {
  if (std::none_of(outputs.begin(), outputs.end(), [](const Output& o) { return is_inexact(o.type.dtype); }))
    return;
  if (op.same_bits == SameBits::always || elementwise_row(op) != nullptr || is_alias(op)) return;
  if (op.same_bits == SameBits::whole_matrices) return check_whole_matrices(op, params, inputs, outputs);
  if (op.same_bits == SameBits::made_for_it) return;
  if (op.same_bits == SameBits::by_rule && (rule_of(op) != nullptr || op.halves(params) == Halves::moved))
    return;
  refuse(op, "adds in an order that follows the layout of its operands",
         "Open ReproducibleScope(false) around this call, or compute it from sums and products.");
}

Placement place_whole_sums(const Rule& sentence, const PlacementArgs& args) {
  auto placement = place_by(sentence, args);
  if (args.wanted || placement.partial_axes.empty()) return placement;
  const auto in = shapes_of(args.in), out = shapes_of(args.out);
  const FactorRule rule = sentence.on(in, out, args.params);
  if (!adds_floats(rule, args.out)) return placement;
  FactorAxes axes(rule.factors.size());
  const auto take = [&](const Sharding& sharding, int operand, bool is_output) {
    const auto own = factors_of(rule, sharding, operand, is_output);
    for (std::size_t f = 0; f < axes.size(); ++f)
      if (axes[f].empty()) axes[f] = own[f];
  };
  for (std::size_t i = 0; i < placement.inputs.size(); ++i)
    take(placement.inputs[i], static_cast<int>(i), false);
  for (std::size_t o = 0; o < placement.outputs.size(); ++o)
    take(placement.outputs[o], static_cast<int>(o), true);
  const auto whole = Relocation(rule, args, placement).of(std::move(axes));
  for (std::size_t i = 0; i < placement.inputs.size(); ++i)
    placement.inputs[i] = sharding_of(rule, whole, args.mesh, static_cast<int>(i), false);
  for (std::size_t o = 0; o < placement.outputs.size(); ++o)
    placement.outputs[o] = sharding_of(rule, whole, args.mesh, static_cast<int>(o), true);
  placement.partial_axes.clear();
  return placement;
}

}  // namespace tessera
