// reshape, squeeze, expand_dims, broadcast_to.
//
// A reshape regroups dims: (6, 4) -> (24) has the factors i=6, j=4 with [i][j] -> [ij]. A rank's block keeps
// its element order, so there is no local work. If a split does not survive the regrouping, or blocks are
// uneven, elements change owner first (uneven.hpp); if layouts are not known yet, or inside a region, such a
// split is gathered, only within its own factor group.
#include <algorithm>
#include <numeric>

#include "graph/elementwise_row.hpp"
#include "kernels/move/copy.hpp"
#include "mesh/factors.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/left_out.hpp"
#include "ops/reshape/uneven.hpp"
#include "ops/resized.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

struct ShapeParams {
  Shape shape;
  template <class V> void fields(V&& visit) const { visit("shape", shape); }
};

const OpDef reshape_op{
    .name = "reshape",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{p.as<ShapeParams>().shape, in[0].dtype, in[0].weak}};
    },
    .sharding = Rule("(D..) -> (D..)"),
    .runs = Alias{},
    .vjp = [](const VjpArgs& v) -> Cotangents { return {reshape(v.cotangents[0], v.in[0].shape())}; },
    .batch = [](const BatchArgs& args) -> Batched {
      return {{reshape(batch_first(args.in[0], args.dims[0]),
                       with_dim(args.node.params->as<ShapeParams>().shape, 0, args.size))},
              {0}};
    },
    .linear = Linear::in_first,
};
const Registered registered_reshape(reshape_op);

const ElementwiseRow broadcast_row{nullptr, 0, true};

std::vector<std::int64_t> broadcast_strides(const Shape& from, const Shape& to) {
  const auto dense = row_major_strides(from);
  std::vector<std::int64_t> strides(to.size(), 0);
  const std::size_t lead = to.size() - from.size();
  for (std::size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1) strides[lead + d] = dense[d];
  return strides;
}

const OpDef broadcast_op{
    .name = "broadcast_to",
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{p.as<ShapeParams>().shape, in[0].dtype, in[0].weak}};
    },
    .sharding = Rule("{D..} -> D.."),
    .runs = PerElement{&broadcast_row,
                       [](const KernelArgs& a) {
                         const Shape to = a.out[0].shape();
                         kernels::copy_strided(a.out[0].data, row_major_strides(to), a.in[0].data,
                                               broadcast_strides(a.in[0].shape(), to), to,
                                               itemsize(a.in[0].dtype));
                       }},
    .vjp = [](const VjpArgs& v) -> Cotangents { return {sum_to_shape(v.cotangents[0], v.in[0].shape())}; },
    .batch = [](const BatchArgs& args) -> Batched {
      Array x = batch_first(args.in[0], args.dims[0]);
      auto extents = args.node.params->as<ShapeParams>().shape.vector();
      extents.insert(extents.begin(), args.size);
      std::vector<std::int64_t> aligned(extents.size(), 1);
      aligned[0] = args.size;
      for (int d = 1; d < x.ndim(); ++d)
        aligned[extents.size() - static_cast<std::size_t>(x.ndim()) + static_cast<std::size_t>(d)] =
            x.shape()[d];
      x = reshape(x, Shape(std::move(aligned)));
      return {{record(*args.node.op, make_params(ShapeParams{Shape(std::move(extents))}), {x})}, {0}};
    },
    .linear = Linear::in_first,
    .parts = Parts::all_dims,
};
const Registered registered_broadcast(broadcast_op);

}  // namespace

ParamsPtr params_with_shape(const OpDef& op, const Params& params, const Shape& shape) {
  if (&op == &reshape_op || &op == &broadcast_op) return make_params(ShapeParams{shape});
  return constant_with_shape(op, params, shape);
}

Array reshape(const Operand& x, Shape shape) {
  const Call call("reshape", x.where);
  check_usable(x.array);
  const auto refuse = [&](const std::string& why) {
    throw ShapeError(call_text() + ": " + to_string(x.array.shape()) + " (" + std::to_string(x.array.size()) +
                     " elements) cannot become " + to_string(shape) + ": " + why);
  };
  std::int64_t known = 1;
  int open = -1;
  for (int d = 0; d < shape.ndim(); ++d) {
    const auto extent = shape[d];
    if (extent == -1) {
      if (open >= 0) refuse("only one extent may be -1");
      open = d;
    } else if (extent < 0) {
      refuse("the extent " + std::to_string(extent) + " is negative");
    } else {
      known = checked_mul(known, extent, "reshape");
    }
  }
  if (open >= 0) {
    if (known == 0 || x.array.size() % known != 0)
      refuse("the other extents make " + std::to_string(known) +
             ", which does not divide the number of elements");
    shape[open] = x.array.size() / known;
  } else if (known != x.array.size()) {
    refuse("that would take " + std::to_string(known) + " elements");
  }
  const bool is_left_out = may_leave_out(x.array);
  if (shape == x.array.shape() && is_left_out) return x.array;
  const Array aligned = with_agreeing_blocks(x.array, shape);
  if (shape == aligned.shape() && is_left_out) return aligned;
  return record(reshape_op, make_params(ShapeParams{std::move(shape)}), {aligned});
}

Array squeeze(const Operand& x, Axes axes) {
  const Call call("squeeze", x.where);
  check_usable(x.array);
  const auto named = checked_dims(axes.values, x.array.ndim(), false);
  std::vector<std::int64_t> extents;
  for (int d = 0; d < x.array.ndim(); ++d) {
    const auto extent = x.array.shape()[d];
    const bool is_named = std::binary_search(named.begin(), named.end(), d);
    if (is_named && extent != 1)
      throw ShapeError(call_text() + ": axis " + std::to_string(d) + " of shape " +
                       to_string(x.array.shape()) + " has size " + std::to_string(extent) +
                       "; only axes of size 1 can be squeezed");
    if (is_named || (axes.values.empty() && extent == 1)) continue;
    extents.push_back(extent);
  }
  return reshape(x, Shape(std::move(extents)));
}

Array expand_dims(const Operand& x, int axis) {
  const Call call("expand_dims", x.where);
  check_usable(x.array);
  const int at = checked_dim(axis, x.array.ndim() + 1);
  return reshape(x, with_dim(x.array.shape(), at, 1));
}

Array broadcast_to(const Operand& x, Shape shape) {
  const Call call("broadcast_to", x.where);
  check_usable(x.array);
  if (x.array.shape() == shape && may_leave_out(x.array)) return x.array;
  const Shape& from = x.array.shape();
  bool fits = from.size() <= shape.size();
  for (std::size_t d = 0; fits && d < from.size(); ++d) {
    const auto to = shape[shape.size() - from.size() + d];
    fits = from[d] == to || from[d] == 1;
  }
  if (!fits)
    throw ShapeError(call_text() + ": shape " + to_string(from) + " does not broadcast to " +
                     to_string(shape) + "; each dimension, counted from the last, must be equal or 1");
  checked_bytes(shape, itemsize(x.array.dtype()), "broadcast_to");
  return record(broadcast_op, make_params(ShapeParams{std::move(shape)}), {x.array});
}

Array Array::T(std::source_location where) const {
  const Call call("T", where);
  return tessera::transpose(*this);
}

}  // namespace tessera
