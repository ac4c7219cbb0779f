#include "ops/index/update/split_list.hpp"

#include <algorithm>
#include <cstring>

#include "comm/collectives/collectives.hpp"
#include "kernels/visit.hpp"
#include "mesh/reshard.hpp"
#include "ops/groups.hpp"

namespace tessera {
namespace {

bool has(const MeshAxes& axes, int a) { return std::find(axes.begin(), axes.end(), a) != axes.end(); }

// The mesh axes that split the list: the index arrays, and the updates in the same dims.
MeshAxes axes_of_list(const PlacementArgs& args, const GatherParams& p) {
  MeshAxes found;
  for (std::size_t i = 1; i < args.in.size(); ++i) {
    if (!args.shardings[i]) continue;
    const auto axes = args.shardings[i]->dim_axes(args.in[i].shape.ndim());
    const bool is_updates = i + 1 == args.in.size();
    const auto first = axes.begin() + (is_updates ? p.first : 0);
    for (auto dim = first; dim != first + args.in[1].shape.ndim(); ++dim)
      for (const int a : *dim)
        if (!has(found, a)) found.push_back(a);
  }
  return found;
}

// The dim of the list to split. For `set` the last entry of a position wins, so ranks must hold the list in
// order.
std::size_t dim_of_list(const Shape& list, const GatherParams& p) {
  const auto dim = p.op == "set"
                       ? std::find_if(list.begin(), list.end(), [](std::int64_t n) { return n > 1; })
                       : std::max_element(list.begin(), list.end());
  return dim == list.end() ? 0 : static_cast<std::size_t>(dim - list.begin());
}

// x and the result in x's layout, the list split over `over`.
Placement placed(const PlacementArgs& args, const GatherParams& p, const Sharding& x, const MeshAxes& over) {
  const Shape& list = args.in[1].shape;
  const auto axes = x.dim_axes(args.in[0].shape.ndim());
  DimAxes entries(list.size());
  entries[dim_of_list(list, p)] = over;
  DimAxes rows(axes.begin(), axes.begin() + p.first);
  rows.insert(rows.end(), entries.begin(), entries.end());
  rows.insert(rows.end(), axes.begin() + p.first + p.count, axes.end());
  Placement placement{{x}, {x}, {}, ReduceKind::sum};
  for (int k = 0; k < p.count; ++k) placement.inputs.push_back(Sharding::from_dim_axes(args.mesh, entries));
  placement.inputs.push_back(Sharding::from_dim_axes(args.mesh, rows));
  return placement;
}

std::int64_t block_bytes(const PlacementArgs& args, const Placement& placement, std::size_t i) {
  return placement.inputs[i].shard_shape(args.in[i].shape).elements() *
         static_cast<std::int64_t>(itemsize(args.in[i].dtype));
}

std::int64_t bytes_to_place(const PlacementArgs& args, const Placement& placement) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < args.in.size(); ++i)
    if (args.shardings[i])
      bytes += plan_reshard(*args.shardings[i], placement.inputs[i], args.in[i].shape, args.in[i].dtype,
                            args.fixed_axes)
                   .bytes;
  return bytes;
}

// ---- delivery ----

// The bytes of the updates, and of a number for each entry.
std::int64_t delivered_bytes(const PlacementArgs& args, const Placement& placement) {
  return block_bytes(args, placement, args.in.size() - 1) +
         placement.inputs[1].shard_shape(args.in[1].shape).elements() *
             static_cast<std::int64_t>(sizeof(std::int64_t));
}

std::optional<Placement> place_delivery(const PlacementArgs& args, const GatherParams& p,
                                        std::int64_t& bytes) {
  if (!args.shardings[0]) return std::nullopt;
  const auto axes = args.shardings[0]->dim_axes(args.in[0].shape.ndim());
  const int dim = split_dim(axes, p);
  if (dim < 0) return std::nullopt;
  auto placement = placed(args, p, *args.shardings[0], axes[dim]);
  const auto parts = devices_along(args.mesh, axes[dim]);
  bytes = delivered_bytes(args, placement) / parts * (parts - 1) +  // evenly distributed, some stay local
          bytes_to_place(args, placement);
  return placement;
}

