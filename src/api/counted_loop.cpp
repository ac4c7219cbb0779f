// scan and fori_loop in a trace: an op that runs its body a fixed number of times.
//
//   inputs   carried values, stacks that are read, captures        outputs   carried values, stacks that are made
//
// The body is traced once. Carried values keep their layout; the step's dim of a stack is whole on every rank; captures lie where
// they lie. What does not change from step to step is computed once, before the loop.
#include <algorithm>

#include "api/control_flow.hpp"
#include "api/counted_loop.hpp"
#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/functions.hpp"
#include "transforms/vmap.hpp"

namespace tessera {
namespace {

const CountedParams& params_of(const Params& p) { return p.as<CountedParams>(); }
Mesh mesh_for(const PlaceArgs& args) { return params_of(args.params).mesh.value_or(args.mesh); }

std::vector<Type> infer_counted(std::span<const Type>, const Params& params) {
  const auto& p = params_of(params);
  std::vector<Type> types;
  for (std::size_t i = 0; i < p.body->results().size(); ++i)
    types.push_back(i < p.n_carried() ? type_of(p.body->parameters()[i]) : stacked(type_of(p.body->results()[i]), p.length));
  return types;
}

Placement place_counted(const PlaceArgs& args) {
  const auto& p = params_of(args.params);
  const auto operands = layouts_on(mesh_for(args), p.body->parameters()), results = layouts_on(mesh_for(args), p.body->results());
  Placement placement;
  for (std::size_t i = 0; i < operands.size(); ++i)
    placement.inputs.push_back(p.is_stack(i) ? stacked(operands[i], p.body->parameters()[i].ndim()) : operands[i]);
  for (std::size_t i = 0; i < results.size(); ++i)
    placement.outputs.push_back(i < p.n_carried() ? operands[i] : stacked(results[i], p.body->results()[i].ndim()));
  return placement;
}

// The body as expressions, for finding loops that compute the same. An alias is what it stands for.
void add_expressions(const Graph& graph, Control& control) {
  std::unordered_map<std::pair<const Node*, int>, int, ArrayKeyHash> number;
  int next = 0;
  for (const auto& leaf : graph.leaves) number[key_of_array(leaf)] = next++;
  for (const auto& node : graph.nodes) {
    std::vector<int> reads;
    for (const auto& x : node->inputs) reads.push_back(number.at(key_of_array(x)));
    if (node->op->name == "alias") {
      number[{node.get(), 0}] = reads[0];
      continue;
    }
    for (std::size_t o = 0; o < node->outputs.size(); ++o) {
      control.expressions.push_back({mix(mix(field_hash(node->op->name), node->params->hash()), o), reads});
      number[{node.get(), static_cast<int>(o)}] = next++;
    }
  }
  for (const auto& root : graph.roots) control.results.push_back(number.at(key_of_array(root)));
}

std::vector<int> lower_counted(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const auto& p = params_of(*node.params);
  const auto placement = builder.placement();
  std::vector<Sharding> operands, results;
  for (std::size_t i = 0; i < in.size(); ++i)
    operands.push_back(p.is_stack(i) ? without_first_dim(placement.inputs[i], node.inputs[i].ndim()) : placement.inputs[i]);
  std::vector<Type> out;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    out.push_back(node.outputs[i].type);
    results.push_back(i < p.n_carried() ? placement.outputs[i] : without_first_dim(placement.outputs[i], out.back().shape.ndim()));
  }
  Control control{.kind = ControlKind::counted, .parts = {part_of(*p.body, results, operands)}};
  control.length = p.length;
  control.carried = static_cast<int>(p.carried);
  control.stacks = static_cast<int>(p.stacks);
  control.reverse = p.reverse;
  add_expressions(p.body->graph(), control);
  return builder.control(std::move(control), {in.begin(), in.end()}, std::move(out), placement.outputs);
}

// Carried values, entries and captures of one step, from a batch: those that differ from example to example have a batch dim in front.
struct BatchedOperands {
  const BatchArgs& args;
  const CountedParams& p;
  std::vector<bool> is_batched;

