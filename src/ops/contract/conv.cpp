// conv: n-d convolution of (images, channels, spatial...) with a kernel (features, channels / groups,
// taps...).
//
// Images, features and groups split freely; a split of the channels gives partial sums; for a split spatial
// dim each rank fetches only the halo that its output block reads.
//   3 taps, 2 ranks: output 0..3 | 4..7 reads input 0..4 | 3..7: one row each way
#include "kernels/dense/convolve.hpp"

#include <algorithm>
#include <cstring>

#include "ops/build.hpp"
#include "ops/contract/dot_general.hpp"
#include "ops/functions.hpp"
#include "ops/index/spread.hpp"
#include "ops/index/windows.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

bool is_ordered(const OpDef& op) { return op.same_bits == SameBits::made_for_it; }

struct ConvParams {
  std::vector<std::int64_t> strides, dilation, before, after;  // per spatial dim; before, after: padding
  std::int64_t groups;
  std::vector<std::int64_t> taps = {};  // extents of the weights that conv_weights makes
  template <class V> void fields(V&& visit) const {
    visit("strides", strides);
    visit("dilation", dilation);
    visit("before", before);
    visit("after", after);
    visit("groups", groups);
    visit("taps", taps);
  }
  std::size_t spatial() const { return strides.size(); }
};
const ConvParams& params_of(const Params& p) { return p.as<ConvParams>(); }

std::int64_t out_extent(const ConvParams& p, std::size_t d, std::int64_t in, std::int64_t taps) {
  const auto reach = p.dilation[d] * (taps - 1) + 1, padded = in + p.before[d] + p.after[d];
  return padded < reach ? 0 : (padded - reach) / p.strides[d] + 1;
}

// The operand range that a block of output positions reads; everything for the complete output.
Range needed(const ConvParams& p, std::size_t d, std::int64_t in, std::int64_t taps, Range block,
             bool is_whole) {
  if (is_whole) return {0, in};
  const auto start = std::clamp<std::int64_t>(block.start * p.strides[d] - p.before[d], 0, in);
  if (block.size() <= 0) return {start, start};
  return {start,
          std::clamp<std::int64_t>(
              (block.stop - 1) * p.strides[d] - p.before[d] + p.dilation[d] * (taps - 1) + 1, start, in)};
}

// Fetches the windows of x that the blocks of the output layout `like` read.
int fetch_spatial_windows(ProgramBuilder& builder, const ConvParams& p, int x, const Sharding& like,
                          const Shape& output, const std::vector<std::int64_t>& taps) {
  const int ndim = output.ndim();
  const auto target = like.dim_axes(ndim);
  for (std::size_t d = 0; d < p.spatial(); ++d) {
    const auto dim = d + 2;
    const auto in = builder.value(x).type.shape[dim];
    auto layout = builder.value(x).layout.dim_axes(ndim);
    layout[dim] = target[dim];
    x = fetch_windows(builder, x, static_cast<int>(dim), Sharding::from_dim_axes(like.mesh(), layout),
                      [&](std::int64_t part, std::int64_t parts) {
                        return needed(p, d, in, taps[d], block_range(output[dim], parts, part), parts == 1);
                      });
  }
  return x;
}

// The kernel's view of one rank's window, output block and weights.
kernels::ConvolveShape local_shape(const ConvParams& p, const Tile& x, const Tile& weights, const Tile& y,
                                   bool is_ordered) {
  const Shape xs = x.shape(), ws = weights.shape(), ys = y.shape();
  const auto channels = ws[1];
  const auto groups = channels == 0 ? 1 : xs[1] / channels;
  kernels::ConvolveShape shape{y.dtype, xs[0], groups, channels, groups == 0 ? 0 : ws[0] / groups, {}};
  for (std::size_t d = 0; d < p.spatial(); ++d) {
    // A window starts where its block reads, or at the start of the array; positions beyond the array's end
    // are zeros.
    const auto reads_from = y.box[d + 2].start * p.strides[d] - p.before[d];
    shape.dims.push_back({xs[d + 2], ys[d + 2], ws[d + 2], p.strides[d], p.dilation[d],
                          std::min<std::int64_t>(reads_from, 0)});
  }
  shape.is_ordered = is_ordered;
  return shape;
}