void deliver_entries(const CommunicationArgs& args, const GatherParams& p, int dim) {
  const auto& a = args.local;
  const Tile &x = a.in[0], &updates = a.in.back(), &out = a.out[0];
  const auto& comm = group_of_dim(args.in_layouts[0], dim, static_cast<int>(x.box.size()), args.me);
  if (out.bytes() > 0) std::memcpy(out.data, x.data, out.bytes());
  const auto indices = a.in.subspan(1, p.count);
  kernels::AxisView rows = view_of(x.shape(), p);
  rows.extent = indices[0].elements();
  deliver(comm, owners_of(indices, x, dim, comm.size(), p), out.dtype, rows, updates.data,
          [&](std::span<const std::int64_t> positions, const std::byte* values) {
            kernels::scatter(p.op, out.dtype, out.data, view_of(out.shape(), p), positions, values);
          });
}

// ---- terms ----

// The bytes of all-reduces of copies of the block; `set` first reduces the number of each position's last
// entry.
std::int64_t combined_bytes(const PlacementArgs& args, const Placement& placement, const GatherParams& p) {
  std::int64_t bytes = block_bytes(args, placement, 0);
  const auto block = placement.inputs[0].shard_shape(args.in[0].shape);
  if (p.op == "set") bytes += view_of(block, p).extent * static_cast<std::int64_t>(sizeof(std::int64_t));
  const auto ranks = devices_along(
      args.mesh, placement.inputs[1].dim_axes(args.in[1].shape.ndim())[dim_of_list(args.in[1].shape, p)]);
  return 2 * (ranks - 1) * bytes / ranks;
}

std::optional<Placement> place_terms(const PlacementArgs& args, const GatherParams& p, const MeshAxes& over,
                                     std::int64_t& bytes) {
  if (p.op == "add") return std::nullopt;  // at.cpp adds by parts
  const Sharding x = args.shardings[0].value_or(Sharding::replicated(args.mesh));
  for (const auto& axes : x.dim_axes(args.in[0].shape.ndim()))
    for (const int a : axes)
      if (has(over, a)) return std::nullopt;
  auto placement = placed(args, p, x, over);
  bytes = combined_bytes(args, placement, p) + bytes_to_place(args, placement);
  return placement;
}

// The row-major index in the global array of each element of a block.
std::vector<std::int64_t> numbers_of(const Tile& tile) {
  const Shape extents = tile.shape();
  const auto strides = row_major_strides(tile.global);
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(extents.elements()));
  std::vector<std::int64_t> at(extents.size());
  for (auto& number : numbers) {
    for (std::size_t d = 0; d < at.size(); ++d) number += (tile.box[d].start + at[d]) * strides[d];
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < extents[d]) break;
      at[d] = 0;
    }
  }
  return numbers;
}

// Combines bytes that are nonzero on at most one rank.
void combine_bytes(const comm::Communicator& ranks, const Tile& out) {
  const auto item = static_cast<std::int64_t>(itemsize(out.dtype));
  const Dtype word = item == 1 ? uint8 : item == 2 ? uint16 : item == 4 ? uint32 : uint64;
  comm::all_reduce(ranks, ReduceKind::sum, word, out.data, out.data,
                   out.bytes() / static_cast<std::int64_t>(itemsize(word)));
}

