#include "ops/index/spread.hpp"

#include <cstring>

#include "kernels/move/copy.hpp"
#include "kernels/move/positions.hpp"
#include "kernels/reduce/reduce.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/windows.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

struct SpreadParams {
  int dim;
  std::int64_t n;  // elements per group, or the stride
  template <class V> void fields(V&& visit) const {
    visit("dim", dim);
    visit("n", n);
  }
};
const SpreadParams& params_of(const Params& p) { return p.as<SpreadParams>(); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Placement place(const PlacementArgs& args) {
  const Sharding out = args.wanted ? *args.wanted : *args.shardings[0];
  return {{args.shardings[0] ? *args.shardings[0] : out}, {out}, {}, ReduceKind::sum};
}

// `needs` returns the range of the operand from which a block of the result is computed.
std::vector<int> lower_by(ProgramBuilder& builder, const Node& node, std::span<const int> in,
                          Range (*needs)(Range block, std::int64_t n)) {
  const auto& p = params_of(*node.params);
  const Type& type = node.outputs[0].type;
  const Sharding out = builder.placement().outputs[0];
  const auto extent = type.shape[p.dim];
  const int windows = fetch_windows(builder, in[0], p.dim, out, [&](std::int64_t part, std::int64_t parts) {
    return needs(block_range(extent, parts, part), p.n);
  });
  return builder.kernel(*node.op, node.params, {windows}, {type}, {out});
}

template <Range (*needs)(Range, std::int64_t)>
OpDef spread_record(const char* name, std::int64_t (*extent)(std::int64_t, std::int64_t),
                    KernelFunction kernel) {
  static std::int64_t (*const extent_of)(std::int64_t, std::int64_t) = extent;
  OpDef op;
  op.name = name;
  op.halves = moves_halves;
  op.infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
    Shape shape = in[0].shape;
    auto& n = shape[params_of(p).dim];
    n = extent_of(n, params_of(p).n);
    return {{shape, in[0].dtype}};
  };
  op.batch = [](const BatchArgs& args) -> Batched {
    auto p = params_of(*args.node.params);
    ++p.dim;
    return {{record(*args.node.op, make_params(p), {batch_first(args.in[0], args.dims[0])})}, {0}};
  };
  op.sharding = PlacementRule{place};
  op.parts = Parts::beside_lines;
  op.runs = Lower{.write = [](ProgramBuilder& builder, const Node& node,
                              std::span<const int> in) { return lower_by(builder, node, in, needs); },
                  .kernel = kernel};
  return op;
}

// ---- dilate ----
Range dilate_needs(Range block, std::int64_t stride) {
  return {ceil_div(block.start, stride), ceil_div(block.stop, stride)};
}
void dilate_kernel(const KernelArgs& a) {
  const auto& p = params_of(a.params);
  const Tile& out = a.out[0];
  const auto d = static_cast<std::size_t>(p.dim);
  const auto item = itemsize(out.dtype);
  std::memset(out.data, 0, out.bytes());
  const Range needed = dilate_needs(out.box[d], p.n);
  Shape extents = out.shape();
  auto strides = row_major_strides(extents);
  const auto from = row_major_strides(a.in[0].shape());
  const auto offset = (needed.start * p.n - out.box[d].start) * strides[d];
  extents[d] = needed.size();
  strides[d] *= p.n;
  if (extents.elements() > 0)
    kernels::copy_strided(out.data + offset * static_cast<std::int64_t>(item), strides, a.in[0].data, from,
                          extents, item);
}
OpDef dilate_record() {
  OpDef op = spread_record<dilate_needs>(
      "dilate", [](std::int64_t n, std::int64_t stride) { return n == 0 ? 0 : (n - 1) * stride + 1; },
      dilate_kernel);
  op.vjp = [](const VjpArgs& v) -> Cotangents {
    const auto& p = params_of(*v.node.params);
    std::vector<IndexPart> parts(p.dim, IndexPart(slice()));
    parts.emplace_back(slice(None, None, p.n));
    return {index(v.cotangents[0], std::move(parts))};
  };
  return op;
}
const OpDef dilate_op = dilate_record();