std::vector<std::int64_t> taps_of(const Shape& weights) { return {weights.begin() + 2, weights.end()}; }

// ---- one signal or image, split along its first spatial dim ----
// The block is read where it lies. Only the halo moves, and the rows of the result that need it are convolved
// from a small window of their own.
//   3 taps, 2 ranks, 8 rows: rank 0 has 0..3 and gets 4; rows 0..2 read the block, row 3 the window 2..4
constexpr std::size_t split_dim = 2;

struct Halo {
  Range before, after;
};
// The halo of a block: what its part of the result reads before and after it.
Halo halo_of(Range read, Range own) {
  const auto before = std::clamp(own.start, read.start, read.stop);
  return {{read.start, before}, {std::clamp(own.stop, before, read.stop), read.stop}};
}

// The halos of all blocks, one after the other, each as long as the longest; -1 if the operand is not a split
// signal or image, or its blocks are not much longer than their halos.
int fetch_halos(ProgramBuilder& builder, const ConvParams& p, int x, const Sharding& like,
                const Shape& output, std::int64_t taps) {
  constexpr std::int64_t least_blocks_per_halo = 8;
  const Type type = builder.value(x).type;
  const auto layout = builder.value(x).layout.dim_axes(output.ndim()), target = like.dim_axes(output.ndim());
  const bool is_single = type.shape[0] == 1 && type.shape[1] == 1 && output[1] == 1;
  const auto parts = output.ndim() > 2 ? parts_along(like, split_dim, output.ndim()) : 1;
  if (!is_single || parts < 2 || layout != target || builder.value(x).layout.mesh() != like.mesh()) return -1;
  for (std::size_t d = split_dim + 1; d < target.size(); ++d)
    if (!target[d].empty()) return -1;
  std::vector<Halo> halos;
  std::int64_t longest = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const Range read =
        needed(p, 0, type.shape[split_dim], taps, block_range(output[split_dim], parts, part), false);
    halos.push_back(halo_of(read, block_range(type.shape[split_dim], parts, part)));
    longest = std::max(longest, halos.back().before.size() + halos.back().after.size());
  }
  if (longest == 0 || longest * least_blocks_per_halo > type.shape[split_dim] / parts) return -1;
  Type packed = type;
  packed.shape[split_dim] = longest * parts;
  Remap map;
  for (std::int64_t part = 0; part < parts; ++part) {
    std::int64_t to = part * longest;
    for (const Range range : {halos[part].before, halos[part].after}) {
      if (range.size() <= 0) continue;
      RemapPiece piece{0, whole_box(packed.shape), std::vector<std::int64_t>(type.shape.size(), 0),
                       std::vector<std::int64_t>(type.shape.size(), 1)};
      piece.to[split_dim] = {to, to + range.size()};
      piece.offset[split_dim] = range.start - to;
      map.pieces.push_back(std::move(piece));
      to += range.size();
    }
  }
  return builder.remap(std::move(map), {x}, std::move(packed), like);
}

// The convolution of a block beside its halo.
class BesideHalo {
 public:
  BesideHalo(const ConvParams& p, const KernelArgs& a)
      : p_(p),
        x_(a.in[0]),
        weights_(a.in[1]),
        halos_(a.in[2]),
        y_(a.out[0]),
        shape_(local_shape(p, x_, weights_, y_, is_ordered(a.op))),
        own_(x_.box[split_dim]),
        halo_(halo_of(read_by(y_.box[split_dim]), own_)) {}

  void run() const {
    const Range rows = y_.box[split_dim];
    if (rows.size() <= 0) return;
    const Range inside = rows_of_block(rows);
    if (inside.size() > 0) compute(inside, x_.data, own_);
    for (const Range edge : {Range{rows.start, inside.start}, Range{inside.stop, rows.stop}})
      if (edge.size() > 0) compute_from_window(edge);
  }

