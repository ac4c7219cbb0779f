// while_loop in a trace: an op that owns two programs, the condition and the body.
//
//   inputs   carried values, captures          outputs   carried values
//
// The condition is replicated over the loop's devices, so that all of them stop at the same step.
#include <algorithm>

#include "control/control_flow.hpp"
#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/functions.hpp"
#include "transforms/forward.hpp"
#include "transforms/vjp.hpp"
#include "transforms/vmap.hpp"

namespace tessera {
namespace {

struct UntilParams {
  FunctionPtr condition, body;  // (carried, captures) -> bool, -> carried
  std::int64_t carried;
  std::optional<Mesh> mesh;
  std::size_t n_carried() const { return static_cast<std::size_t>(carried); }
  std::uint64_t agreed_hash() const { return mix(condition->key().agreed, body->key().agreed); }
  template <class V> void fields(V&& visit) const {
    visit("carried", carried), visit("condition", condition), visit("body", body);
  }
};
const UntilParams& params_of(const Params& p) { return p.as<UntilParams>(); }

std::vector<Type> infer_until(std::span<const Type>, const Params& params) {
  std::vector<Type> types;
  for (std::size_t i = 0; i < params_of(params).n_carried(); ++i)
    types.push_back(type_of(params_of(params).body->parameters()[i]));
  return types;
}

Placement place_until(const PlacementArgs& args) {
  const auto& p = params_of(args.params);
  Placement placement;
  placement.inputs = layouts_on(p.mesh.value_or(args.mesh), p.body->parameters());
  placement.outputs.assign(placement.inputs.begin(),
                           placement.inputs.begin() + static_cast<std::ptrdiff_t>(p.carried));
  return placement;
}

// Refuses communication in a loop of a mapped function whose ranks may stop at different steps.
void check_may_differ(const UntilParams& p, const Control& control) {
  if (output_of(p.condition->results()[0]).varying == 0) return;
  for (const auto& part : control.parts)
    if (moves_anything(part))
      throw ShardingError(
          call_text() +
          ": its condition may differ from rank to rank, but the ranks communicate in the loop and would "
          "wait for each "
          "other forever. Make the condition the same on all of them, e.g. pmax(condition, axis)");
}

std::vector<int> lower_until(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const auto& p = params_of(*node.params);
  const auto placement = builder.placement();
  UntilLoop loop;
  loop.carried = static_cast<int>(p.carried);
  add_expressions({p.condition, p.body}, loop);
  Control control{.kind = std::move(loop), .parts = {}};
  const auto devices = p.mesh.value_or(placement.inputs[0].mesh());
  control.parts.push_back(part_of(*p.condition, {Sharding::replicated(devices)}, placement.inputs));
  control.parts.push_back(part_of(*p.body, placement.outputs, placement.inputs));
  check_may_differ(p, control);
  return builder.control(std::move(control), {in.begin(), in.end()}, infer_until({}, *node.params),
                         placement.outputs);
}

// ---- batches: run while any example continues; finished examples keep their values ----
struct BatchedLoop {
  const BatchArgs& args;
  const UntilParams& p;
  std::vector<bool> is_batched;  // per operand
  bool stops_alone = false;      // examples stop at different steps
  std::uint64_t frame = replayed_frame();

