// sort, argsort and sort_by_key along the last dim. A rank sorts lines that it holds completely; split lines
// are sorted by all their ranks together, or, if they are many and short, unsplit first and split again.
#include <algorithm>
#include <cstring>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/sort/select.hpp"
#include "kernels/sort/sort.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/position_dtype.hpp"
#include "ops/sort/distributed_sort.hpp"
#include "ops/sort/lines.hpp"
#include "ops/sort/sort_by_key.hpp"
#include "program/builder.hpp"
#include "types/pooled.hpp"

namespace tessera {
namespace {

// The lines of a block: (lines, own), dense. The block holds elements [first, first + own) of lines of
// `extent` elements.
struct Lines {
  std::int64_t lines, own, extent, first;
};
Lines lines_of(const Tile& tile) {
  const auto own = tile.box.back().size();
  std::int64_t lines = 1;
  for (std::size_t d = 0; d + 1 < tile.box.size(); ++d) lines *= tile.box[d].size();
  return {lines, own, tile.global.back(), tile.box.back().start};
}

// Payloads are carried in 64 bits, whatever their size; those of 32 or 64 bits in place where no rank sends
// them.
using Payload = Pooled<std::int64_t>;
template <std::size_t bytes> void widen(const std::byte* from, Payload& wide) {
  for (std::int64_t i = 0; i < wide.size(); ++i)
    wide[i] = 0, std::memcpy(&wide[i], from + i * static_cast<std::int64_t>(bytes), bytes);
}
template <std::size_t bytes> void narrow(const Payload& wide, std::byte* to) {
  for (std::int64_t i = 0; i < wide.size(); ++i)
    std::memcpy(to + i * static_cast<std::int64_t>(bytes), &wide[i], bytes);
}
Payload widened(const Tile& tile) {
  Payload wide(tile.elements());
  switch (itemsize(tile.dtype)) {
    case 1: widen<1>(tile.data, wide); break;
    case 2: widen<2>(tile.data, wide); break;
    case 4: widen<4>(tile.data, wide); break;
    default: widen<8>(tile.data, wide);
  }
  return wide;
}
void narrow_into(const Tile& tile, const Payload& wide) {
  switch (itemsize(tile.dtype)) {
    case 1: return narrow<1>(wide, tile.data);
    case 2: return narrow<2>(wide, tile.data);
    case 4: return narrow<4>(wide, tile.data);
    default: return narrow<8>(wide, tile.data);
  }
}
template <class P>
void sort_pairs_of_lines(const Tile& keys, const Lines& l, std::byte* keys_out, P* payload) {
  if (keys.elements() > 0) std::memcpy(keys_out, keys.data, keys.bytes());
  const auto item = static_cast<std::int64_t>(itemsize(keys.dtype));
  for (std::int64_t i = 0; i < l.lines; ++i)
    kernels::sort_pairs(keys.dtype, keys_out + i * l.own * item, payload + i * l.own, l.own, {});
}

std::vector<std::vector<int>> layout_axes(const PlacementArgs& args, int ndim) {
  for (const auto& s : args.shardings)
    if (s) return s->dim_axes(ndim);
  return args.wanted ? args.wanted->dim_axes(ndim) : std::vector<std::vector<int>>(ndim);
}
// All operands and results in the layout of the keys (or of the payload, if only that is committed).
Placement place(const PlacementArgs& args) {
  const Sharding layout = Sharding::from_dim_axes(args.mesh, layout_axes(args, args.in[0].shape.ndim()));
  return {std::vector<Sharding>(args.in.size(), layout),
          std::vector<Sharding>(args.out.size(), layout),
          {},
          ReduceKind::sum};
}

// The traffic of each rank if split lines are sorted in their layout, to choose the cheaper layout.
struct Split {
  MeshAxes axes;  // axes that split the lines
  SortTraffic traffic;
};
Split split_of(const Type& keys, const Sharding& layout, bool has_payload) {
  const auto axes = layout.dim_axes(keys.shape.ndim()).back();
  const Shape block = layout.shard_shape(keys.shape);
  const auto lines = block.back() == 0 ? 0 : block.elements() / block.back();
  return {axes, sort_traffic(keys.dtype, devices_along(layout.mesh(), axes), lines, keys.shape.back(),
                             has_payload)};
}
std::vector<CommunicationCost> cost_of(const Split& split, bool has_payload) {
  return {{"all-to-all", split.axes, split.traffic.exchange_bytes, has_payload ? 2 : 1},
          {"all-reduce", split.axes, split.traffic.count_bytes, split.traffic.count_calls}};
}

std::int64_t shard_bytes(const Type& type, const Sharding& layout) {
  return layout.shard_shape(type.shape).elements() * static_cast<std::int64_t>(itemsize(type.dtype));
}

extern const OpDef sort_op;

// Counting costs some rounds of a few numbers per line. For many short lines that exceeds the lines
// themselves: those are unsplit, sorted and split again, in two exchanges of a block.
std::vector<int> lower(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const Type keys = builder.value(in[0]).type;
  const auto& placement = builder.placement();
  const bool has_payload = node.op != &sort_op;
  std::vector<Type> types;
  for (const auto& output : node.outputs) types.push_back(output.type);
  const std::vector<int> inputs(in.begin(), in.end());
  const Split split = split_of(keys, placement.inputs[0], has_payload);
  if (split.axes.empty()) return builder.kernel(*node.op, node.params, inputs, types, placement.outputs);
  const auto whole = with_whole_lines(keys.shape, placement.inputs[0]);
  const auto parts = devices_along(placement.inputs[0].mesh(), split.axes);
  const auto leaves = [&](std::int64_t bytes) { return bytes * (parts - 1) / parts; };
  std::int64_t block_bytes = 0;  // block bytes of all operands and results
  for (const int v : inputs) block_bytes += shard_bytes(builder.value(v).type, placement.inputs[0]);
  for (const auto& type : types) block_bytes += shard_bytes(type, placement.outputs[0]);
  if (!whole || leaves(split.traffic.exchange_bytes) + split.traffic.count_bytes <= leaves(block_bytes))
    return builder.communicate(*node.op, node.params, inputs, types, placement.outputs,
                               cost_of(split, has_payload));
  std::vector<int> moved;
  for (const int v : inputs) moved.push_back(builder.reshard(v, *whole));
  auto results = builder.kernel(*node.op, node.params, std::move(moved), types,
                                std::vector<Sharding>(types.size(), *whole));
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = builder.reshard(results[i], placement.outputs[i]);
  return results;
}

const comm::Communicator& line_group(const CommunicationArgs& args) {
  const int ndim = static_cast<int>(args.local.in[0].box.size());
  return group_of_dim(args.in_layouts[0], ndim - 1, ndim, args.me);
}

// ---- sort: values alone ----
Cotangents sort_vjp(const VjpArgs& v) {
  // Sorting the cotangent by the source positions of its elements puts each element back.
  return {sort_by_key(sorted_positions(v.in[0]), v.cotangents[0]).second};
}
const OpDef sort_op{
    .name = "sort",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, in[0].dtype}};
    },
    .sharding = PlacementRule{place},
    .runs = Lower{.write = lower,
                  .kernel =
                      [](const KernelArgs& a) {
                        const Lines l = lines_of(a.in[0]);
                        kernels::sort_rows(a.in[0].dtype, a.in[0].data, l.lines, l.own, {}, a.out[0].data);
                      },
                  .communicate =
                      [](const CommunicationArgs& args) {
                        const auto& a = args.local;
                        const Lines l = lines_of(a.in[0]);
                        distributed_sort(line_group(args), a.in[0].dtype, l.lines, l.extent, a.in[0].data,
                                         nullptr, a.out[0].data, nullptr);
                      }},
    .vjp = sort_vjp,
    .batch = batch_leading,
    .parts = Parts::beside_lines,
    .same_bits = SameBits::always,
};

