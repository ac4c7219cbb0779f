// Functions with their own backward pass: custom_vjp, and checkpoint, whose backward pass records the
// function again.
//
// The function is recorded as usual; a marker over its arguments and results then determines the path of
// cotangents:
//
//   args ──> f's ops ──> results ──> marker ──> the caller
//     └──────────────────────────────↗     cotangents: marker ──(rule)──> args; none through f's ops
//
// checkpoint's rule is f's own derivative: tangents pass through f's ops, whose values exist.
#include <tessera/grad.hpp>

#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"
#include "program/builder.hpp"
#include "transforms/backward.hpp"
#include "transforms/forward.hpp"
#include "transforms/vjp.hpp"
#include "transforms/vmap.hpp"

namespace tessera {
namespace {

// The rule does not affect the forward computation, so it is no field: graphs with different rules compare
// equal.
struct MarkerParams {
  std::int64_t arguments;
  detail::BackwardRule rule;
  std::vector<AxisBinding>
      axes;  // axes that the function saw: its rule may use their names after they are unbound
  template <class V> void fields(V&& visit) const { visit("arguments", arguments); }
};
std::size_t argument_count(const Params& p) {
  return static_cast<std::size_t>(p.as<MarkerParams>().arguments);
}

// Calls the rule as the user's code.
std::vector<Array> called_back(const detail::BackwardRule& rule, std::span<const Array> arguments,
                               std::span<const Array> cotangents, std::source_location where) {
  const UserCode users;
  return rule(arguments, cotangents, where);
}

// The rule on batches: traced on one example, replayed on all. Arguments shared by all examples get the sum
// of their cotangents.
detail::BackwardRule batched_rule(detail::BackwardRule rule, std::vector<int> dims, std::int64_t size,
                                  std::uint64_t frame, std::span<const AxisBinding> axes) {
  Array index;  // index in the resolved frame: collectives of the rule depend on it
  for (const auto& binding : axes)
    if (frame != 0 && binding.frame == frame) index = binding.index;
  return
      [=](std::span<const Array> arguments, std::span<const Array> cotangents, std::source_location where) {
        const Call call("custom_vjp", where);
        std::vector<Array> placeholders, inner_arguments, inner_cotangents;
        std::vector<BatchedValue> values;
        const auto example = [&](const Array& x, int dim) {
          if (dim == not_batched) return x;
          placeholders.push_back(example_of(x, dim));
          values.push_back({x, dim});
          return placeholders.back();
        };
        for (std::size_t i = 0; i < arguments.size(); ++i)
          inner_arguments.push_back(example(arguments[i], dims[i]));
        for (const auto& ct : cotangents) inner_cotangents.push_back(example(ct, 0));
        if (index.node()) {
          placeholders.push_back(index);
          values.push_back({arange_of(std::int64_t{0}, size, 1, int32), 0});
        }
        std::vector<Array> results = called_back(rule, inner_arguments, inner_cotangents, where), roots;
        for (const auto& x : results)
          if (x.node()) roots.push_back(x);
        const auto replayed = replay_batched(roots, placeholders, values, size, frame);
        for (std::size_t i = 0, next = 0; i < results.size(); ++i) {
          if (!results[i].node()) continue;
          const auto& [value, dim] = replayed[next++];
          if (dims[i] != not_batched)
            results[i] = moveaxis(batched_in_front(value, dim, size), 0, dims[i]);
          else if (dim != not_batched)
            results[i] = sum(value, dim);
          else
            results[i] = value * static_cast<double>(size);
        }
        return results;
      };
}

Sharding replicated_on(const Mesh& mesh) { return Sharding::replicated(mesh); }

// Leaves every value in its present layout.
Placement place_in_situ(const PlacementArgs& args, std::size_t first_result, std::size_t past_result) {
  Placement placement;
  for (std::size_t i = 0; i < args.in.size(); ++i) {
    const bool is_wanted = args.wanted && i == first_result;
    placement.inputs.push_back(args.shardings[i] ? *args.shardings[i]
                               : is_wanted       ? *args.wanted
                                                 : replicated_on(args.mesh));
  }
  for (std::size_t i = first_result; i < past_result; ++i) placement.outputs.push_back(placement.inputs[i]);
  return placement;
}

OpDef marker(const char* name) {
  return {
      .name = name,
      .halves = moves_halves,
      .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
        return {in.begin() + static_cast<std::ptrdiff_t>(argument_count(p)), in.end()};
      },
      .sharding = PlacementRule{[](const PlacementArgs& args) -> Placement {
        return place_in_situ(args, argument_count(args.params), args.in.size());
      }},
      .runs = Lower{[](ProgramBuilder&, const Node& node, std::span<const int> in) -> std::vector<int> {
        return {in.begin() + static_cast<std::ptrdiff_t>(argument_count(*node.params)), in.end()};
      }},
      .vjp = [](const VjpArgs& v) -> Cotangents {
        const auto n = argument_count(*v.node.params);
        std::vector<Array> cotangents;
        for (std::size_t i = 0; i < v.out.size(); ++i)
          cotangents.push_back(v.cotangents[i].node() ? v.cotangents[i] : detail::zeros_for(v.out[i]));
        const AxisScope names(v.node.params->as<MarkerParams>().axes);
        auto result =
            called_back(v.node.params->as<MarkerParams>().rule, v.in.first(n), cotangents, v.node.where);
        result.resize(v.in.size());
        return result;
      },
      .batch = [](const BatchArgs& args) -> Batched {
        const auto n = argument_count(*args.node.params);
        std::vector<Array> inputs(args.in.begin(), args.in.begin() + static_cast<std::ptrdiff_t>(n));
        for (std::size_t i = n; i < args.in.size(); ++i) inputs.push_back(batched_in_front(args, i));
        auto params = args.node.params->as<MarkerParams>();
        params.rule =
            batched_rule(params.rule, {args.dims.begin(), args.dims.begin() + static_cast<std::ptrdiff_t>(n)},
                         args.size, replayed_frame(), params.axes);
        auto out = record_all(*args.node.op, make_params(std::move(params)), std::move(inputs));
        std::vector<int> dims(out.size(), 0);
        return {std::move(out), std::move(dims)};
      },
  };
}
const OpDef custom_vjp_op = marker("custom_vjp"), checkpoint_op = marker("checkpoint");
const Registered registered_custom_vjp(custom_vjp_op), registered_checkpoint(checkpoint_op);
const HasJvpRule tangents_of_checkpoint(checkpoint_op, [](const JvpArgs& args) -> std::vector<Array> {
  const auto results = args.tangents.subspan(argument_count(*args.node.params));
  return {results.begin(), results.end()};
});

struct BarrierParams {
  std::int64_t values;
  template <class V> void fields(V&& visit) const { visit("values", values); }
};
std::size_t value_count(const Params& p) { return static_cast<std::size_t>(p.as<BarrierParams>().values); }

// barrier(values..., after...) -> values: the same bytes, but distinct values for common subexpression
// elimination, and not computed before `after`.
const OpDef barrier_op{
    .name = "barrier",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {in.begin(), in.begin() + static_cast<std::ptrdiff_t>(value_count(p))};
    },
    .sharding = PlacementRule{[](const PlacementArgs& args) -> Placement {
      return place_in_situ(args, 0, value_count(args.params));
    }},
    .runs = Lower{[](ProgramBuilder& builder, const Node& node, std::span<const int> in) -> std::vector<int> {
      std::vector<int> out;
      const auto n = value_count(*node.params);
      for (std::size_t i = 0; i < n; ++i) {
        const auto value = builder.value(in[i]);
        out.push_back(builder.alias(in[i], value.type, value.layout));
        auto& inputs = builder.program().instructions.back().inputs;
        inputs.insert(inputs.end(), in.begin() + static_cast<std::ptrdiff_t>(n), in.end());
      }
      return out;
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      Cotangents result(v.cotangents.begin(), v.cotangents.end());
      result.resize(v.in.size());
      return result;
    },
    .batch = [](const BatchArgs& args) -> Batched {
      auto out = record_all(*args.node.op, args.node.params, {args.in.begin(), args.in.end()});
      return {std::move(out),
              {args.dims.begin(),
               args.dims.begin() + static_cast<std::ptrdiff_t>(value_count(*args.node.params))}};
    },
};
const Registered registered_barrier(barrier_op);

}  // namespace

