// scan and fori_loop in a trace: an op that runs its body a fixed number of times.
//
//   inputs   carried values, stacks that are read, captures
//   outputs  carried values, stacks that are made
//
// The body is traced once. Carried values keep their layout, captures stay in place. A stack that is split
// along the steps stays split: each block is broadcast by its owner, and every rank holds one block at a
// time. Computations that do not change between steps run once, before the loop.
#include <algorithm>

#include "control/control_flow.hpp"
#include "control/counted_loop.hpp"
#include "mesh/reshard.hpp"
#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/functions.hpp"
#include "transforms/vmap.hpp"
#include "types/extents.hpp"

namespace tessera {

std::string field_text(const SplitSteps& split) {
  std::string text;
  for (const auto& axes : split.read) text += (text.empty() ? "" : " ") + field_text(axes);
  return text + " -> " + field_text(split.made);
}

std::optional<SplitSteps> split_steps_of(const std::vector<Array>& stacks) {
  std::optional<SplitSteps> split;
  for (std::size_t n = 0; n < stacks.size(); ++n) {
    const auto& sharding = output_of(stacks[n]).sharding;
    if (!sharding || (split && !(sharding->mesh() == split->mesh))) continue;
    const auto axes = sharding->dim_axes(stacks[n].ndim())[0];
    if (devices_along(sharding->mesh(), axes) == 1) continue;
    if (!split) split = SplitSteps{sharding->mesh(), std::vector<MeshAxes>(stacks.size()), axes};
    split->read[n] = axes;
  }
  return split;
}

const MeshAxes& steps_made_over(const std::optional<SplitSteps>& split, const Sharding& entry,
                                int entry_ndim) {
  if (!split || !(entry.mesh() == split->mesh)) return no_axes;
  for (const auto& axes : entry.dim_axes(entry_ndim))
    for (const int a : axes)
      if (std::find(split->made.begin(), split->made.end(), a) != split->made.end()) return no_axes;
  return split->made;
}

namespace {

const CountedParams& params_of(const Params& p) { return p.as<CountedParams>(); }
Mesh mesh_for(const PlacementArgs& args) { return params_of(args.params).mesh.value_or(args.mesh); }

std::vector<Type> infer_counted(std::span<const Type>, const Params& params) {
  const auto& p = params_of(params);
  std::vector<Type> types;
  for (std::size_t i = 0; i < p.body->results().size(); ++i)
    types.push_back(i < p.n_carried() ? type_of(p.body->parameters()[i])
                                      : stacked(type_of(p.body->results()[i]), p.length));
  return types;
}

// The axes that split the steps of operand i, a stack.
const MeshAxes& steps_read_over(const CountedParams& p, std::size_t i) {
  return p.split_steps ? p.split_steps->read[i - p.n_carried()] : no_axes;
}

// The block-by-block iteration over a stack with this layout.
Walk walk_of(const Sharding& layout, const Type& stack) {
  const auto axes = layout.dim_axes(stack.shape.ndim())[0];
  const auto block = layout.shard_shape(stack.shape);
  const auto steps = stack.shape[0], steps_of_block = block[0], ranks = devices_along(layout.mesh(), axes);
  if (ranks == 1 || block.elements() == 0) return {};
  const auto block_bytes = block.elements() * static_cast<std::int64_t>(itemsize(stack.dtype));
  // Steps of the last rank.
  const auto fewest = std::max<std::int64_t>(0, steps - steps_of_block * (ranks - 1));
  return {{"broadcast", axes, (steps - fewest) * (block_bytes / steps_of_block),
           (steps + steps_of_block - 1) / steps_of_block},
          block_bytes};
}

Placement place_counted(const PlacementArgs& args) {
  const auto& p = params_of(args.params);
  const auto operands = layouts_on(mesh_for(args), p.body->parameters()),
             results = layouts_on(mesh_for(args), p.body->results());
  Placement placement;
  for (std::size_t i = 0; i < operands.size(); ++i)
    placement.inputs.push_back(
        p.is_stack(i) ? stacked(operands[i], p.body->parameters()[i].ndim(), steps_read_over(p, i))
                      : operands[i]);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const int ndim = p.body->results()[i].ndim();
    placement.outputs.push_back(
        i < p.n_carried() ? operands[i]
                          : stacked(results[i], ndim, steps_made_over(p.split_steps, results[i], ndim)));
  }
  return placement;
}

std::vector<int> lower_counted(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const auto& p = params_of(*node.params);
  const auto placement = builder.placement();
  std::vector<Sharding> operands, results;
  for (std::size_t i = 0; i < in.size(); ++i)
    operands.push_back(p.is_stack(i) ? without_first_dim(placement.inputs[i], node.inputs[i].ndim())
                                     : placement.inputs[i]);
  std::vector<Type> out;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    out.push_back(node.outputs[i].type);
    results.push_back(i < p.n_carried() ? placement.outputs[i]
                                        : without_first_dim(placement.outputs[i], out.back().shape.ndim()));
  }
  CountedLoop loop;
  loop.carried = static_cast<int>(p.carried);
  loop.length = p.length;
  loop.stacks = static_cast<int>(p.stacks);
  loop.reverse = p.reverse;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (p.is_stack(i)) loop.walks.push_back(walk_of(placement.inputs[i], type_of(node.inputs[i])));
  add_expressions({p.body}, loop);
  Control control{.kind = std::move(loop), .parts = {part_of(*p.body, results, operands)}, .call = p.name};
  return builder.control(std::move(control), {in.begin(), in.end()}, std::move(out), placement.outputs);
}