void set_last_entries(const comm::Communicator& ranks, const KernelArgs& a, const GatherParams& p,
                      std::vector<std::int64_t> positions) {
  const Tile &x = a.in[0], &out = a.out[0];
  const auto view = view_of(out.shape(), p);
  const auto numbers = numbers_of(a.in[1]);
  std::vector<std::int64_t> last(static_cast<std::size_t>(view.extent), -1);
  for (std::size_t i = 0; i < positions.size(); ++i)
    if (positions[i] >= 0) last[positions[i]] = std::max(last[positions[i]], numbers[i]);
  comm::all_reduce(ranks, ReduceKind::max, int64, last.data(), last.data(), view.extent);
  for (std::size_t i = 0; i < positions.size(); ++i)
    if (positions[i] >= 0 && last[positions[i]] != numbers[i]) positions[i] = -1;
  std::memset(out.data, 0, static_cast<std::size_t>(out.bytes()));
  if (!positions.empty()) kernels::scatter("set", out.dtype, out.data, view, positions, a.in.back().data);
  combine_bytes(ranks, out);
  const auto row = static_cast<std::size_t>(view.inner) * itemsize(out.dtype);
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t e = 0; e < view.extent; ++e)
      if (last[e] < 0) {
        const auto offset = static_cast<std::size_t>(o * view.extent + e) * row;
        std::memcpy(out.data + offset, x.data + offset, row);
      }
}

void fill_with_one(const Tile& out) {
  kernels::visit(out.dtype, [&]<class T>(T) {
    std::fill_n(reinterpret_cast<T*>(out.data), out.elements(), static_cast<T>(1));
  });
}

void combine_terms(const CommunicationArgs& args, const GatherParams& p, const MeshAxes& over) {
  const auto& a = args.local;
  const Tile& out = a.out[0];
  const auto& ranks = comm::group(group_along(args.in_layouts[1].mesh(), over, args.me));
  if (out.elements() == 0) return;  // equal on all ranks
  auto positions = positions_in_block(a.in.subspan(1), out.global, out.box, p);
  if (p.op == "set") return set_last_entries(ranks, a, p, std::move(positions));
  if (p.op == "multiply" && ranks.rank() > 0)
    fill_with_one(out);
  else
    std::memcpy(out.data, a.in[0].data, static_cast<std::size_t>(out.bytes()));
  if (!positions.empty())
    kernels::scatter(p.op, out.dtype, out.data, view_of(out.shape(), p), positions, a.in.back().data);
  comm::all_reduce(ranks, *reduce_kind_named(p.op == "multiply" ? "prod" : p.op), out.dtype, out.data,
                   out.data, out.elements());
}

}  // namespace

std::optional<Placement> place_split_list(const PlacementArgs& args, const GatherParams& p,
                                          std::int64_t rule_bytes) {
  for (const auto& sharding : args.shardings)
    if (sharding && !(sharding->mesh() == args.mesh)) return std::nullopt;
  const auto over = axes_of_list(args, p);
  if (args.in[1].shape.ndim() == 0 || over.empty()) return std::nullopt;
  std::optional<Placement> best;
  std::int64_t least = rule_bytes, bytes = 0;
  if (auto delivery = place_delivery(args, p, bytes); delivery && bytes < least)
    best = std::move(delivery), least = bytes;
  if (auto terms = place_terms(args, p, over, bytes); terms && bytes < least) best = std::move(terms);
  return best;
}

std::vector<CommunicationCost> cost_of_split_list(const PlacementArgs& args, const Placement& placement) {
  const auto& p = gather_params(args.params);
  const Shape& list = args.in[1].shape;
  if (list.ndim() == 0) return {};
  const auto over = placement.inputs[1].dim_axes(list.ndim())[dim_of_list(list, p)];
  if (over.empty()) return {};
  const auto axes = placement.inputs[0].dim_axes(args.in[0].shape.ndim());
  const int dim = split_dim(axes, p);
  if (dim >= 0 && axes[dim] == over) return {{"all-to-all", over, delivered_bytes(args, placement), 2}};
  return {{"all-reduce", over, combined_bytes(args, placement, p), p.op == "set" ? 2 : 1}};
}

void scatter_split_list(const CommunicationArgs& args) {
  const auto& p = gather_params(args.local.params);
  const auto& list = args.local.in[1].global;
  const auto over = args.in_layouts[1].dim_axes(list.ndim())[dim_of_list(list, p)];
  const auto axes = args.in_layouts[0].dim_axes(static_cast<int>(args.local.in[0].box.size()));
  const int dim = split_dim(axes, p);
  if (dim >= 0 && axes[dim] == over) return deliver_entries(args, p, dim);
  combine_terms(args, p, over);
}

}  // namespace tessera