Array origin_of(Array x) {
  for (;;) {
    const Node& node = *x.node();
    const bool is_marker = node.op == &custom_vjp_op || node.op == &checkpoint_op;
    if (is_marker)
      x = Array(node.inputs[argument_count(*node.params) + static_cast<std::size_t>(x.output())]);
    else if (!node.inputs.empty() && (node.op == &barrier_op || is_alias(*node.op) || is_broadcast(*node.op)))
      x = Array(node.inputs[static_cast<std::size_t>(x.output())]);
    else
      return x;
  }
}

namespace detail {

static std::vector<Array> marked(const OpDef& op, const std::vector<Array>& arguments,
                                 const std::vector<Array>& results, BackwardRule rule,
                                 std::source_location where) {
  const Call call(op.name.c_str(), where);
  std::vector<Array> inputs = arguments;
  inputs.insert(inputs.end(), results.begin(), results.end());
  for (const auto& x : inputs) check_usable(x);
  return record_all(op,
                    make_params(MarkerParams{static_cast<std::int64_t>(arguments.size()),
                                             std::move(rule),
                                             {bound_axes().begin(), bound_axes().end()}}),
                    std::move(inputs));
}

std::vector<Array> with_backward_rule(const std::vector<Array>& arguments, const std::vector<Array>& results,
                                      BackwardRule rule, std::source_location where) {
  return marked(custom_vjp_op, arguments, results, std::move(rule), where);
}

std::vector<Array> with_second_computation(const std::vector<Array>& arguments,
                                           const std::vector<Array>& results, BackwardRule again,
                                           std::source_location where) {
  return marked(checkpoint_op, arguments, results, std::move(again), where);
}

std::vector<Array> computed_after(const std::vector<Array>& values, std::span<const Array> after,
                                  std::source_location where) {
  const Call call("checkpoint", where);
  std::vector<Array> inputs = values;
  inputs.insert(inputs.end(), after.begin(), after.end());
  return record_all(barrier_op, make_params(BarrierParams{static_cast<std::int64_t>(values.size())}),
                    std::move(inputs));
}

std::vector<Array> checked_rule_result(std::vector<Array> cotangents, std::span<const Array> arguments,
                                       std::source_location where) {
  const Call call("custom_vjp", where);
  if (cotangents.size() != arguments.size())
    throw ArgumentError(
        call_text() + ": bwd returns " + std::to_string(cotangents.size()) +
        " cotangents, but the arguments have " + std::to_string(arguments.size()) +
        " arrays; return one cotangent tree per argument (None for an argument without gradient)");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!cotangents[i].node()) continue;
    if (!is_inexact(arguments[i].dtype()))
      cotangents[i] = Array();
    else
      cotangents[i] = fitted(cotangents[i], arguments[i], "a cotangent returned by bwd");
  }
  return cotangents;
}

}  // namespace detail
}  // namespace tessera
