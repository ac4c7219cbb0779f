// Scatters: updates that are set, added or multiplied at the positions in index arrays.
#include <algorithm>
#include <cstring>

#include "kernels/threads.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/index/update/split_list.hpp"

namespace tessera {
namespace {

// ---- scatter: x, indices..., updates ----
// Every rank applies the updates in its block: it has all of them along the addressed dims, or receives its
// own, or combines the ranks' partial updates (split_list.hpp).
//
// Whether each entry of the list is in the result: if several entries have one position, the last one is.
Array is_last_at_its_place(const VjpArgs& v, const std::vector<Array>& indices, const GatherParams& p) {
  const Shape& list = indices[0].shape();
  const Shape addressed(std::vector<std::int64_t>(v.in[0].shape().begin() + p.first,
                                                  v.in[0].shape().begin() + p.first + p.count));
  const Array number = reshape(arange(list.elements()), list);
  const Array written = scatter("set", zeros(addressed, number.dtype()), indices, number, 0, p.out_of_range);
  const Array is_last = equal(gather(written, indices, 0, OutOfRange::drop), number);
  std::vector<std::int64_t> extents(v.in.back().shape().size(), 1);
  std::copy(list.begin(), list.end(), extents.begin() + p.first);
  return reshape(is_last, Shape(std::move(extents)));
}

// The product of the other factors at each update's position, without dividing by zero.
Array others_at(const Array& g, const std::vector<Array>& indices, const Array& updates,
                const GatherParams& p) {
  const auto read = [&](const Array& from) { return gather(from, indices, p.first, OutOfRange::drop); };
  const Array is_zero = updates == 0, factors = where(is_zero, ones_like(updates), updates);
  const Array zeros_there =
      read(scatter("add", zeros(g.shape(), int32), indices, astype(is_zero, int32), p.first, p.out_of_range));
  const Array product = read(scatter("multiply", g, indices, factors, p.first, p.out_of_range));
  const Array no_other_zero = where(is_zero, zeros_there == 1, zeros_there == 0);
  return where(no_other_zero, product / factors, zeros_like(product));
}

Cotangents scatter_vjp(const VjpArgs& v) {
  const auto& p = gather_params(*v.node.params);
  const Array &x = v.in[0], &updates = v.in.back(), &g = v.cotangents[0];
  const auto indices = index_inputs(v.in, p);
  const auto read = [&](const Array& from) { return gather(from, indices, p.first, OutOfRange::drop); };
  Cotangents result(v.in.size());
  if (p.op == "set") {
    if (v.wanted[0]) result[0] = scatter("set", g, indices, zeros_like(updates), p.first, p.out_of_range);
    if (v.wanted.back())
      result.back() = where(is_last_at_its_place(v, indices, p), read(g), zeros_like(updates));
  } else if (p.op == "add") {
    if (v.wanted[0]) result[0] = g;
    if (v.wanted.back()) result.back() = read(g);
  } else if (p.op == "multiply") {
    if (v.wanted[0]) result[0] = scatter("multiply", g, indices, updates, p.first, p.out_of_range);
    if (v.wanted.back()) result.back() = others_at(g * x, indices, updates, p);
  } else {  // min, max: equal elements share it
    const Array is_kept = v.out[0] == x, is_taken = read(v.out[0]) == updates;
    const Array sharing = scatter("add", astype(is_kept, g.dtype()), indices, astype(is_taken, g.dtype()),
                                  p.first, p.out_of_range);
    const Array share = g / maximum(sharing, ones_like(sharing));
    if (v.wanted[0]) result[0] = where(is_kept, share, zeros_like(g));
    if (v.wanted.back()) result.back() = where(is_taken, read(share), zeros_like(updates));
  }
  return result;
}

Batched scatter_batch(const BatchArgs& args) {
  auto p = gather_params(*args.node.params);
  bool any_index = false;
  for (int k = 0; k < p.count; ++k) any_index |= args.dims[1 + k] != not_batched;
  Array x = batched_in_front(args, 0), updates = batched_in_front(args, args.in.size() - 1);
  if (!any_index)
    return {{scatter(p.op, x, index_inputs(args.in, p), updates, p.first + 1, p.out_of_range)}, {0}};
  std::vector<Array> indices;
  for (int k = 0; k < p.count; ++k) indices.push_back(batched_in_front(args, 1 + k));
  std::vector<std::int64_t> column(indices[0].shape().size(), 1);
  column[0] = args.size;
  indices.insert(indices.begin(),
                 broadcast_to(reshape(arange(args.size), Shape(std::move(column))), indices[0].shape()));
  return {{scatter(p.op, moveaxis(x, 0, p.first), std::move(indices), moveaxis(updates, 0, p.first), p.first,
                   p.out_of_range)},
          {p.first}};
}

const Rule scatter_rule("L.. A.. R.., {I..}, L.. I.. R.. -> L.. A.. R.. | whole I", read_addressed);

Placement place_scatter(const PlacementArgs& args) {
  std::int64_t bytes = 0;
  auto placement = place_by(scatter_rule, args, &bytes);
  auto split = place_split_list(args, gather_params(args.params), bytes);
  return split ? std::move(*split) : std::move(placement);
}

// Applies updates piece by piece, if the list's entries are the outermost dim of the updates and one thread
// applies them in order.
void put_updates(std::span<const Tile> indices, const std::string& op, const GatherParams& p,
                 const Tile& updates, const Tile& out) {
  const auto view = view_of(out.shape(), p);
  const auto put = [&](std::span<const std::int64_t> places, const std::byte* from) {
    if (!places.empty()) kernels::scatter(op, out.dtype, out.data, view, places, from);
  };
  if (view.outer != 1 || kernels::threads() > 1)
    return put(positions_in_block(indices, out.global, out.box, p), updates.data);
  const auto row_bytes = view.inner * static_cast<std::int64_t>(itemsize(out.dtype));
  for_pieces(indices, out.global, out.box, p, 0, indices[0].elements(),
             [&](std::int64_t first, std::span<const std::int64_t> places) {
               put(places, updates.data + first * row_bytes);
             });
}

const OpDef scatter_op{
    .name = "scatter",
    .halves = [](const Params& p) { return gather_params(p).op == "set" ? Halves::moved : Halves::widened; },
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, in[0].dtype}};
    },
    .sharding = PlacementRule{place_scatter, &scatter_rule},
    .runs = Communicating{.together = scatter_split_list,
                          .cost = cost_of_split_list,
                          .alone =
                              [](const KernelArgs& a) {
                                const auto& p = gather_params(a.params);
                                const Tile& out = a.out[0];
                                if (out.elements() == 0) return;
                                std::memcpy(out.data, a.in[0].data, out.bytes());
                                put_updates(a.in.subspan(1), p.op, p, a.in.back(), out);
                              }},
    .vjp = scatter_vjp,
    .batch = scatter_batch,
};

