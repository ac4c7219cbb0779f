// argmax and argmin: the position of the extremum. The first of equals, and the first NaN if there is one, as
// in NumPy.
//
// Over a split dim each rank finds its own extremum and its position; one all-reduce gives the global
// extremum, another the smallest position among the ranks that hold it.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/reduce/reduce.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/position_dtype.hpp"
#include "ops/reduce/arg_reduce.hpp"
#include "program/builder.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

constexpr int all_dims = ArgParams::all_dims;
const ArgParams& params_of(const Params& p) { return p.as<ArgParams>(); }

std::vector<Type> infer(std::span<const Type> in, const Params& params) {
  const auto& p = params_of(params);
  if (p.dim == all_dims) return {{Shape{}, position_dtype(in[0].shape.elements())}};
  return {{without_dim(in[0].shape, p.dim), position_dtype(in[0].shape[p.dim])}};
}

void write_indices(const Tile& out, const std::vector<std::int64_t>& indices) {
  for (std::size_t i = 0; i < indices.size(); ++i)
    out.dtype == int32 ? void(out.as<std::int32_t>()[i] = static_cast<std::int32_t>(indices[i]))
                       : void(out.as<std::int64_t>()[i] = indices[i]);
}

// Converts a row-major position in the block to the row-major position in the array.
std::int64_t global_place(std::int64_t local, const Box& box, const Shape& global) {
  std::int64_t place = 0, stride = 1;
  for (std::size_t d = box.size(); d-- > 0;) {
    const auto extent = box[d].size();
    place += (box[d].start + local % extent) * stride;
    local /= extent;
    stride *= global[d];
  }
  return place;
}

// The block's extrema (into `values`, unless null) and their positions in the global array.
void reduce_block(const ArgParams& p, const Tile& in, std::byte* values, const Tile& out) {
  std::vector<std::int64_t> indices(out.elements(), out.dtype == int32
                                                        ? std::numeric_limits<std::int32_t>::max()
                                                        : std::numeric_limits<std::int64_t>::max());
  const bool is_empty_line = p.dim == all_dims ? in.elements() == 0 : in.box[p.dim].size() == 0;
  if (is_empty_line) {  // other ranks have the elements
    if (values != nullptr)
      kernels::fill_identity(p.max ? ReduceKind::max : ReduceKind::min, in.dtype, values, out.elements());
  } else if (out.elements() > 0) {
    if (p.dim == all_dims) {
      kernels::arg_reduce(p.max, in.dtype, in.data, Shape{in.elements()}, 0, 0, values, indices.data());
      indices[0] = global_place(indices[0], in.box, in.global);
    } else {
      kernels::arg_reduce(p.max, in.dtype, in.data, in.shape(), p.dim, in.box[p.dim].start, values,
                          indices.data());
    }
  }
  write_indices(out, indices);
}

// ---- the two steps over a split dim ----
const OpDef block_extremes_op{.name = "block_extremes", .runs = Kernel{[](const KernelArgs& a) {
                                                          reduce_block(params_of(a.params), a.in[0],
                                                                       a.out[0].data, a.out[1]);
                                                        }}};

// The position on ranks that hold the extremum; a position larger than all others elsewhere.
void choose_places(const KernelArgs& a) {
  const Tile &own = a.in[0], &best = a.in[1], &places = a.in[2], &out = a.out[0];
  const auto item = static_cast<std::int64_t>(itemsize(own.dtype));
  const auto is_nan_at = [&](const Tile& t, std::int64_t i) {
    if (t.dtype == float32) return t.as<float>()[i] != t.as<float>()[i];
    if (t.dtype == float64) return t.as<double>()[i] != t.as<double>()[i];
    return false;
  };
  const auto equal_at = [&](std::int64_t i) {
    if (own.dtype == float32) return own.as<float>()[i] == best.as<float>()[i];  // -0 equals 0
    if (own.dtype == float64) return own.as<double>()[i] == best.as<double>()[i];
    return std::memcmp(own.data + i * item, best.data + i * item, item) == 0;
  };
  std::vector<std::int64_t> chosen(out.elements());
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    const bool holds = equal_at(i) || (is_nan_at(own, i) && is_nan_at(best, i));
    const auto place = out.dtype == int32 ? places.as<std::int32_t>()[i] : places.as<std::int64_t>()[i];
    chosen[i] = holds                ? place
                : out.dtype == int32 ? std::numeric_limits<std::int32_t>::max()
                                     : std::numeric_limits<std::int64_t>::max();
  }
  write_indices(out, chosen);
}
const OpDef place_if_extreme_op{.name = "place_if_extreme", .runs = Kernel{choose_places}};

std::vector<std::vector<int>> result_axes(const std::vector<std::vector<int>>& operand, const ArgParams& p) {
  if (p.dim == all_dims) return {};
  auto dims = operand;
  dims.erase(dims.begin() + p.dim);
  return dims;
}