// ---- repeat ----
Range repeat_needs(Range block, std::int64_t n) {
  return {block.start / n, block.size() == 0 ? block.start / n : ceil_div(block.stop, n)};
}
void repeat_kernel(const KernelArgs& a) {
  const auto& p = params_of(a.params);
  const Range block = a.out[0].box[p.dim];
  const Shape shape = a.in[0].shape();
  // Fast path for single items, if the block begins and ends with all copies of one.
  if (kernels::axis_view(shape, p.dim).inner == 1 && shape[p.dim] * p.n == block.size())
    return kernels::repeat(a.out[0].data, a.in[0].data, shape.elements(), p.n, itemsize(a.out[0].dtype));
  std::vector<std::int64_t> indices;
  for (auto i = block.start; i < block.stop; ++i) indices.push_back(i / p.n - block.start / p.n);
  kernels::gather(a.out[0].data, a.in[0].data, kernels::axis_view(a.in[0].shape(), p.dim), indices,
                  itemsize(a.out[0].dtype));
}
OpDef repeat_record() {
  OpDef op = spread_record<repeat_needs>(
      "repeat", [](std::int64_t extent, std::int64_t n) { return extent * n; }, repeat_kernel);
  op.vjp = [](const VjpArgs& v) -> Cotangents {
    return {sum_groups(v.cotangents[0], params_of(*v.node.params).dim, params_of(*v.node.params).n)};
  };
  return op;
}
const OpDef repeat_op = repeat_record();

Range sum_groups_needs(Range block, std::int64_t n) { return {block.start * n, block.stop * n}; }
void sum_groups_kernel(const KernelArgs& a) {
  const auto& p = params_of(a.params);
  const auto view = kernels::axis_view(a.out[0].shape(), p.dim);
  if (a.out[0].elements() == 0) return;
  // The window may be longer than what this block needs, so rows of the operand are read one by one.
  const auto window = a.in[0].shape()[p.dim];
  const auto item = static_cast<std::int64_t>(itemsize(a.out[0].dtype));
  for (std::int64_t o = 0; o < view.outer; ++o)
    kernels::reduce(ReduceKind::sum, a.out[0].dtype, a.in[0].data + o * window * view.inner * item,
                    Shape{view.extent, p.n, view.inner}, {1},
                    a.out[0].data + o * view.extent * view.inner * item);
}
OpDef sum_groups_record() {
  OpDef op = spread_record<sum_groups_needs>(
      "sum_groups", [](std::int64_t extent, std::int64_t n) { return extent / n; }, sum_groups_kernel);
  op.halves = widens_halves;
  op.instead = [](const OpDef&, const ParamsPtr& params, const std::vector<Array>& in) -> std::vector<Array> {
    if (!is_inexact(in[0].dtype())) return {};
    const auto& p = params_of(*params);
    Shape extents = in[0].shape();
    extents[p.dim] /= p.n;
    extents = with_dim(extents, p.dim + 1, p.n);
    return {sum(reshape(in[0], Shape(std::move(extents))), p.dim + 1)};
  };
  op.vjp = [](const VjpArgs& v) -> Cotangents {
    return {repeat_each(v.cotangents[0], params_of(*v.node.params).dim, params_of(*v.node.params).n)};
  };
  return op;
}
const OpDef sum_groups_op = sum_groups_record();

const Registered registered[] = {Registered(dilate_op), Registered(repeat_op), Registered(sum_groups_op)};

}  // namespace

Array dilate(const Array& x, int dim, std::int64_t stride) {
  return record(dilate_op, make_params(SpreadParams{dim, stride}), {x});
}
Array repeat_each(const Array& x, int dim, std::int64_t n) {
  return record(repeat_op, make_params(SpreadParams{dim, n}), {x});
}
Array sum_groups(const Array& x, int dim, std::int64_t n) {
  return record(sum_groups_op, make_params(SpreadParams{dim, n}), {x});
}

}  // namespace tessera