  Array operand(std::size_t i) const {
    return args.dims[i] == not_batched && !is_batched[i] ? args.in[i] : batched_in_front(args, i);
  }
  std::vector<BatchedValue> replay(const FunctionPtr& f, const std::vector<Array>& carried) const {
    std::vector<BatchedValue> values;
    for (std::size_t i = 0; i < is_batched.size(); ++i)
      values.push_back({i < carried.size() ? carried[i] : operand(i), is_batched[i] ? 0 : not_batched});
    return replay_batched(f->results(), f->parameters(), values, args.size, frame);
  }
  void find_batched_carried() {
    for (bool grew = true; grew;) {
      grew = false;
      std::vector<Array> carried;
      for (std::size_t i = 0; i < p.n_carried(); ++i) {
        const Array x = operand(i);
        carried.push_back(
            make_placeholder(type_of(x), output_of(x).sharding, x.node()->region, output_of(x).varying));
      }
      stops_alone |= replay(p.condition, carried)[0].dim != not_batched;
      const auto results = replay(p.body, carried);
      for (std::size_t i = 0; i < p.n_carried(); ++i)
        if ((stops_alone || results[i].dim != not_batched) && !is_batched[i]) grew = is_batched[i] = true;
    }
  }
};

// `goes_on` per example, reshaped to broadcast over x's dims.
Array in_front_of(const Array& goes_on, const Array& x) {
  std::vector<std::int64_t> extents(x.ndim(), 1);
  extents[0] = goes_on.shape()[0];
  return reshape(goes_on, Shape(std::move(extents)));
}

Batched batch_until(const BatchArgs& args) {
  BatchedLoop loop{args, params_of(*args.node.params), {}};
  for (const int dim : args.dims) loop.is_batched.push_back(dim != not_batched);
  loop.find_batched_carried();
  std::vector<Array> init;
  Batched batched;
  for (std::size_t i = 0; i < loop.p.n_carried(); ++i) {
    init.push_back(loop.operand(i));
    batched.dims.push_back(loop.is_batched[i] ? 0 : not_batched);
  }
  const LeafFunction condition = [&](const std::vector<Array>& carried) -> std::vector<Array> {
    const auto verdict = loop.replay(loop.p.condition, carried)[0];
    return {loop.stops_alone ? any(verdict.value) : verdict.value};
  };
  const LeafFunction body = [&](const std::vector<Array>& carried) {
    const auto results = loop.replay(loop.p.body, carried);
    const auto goes_on = loop.stops_alone ? loop.replay(loop.p.condition, carried)[0].value : Array();
    std::vector<Array> out;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto& [value, dim] = results[i];
      Array next = loop.is_batched[i] ? batched_in_front(value, dim, loop.args.size) : value;
      out.push_back(loop.stops_alone ? where(in_front_of(goes_on, next), next, carried[i]) : next);
    }
    return out;
  };
  batched.out = record_until_loop({"while_loop"}, condition, body, std::move(init));
  return batched;
}

// ---- tangents accompany the values ----
std::vector<Array> jvp_of_until(const JvpArgs& args) {
  const auto& p = params_of(*args.node.params);
  const auto n = p.n_carried();
  std::vector<Array> init(args.in.begin(), args.in.begin() + static_cast<std::ptrdiff_t>(n));
  std::vector<bool> varied;
  for (std::size_t i = 0; i < args.in.size(); ++i)
    varied.push_back(i < n ? is_inexact(args.in[i].dtype()) : args.tangents[i].node() != nullptr);
  for (std::size_t i = 0; i < n; ++i)
    if (varied[i]) init.push_back(args.tangents[i].node() ? args.tangents[i] : detail::zeros_for(args.in[i]));
  const auto operands_of = [&](const std::vector<Array>& carried) {
    std::vector<Array> operands(carried.begin(), carried.begin() + static_cast<std::ptrdiff_t>(n));
    operands.insert(operands.end(), args.in.begin() + static_cast<std::ptrdiff_t>(n), args.in.end());
    return operands;
  };
  const LeafFunction condition = [&](const std::vector<Array>& carried) {
    return call(*p.condition, operands_of(carried));
  };
  const LeafFunction body = [&](const std::vector<Array>& carried) {
    auto operands = operands_of(carried);
    std::vector<Array> watched, tangents;
    for (std::size_t i = 0, next = n; i < operands.size(); ++i) {
      if (!varied[i]) continue;
      operands[i] = make_alias(operands[i]);
      watched.push_back(operands[i]);
      tangents.push_back(i < n ? carried[next++] : args.tangents[i]);
    }
    auto results = call(*p.body, operands);
    const auto pushed = detail::Tape(watched, results, {}, args.call).push_forward(tangents);
    for (std::size_t i = 0; i < n; ++i)
      if (varied[i]) results.push_back(pushed[i].node() ? pushed[i] : zeros_like(results[i]));
    return results;
  };
  const auto all = record_until_loop({"while_loop"}, condition, body, std::move(init));
  std::vector<Array> result(n);
  for (std::size_t i = 0, next = n; i < n; ++i)
    if (varied[i]) result[i] = all[next++];
  return result;
}

const OpDef until_op{
    .name = "while_loop",
    .halves = moves_halves,
    .infer = infer_until,
    .sharding = PlacementRule{place_until},
    .runs = Lower{lower_until},
    .vjp =
        NoRule{"the number of its steps is known only when it runs, so that there is no place to keep what "
               "going back needs. Use scan or fori_loop, which run a fixed number of steps (with where, for "
               "steps that shall do nothing), or jvp"},
    .batch = batch_until,
    .output_varying = [](std::size_t output, const Params& params) -> std::uint64_t {
      return output_of(params_of(params).body->parameters()[output]).varying |
             output_of(params_of(params).condition->results()[0]).varying;
    },
    .commit = [](const Params& params) -> std::optional<Mesh> { return params_of(params).mesh; },
};
const Registered registered_until(until_op);
const HasJvpRule forward_rule(until_op, jvp_of_until);

void check_condition(const std::vector<Array>& verdict) {
  if (verdict.size() != 1 || verdict[0].ndim() != 0)
    throw ShapeError(
        call_text() + ": the condition must return one scalar, not " +
        (verdict.size() == 1 ? describe(verdict[0]) : std::to_string(verdict.size()) + " arrays") +
        "; reduce it with all or any");
  if (!is_bool(verdict[0].dtype()))
    throw DtypeError(call_text() + ": the condition returns " + describe(verdict[0]) +
                     "; it must be bool: compare it, as x > 0");
}

}  // namespace

std::vector<Array> record_until_loop(const LoopCall& call, const LeafFunction& condition,
                                     const LeafFunction& body, std::vector<Array> init) {
  std::vector<Array> verdict;
  const auto n = init.size();
  const auto carried = settle_carried(call, std::move(init), [&](const std::vector<Array>& values) {
    verdict = condition(values);
    check_condition(verdict);
    return body(values);
  });
  if (carried.results.size() != n)
    throw ArgumentError(call_text() + ": the body must return what it is given: " + std::to_string(n) +
                        " arrays go in, " + std::to_string(carried.results.size()) + " come back");
  auto closed = close({verdict, carried.results}, carried.parameters, carried.before, Invariants::outside);
  std::vector<Array> inputs = carried.init;
  inputs.insert(inputs.end(), closed.captures.begin(), closed.captures.end());
  UntilParams params{closed.functions[0], closed.functions[1], static_cast<std::int64_t>(n),
                     mesh_of(closed.functions)};
  return record_all(until_op, make_params(std::move(params)), std::move(inputs));
}

}  // namespace tessera