 private:
  std::int64_t taps() const { return shape_.dims[0].taps; }
  Range read_by(Range rows) const { return needed(p_, 0, x_.global[split_dim], taps(), rows, false); }

  // The rows that read no element of the halo.
  Range rows_of_block(Range rows) const {
    if (own_.size() <= 0) return {rows.stop, rows.stop};
    const auto stride = p_.strides[0], reach = p_.dilation[0] * (taps() - 1);
    const auto from_start = (own_.start + p_.before[0] + stride - 1) / stride;
    const auto until_stop = own_.stop - 1 + p_.before[0] - reach;  // the last first element read
    const auto start = own_.start == 0 ? rows.start : std::clamp(from_start, rows.start, rows.stop);
    const auto stop = own_.stop == x_.global[split_dim] ? rows.stop
                      : until_stop < 0                  ? start
                                                        : until_stop / stride + 1;
    return {start, std::clamp(stop, start, rows.stop)};
  }

  std::size_t row_bytes(const Tile& tile) const {
    const auto rows = tile.box[split_dim].size();
    return rows == 0 ? 0 : static_cast<std::size_t>(tile.bytes() / rows);
  }
  // Rows of the result from operand rows `held`.
  void compute(Range rows, const std::byte* x, Range held) const {
    auto shape = shape_;
    shape.dims[0].in = held.size();
    shape.dims[0].out = rows.size();
    shape.dims[0].first = rows.start * p_.strides[0] - p_.before[0] - held.start;
    const auto offset = static_cast<std::size_t>(rows.start - y_.box[split_dim].start) * row_bytes(y_);
    kernels::convolve(shape, x, weights_.data, y_.data + offset);
  }
  void compute_from_window(Range rows) const {
    const Range read = read_by(rows);
    const std::size_t bytes = row_bytes(halos_);
    std::vector<std::byte> window(static_cast<std::size_t>(read.size()) * bytes);
    const auto copy = [&](Range held, const std::byte* from) {
      const auto start = std::max(held.start, read.start), stop = std::min(held.stop, read.stop);
      if (start < stop)
        std::memcpy(window.data() + static_cast<std::size_t>(start - read.start) * bytes,
                    from + static_cast<std::size_t>(start - held.start) * bytes,
                    static_cast<std::size_t>(stop - start) * bytes);
    };
    copy(halo_.before, halos_.data);
    copy(own_, x_.data);
    copy(halo_.after, halos_.data + static_cast<std::size_t>(halo_.before.size()) * bytes);
    compute(rows, window.data(), read);
  }

  const ConvParams& p_;
  const Tile &x_, &weights_, &halos_, &y_;
  const kernels::ConvolveShape shape_;
  const Range own_;
  const Halo halo_;
};

RuleReading read_groups(const Params& p, std::span<const Shape>) {
  return {{{{'g', params_of(p).groups}}}, {}};
}

double flops_of(const Shape& weights, const Shape& y) {
  double per_output = 2;
  for (std::size_t d = 1; d < weights.size(); ++d) per_output *= static_cast<double>(weights[d]);
  return per_output * static_cast<double>(y.elements());
}

Array conv_op_of(const Array& x, const Array& weights, const ConvParams& p);
Array conv_weights(const Array& x, const Array& y, const ConvParams& p, std::vector<std::int64_t> taps);

