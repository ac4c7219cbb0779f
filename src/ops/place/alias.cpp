// The identity as a node of its own: transformations distinguish their argument from the caller's array by
// it, and stop_gradient ends there.
#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/collective/manual.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

std::vector<Type> same_types(std::span<const Type> in, const Params&) { return {in.begin(), in.end()}; }

const OpDef alias_op{
    .name = "alias",
    .halves = moves_halves,
    .infer = same_types,
    .sharding = Rule("{D..} -> {D..}"),
    .runs = Alias{},
    .vjp = [](const VjpArgs& v) -> Cotangents { return {v.cotangents[0]}; },
    .batch = [](const BatchArgs& args) -> Batched {
      return {{args.in[0]}, {args.dims[0]}};
    },
    .linear = Linear::in_first,
};
const OpDef stop_gradient_op{
    .name = "stop_gradient",
    .halves = moves_halves,
    .infer = same_types,
    .sharding = Rule("{D..} -> {D..}"),
    .runs = Alias{},
    .vjp = [](const VjpArgs&) -> Cotangents { return {Array()}; },
    .batch = [](const BatchArgs& args) -> Batched {
      return {{record(*args.node.op, no_params(), {args.in[0]})}, {args.dims[0]}};
    },
    .linear = Linear::in_first,
};
const Registered registered[] = {Registered(alias_op), Registered(stop_gradient_op)};

}  // namespace

Array make_alias(const Array& x) {
  check_usable(x);
  const OnBehalfOf same_place(x.node()->called());
  // Inside a mapped function the argument is one rank's value, and so is the gradient.
  const auto region = current_region();
  const Array own = region && x.node()->region != region ? brought_inside(x, region) : x;
  Array result = record(alias_op, no_params(), {own});
  result.node()->traced = true;  // keeps the graph below even if a value is evaluated meanwhile
  return result;
}

bool is_made_alias(const Node& node) { return node.op == &alias_op; }

namespace detail {
Array stop_gradient_leaf(const Array& x, std::source_location where) {
  const Call call("stop_gradient", where);
  check_usable(x);
  return record(stop_gradient_op, no_params(), {x});
}
}  // namespace detail

}  // namespace tessera
