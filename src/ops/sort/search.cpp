// searchsorted. A value's place in an array that is split over ranks is the sum of its places in the blocks,
// so no rank needs more than its own block of the sorted array.
#include <algorithm>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/sort/sort.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

struct SearchParams {
  int batch;  // leading dims that both operands share: each has its own sorted row
  bool right;
  template <class V> void fields(V&& visit) const {
    visit("batch", batch);
    visit("right", right);
  }
};
const SearchParams& params_of(const Params& p) { return p.as<SearchParams>(); }

void kernel(const KernelArgs& a) {
  const auto& p = params_of(a.params);
  const Tile &sorted = a.in[0], &values = a.in[1], &out = a.out[0];
  const auto n = sorted.box.back().size();
  std::int64_t rows = 1;
  for (int d = 0; d < p.batch; ++d) rows *= out.box[d].size();
  if (out.elements() == 0) return;
  const auto per_row = out.elements() / rows;
  const auto item = static_cast<std::int64_t>(itemsize(sorted.dtype));
  std::vector<std::int64_t> places(per_row);
  for (std::int64_t r = 0; r < rows; ++r) {
    kernels::searchsorted(sorted.dtype, sorted.data + r * n * item, n, values.data + r * per_row * item,
                          per_row, p.right, places.data());
    const void* from = places.data();
    kernels::find_cast(int64, out.dtype)(
        &from, out.data + r * per_row * static_cast<std::int64_t>(itemsize(out.dtype)), per_row);
  }
}

const OpDef searchsorted_op{
    .name = "searchsorted",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[1].shape, in[0].shape.back() > std::numeric_limits<std::int32_t>::max() ? int64 : int32}};
    },
    .sharding = Rule("B.. n, B.. V.. -> B.. V.. | sum n"),
    .runs = Kernel{kernel},
    .vjp = [](const VjpArgs&) -> Cotangents { return Cotangents(2); },  // a step function
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = params_of(*args.node.params);
      if (args.dims[0] == not_batched && p.batch == 0)  // more values for one sorted array
        return {
            {record(*args.node.op, args.node.params, {args.in[0], batch_first(args.in[1], args.dims[1])})},
            {0}};
      ++p.batch;
      return {{record(*args.node.op, make_params(p), {batched_in_front(args, 0), batched_in_front(args, 1)})},
              {0}};
    },
};
const Registered registered(searchsorted_op);

}  // namespace

Array searchsorted(const Operand& sorted, const Operand& values, const std::string& side) {
  const Call call("searchsorted", sorted.where);
  check_usable(sorted.array);
  check_usable(values.array);
  if (sorted.array.ndim() != 1)
    throw ShapeError(call_text() + ": the sorted array has shape " + to_string(sorted.array.shape()) +
                     "; it must have one dimension. Map over rows with vmap");
  if (side != "left" && side != "right")
    throw ArgumentError(call_text() + ": side is '" + side + "'; it must be 'left' or 'right'");
  const Dtype dtype = promote(WeakDtype{sorted.array.dtype(), sorted.array.is_weakly_typed()},
                              WeakDtype{values.array.dtype(), values.array.is_weakly_typed()})
                          .dtype;
  return record(searchsorted_op, make_params(SearchParams{0, side == "right"}),
                {cast_to(sorted.array, dtype), cast_to(values.array, dtype)});
}

Array searchsorted(const Operand& sorted, const Operand& values, const std::string& side,
                   const Operand& sorter) {
  const Call call("searchsorted", sorted.where);
  check_usable(sorted.array);
  check_usable(sorter.array);
  if (!is_integer(sorter.array.dtype()))
    throw DtypeError(call_text() + ": the sorter has dtype " + name(sorter.array.dtype()) +
                     "; it must hold integers, as argsort gives them");
  if (sorted.array.ndim() != 1 || sorter.array.shape() != sorted.array.shape())
    throw ShapeError(call_text() + ": the sorter has shape " + to_string(sorter.array.shape()) +
                     ", the array " + to_string(sorted.array.shape()) +
                     "; both must have one dimension and the same size");
  return searchsorted(take(sorted, sorter, 0), values, side);
}

}  // namespace tessera
