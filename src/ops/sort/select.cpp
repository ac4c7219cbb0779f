// elements_of_sorted: order statistics without a sort. The ranks that share a line sample and count its keys
// together; where lines are many and short, they are unsplit first.
#include "ops/sort/select.hpp"

#include "comm/collectives/collectives.hpp"
#include "kernels/sort/select.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/index/along.hpp"
#include "ops/sort/lines.hpp"
#include "ops/sort/sort_by_key.hpp"
#include "program/builder.hpp"

namespace tessera {
namespace {

void select_lines(const KernelArgs& a, const kernels::RowParts& parts) {
  const Tile& x = a.in[0];
  kernels::select_rows(x.dtype, x.data, line_count(x), x.box.back().size(),
                       a.params.as<SelectParams>().positions, parts, a.out[0].data);
}

std::vector<int> lower_select(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const Type x = builder.value(in[0]).type;
  const Sharding layout = builder.value(in[0]).layout, out = builder.placement().outputs[0];
  const std::vector<Type> types = {node.outputs[0].type};
  const auto axes = layout.dim_axes(x.shape.ndim()).back();
  if (axes.empty()) return builder.kernel(*node.op, node.params, {in[0]}, types, {out});
  const auto parts = devices_along(layout.mesh(), axes);
  const Shape block = layout.shard_shape(x.shape);
  const std::int64_t lines = block.back() == 0 ? 0 : block.elements() / block.back(),
                     k = std::ssize(node.params->as<SelectParams>().positions);
  const auto sums = kernels::select_sums(x.dtype, lines, x.shape.back(), k, parts);
  const std::int64_t sum_bytes = 2 * sums.bytes * (parts - 1) / parts,
                     block_bytes = block.elements() * static_cast<std::int64_t>(itemsize(x.dtype));
  const auto lines_whole = with_whole_lines(x.shape, layout);
  if (!lines_whole || sum_bytes <= block_bytes)
    return builder.communicate(*node.op, node.params, {in[0]}, types, {out},
                               {{"all-reduce", axes, sum_bytes, static_cast<int>(sums.calls)}});
  auto dims = lines_whole->dim_axes(x.shape.ndim());
  const auto found = builder.kernel(*node.op, node.params, {builder.reshard(in[0], *lines_whole)}, types,
                                    {Sharding::from_dim_axes(layout.mesh(), dims)});
  return {builder.reshard(found[0], out)};
}

void select_together(const CommunicationArgs& args) {
  const int ndim = static_cast<int>(args.local.in[0].box.size());
  const auto& comm = group_of_dim(args.in_layouts[0], ndim - 1, ndim, args.me);
  const auto add_up = [&](std::int64_t* numbers, std::int64_t n) {
    comm::all_reduce(comm, ReduceKind::sum, int64, numbers, numbers, n);
  };
  const Tile& x = args.local.in[0];
  select_lines(args.local, {comm.rank(), comm.size(), x.box.back().start, x.global.back(), add_up});
}

const OpDef select_op{
    .name = "elements_of_sorted",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      Shape shape = in[0].shape;
      shape[shape.size() - 1] = std::ssize(params.as<SelectParams>().positions);
      return {{shape, in[0].dtype}};
    },
    .sharding = PlacementRule{place_selected},
    .runs = Lower{.write = lower_select,
                  .kernel = [](const KernelArgs& a) { select_lines(a, {}); },
                  .communicate = select_together},
    // Cotangents are added at the positions that a stable sort takes the elements from.
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const Array places = sorted_positions(v.in[0]);
      std::vector<Array> from;
      for (const auto p : v.node.params->as<SelectParams>().positions)
        from.push_back(places(ellipsis, slice(p, p + 1)));
      const auto n = v.in[0].shape().back();
      return {scatter_add_along(n, concatenate(from, -1), v.cotangents[0], v.in[0].ndim() - 1)};
    },
    .batch = batch_leading,
    .parts = Parts::beside_lines,
    .same_bits = SameBits::always,
};
const Registered registered_select(select_op);

}  // namespace

Array elements_of_sorted(const Array& x, std::vector<std::int64_t> positions) {
  return record(select_op, make_params(SelectParams{std::move(positions)}), {x});
}

}  // namespace tessera
