// searchsorted. A value's position in an array that is split over ranks is the sum of its positions in the
// blocks, so no rank needs more than its own block of the sorted array. If the values are split over the same
// mesh axes, each is sent to the rank whose block contains its position, and the position is sent back.
#include <algorithm>
#include <cstring>
#include <limits>

#include "comm/collectives/collectives.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/sort/sort.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/index/fetch.hpp"
#include "ops/position_dtype.hpp"

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

const Rule search_rule("B.. n, B.. V.. -> B.. V.. | sum n");

// The placement of one sorted array and of values that are split over some of the same mesh axes: both stay
// as they are. The rule would replicate one of them.
std::optional<Placement> place_questions(const PlacementArgs& args) {
  if (params_of(args.params).batch > 0 || args.wanted || !args.shardings[0] || !args.shardings[1] ||
      !(args.shardings[0]->mesh() == args.mesh) || !(args.shardings[1]->mesh() == args.mesh))
    return std::nullopt;
  const auto table = args.shardings[0]->dim_axes(1)[0];
  bool shares_an_axis = false;
  for (const auto& dim : args.shardings[1]->dim_axes(args.in[1].shape.ndim()))
    for (const int a : dim) shares_an_axis |= std::find(table.begin(), table.end(), a) != table.end();
  if (!shares_an_axis) return std::nullopt;
  return Placement{{*args.shardings[0], *args.shardings[1]}, {*args.shardings[1]}, {}, ReduceKind::sum};
}
std::int64_t question_bytes(const PlacementArgs& args, const Sharding& values) {
  const auto item = static_cast<std::int64_t>(itemsize(args.in[1].dtype) + sizeof(std::int64_t));
  return values.shard_shape(args.in[1].shape).elements() * item;
}
Placement place_search(const PlacementArgs& args) {
  std::int64_t bytes = 0;
  auto placement = place_by(search_rule, args, &bytes);
  auto asking = place_questions(args);
  if (!asking) return placement;
  const auto parts = devices_along(args.mesh, asking->inputs[0].dim_axes(1)[0]);
  // If the values are evenly distributed, this share of them is answered by the rank itself.
  if (question_bytes(args, asking->inputs[1]) / parts * (parts - 1) < bytes) return std::move(*asking);
  return placement;
}

// The traffic of questions: the array is split, but the result is not partial.
std::vector<CommunicationCost> question_cost(const PlacementArgs& args, const Placement& placement) {
  const int batch = params_of(args.params).batch;
  const auto axes = placement.inputs[0].dim_axes(args.in[0].shape.ndim())[batch];
  if (axes.empty() || !placement.partial_axes.empty()) return {};
  return {{"all-to-all", axes, question_bytes(args, placement.inputs[1]), 2}};
}

// A value's position is in the last block whose first element is below it ("left"; or not above it, "right"):
// all elements of earlier blocks count, none of later ones.
void communicate(const CommunicationArgs& args) {
  const auto& a = args.local;
  const bool right = params_of(a.params).right;
  const Tile &sorted = a.in[0], &values = a.in[1], &out = a.out[0];
  const auto& comm = group_of_dim(args.in_layouts[0], 0, 1, args.me);
  const auto extent = sorted.global[0], own = sorted.elements();
  const auto item = static_cast<std::int64_t>(itemsize(sorted.dtype));
  std::vector<std::byte> first(item), firsts(comm.size() * item);
  if (own > 0) std::memcpy(first.data(), sorted.data, item);
  comm::all_gather(comm, first.data(), item, firsts.data());
  std::int64_t blocks = 0;  // nonempty blocks
  while (blocks < comm.size() && block_range(extent, comm.size(), blocks).size() > 0) ++blocks;
  std::vector<std::int64_t> begun(values.elements());
  kernels::searchsorted(sorted.dtype, firsts.data(), blocks, values.data, values.elements(), right,
                        begun.data());
  FetchList list;
  for (const auto n : begun) list.add(static_cast<int>(n) - 1, 0);
  const auto start = sorted.box[0].start;
  const auto places =
      ask(comm, list, item, values.data, [&](const std::byte* asked, std::int64_t n, std::int64_t* at) {
        kernels::searchsorted(sorted.dtype, sorted.data, own, asked, n, right, at);
        for (std::int64_t i = 0; i < n; ++i) at[i] += start;
      });
  const void* from = places.data();
  if (!places.empty()) kernels::find_cast(int64, out.dtype)(&from, out.data, values.elements());
}

const OpDef searchsorted_op{
    .name = "searchsorted",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[1].shape, position_dtype(in[0].shape.back())}};
    },
    .sharding = PlacementRule{place_search, &search_rule},
    .runs = Communicating{.together = communicate, .cost = question_cost, .alone = kernel},
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
    .parts = Parts::unreduced_dims,
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
