#include <algorithm>

#include "ops/contract/product_candidates.hpp"

namespace tessera {
namespace {

std::vector<std::int64_t> boundaries(const Sharding& layout, const Shape& shape, int dim) {
  std::vector<std::int64_t> marks;
  const auto axes = layout.dim_axes(shape.ndim())[dim];
  const auto parts = devices_along(layout.mesh(), axes), block = block_size(shape[dim], parts);
  for (std::int64_t at = block; block > 0 && at < shape[dim]; at += block) marks.push_back(at);
  return marks;
}

std::vector<std::int64_t> merged(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

// The dim along which a rank's block is cut, by the two functions below: of contracted dims the longest, of
// the result's dims the first with more than one index, so that the dims after it are contiguous.
int longest(const std::vector<int>& dims, const Shape& block) {
  int best = -1;
  for (const int d : dims)
    if (block[d] > 1 && (best < 0 || block[d] > block[best])) best = d;
  return best;
}
int first_long(const std::vector<int>& dims, const Shape& block) {
  const auto found = std::find_if(dims.begin(), dims.end(), [&](int d) { return block[d] > 1; });
  return found == dims.end() ? -1 : *found;
}

}  // namespace

bool find_cut_dims(const ProductQuestion& q, const ProductBlocks& blocks, ProductPlan& plan) {
  const auto& p = q.dims;
  const Shape a = blocks.a.shard_shape(q.args.in[0].shape), b = blocks.b.shard_shape(q.args.in[1].shape);
  const auto free_a = free_dims(a.ndim(), p.contract_a, p.batch_a),
             free_b = free_dims(b.ndim(), p.contract_b, p.batch_b);
  const auto place_in = [](const std::vector<int>& dims, int d) {
    return static_cast<int>(std::find(dims.begin(), dims.end(), d) - dims.begin());
  };
  if (plan.cut == Cut::inner) {
    plan.dim_a = longest(p.contract_a, a);
    if (plan.dim_a >= 0) plan.dim_b = p.contract_b[place_in(p.contract_a, plan.dim_a)];
    return plan.dim_a >= 0;
  }
  const auto batch = static_cast<int>(p.batch_a.size());
  if (plan.cut == Cut::rows) {
    plan.dim_a = first_long(free_a, a);
    plan.dim_c = batch + place_in(free_a, plan.dim_a);
    return plan.dim_a >= 0;
  }
  plan.dim_b = first_long(free_b, b);
  plan.dim_c = batch + static_cast<int>(free_a.size()) + place_in(free_b, plan.dim_b);
  return plan.dim_b >= 0;
}

void set_pieces(const ProductQuestion& q, ProductPlan& plan, std::int64_t width) {
  const Sharding needed[] = {plan.a_needed, plan.b_needed};
  const int dims[] = {plan.dim_a, plan.dim_b};
  std::vector<std::int64_t> marks, hard;
  std::int64_t extent = 0;
  for (int i = 0; i < 2; ++i) {
    if (dims[i] < 0) continue;
    const Shape& shape = q.args.in[i].shape;
    extent = shape[dims[i]];
    marks = merged(std::move(marks), boundaries(q.args.layouts[i], shape, dims[i]));
    hard = merged(std::move(hard), boundaries(needed[i], shape, dims[i]));
  }
  plan.ends = piece_ends(extent, merged(std::move(marks), hard), hard, width);
  plan.pieces = plan.width = 0;
  std::int64_t start = 0, count = 0;
  std::size_t next = 0;
  for (const auto end : plan.ends) {
    plan.width = std::max(plan.width, end - start);
    plan.pieces = std::max(plan.pieces, ++count);
    if (next < hard.size() && end == hard[next]) count = 0, ++next;
    start = end;
  }
}

std::vector<std::int64_t> piece_ends(std::int64_t extent, const std::vector<std::int64_t>& marks,
                                     const std::vector<std::int64_t>& hard, std::int64_t width) {
  std::vector<std::int64_t> ends;
  std::int64_t start = 0, joined_from = 0;  // start of the current part, and of the parts joined so far
  const auto close = [&](std::int64_t end) {
    if (end > joined_from) ends.push_back(end);
    joined_from = end;
  };
  for (std::size_t i = 0; i <= marks.size(); ++i) {
    const std::int64_t end = i < marks.size() ? marks[i] : extent;
    if (end - joined_from > width) close(start);
    if (const auto length = end - start; length > width) {
      const auto count = (length - 1) / width + 1;
      for (std::int64_t k = 1; k <= count; ++k) close(start + length * k / count);
    }
    if (std::binary_search(hard.begin(), hard.end(), end)) close(end);
    start = end;
  }
  close(extent);
  return ends;
}

std::vector<Range> pieces_in_order(const ProductPlan& plan, std::span<const Sharding> layouts,
                                   std::span<const Shape> shapes, int device) {
  const int dims[] = {plan.dim_a, plan.dim_b};
  const Sharding* needed[] = {&plan.a_needed, &plan.b_needed};
  const int owner = dims[0] >= 0 ? 0 : 1;
  const Range mine = needed[owner]->local_box(shapes[owner], device)[dims[owner]];
  // Ranks that compute the same block start with the same piece, so that their results do not differ by
  // rounding.
  MeshAxes alike;
  const Mesh mesh = plan.c_computed.mesh();
  std::vector<bool> differ(mesh.ndim());
  const auto note = [&](const Sharding& layout, const Shape& shape) {
    for (const auto& dim : layout.dim_axes(shape.ndim()))
      for (const int a : dim) differ[a] = true;
  };
  note(plan.a_needed, shapes[0]), note(plan.b_needed, shapes[1]);
  for (int a = 0; a < mesh.ndim(); ++a)
    if (!differ[a]) alike.push_back(a);
  const int first = group_along(mesh, alike, device)[0];
  const auto extent = shapes[owner][dims[owner]];
  std::int64_t start = 0;
  for (int i = 0; i < 2; ++i)
    if (dims[i] >= 0) start += layouts[i].local_box(shapes[i], first)[dims[i]].start;
  if (extent > 0) start %= extent;
  std::vector<Range> pieces;
  std::size_t begin = 0;
  std::int64_t from = 0;
  for (const auto end : plan.ends) {
    const Range piece{std::max(from, mine.start), std::min(end, mine.stop)};
    from = end;
    if (piece.start >= piece.stop) continue;
    if (piece.start <= start) begin = pieces.size();
    pieces.push_back(piece);
  }
  if (begin < pieces.size()) std::rotate(pieces.begin(), pieces.begin() + begin, pieces.end());
  return pieces;
}

}  // namespace tessera
