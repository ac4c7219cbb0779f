#include "ops/collective/reorder.hpp"

#include <algorithm>

#include "mesh/remap.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "program/builder.hpp"

namespace tessera {
namespace {

struct ReorderParams {
  std::vector<int> indices;
  int dim;
  template <class V> void fields(V&& visit) const {
    visit("indices", indices);
    visit("dim", dim);
  }
};

Shape result_shape(const Shape& shape, const ReorderParams& p) {
  Shape extents = shape;
  extents[p.dim] = static_cast<std::int64_t>(p.indices.size());
  return extents;
}

// Consecutive indices become one piece of the remap.
Remap pieces_of(const Shape& result, const ReorderParams& p) {
  Remap map;
  const auto d = static_cast<std::size_t>(p.dim);
  for (std::size_t i = 0; i < p.indices.size();) {
    std::size_t end = i + 1;
    while (end < p.indices.size() && p.indices[end] == p.indices[end - 1] + 1 && p.indices[i] >= 0) ++end;
    if (p.indices[i] >= 0) {
      RemapPiece piece{0, whole_box(result), std::vector<std::int64_t>(result.size(), 0),
                       std::vector<std::int64_t>(result.size(), 1)};
      piece.to[d] = {static_cast<std::int64_t>(i), static_cast<std::int64_t>(end)};
      piece.offset[d] = p.indices[i] - static_cast<std::int64_t>(i);
      map.pieces.push_back(std::move(piece));
    }
    i = end;
  }
  return map;
}

// An element that appears several times gets the sum of their cotangents: one reorder per occurrence.
Cotangents vjp(const VjpArgs& v) {
  const auto& p = v.node.params->as<ReorderParams>();
  const auto n = static_cast<std::size_t>(v.in[0].shape()[p.dim]);
  std::vector<std::vector<int>> shown(n);
  std::size_t most = 1;
  for (std::size_t i = 0; i < p.indices.size(); ++i)
    if (p.indices[i] >= 0) {
      auto& list = shown[p.indices[i]];
      list.push_back(static_cast<int>(i));
      most = std::max(most, list.size());
    }
  Array sum;
  for (std::size_t round = 0; round < most; ++round) {
    std::vector<int> from;
    for (const auto& list : shown) from.push_back(round < list.size() ? list[round] : -1);
    const Array part = reorder(v.cotangents[0], std::move(from), p.dim);
    sum = round == 0 ? part : sum + part;
  }
  return {sum};
}

const OpDef reorder_op{
    .name = "reorder",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{result_shape(in[0].shape, p.as<ReorderParams>()), in[0].dtype}};
    },
    .sharding = PlacementRule{[](const PlacementArgs& args) -> Placement {
      const auto layout = args.shardings[0] ? *args.shardings[0]
                          : args.wanted     ? *args.wanted
                                            : Sharding::replicated(args.mesh);
      return {{layout}, {layout}, {}, ReduceKind::sum};
    }},
    .runs = Lower{[](ProgramBuilder& builder, const Node& node, std::span<const int> in) -> std::vector<int> {
      const auto layout = builder.value(in[0]).layout;
      const int combined = builder.combine(in[0]);
      return {builder.remap(pieces_of(node.outputs[0].type.shape, node.params->as<ReorderParams>()),
                            {combined}, node.outputs[0].type, layout)};
    }},
    .vjp = vjp,
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = args.node.params->as<ReorderParams>();
      ++p.dim;
      return {{record(*args.node.op, make_params(std::move(p)), {batch_first(args.in[0], args.dims[0])})},
              {0}};
    },
};
const Registered registered(reorder_op);

}  // namespace

Array reorder(const Array& x, std::vector<int> indices, int dim) {
  return record(reorder_op, make_params(ReorderParams{std::move(indices), dim}), {x});
}

}  // namespace tessera