// ---- argsort: the positions ----
const OpDef argsort_op{
    .name = "argsort",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, position_dtype(in[0].shape.back())}};
    },
    .sharding = PlacementRule{place},
    .runs = Lower{.write = lower,
                  .kernel =
                      [](const KernelArgs& a) {
                        const Lines l = lines_of(a.in[0]);
                        const auto write = [&](auto* places) {
                          kernels::argsort_rows(a.in[0].dtype, a.in[0].data, l.lines, l.own, {}, places);
                        };
                        a.out[0].dtype == int32 ? write(a.out[0].as<std::int32_t>())
                                                : write(a.out[0].as<std::int64_t>());
                      },
                  .communicate =
                      [](const CommunicationArgs& args) {
                        const auto& a = args.local;
                        const Lines l = lines_of(a.in[0]);
                        Payload places(l.lines * l.own);
                        distributed_argsort(line_group(args), a.in[0].dtype, l.lines, l.extent, a.in[0].data,
                                            places.data());
                        narrow_into(a.out[0], places);
                      }},
    .vjp = [](const VjpArgs&) -> Cotangents { return {Array()}; },  // a step function
    .batch = batch_leading,
    .parts = Parts::beside_lines,
};

// ---- sort_by_key: keys and a payload of at most 8 bytes ----
// The keys are sides, which need no sort.
template <class P> void divide_lines(const KernelArgs& a, const Lines& l) {
  const auto* const sides = a.in[0].as<const std::uint8_t>();
  const P* const payload = a.in[1].as<const P>();
  auto* const sorted = a.out[0].as<std::uint8_t>();
  for (std::int64_t at = 0; at < l.lines * l.own; at += l.own) {
    const auto counts = kernels::divide_by_sides(sides + at, payload + at, l.own, a.out[1].as<P>() + at);
    std::uint8_t* next = sorted + at;
    for (std::uint8_t s = 0; s < 3; ++s) next = std::fill_n(next, counts[s], s);
  }
}
const OpDef sort_by_key_op{
    .name = "sort_by_key",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, in[0].dtype}, {in[1].shape, in[1].dtype}};
    },
    .sharding = PlacementRule{place},
    .runs = Lower{.write = lower,
                  .kernel =
                      [](const KernelArgs& a) {
                        const Lines l = lines_of(a.in[0]);
                        const Tile &in = a.in[1], &out = a.out[1];
                        if (a.params.as<SortByKeyParams>().keys == Keys::sides)
                          return itemsize(in.dtype) == 4 ? divide_lines<std::uint32_t>(a, l)
                                                         : divide_lines<std::uint64_t>(a, l);
                        const auto in_place = [&](auto* payload) {
                          if (out.data != in.data && in.bytes() > 0)
                            std::memcpy(out.data, in.data, in.bytes());
                          sort_pairs_of_lines(a.in[0], l, a.out[0].data, payload);
                        };
                        if (itemsize(in.dtype) == 4) return in_place(out.as<std::uint32_t>());
                        if (itemsize(in.dtype) == 8) return in_place(out.as<std::int64_t>());
                        auto payload = widened(in);
                        sort_pairs_of_lines(a.in[0], l, a.out[0].data, payload.data());
                        narrow_into(out, payload);
                      },
                  .communicate =
                      [](const CommunicationArgs& args) {
                        const auto& a = args.local;
                        const Lines l = lines_of(a.in[0]);
                        const auto payload = widened(a.in[1]);
                        Payload sorted(payload.size());
                        distributed_sort(line_group(args), a.in[0].dtype, l.lines, l.extent, a.in[0].data,
                                         payload.data(), a.out[0].data, sorted.data());
                        narrow_into(a.out[1], sorted);
                      }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      Cotangents result(2);
      const Array from = sorted_positions(v.in[0]);
      for (std::size_t i = 0; i < 2; ++i)
        if (v.wanted[i] && v.cotangents[i].node()) result[i] = sort_by_key(from, v.cotangents[i]).second;
      return result;
    },
    .batch = batch_leading,
    .parts = Parts::beside_lines,
    .same_bits = SameBits::always,
};
const Registered registered[] = {Registered(sort_op), Registered(argsort_op), Registered(sort_by_key_op)};