// The operands of one step (carried values, entries, captures) in a batch: those that differ between examples
// have a leading batch dim.
struct BatchedOperands {
  const BatchArgs& args;
  const CountedParams& p;
  std::vector<bool> is_batched;

  // The batched operand of the loop; dim 0 of an entry is dim 1 of its stack.
  Array outer(std::size_t i) const {
    if (args.dims[i] == not_batched) return is_batched[i] ? batched_in_front(args, i) : args.in[i];
    return moveaxis(args.in[i], args.dims[i], p.is_stack(i) ? 1 : 0);
  }
};

// Marks carried values as batched from the beginning if any step makes them differ between examples.
void find_batched_carried(BatchedOperands& operands) {
  const auto& p = operands.p;
  for (bool grew = true; grew;) {
    grew = false;
    std::vector<BatchedValue> values;
    for (std::size_t i = 0; i < p.body->parameters().size(); ++i) {
      const Array& like = p.body->parameters()[i];
      const Shape shape =
          operands.is_batched[i] ? with_dim(like.shape(), 0, operands.args.size) : like.shape();
      const Array example = make_placeholder({shape, like.dtype(), type_of(like).weak}, std::nullopt,
                                             like.node()->region, output_of(like).varying);
      values.push_back({example, operands.is_batched[i] ? 0 : not_batched});
    }
    const auto results =
        replay_batched(p.body->results(), p.body->parameters(), values, operands.args.size, replayed_frame());
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
    for (std::size_t i = 0; i < carried.size(); ++i)
      values.push_back({carried[i], operands.is_batched[i] ? 0 : not_batched});
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
      out.push_back(is_batched ? batched_in_front(value, dim, args.size) : value);
    }
    return out;
  };
  Batched batched;
  batched.out =
      record_counted_loop({p.name.c_str()}, step, std::move(init), std::move(stacks), p.length, p.reverse);
  for (std::size_t i = 0; i < batched.out.size(); ++i)
    batched.dims.push_back(!made_batched[i] ? not_batched : i < p.n_carried() ? 0 : 1);
  return batched;
}

const OpDef counted_op{
    .name = "scan",
    .halves = moves_halves,
    .infer = infer_counted,
    .sharding = PlacementRule{place_counted},
    .runs = Lower{lower_counted},
    .vjp = vjp_of_counted_loop,
    .batch = batch_counted,
    .output_varying = [](std::size_t output, const Params& params) -> std::uint64_t {
      const auto& p = params_of(params);
      return output_of(output < p.n_carried() ? p.body->parameters()[output] : p.body->results()[output])
          .varying;
    },
    .commit = [](const Params& params) -> std::optional<Mesh> { return params_of(params).mesh; },
};
const Registered registered_counted(counted_op);
const HasJvpRule forward_rule(counted_op, jvp_of_counted_loop);

