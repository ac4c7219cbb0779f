// cond in a trace: an op that owns two programs, one of which runs.
//
//   inputs   predicate, what either branch reads       outputs   what both branches return
//
// The predicate is replicated over the devices of both branches, so that all of them take the same one. A
// predicate that may differ between ranks of a mapped function, or between examples of a batch, selects from
// the results of both.
#include <algorithm>

#include "control/control_flow.hpp"
#include "graph/hooks.hpp"
#include "mesh/reshard.hpp"
#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/functions.hpp"
#include "transforms/forward.hpp"
#include "transforms/vjp.hpp"
#include "transforms/vmap.hpp"

namespace tessera {
namespace {

struct BranchParams {
  FunctionPtr where_true, where_false;           // with the same operands
  std::vector<std::optional<Sharding>> layouts;  // layouts of the results
  std::optional<Mesh> mesh;
  std::uint64_t agreed_hash() const { return mix(where_true->key().agreed, where_false->key().agreed); }
  template <class V> void fields(V&& visit) const {
    visit("layouts", layouts), visit("true", where_true), visit("false", where_false);
  }
};
const BranchParams& params_of(const Params& p) { return p.as<BranchParams>(); }

std::vector<Type> infer_branch(std::span<const Type>, const Params& params) {
  std::vector<Type> types;
  const auto &a = params_of(params).where_true->results(), &b = params_of(params).where_false->results();
  for (std::size_t i = 0; i < a.size(); ++i)
    types.push_back({a[i].shape(), a[i].dtype(), type_of(a[i]).weak && type_of(b[i]).weak});
  return types;
}

Placement place_branch(const PlacementArgs& args) {
  const auto& p = params_of(args.params);
  const auto mesh = p.mesh.value_or(args.mesh);
  Placement placement;
  placement.inputs = layouts_on(mesh, p.where_true->parameters());
  placement.inputs.insert(placement.inputs.begin(), Sharding::replicated(mesh));
  for (std::size_t i = 0; i < p.layouts.size(); ++i)
    placement.outputs.push_back(p.layouts[i]                       ? *p.layouts[i]
                                : args.wanted && i == 0 && !p.mesh ? *args.wanted
                                                                   : Sharding::replicated(mesh));
  return placement;
}

std::vector<int> lower_branch(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const auto& p = params_of(*node.params);
  const auto placement = builder.placement();
  const std::vector<Sharding> operands(placement.inputs.begin() + 1, placement.inputs.end());
  Control control{.kind = Branch{},
                  .parts = {part_of(*p.where_true, placement.outputs, operands),
                            part_of(*p.where_false, placement.outputs, operands)}};
  return builder.control(std::move(control), {in.begin(), in.end()}, infer_branch({}, *node.params),
                         placement.outputs);
}

// Elementwise selection from the results of both branches.
std::vector<Array> selected(const Array& predicate, const std::vector<Array>& a,
                            const std::vector<Array>& b) {
  std::vector<Array> results;
  for (std::size_t i = 0; i < a.size(); ++i) results.push_back(where(predicate, a[i], b[i]));
  return results;
}

Batched batch_branch(const BatchArgs& args) {
  const auto& p = params_of(*args.node.params);
  const auto frame = replayed_frame();
  std::vector<BatchedValue> operands;
  for (std::size_t i = 1; i < args.in.size(); ++i) operands.push_back({args.in[i], args.dims[i]});
  const auto results_of = [&](const FunctionPtr& f) {
    std::vector<Array> results;
    for (const auto& [value, dim] : replay_batched(f->results(), f->parameters(), operands, args.size, frame))
      results.push_back(batched_in_front(value, dim, args.size));
    return results;
  };
  Batched batched;
  batched.dims.assign(p.layouts.size(), 0);
  if (args.dims[0] == not_batched) {
    batched.out = record_branch(
        args.in[0], [&] { return results_of(p.where_true); }, [&] { return results_of(p.where_false); });
    return batched;
  }
  const auto a = results_of(p.where_true), b = results_of(p.where_false);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<std::int64_t> extents(a[i].ndim(), 1);
    extents[0] = args.size;
    batched.out.push_back(where(reshape(args.in[0], Shape(std::move(extents))), a[i], b[i]));
  }
  return batched;
}

// The results of a branch, with the selected operands watched.
struct WatchedBranch {
  std::vector<Array> watched, results;
  WatchedBranch(const FunctionPtr& f, std::span<const Array> in, const std::vector<bool>& is_watched) {
    std::vector<Array> operands(in.begin(), in.end());
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (is_watched[i]) operands[i] = make_alias(operands[i]), watched.push_back(operands[i]);
    results = call(*f, operands);
  }
};

// Recomputes the chosen branch and differentiates it: nothing of either branch is stored.
Cotangents vjp_of_branch(const VjpArgs& v) {
  const auto& p = params_of(*v.node.params);
  const std::vector<bool> wanted(v.wanted.begin() + 1, v.wanted.end());
  const auto pulled = [&](const FunctionPtr& f) {
    const WatchedBranch branch(f, v.in.subspan(1), wanted);
    auto found = detail::Tape(branch.watched, branch.results, {}, "grad")
                     .pull_back({v.cotangents.begin(), v.cotangents.end()});
    for (std::size_t w = 0; w < found.size(); ++w)
      if (!found[w].node()) found[w] = detail::zeros_for(branch.watched[w]);
    return found;
  };
  const auto found = record_branch(
      v.in[0], [&] { return pulled(p.where_true); }, [&] { return pulled(p.where_false); });
  Cotangents result(v.in.size());
  for (std::size_t i = 0, next = 0; i < wanted.size(); ++i)
    if (wanted[i]) result[i + 1] = found[next++];
  return result;
}

std::vector<Array> jvp_of_branch(const JvpArgs& args) {
  const auto& p = params_of(*args.node.params);
  std::vector<bool> has_tangent;
  std::vector<Array> tangents;
  for (const auto& t : args.tangents.subspan(1)) {
    has_tangent.push_back(t.node() != nullptr);
    if (t.node()) tangents.push_back(t);
  }
  const auto pushed = [&](const FunctionPtr& f) {
    const WatchedBranch branch(f, args.in.subspan(1), has_tangent);
    const auto found = detail::Tape(branch.watched, branch.results, {}, args.call).push_forward(tangents);
    std::vector<Array> inexact;
    for (std::size_t i = 0; i < found.size(); ++i)
      if (is_inexact(branch.results[i].dtype()))
        inexact.push_back(found[i].node() ? found[i] : detail::zeros_for(branch.results[i]));
    return inexact;
  };
  const auto found = record_branch(
      args.in[0], [&] { return pushed(p.where_true); }, [&] { return pushed(p.where_false); });
  std::vector<Array> result(args.out.size());
  for (std::size_t i = 0, next = 0; i < result.size(); ++i)
    if (is_inexact(args.out[i].dtype())) result[i] = found[next++];
  return result;
}

const OpDef branch_op{
    .name = "cond",
    .halves = moves_halves,
    .infer = infer_branch,
    .sharding = PlacementRule{place_branch},
    .runs = Lower{lower_branch},
    .vjp = vjp_of_branch,
    .batch = batch_branch,
    .output_varying = [](std::size_t output, const Params& params) -> std::uint64_t {
      const auto& p = params_of(params);
      return output_of(p.where_true->results()[output]).varying |
             output_of(p.where_false->results()[output]).varying;
    },
    .commit = [](const Params& params) -> std::optional<Mesh> { return params_of(params).mesh; },
};
const Registered registered_branch(branch_op);
const HasJvpRule forward_rule(branch_op, jvp_of_branch);

// The layout of a result: the one that both branches have, or the one that is cheaper to reach from the
// other.
std::optional<Sharding> meeting_place(const Array& a, const Array& b) {
  const auto &sa = output_of(a).sharding, &sb = output_of(b).sharding;
  if (!sa || !sb) return sa ? sa : sb;
  const auto& region = a.node()->region;
  static const std::vector<int> none;
  const auto& fixed = region ? region->manual_axes : none;
  const auto to_b = plan_reshard(*sa, *sb, a.shape(), a.dtype(), fixed).bytes,
             to_a = plan_reshard(*sb, *sa, a.shape(), a.dtype(), fixed).bytes;
  return to_b < to_a ? sb : sa;
}

// Inside a mapped function both results are marked as varying over the axes over which either varies.
void vary_alike(std::vector<Array>& a, std::vector<Array>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto region = a[i].node()->region ? a[i].node()->region : b[i].node()->region;
    if (!region || !region->check_varying) continue;
    const auto all = output_of(a[i]).varying | output_of(b[i]).varying;
    for (Array* x : {&a[i], &b[i]}) {
      if (all == output_of(*x).varying) continue;
      if (x->node()->region != region) *x = region_hooks().enter(*x, region);
      if (const auto missing = all & ~output_of(*x).varying; missing != 0)
        *x = region_hooks().vary(*x, missing);
    }
  }
}

}  // namespace

