// Counts how often each number occurs in an array of integers: each rank counts its own, and all counts are
// summed.
#include <tessera/ops/statistics.hpp>

#include "kernels/sort/count_places.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

struct CountParams {
  std::int64_t length;
  template <class V> void fields(V&& visit) const { visit("length", length); }
};

// A scatter of ones by (batch index, number); negative numbers are out of range.
Batched count_batch(const BatchArgs& args) {
  const auto length = args.node.params->as<CountParams>().length;
  const Array x = batch_first(args.in[0], args.dims[0]);
  const Array bins = where(x < 0, length, astype(x, int64));
  std::vector<std::int64_t> column(x.shape().size(), 1);
  column[0] = args.size;
  const Array number = broadcast_to(reshape(arange(args.size), Shape(std::move(column))), x.shape());
  return {{At(zeros({args.size, length}, int32), {number, bins}).add(ones(x.shape(), int32))}, {0}};
}

const OpDef count_places_op{
    .name = "count_places",
    .infer = [](std::span<const Type>, const Params& p) -> std::vector<Type> {
      return {{Shape{p.as<CountParams>().length}, int32}};
    },
    .sharding = Rule("N.. -> e | sum N"),
    .runs = Kernel{[](const KernelArgs& a) {
      kernels::count_places(a.in[0].dtype, a.in[0].data, a.in[0].elements(),
                            a.params.as<CountParams>().length, a.out[0].as<std::int32_t>());
    }},
    .vjp = [](const VjpArgs&) -> Cotangents { return Cotangents(1); },  // integers
    .batch = count_batch,
    .parts = Parts::all_dims,
};
const Registered registered(count_places_op);

Array integers(const Operand& x, std::int64_t length) {
  check_usable(x.array);
  if (!is_integer(x.array.dtype()) && !is_bool(x.array.dtype()))
    throw DtypeError(call_text() + ": the values have dtype " + name(x.array.dtype()) +
                     "; they must be integers");
  if (x.array.ndim() != 1)
    throw ShapeError(call_text() + ": the values have shape " + to_string(x.array.shape()) +
                     "; they must have one dimension");
  if (length < 0)
    throw ArgumentError(call_text() + ": the length " + std::to_string(length) + " is negative");
  return is_bool(x.array.dtype()) ? astype(x, int32) : x.array;
}

}  // namespace

Array bincount(const Operand& x, std::int64_t length) {
  const Call call("bincount", x.where);
  return record(count_places_op, make_params(CountParams{length}), {integers(x, length)});
}
Array bincount(const Operand& x, const Operand& weights, std::int64_t length) {
  const Call call("bincount", x.where);
  const Array n = integers(x, length);
  check_usable(weights.array);
  if (weights.array.shape() != n.shape())
    throw ShapeError(call_text() + ": the weights have shape " + to_string(weights.array.shape()) +
                     ", the values " + to_string(n.shape()) + "; there must be one for each");
  const Array bins = where(n < 0, length, astype(n, int64));  // index -1 would count from the end
  return zeros({length}, weights.array.dtype()).at(bins).add(weights);
}

}  // namespace tessera