// ---- scatter_add_zeros: indices..., updates ----
const OpDef scatter_add_op{
    .name = "scatter_add",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      return {{gather_params(params).shape, in.back().dtype}};
    },
    .sharding = Rule("{I..}, L.. I.. R.. -> L.. A.. R.. | sum I", read_addressed),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = gather_params(a.params);
      const Tile& out = a.out[0];
      if (out.elements() == 0) return;
      std::memset(out.data, 0, out.bytes());
      put_updates(a.in, "add", p, a.in.back(), out);
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto& p = gather_params(*v.node.params);
      Cotangents result(v.in.size());
      if (v.wanted.back())
        result.back() = gather(v.cotangents[0], {v.in.begin(), v.in.end() - 1}, p.first,
                               p.out_of_range == OutOfRange::clamp ? OutOfRange::clamp : OutOfRange::drop);
      return result;
    },
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = gather_params(*args.node.params);
      const Array updates = batched_in_front(args, args.in.size() - 1);
      std::vector<Array> indices;
      bool any_index = false;
      for (std::size_t k = 0; k + 1 < args.in.size(); ++k) any_index |= args.dims[k] != not_batched;
      auto extents = p.shape.vector();
      extents.insert(extents.begin() + (any_index ? p.first : 0), args.size);
      if (!any_index)
        return {{scatter_add_zeros(Shape(std::move(extents)), {args.in.begin(), args.in.end() - 1}, updates,
                                   p.first + 1, p.out_of_range)},
                {0}};
      for (std::size_t k = 0; k + 1 < args.in.size(); ++k) indices.push_back(batched_in_front(args, k));
      std::vector<std::int64_t> column(indices[0].shape().size(), 1);
      column[0] = args.size;
      indices.insert(indices.begin(),
                     broadcast_to(reshape(arange(args.size), Shape(std::move(column))), indices[0].shape()));
      return {{scatter_add_zeros(Shape(std::move(extents)), std::move(indices), moveaxis(updates, 0, p.first),
                                 p.first, p.out_of_range)},
              {p.first}};
    },
    .parts = Parts::reduced_dims,
};

const Registered registered[] = {Registered(scatter_op), Registered(scatter_add_op)};

}  // namespace

Array scatter(const std::string& op, const Array& x, std::vector<Array> indices, const Array& updates,
              int first, OutOfRange out_of_range) {
  const GatherParams p{first, static_cast<int>(indices.size()), out_of_range, op};
  indices.insert(indices.begin(), x);
  indices.push_back(updates);
  return record(scatter_op, make_params(p), std::move(indices));
}

Array scatter_add_zeros(const Shape& shape, std::vector<Array> indices, const Array& updates, int first,
                        OutOfRange out_of_range) {
  const GatherParams p{first, static_cast<int>(indices.size()), out_of_range, "add", shape};
  indices.push_back(updates);
  return record(scatter_add_op, make_params(p), std::move(indices));
}

}  // namespace tessera