// The cotangent of x: y dilated by the strides, convolved with the reversed weights.
Array conv_operand(const Array& y, const Array& weights, const Shape& x, const ConvParams& p) {
  ConvParams back{std::vector<std::int64_t>(p.spatial(), 1), p.dilation, {}, {}, p.groups};
  Array spread = y;
  std::vector<IndexPart> crop{slice(), slice()};
  for (std::size_t d = 0; d < p.spatial(); ++d) {
    const auto dim = d + 2;
    if (p.strides[d] > 1 && y.shape()[dim] > 1) spread = dilate(spread, static_cast<int>(dim), p.strides[d]);
    const auto reach = p.dilation[d] * (weights.shape()[dim] - 1);
    const auto before = reach - p.before[d], after = x[dim] + reach - spread.shape()[dim] - before;
    back.before.push_back(std::max<std::int64_t>(before, 0));
    back.after.push_back(std::max<std::int64_t>(after, 0));
    // Output positions that read only padding do not contribute to x.
    const auto extent = spread.shape()[dim];
    crop.push_back(slice(std::min(extent, std::max<std::int64_t>(-before, 0)),
                         std::max<std::int64_t>(0, extent - std::max<std::int64_t>(-after, 0))));
  }
  spread = index(spread, crop);
  return conv_op_of(spread, transposed_weights(weights, p.groups), back);
}

Array with_batch_in_channels(const Array& x, std::int64_t size) {  // (b, n, c, ...) -> (n, b * c, ...)
  const Array y = moveaxis(x, 0, 1);
  Shape extents = without_dim(y.shape(), 1);
  extents[1] *= size;
  return reshape(y, extents);
}
Array with_leading_merged(const Array& x) {  // (b, n, ...) -> (b * n, ...)
  Shape extents = x.shape();
  extents[1] *= extents[0];
  return reshape(x, without_dim(extents, 0));
}
Array with_dim_cut(const Array& x, std::size_t dim, std::int64_t size) {  // (b * n) -> (b, n)
  Shape extents = x.shape();
  extents[dim] /= size;
  return reshape(x, with_dim(extents, static_cast<std::ptrdiff_t>(dim), size));
}

// Sums in the fixed order of a ReproducibleScope: `other` replaces the op.
template <const OpDef& other>
std::vector<Array> ordered(const OpDef&, const ParamsPtr& params, const std::vector<Array>& in) {
  if (!is_inexact(in[0].dtype())) return {};
  return record_all(other, params, in);
}
OpDef in_order(OpDef op) {
  op.same_bits = SameBits::made_for_it;
  op.instead = nullptr;
  return op;
}
extern const OpDef ordered_conv_op, ordered_conv_weights_op;

const OpDef conv_op{
    .name = "conv",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      const auto& p = params_of(params);
      Shape shape = in[0].shape;
      shape[1] = in[1].shape[0];
      for (std::size_t d = 0; d < p.spatial(); ++d)
        shape[d + 2] = out_extent(p, d, in[0].shape[d + 2], in[1].shape[d + 2]);
      return {{shape, in[0].dtype}};
    },
    .sharding = Rule("n (g c) ~S.., (g o) c T.. -> n (g o) S.. | sum c | whole T", read_groups),
    .runs = Lower{.write = [](ProgramBuilder& builder, const Node& node,
                              std::span<const int> in) -> std::vector<int> {
                    const auto& p = params_of(*node.params);
                    const Type& out = node.outputs[0].type;
                    const Sharding layout = builder.placement().outputs[0];
                    const auto taps = taps_of(builder.value(in[1]).type.shape);
                    const int halos =
                        taps.empty() ? -1 : fetch_halos(builder, p, in[0], layout, out.shape, taps[0]);
                    if (halos >= 0)
                      return builder.kernel(*node.op, node.params, {in[0], in[1], halos}, {out}, {layout});
                    const int windows = fetch_spatial_windows(builder, p, in[0], layout, out.shape, taps);
                    return builder.kernel(*node.op, node.params, {windows, in[1]}, {out}, {layout});
                  },
                  .kernel =
                      [](const KernelArgs& a) {
                        if (a.in.size() == 3) return BesideHalo(params_of(a.params), a).run();
                        kernels::convolve(
                            local_shape(params_of(a.params), a.in[0], a.in[1], a.out[0], is_ordered(a.op)),
                            a.in[0].data, a.in[1].data, a.out[0].data);
                      }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto& p = params_of(*v.node.params);
      Cotangents result(2);
      if (v.wanted[0]) result[0] = conv_operand(v.cotangents[0], v.in[1], v.in[0].shape(), p);
      if (v.wanted[1]) result[1] = conv_weights(v.in[0], v.cotangents[0], p, taps_of(v.in[1].shape()));
      return result;
    },
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = params_of(*args.node.params);
      if (args.dims[1] == not_batched) {  // more images
        const Array y = conv_op_of(with_leading_merged(batch_first(args.in[0], args.dims[0])), args.in[1], p);
        return {{with_dim_cut(y, 0, args.size)}, {0}};
      }
      p.groups *= args.size;  // each member of the batch is a group of its own
      const Array y = conv_op_of(with_batch_in_channels(batched_in_front(args, 0), args.size),
                                 with_leading_merged(batched_in_front(args, 1)), p);
      return {{with_dim_cut(y, 1, args.size)}, {1}};
    },
    .flops = [](std::span<const Type> in, std::span<const Type> out,
                const Params&) { return flops_of(in[1].shape, out[0].shape); },
    .instead = ordered<ordered_conv_op>,
};