// Applies f along the last dim, after moving the dim there; then moves it back.
template <class F> Array along_last(const Operand& x, int axis, F f) {
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const int last = x.array.ndim() - 1;
  const Array result = f(moveaxis(x, dim, last));
  return moveaxis(result, last, dim);
}

}  // namespace

std::pair<Array, Array> sort_by_key(const Array& keys, const Array& payload, Keys kind) {
  check_usable(keys);
  check_usable(payload);
  if (!(keys.shape() == payload.shape()) || keys.ndim() == 0)
    throw ShapeError(call_text() + ": keys of shape " + to_string(keys.shape()) + " and a payload of shape " +
                     to_string(payload.shape()) +
                     "; they must have the same shape, with a dimension to sort along");
  if (payload.dtype() == complex128) {
    const auto re = sort_by_key(keys, real(payload), kind), im = sort_by_key(keys, imag(payload), kind);
    return {re.first, make_complex(re.second, im.second)};
  }
  auto results = record_all(sort_by_key_op, make_params(SortByKeyParams{kind}), {keys, payload});
  return {results[0], results[1]};
}

Array sorted_positions(const Array& keys) { return record(argsort_op, no_params(), {keys}); }

Array sort(const Operand& x, int axis) {
  const Call call("sort", x.where);
  return along_last(x, axis, [&](const Array& y) { return record(sort_op, no_params(), {y}); });
}
// Descending order flips an ascending sort; argsort also flips its operand, which keeps equals in order.
Array sort(const Operand& x, int axis, SortOptions options) {
  const Call call("sort", x.where);
  const Array sorted = sort(x, axis);
  return options.descending ? flip(sorted, axis) : sorted;
}
Array argsort(const Operand& x, int axis, SortOptions options) {
  const Call call("argsort", x.where);
  if (!options.descending) return argsort(x, axis);
  check_usable(x.array);
  const auto last = x.array.shape()[checked_dim(axis, x.array.ndim())] - 1;
  const Array from_the_end = flip(argsort(flip(x, axis), axis), axis);
  return astype(last - from_the_end, from_the_end.dtype());
}
Array argsort(const Operand& x, int axis) {
  const Call call("argsort", x.where);
  return along_last(x, axis, [&](const Array& y) { return sorted_positions(y); });
}

}  // namespace tessera