Placement place(const PlacementArgs& args) {
  const auto& p = params_of(args.params);
  const int ndim = args.in[0].shape.ndim();
  std::vector<std::vector<int>> dims(ndim);
  Mesh mesh = args.mesh;
  if (args.shardings[0]) {
    dims = args.shardings[0]->dim_axes(ndim);
    mesh = args.shardings[0]->mesh();
  } else if (args.wanted && p.dim != all_dims) {
    dims = args.wanted->dim_axes(ndim - 1);
    dims.insert(dims.begin() + p.dim, std::vector<int>{});
    mesh = args.wanted->mesh();
  }
  return {{Sharding::from_dim_axes(mesh, dims)},
          {Sharding::from_dim_axes(mesh, result_axes(dims, p))},
          {},
          ReduceKind::sum};
}

std::vector<int> lower(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const auto& p = params_of(*node.params);
  const Type x = builder.value(in[0]).type, &index = node.outputs[0].type;
  const Sharding layout = builder.value(in[0]).layout, out = builder.placement().outputs[0];
  const auto dims = layout.dim_axes(x.shape.ndim());
  std::vector<int> axes;
  for (int d = 0; d < x.shape.ndim(); ++d)
    if (p.dim == all_dims || d == p.dim) axes.insert(axes.end(), dims[d].begin(), dims[d].end());
  if (axes.empty()) return builder.kernel(*node.op, node.params, {in[0]}, {index}, {out});
  std::sort(axes.begin(), axes.end());
  const auto own =
      builder.kernel(block_extremes_op, node.params, {in[0]}, {{index.shape, x.dtype}, index}, {out, out});
  builder.set_partial(own[0], axes, p.max ? ReduceKind::max : ReduceKind::min);
  const int best = builder.combine(own[0]);
  const auto chosen =
      builder.kernel(place_if_extreme_op, no_params(), {own[0], best, own[1]}, {index}, {out});
  builder.set_partial(chosen[0], axes, ReduceKind::min);
  return {builder.combine(chosen[0])};
}

OpDef arg_record(const char* name) {
  OpDef op;
  op.name = name;
  op.infer = infer;
  op.sharding = PlacementRule{place};
  op.runs = Lower{.write = lower, .kernel = [](const KernelArgs& a) {
                    reduce_block(params_of(a.params), a.in[0], nullptr, a.out[0]);
                  }};
  op.vjp = [](const VjpArgs&) -> Cotangents { return {Array()}; };  // a step function: its derivative is zero
  op.batch = [](const BatchArgs& args) -> Batched {
    auto p = params_of(*args.node.params);
    Array x = batch_first(args.in[0], args.dims[0]);
    if (p.dim == all_dims) {  // the arg-reduction of each row of the batch
      x = reshape(x, Shape{args.size, args.size == 0 ? 0 : x.size() / args.size});
      p.dim = 0;
    }
    ++p.dim;
    return {{record(*args.node.op, make_params(p), {x})}, {0}};
  };
  op.parts = Parts::beside_lines;
  return op;
}
const OpDef argmax_op = arg_record("argmax"), argmin_op = arg_record("argmin");
const Registered registered[] = {Registered(argmax_op), Registered(argmin_op)};

Array arg_reduce(const Operand& x, std::optional<int> axis, bool keepdims, bool max) {
  const OpDef& op = max ? argmax_op : argmin_op;
  check_usable(x.array);
  if (is_complex(x.array.dtype()))
    throw DtypeError(call_text() + ": complex numbers have no order; take it of abs(x)");
  const int dim = axis ? checked_dim(*axis, x.array.ndim()) : all_dims;
  if ((dim == all_dims ? x.array.size() : x.array.shape()[dim]) == 0)
    throw ShapeError(call_text() + ": there is no element to choose in shape " + to_string(x.array.shape()) +
                     (dim == all_dims ? "" : " along axis " + std::to_string(dim)));
  const Array place = record(op, make_params(ArgParams{dim, max}), {x.array});
  return keepdims ? expand_dims(place, dim) : place;
}

}  // namespace

Array argmax(const Operand& x) {
  const Call call("argmax", x.where);
  return arg_reduce(x, std::nullopt, false, true);
}
Array argmax(const Operand& x, int axis, bool keepdims) {
  const Call call("argmax", x.where);
  return arg_reduce(x, axis, keepdims, true);
}
Array argmin(const Operand& x) {
  const Call call("argmin", x.where);
  return arg_reduce(x, std::nullopt, false, false);
}
Array argmin(const Operand& x, int axis, bool keepdims) {
  const Call call("argmin", x.where);
  return arg_reduce(x, axis, keepdims, false);
}

}  // namespace tessera
