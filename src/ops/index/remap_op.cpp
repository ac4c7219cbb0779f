#include "ops/index/remap_op.hpp"

#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/spread.hpp"
#include "program/builder.hpp"
#include "types/extents.hpp"

namespace tessera {

std::string field_text(const RemapPiece& p) {
  std::string text = std::to_string(p.source) + "[";
  for (std::size_t d = 0; d < p.offset.size(); ++d)
    text += (d ? "," : "") + std::to_string(p.offset[d]) + ":" + std::to_string(p.step[d]);
  return text + "]->" + to_string(p.to);
}

namespace {

const RemapParams& params_of(const Params& p) { return p.as<RemapParams>(); }

std::vector<Type> infer(std::span<const Type> in, const Params& p) {
  return {{params_of(p).shape, in[0].dtype, false}};
}

// ---- the layout of the result ----

// The layout of an operand applied to the result: every dim keeps its axes.
Sharding as_result(const Sharding& operand, const RemapParams& p, const Mesh& mesh) {
  auto dims = operand.dim_axes(p.shape.ndim());
  for (const int d : p.unsplit) dims[d].clear();
  return Sharding::from_dim_axes(mesh, dims);
}

// The layout in which an uncommitted operand is computed: the result's. But a dim with fewer elements than
// blocks (one matrix of a stack) stays unsplit, because the first ranks would compute it for all others and
// then send it.
Sharding as_operand(const Sharding& result, const Shape& shape) {
  auto dims = result.dim_axes(shape.ndim());
  for (int d = 0; d < shape.ndim(); ++d)
    if (shape[d] < devices_along(result.mesh(), dims[d])) dims[d].clear();
  return Sharding::from_dim_axes(result.mesh(), dims);
}

Placement place(const PlacementArgs& args) {
  const auto& p = params_of(args.params);
  std::vector<Sharding> candidates;
  if (p.layout) {
    candidates = {*p.layout};
  } else if (args.wanted) {
    candidates = {*args.wanted};
  } else {
    for (const auto& s : args.shardings)
      if (s) candidates.push_back(as_result(*s, p, s->mesh()));
  }
  // The layout in which all operands arrive with the fewest bytes; among equals the first.
  Placement best;
  std::int64_t best_bytes = -1;
  std::vector<Shape> shapes;
  for (const auto& type : args.in) shapes.push_back(type.shape);
  for (const auto& candidate : candidates) {
    if (best_bytes >= 0 && candidate == best.outputs[0]) continue;
    std::vector<Sharding> inputs;
    for (std::size_t i = 0; i < args.in.size(); ++i)
      inputs.push_back(args.shardings[i] ? *args.shardings[i] : as_operand(candidate, shapes[i]));
    std::int64_t bytes = 0;
    if (candidates.size() > 1)
      bytes = exchange_bytes({p.pieces}, inputs, shapes, candidate, p.shape, itemsize(args.out[0].dtype),
                             args.fixed_axes);
    if (best_bytes < 0 || bytes < best_bytes)
      best = {std::move(inputs), {candidate}, {}, ReduceKind::sum}, best_bytes = bytes;
  }
  return best;
}

std::vector<int> lower(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const auto& p = params_of(*node.params);
  const Type& type = node.outputs[0].type;
  std::byte fill[16] = {};
  write_scalar(p.fill, type.dtype, fill);
  return {builder.remap({p.pieces}, {in.begin(), in.end()}, type, builder.placement().outputs[0],
                        std::span(fill, itemsize(type.dtype)))};
}

// ---- the transpose ----

// The elements that a piece reads of its source: start and count along each dim, in ascending order.
struct Image {
  std::vector<std::int64_t> start, count;
};
Image image_of(const RemapPiece& piece) {
  Image image;
  for (std::size_t d = 0; d < piece.to.size(); ++d) {
    const auto n = piece.to[d].size();
    const auto first = piece.offset[d] + piece.step[d] * piece.to[d].start,
               last = first + piece.step[d] * (n - 1);
    image.start.push_back(std::min(first, last));
    image.count.push_back(n);
  }
  return image;
}

bool has_unit_steps(const RemapPiece& piece) {
  return std::all_of(piece.step.begin(), piece.step.end(), [](std::int64_t s) { return s == 1 || s == -1; });
}

// The piece that maps the source's elements back to the result's.
RemapPiece inverse(const RemapPiece& piece) {
  const Image image = image_of(piece);
  RemapPiece result{0, {}, {}, piece.step};
  for (std::size_t d = 0; d < piece.to.size(); ++d) {
    result.to.push_back({image.start[d], image.start[d] + image.count[d]});
    result.offset.push_back(piece.step[d] == 1 ? -piece.offset[d] : piece.offset[d]);
  }
  return result;
}

// Pieces that read disjoint parts of the source are returned in one exchange; copies of the same elements are
// summed.
Array source_cotangent(const VjpArgs& v, int source) {
  const auto& p = params_of(*v.node.params);
  const Array& x = v.in[source];
  const Array& g = v.cotangents[0];
  const auto layout = output_of(x).sharding;
  std::vector<std::vector<RemapPiece>> rounds;
  Array total;
  const auto add = [&](const Array& term) { total = total.node() ? total + term : term; };
  for (const auto& piece : p.pieces) {
    if (piece.source != source || (box_elements(piece.to) == 0)) continue;
    if (!has_unit_steps(piece)) {
      std::vector<std::int64_t> start, step, first;
      for (std::size_t d = 0; d < piece.to.size(); ++d)
        start.push_back(piece.offset[d] + piece.step[d] * piece.to[d].start), step.push_back(piece.step[d]),
            first.push_back(piece.to[d].start);
      Array part =
          remap(slice_params(first, std::vector<std::int64_t>(first.size(), 1), box_shape(piece.to)), {g});
      for (std::size_t d = 0; d < step.size(); ++d) {
        if (step[d] != 0) continue;
        part = sum(part, static_cast<int>(d), true);  // one element of the source, read many times
        step[d] = 1;
      }
      add(unslice(part, start, step, x.shape(), layout));
      continue;
    }
    const RemapPiece back = inverse(piece);
    const auto is_free = [&](const std::vector<RemapPiece>& round) {
      return std::all_of(round.begin(), round.end(),
                         [&](const RemapPiece& other) { return is_empty(intersect(other.to, back.to)); });
    };
    auto round = std::find_if(rounds.begin(), rounds.end(), is_free);
    if (round == rounds.end()) round = rounds.insert(rounds.end(), std::vector<RemapPiece>{});
    round->push_back(back);
  }
  for (auto& round : rounds) add(remap({x.shape(), std::move(round), {0, 0, true}, {}, layout}, {g}));
  return total;
}

Cotangents vjp(const VjpArgs& v) {
  Cotangents result(v.in.size());
  for (std::size_t i = 0; i < v.in.size(); ++i)
    if (v.wanted[i]) result[i] = source_cotangent(v, static_cast<int>(i));
  return result;
}

Batched batch(const BatchArgs& args) {
  auto p = params_of(*args.node.params);
  p.shape = with_dim(p.shape, 0, args.size);
  for (auto& piece : p.pieces) {
    piece.to.insert(piece.to.begin(), {0, args.size});
    piece.offset.insert(piece.offset.begin(), 0);
    piece.step.insert(piece.step.begin(), 1);
  }
  for (int& d : p.unsplit) ++d;
  if (p.layout) {
    auto dims = p.layout->dim_axes(p.shape.ndim() - 1);
    dims.insert(dims.begin(), std::vector<int>{});
    p.layout = Sharding::from_dim_axes(p.layout->mesh(), dims);
  }
  std::vector<Array> in;
  for (std::size_t i = 0; i < args.in.size(); ++i) in.push_back(batched_in_front(args, i));
  return {{record(*args.node.op, make_params(std::move(p)), std::move(in))}, {0}};
}

const OpDef remap_op{
    .name = "remap",
    .halves = moves_halves,
    .infer = infer,
    .sharding = PlacementRule{place},
    .runs = Lower{lower},
    .vjp = vjp,
    .batch = batch,
};
const Registered registered(remap_op);

}  // namespace

Array remap(RemapParams p, std::vector<Array> operands) {
  return record(remap_op, make_params(std::move(p)), std::move(operands));
}

RemapPiece whole_piece(int source, const Shape& shape, const std::vector<std::int64_t>& at) {
  RemapPiece piece{source, {}, {}, std::vector<std::int64_t>(shape.size(), 1)};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    piece.to.push_back({at[d], at[d] + shape[d]});
    piece.offset.push_back(-at[d]);
  }
  return piece;
}