// ---- the derivative with respect to the weights, from x and y ----
const OpDef conv_weights_op{
    .name = "conv_weights",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      const auto& p = params_of(params);
      std::vector<std::int64_t> extents{in[1].shape[1], in[0].shape[1] / p.groups};
      extents.insert(extents.end(), p.taps.begin(), p.taps.end());
      return {{Shape(std::move(extents)), in[0].dtype}};
    },
    .sharding = Rule("n (g c) ~S.., n (g o) S.. -> (g o) c T.. | sum n S | whole T", read_groups),
    .runs = Lower{.write = [](ProgramBuilder& builder, const Node& node,
                              std::span<const int> in) -> std::vector<int> {
                    const auto& p = params_of(*node.params);
                    const Sharding y_layout = builder.placement().inputs[1];
                    const int windows = fetch_spatial_windows(builder, p, in[0], y_layout,
                                                              builder.value(in[1]).type.shape, p.taps);
                    return builder.kernel(*node.op, node.params, {windows, in[1]}, {node.outputs[0].type},
                                          {builder.placement().outputs[0]});
                  },
                  .kernel =
                      [](const KernelArgs& a) {
                        kernels::convolve_weights(
                            local_shape(params_of(a.params), a.in[0], a.out[0], a.in[1], is_ordered(a.op)),
                            a.in[0].data, a.in[1].data, a.out[0].data);
                      }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto& p = params_of(*v.node.params);
      Cotangents result(2);
      if (v.wanted[0]) result[0] = conv_operand(v.in[1], v.cotangents[0], v.in[0].shape(), p);
      if (v.wanted[1]) result[1] = conv_op_of(v.in[0], v.cotangents[0], p);
      return result;
    },
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = params_of(*args.node.params);
      p.groups *= args.size;
      const Array w = conv_weights(with_batch_in_channels(batched_in_front(args, 0), args.size),
                                   with_batch_in_channels(batched_in_front(args, 1), args.size), p, p.taps);
      return {{with_dim_cut(w, 0, args.size)}, {0}};
    },
    .flops = [](std::span<const Type> in, std::span<const Type> out,
                const Params&) { return flops_of(out[0].shape, in[1].shape); },
    .instead = ordered<ordered_conv_weights_op>,
};
const OpDef ordered_conv_op = in_order(conv_op), ordered_conv_weights_op = in_order(conv_weights_op);
const Registered registered[] = {Registered(conv_op), Registered(conv_weights_op)};

Array conv_op_of(const Array& x, const Array& weights, const ConvParams& p) {
  return record(conv_op, make_params(p), {x, weights});
}
Array conv_weights(const Array& x, const Array& y, const ConvParams& p, std::vector<std::int64_t> taps) {
  auto with_taps = p;
  with_taps.taps = std::move(taps);
  return record(conv_weights_op, make_params(std::move(with_taps)), {x, y});
}

}  // namespace