  // The operand of the loop on batches; dim 0 of an entry is dim 1 of its stack.
  Array outer(std::size_t i) const {
    if (args.dims[i] == not_batched) return is_batched[i] ? broadcast_in_front(args.in[i]) : args.in[i];
    return moveaxis(args.in[i], args.dims[i], p.is_stack(i) ? 1 : 0);
  }
  Array broadcast_in_front(const Array& x) const {
    auto extents = x.shape().vector();
    extents.insert(extents.begin(), args.size);
    return broadcast_to(expand_dims(x, 0), Shape(std::move(extents)));
  }
};

// A carried value that any step makes differ from example to example does so from the beginning.
void find_batched_carried(BatchedOperands& operands) {
  const auto& p = operands.p;
  for (bool grew = true; grew;) {
    grew = false;
    std::vector<BatchedValue> values;
    for (std::size_t i = 0; i < p.body->parameters().size(); ++i) {
      const Array& like = p.body->parameters()[i];
      auto extents = like.shape().vector();
      if (operands.is_batched[i]) extents.insert(extents.begin(), operands.args.size);
      const Array example = make_placeholder({Shape(std::move(extents)), like.dtype(), type_of(like).weak}, std::nullopt,
                                             like.node()->region, output_of(like).varying, operands.args.node.where);
      values.push_back({example, operands.is_batched[i] ? 0 : not_batched});
    }
    const auto results = replay_batched(p.body->results(), p.body->parameters(), values, operands.args.size, replayed_frame());
    for (std::size_t i = 0; i < p.n_carried(); ++i)
      if (results[i].dim != not_batched && !operands.is_batched[i]) grew = operands.is_batched[i] = true;
  }
}

Batched batch_counted(const BatchArgs& args) {
  const auto& p = params_of(*args.node.params);
  BatchedOperands operands{args, p, {}};
  for (const int dim : args.dims) operands.is_batched.push_back(dim != not_batched);
  find_batched_carried(operands);
  std::vector<Array> init, stacks;
  std::vector<BatchedValue> captures;
  for (std::size_t i = 0; i < args.in.size(); ++i) {
    const Array outer = operands.outer(i);
    if (i < p.n_carried())
      init.push_back(outer);
    else if (p.is_stack(i))
      stacks.push_back(outer);
    else
      captures.push_back({outer, operands.is_batched[i] ? 0 : not_batched});
  }
  std::vector<bool> made_batched;
  const auto frame = replayed_frame();
  const StepFunction step = [&](const std::vector<Array>& carried, const std::vector<Array>& entries) {
    std::vector<BatchedValue> values;
    for (std::size_t i = 0; i < carried.size(); ++i) values.push_back({carried[i], operands.is_batched[i] ? 0 : not_batched});
    for (std::size_t i = 0; i < entries.size(); ++i)
      values.push_back({entries[i], operands.is_batched[carried.size() + i] ? 0 : not_batched});
    values.insert(values.end(), captures.begin(), captures.end());
    auto results = replay_batched(p.body->results(), p.body->parameters(), values, args.size, frame);
    std::vector<Array> out;
    made_batched.clear();
    for (std::size_t i = 0; i < results.size(); ++i) {
      auto& [value, dim] = results[i];
      const bool is_batched = i < p.n_carried() ? operands.is_batched[i] : dim != not_batched;
      made_batched.push_back(is_batched);
      out.push_back(!is_batched ? value : dim == not_batched ? operands.broadcast_in_front(value) : batch_first(value, dim));
    }
    return out;
  };
  Batched batched;
  batched.out = record_counted_loop({p.name.c_str(), args.node.where}, step, std::move(init), std::move(stacks), p.length, p.reverse);
  for (std::size_t i = 0; i < batched.out.size(); ++i) batched.dims.push_back(!made_batched[i] ? not_batched : i < p.n_carried() ? 0 : 1);
  return batched;
}

const OpDef counted_op{
    .name = "scan",
    .infer = infer_counted,
    .vjp = vjp_of_counted_loop,
    .batch = batch_counted,
    .place = place_counted,
    .lower = lower_counted,
    .output_varying = [](std::size_t output, const Params& params) -> std::uint64_t {
      const auto& p = params_of(params);
      return output_of(output < p.n_carried() ? p.body->parameters()[output] : p.body->results()[output]).varying;
    },
    .commit = [](const Params& params) -> std::optional<Mesh> { return params_of(params).mesh; },
};
const Registered registered_counted(counted_op);
const HasJvpRule forward_rule(counted_op, jvp_of_counted_loop);

// One entry of a stack, as the body is given it.
Array entry_of(const Array& stack, std::source_location where) { return example_of(stack, 0, where); }

}  // namespace

std::vector<Array> record_counted_loop(const LoopCall& call, const StepFunction& step, std::vector<Array> init, std::vector<Array> stacks,
                                       std::int64_t length, bool reverse) {
  std::vector<Array> entries;
  const auto carried = settle_carried(call, std::move(init), [&](const std::vector<Array>& values) {
    entries.clear();
    for (const auto& stack : stacks) entries.push_back(entry_of(stack, call.where));
    return step(values, entries);
  });
  auto parameters = carried.parameters;
  parameters.insert(parameters.end(), entries.begin(), entries.end());
  auto closed = close({carried.results}, parameters, carried.before, Invariants::outside);
  std::vector<Array> inputs = carried.init;
  inputs.insert(inputs.end(), stacks.begin(), stacks.end());
  inputs.insert(inputs.end(), closed.captures.begin(), closed.captures.end());
  if (inputs.empty() || carried.results.empty()) return {};
  CountedParams params{closed.functions[0],
                       call.name,
                       static_cast<std::int64_t>(carried.init.size()),
                       static_cast<std::int64_t>(stacks.size()),
                       length,
                       reverse,
                       mesh_of(closed.functions)};
  return record_all(counted_op, make_params(std::move(params)), std::move(inputs), call.where);
}

}  // namespace tessera