// A loop as it would be recorded for one choice of its operands' layouts.
struct Draft {
  std::vector<Array> init, stacks;  // operands in the layouts chosen before the loop
  CarriedValues carried;
  Closed closed;
  std::int64_t bytes = 0;  // bytes that a rank receives in all steps
};

std::int64_t bytes_between(const Array& from, const Sharding& to) {
  const auto& sharding = output_of(from).sharding;
  static const std::vector<int> none;
  const auto& region = from.node()->region;
  return sharding
             ? plan_reshard(*sharding, to, from.shape(), from.dtype(), region ? region->manual_axes : none)
                   .bytes
             : 0;
}

class Drafting {
 public:
  Drafting(const LoopCall& call, const StepFunction& step, std::int64_t length)
      : call_(call), step_(step), length_(length) {}

  // Starts with the operands in place; then tries, and keeps if fewer bytes move: stacks split along another
  // dim instead of gathered along the steps, and carried values in the layout that the body gives them.
  Draft run(std::vector<Array> init, std::vector<Array> stacks) {
    init_ = init, stacks_ = stacks;
    Draft best = draft(std::move(init), std::move(stacks));
    if (auto moved = stacks_moved(best.stacks)) take_if_cheaper(best, best.init, std::move(*moved));
    if (auto moved = carried_moved(best)) take_if_cheaper(best, std::move(*moved), best.stacks);
    if (const auto placed = captures_placed(best)) best = with_captures(best, *placed);
    return best;
  }

 private:
  Draft draft(std::vector<Array> init, std::vector<Array> stacks) {
    Draft d{std::move(init), std::move(stacks), {}, {}};
    std::vector<Array> entries;
    d.carried = settle_carried(call_, d.init, [&](const std::vector<Array>& values) {
      entries.clear();
      for (const auto& stack : d.stacks) entries.push_back(example_of(stack, 0));
      return step_(values, entries);
    });
    auto parameters = d.carried.parameters;
    parameters.insert(parameters.end(), entries.begin(), entries.end());
    d.closed = close({d.carried.results}, parameters, d.carried.before, Invariants::outside);
    return d;
  }

  void take_if_cheaper(Draft& best, std::vector<Array> init, std::vector<Array> stacks) {
    if (best.bytes == 0) best.bytes = bytes_of(best);
    Draft other = draft(std::move(init), std::move(stacks));
    other.bytes = bytes_of(other);
    if (other.bytes < best.bytes) best = std::move(other);
  }

  std::int64_t bytes_of(const Draft& d) const {
    const auto n = d.carried.parameters.size();
    auto wanted = shardings_of(d.carried.parameters);
    wanted.resize(d.carried.results.size());
    std::int64_t bytes = length_ * bytes_of_call(*d.closed.functions[0], wanted);
    for (std::size_t i = 0; i < n; ++i)
      if (output_of(d.carried.parameters[i]).sharding)
        bytes += bytes_between(init_[i], *output_of(d.carried.parameters[i]).sharding);
    for (std::size_t i = 0; i < stacks_.size(); ++i)
      if (const auto& sharding = output_of(d.stacks[i]).sharding)
        bytes += bytes_between(
            stacks_[i], stacked(without_first_dim(*sharding, stacks_[i].ndim()), stacks_[i].ndim() - 1));
    return bytes;
  }

  // Moves the axes that split the steps to the first unsplit dim that is long enough.
  static std::optional<std::vector<Array>> stacks_moved(std::vector<Array> stacks) {
    bool any = false;
    for (auto& x : stacks) {
      const auto& sharding = output_of(x).sharding;
      if (!sharding) continue;
      auto dims = sharding->dim_axes(x.ndim());
      const auto axes = std::exchange(dims[0], {});
      const auto parts = devices_along(sharding->mesh(), axes);
      for (std::size_t d = 1; d < dims.size() && parts > 1; ++d) {
        if (!dims[d].empty() || x.shape()[d] < parts) continue;
        dims[d] = axes;
        x = device_put(x, Sharding::from_dim_axes(sharding->mesh(), dims));
        any = true;
        break;
      }
    }
    return any ? std::optional(std::move(stacks)) : std::nullopt;
  }