Array transposed_weights(const Array& weights, std::int64_t groups) {
  Shape extents = weights.shape();
  const auto a = extents[0] / groups, b = extents[1];
  extents[0] = a;
  Array w = swapaxes(reshape(weights, with_dim(extents, 0, groups)), 1, 2);
  extents[0] = groups * b, extents[1] = a;
  w = reshape(w, extents);
  std::vector<int> taps;
  for (int d = 2; d < w.ndim(); ++d) taps.push_back(d);
  return taps.empty() ? w : flip(w, Axes(taps));
}

bool is_convolution(const Node& node) { return node.op == &conv_op || node.op == &ordered_conv_op; }

Array conv(const Operand& x, const Operand& kernel, ConvOptions options) {
  const Call call("conv", x.where);
  check_usable(x.array);
  check_usable(kernel.array);
  const Shape &xs = x.array.shape(), &ks = kernel.array.shape();
  const auto text = [&](const std::string& why) { return call_text() + ": " + why; };
  const std::string shapes = "operand " + to_string(xs) + ", kernel " + to_string(ks);
  if (xs.size() < 2 || xs.size() != ks.size())
    throw ShapeError(text(shapes + ": both need the same number of dimensions, (images, channels, "
                                   "spatial...) and (features, channels / groups, taps...)"));
  const auto spatial = xs.size() - 2;
  if (options.groups < 1 || xs[1] % options.groups != 0 || ks[0] % options.groups != 0 ||
      ks[1] * options.groups != xs[1])
    throw ShapeError(text(shapes + ", " + std::to_string(options.groups) +
                          " groups: the operand is (images, channels, spatial...), the kernel (features, "
                          "channels / groups, taps...); its second dimension must be channels / groups, and "
                          "groups must divide channels and features. Move the channels of other orders with "
                          "moveaxis, e.g. moveaxis(x, -1, 1)"));
  const auto default_to = [&](std::vector<int>& values, const char* what) {
    if (values.empty()) values.assign(spatial, 1);
    if (values.size() != spatial)
      throw ArgumentError(text(std::to_string(values.size()) + " " + what + " for " +
                               std::to_string(spatial) + " spatial dimensions; give one for each"));
    for (const int v : values)
      if (v < 1)
        throw ArgumentError(text(std::string(what) + " must be at least 1, one is " + std::to_string(v)));
  };
  default_to(options.strides, "strides");
  default_to(options.dilation, "dilations");
  if (options.padding.empty()) options.padding.assign(spatial, {0, 0});
  if (options.padding.size() != spatial)
    throw ArgumentError(text(std::to_string(options.padding.size()) + " pairs of padding for " +
                             std::to_string(spatial) +
                             " spatial dimensions; give one pair (before, after) for each"));
  ConvParams p{{options.strides.begin(), options.strides.end()},
               {options.dilation.begin(), options.dilation.end()},
               {},
               {},
               options.groups};
  for (std::size_t d = 0; d < spatial; ++d) {
    const auto [before, after] = options.padding[d];
    if (before < 0 || after < 0)
      throw ArgumentError(text("the padding (" + std::to_string(before) + ", " + std::to_string(after) +
                               ") must not be negative; slice the operand instead"));
    p.before.push_back(before);
    p.after.push_back(after);
    if (ks[d + 2] == 0 || out_extent(p, d, xs[d + 2], ks[d + 2]) == 0)
      throw ShapeError(text(shapes + ": the kernel does not fit into spatial dimension " + std::to_string(d) +
                            " even once (padding " + std::to_string(before) + ", " + std::to_string(after) +
                            ")"));
  }
  const Dtype dtype = promote(WeakDtype{x.array.dtype(), x.array.is_weakly_typed()},
                              WeakDtype{kernel.array.dtype(), kernel.array.is_weakly_typed()})
                          .dtype;
  return conv_op_of(cast_to(x.array, dtype), cast_to(kernel.array, dtype), p);
}

}  // namespace tessera