RemapParams slice_params(const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& step,
                         const Shape& count) {
  RemapParams params{count, {}};
  params.pieces.push_back({0, whole_box(count), start, step});  // moved: a list would copy it
  return params;
}

// First expands to every |step|-th element, dim by dim, then places the slice into zeros.
Array unslice(const Array& g, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& step,
              const Shape& shape, const std::optional<Sharding>& layout) {
  Array spread = g;
  RemapPiece piece{0, {}, {}, {}};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto n = g.shape()[d];
    const std::int64_t stride = step[d] < 0 ? -step[d] : step[d], direction = step[d] < 0 ? -1 : 1;
    if (n > 1 && stride > 1) spread = dilate(spread, static_cast<int>(d), stride);
    const auto extent = spread.shape()[d];
    if (direction == 1) {
      piece.to.push_back({start[d], start[d] + extent});
      piece.offset.push_back(-start[d]);
    } else {  // result[start - i] = spread[i]
      piece.to.push_back({start[d] - extent + 1, start[d] + 1});
      piece.offset.push_back(start[d]);
    }
    piece.step.push_back(direction);
  }
  RemapParams p{shape, {}, {0, 0, true}, {}, layout};
  if (g.size() > 0) p.pieces.push_back(std::move(piece));
  return remap(std::move(p), {spread});
}

}  // namespace tessera