  // Uncommitted captures that are computed before the loop, placed in the layout in which the body reads
  // them, if there is only one: each rank then computes its block instead of the whole array.
  static std::optional<std::vector<Array>> captures_placed(const Draft& d) {
    const auto& f = *d.closed.functions[0];
    const auto mesh = mesh_of(d.closed.functions);
    if (!mesh || d.closed.captures.empty()) return std::nullopt;
    auto results = layouts_on(*mesh, d.carried.parameters);
    const auto made = layouts_on(*mesh, f.results());
    results.insert(results.end(), made.begin() + static_cast<std::ptrdiff_t>(results.size()), made.end());
    const Program part = part_of(f, results, layouts_on(*mesh, f.parameters()));
    auto captures = d.closed.captures;
    bool any = false;
    for (std::size_t c = 0; c < captures.size(); ++c) {
      const auto& node = *captures[c].node();
      if (output_of(captures[c]).sharding || captures[c].ndim() == 0 || node.is_evaluated() ||
          node.inputs.empty())
        continue;
      const auto wanted = only_layout_read(part, part.inputs[f.parameters().size() - captures.size() + c]);
      if (!wanted) continue;
      captures[c] = device_put(captures[c], *wanted);
      any = true;
    }
    return any ? std::optional(std::move(captures)) : std::nullopt;
  }

  static std::optional<Sharding> only_layout_read(const Program& part, int v) {
    std::optional<Sharding> layout;
    for (const auto& i : part.instructions) {
      if (std::find(i.inputs.begin(), i.inputs.end(), v) == i.inputs.end()) continue;
      const auto* move = i.as<Move>();
      if (move == nullptr || (layout && !(*layout == move->step.to))) return std::nullopt;
      layout = move->step.to;
    }
    return layout;
  }

  Draft with_captures(const Draft& d, const std::vector<Array>& captures) const {
    const StepFunction same_step = [&](const std::vector<Array>& carried, const std::vector<Array>& entries) {
      auto operands = carried;
      operands.insert(operands.end(), entries.begin(), entries.end());
      operands.insert(operands.end(), captures.begin(), captures.end());
      return call(*d.closed.functions[0], operands);
    };
    return Drafting(call_, same_step, length_).draft(d.init, d.stacks);
  }

  static std::optional<std::vector<Array>> carried_moved(const Draft& d) {
    bool any = false;
    auto init = d.init;
    for (std::size_t i = 0; i < init.size(); ++i) {
      const auto &before = output_of(d.carried.parameters[i]).sharding,
                 &after = output_of(d.carried.results[i]).sharding;
      if (!before || !after || *before == *after) continue;
      init[i] = device_put(init[i], *after);
      any = true;
    }
    return any ? std::optional(std::move(init)) : std::nullopt;
  }

  const LoopCall& call_;
  const StepFunction& step_;
  std::int64_t length_;
  std::vector<Array> init_, stacks_;  // operands as given
};

}  // namespace

std::vector<Array> record_counted_loop(const LoopCall& call, const StepFunction& step,
                                       std::vector<Array> init, std::vector<Array> stacks,
                                       std::int64_t length, bool reverse) {
  const auto collectives = ShapeLog::size();
  const Draft loop = Drafting(call, step, length).run(std::move(init), std::move(stacks));
  ShapeLog::note_loop(collectives, length);
  if (loop.carried.results.empty()) return {};
  std::vector<Array> inputs = loop.carried.init;
  inputs.insert(inputs.end(), loop.stacks.begin(), loop.stacks.end());
  inputs.insert(inputs.end(), loop.closed.captures.begin(), loop.closed.captures.end());
  CountedParams params{loop.closed.functions[0],
                       call.name,
                       static_cast<std::int64_t>(loop.carried.init.size()),
                       static_cast<std::int64_t>(loop.stacks.size()),
                       length,
                       reverse,
                       mesh_of(loop.closed.functions),
                       split_steps_of(loop.stacks)};
  return record_all(counted_op, make_params(std::move(params)), std::move(inputs));
}

}  // namespace tessera