void join_branches(std::vector<Array>& a, std::vector<Array>& b) {
  if (a.size() != b.size())
    throw ArgumentError(call_text() + ": the branches return " + std::to_string(a.size()) + " and " +
                        std::to_string(b.size()) + " arrays; they must return the same structure");
  for (std::size_t i = 0; i < a.size(); ++i) {
    check_usable(a[i]);
    check_usable(b[i]);
    const Type ta = type_of(a[i]), tb = type_of(b[i]);
    const auto both = promote({ta.dtype, ta.weak}, {tb.dtype, tb.weak});
    const bool may_convert = (ta.dtype == both.dtype || ta.weak) && (tb.dtype == both.dtype || tb.weak);
    if (!(ta.shape == tb.shape) || !may_convert)
      throw ArgumentError(call_text() + ": result " + std::to_string(i) + " of the branches differs: " +
                          describe(a[i]) + " where the predicate is true, " + describe(b[i]) +
                          " where it is false; both must have the same shape and dtype, so convert one with "
                          "astype or reshape");
    if (ta.dtype != both.dtype) a[i] = cast_to(a[i], both.dtype);
    if (tb.dtype != both.dtype) b[i] = cast_to(b[i], both.dtype);
  }
}

std::vector<Array> record_branch(const Array& given, const Thunk& where_true, const Thunk& where_false) {
  const Array predicate = is_bool(given.dtype()) ? given : cast_to(given, bool_);
  const auto before = last_serial();
  auto a = where_true(), b = where_false();
  join_branches(a, b);
  if (a.empty()) return {};
  if (output_of(predicate).varying != 0) return selected(predicate, a, b);
  vary_alike(a, b);
  auto closed = close({a, b}, {}, before, Invariants::inside);
  BranchParams params{closed.functions[0], closed.functions[1], {}, mesh_of(closed.functions)};
  for (std::size_t i = 0; i < a.size(); ++i) params.layouts.push_back(meeting_place(a[i], b[i]));
  if (!params.mesh && output_of(predicate).sharding) params.mesh = output_of(predicate).sharding->mesh();
  std::vector<Array> inputs{predicate};
  inputs.insert(inputs.end(), closed.captures.begin(), closed.captures.end());
  return record_all(branch_op, make_params(std::move(params)), std::move(inputs));
}

}  // namespace tessera
