// tril, triu, diagonal, trace, diag: parts of a matrix selected by its indices, which every rank knows from
// its box.
#include <tessera/ops/arrange.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/move/copy.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/remap_op.hpp"

namespace tessera {
namespace {

// column - row of every element of an n x m matrix; uncommitted, so it is computed in its reader's layout.
Array column_minus_row(std::int64_t n, std::int64_t m) {
  const Dtype dtype = std::max(n, m) > (std::int64_t{1} << 30) ? int64 : int32;
  return reshape(arange_of(std::int64_t{0}, m, std::int64_t{1}, dtype), {1, m}) -
         reshape(arange_of(std::int64_t{0}, n, std::int64_t{1}, dtype), {n, 1});
}

void check_matrix(const Operand& x) {
  check_usable(x.array);
  if (x.array.ndim() < 2)
    throw ShapeError(call_text() + ": shape " + to_string(x.array.shape()) +
                     " has no two dimensions; give a matrix or a batch of them");
}

std::pair<std::int64_t, std::int64_t> matrix_shape(const Shape& shape) {
  return {shape[shape.size() - 2], shape[shape.size() - 1]};
}

// The elements of a tile's matrices on the diagonal column - row = offset: how many they are in each matrix,
// their first row, counted in the tile, and the places of the first one in the tile and between them.
struct DiagonalOfTile {
  std::int64_t matrices, count, first_row, first_place, step, matrix_step;
};
DiagonalOfTile diagonal_of_tile(const Box& box, std::int64_t offset) {
  const Range rows = box[box.size() - 2], columns = box.back();
  const auto first = std::max(rows.start, columns.start - offset);
  const auto count = std::min(rows.stop, columns.stop - offset) - first,
             matrix = rows.size() * columns.size();
  if (count <= 0 || matrix == 0) return {};
  const auto row = first - rows.start, column = first + offset - columns.start;
  return {box_elements(box) / matrix, count, row, row * columns.size() + column, columns.size() + 1, matrix};
}

struct DiagonalParams {
  std::int64_t offset;
  template <class V> void fields(V&& visit) const { visit("offset", offset); }
};
struct OnDiagonalParams {
  std::int64_t offset, columns;
  template <class V> void fields(V&& visit) const { visit("offset", offset), visit("columns", columns); }
};
extern const OpDef row_diagonal_op, on_diagonal_op;

// result[..., i] = x[..., i, i + offset], and 0 if the row has no such column. A split of the rows stays;
// over a split of the columns each rank contributes the elements that it holds.
const OpDef row_diagonal_op{
    .name = "diagonal",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{Shape(std::vector<std::int64_t>(in[0].shape.begin(), in[0].shape.end() - 1)), in[0].dtype}};
    },
    .sharding = Rule("B.. i j -> B.. i | sum j"),
    .runs = Kernel{[](const KernelArgs& a) {
      const Tile &in = a.in[0], &out = a.out[0];
      const auto item = itemsize(out.dtype);
      const auto rows = out.box.back().size();
      const auto d = diagonal_of_tile(in.box, a.params.as<DiagonalParams>().offset);
      if (d.count < rows) std::memset(out.data, 0, out.bytes());
      if (d.count == 0) return;
      kernels::copy_strided(out.data + d.first_row * static_cast<std::int64_t>(item), {{rows, 1}},
                            in.data + d.first_place * static_cast<std::int64_t>(item),
                            {{d.matrix_step, d.step}}, {d.matrices, d.count}, item);
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto offset = v.node.params->as<DiagonalParams>().offset;
      return {record(on_diagonal_op, make_params(OnDiagonalParams{offset, v.in[0].shape().back()}),
                     {v.cotangents[0]})};
    },
    .batch = batch_leading,
    .linear = Linear::in_first,
};

// result[..., i, i + offset] = x[..., i], and 0 elsewhere; elements without such a column are dropped.
const OpDef on_diagonal_op{
    .name = "on_diagonal",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      std::vector<std::int64_t> extents(in[0].shape.begin(), in[0].shape.end());
      extents.push_back(params.as<OnDiagonalParams>().columns);
      return {{Shape(std::move(extents)), in[0].dtype}};
    },
    .sharding = Rule("B.. i -> B.. i j"),
    .runs = Kernel{[](const KernelArgs& a) {
      const Tile &in = a.in[0], &out = a.out[0];
      const auto item = itemsize(out.dtype);
      const auto d = diagonal_of_tile(out.box, a.params.as<OnDiagonalParams>().offset);
      std::memset(out.data, 0, out.bytes());
      if (d.count == 0) return;
      kernels::copy_strided(out.data + d.first_place * static_cast<std::int64_t>(item),
                            {{d.matrix_step, d.step}},
                            in.data + d.first_row * static_cast<std::int64_t>(item),
                            {{in.box.back().size(), 1}}, {d.matrices, d.count}, item);
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto offset = v.node.params->as<OnDiagonalParams>().offset;
      return {record(row_diagonal_op, make_params(DiagonalParams{offset}), {v.cotangents[0]})};
    },
    .batch = batch_leading,
    .linear = Linear::in_first,
};
const Registered registered[] = {Registered(row_diagonal_op), Registered(on_diagonal_op)};

// A square matrix with the elements of x on diagonal k.
Array matrix_with_diagonal(const Array& x, int k) {
  const auto size = x.size() + std::abs(std::int64_t{k});
  const Array rows = k == 0 ? x : pad(x, {{k < 0 ? -k : 0, k > 0 ? k : 0}});
  return record(on_diagonal_op, make_params(OnDiagonalParams{k, size}), {rows});
}

}  // namespace

Array tril(const Operand& x, int k) {
  const Call call("tril", x.where);
  check_matrix(x);
  const auto [n, m] = matrix_shape(x.array.shape());
  return where(column_minus_row(n, m) <= k, x, zeros({}, x.array.dtype()));
}
Array triu(const Operand& x, int k) {
  const Call call("triu", x.where);
  check_matrix(x);
  const auto [n, m] = matrix_shape(x.array.shape());
  return where(column_minus_row(n, m) >= k, x, zeros({}, x.array.dtype()));
}

Array diagonal(const Operand& x, int offset) {
  const Call call("diagonal", x.where);
  check_matrix(x);
  Array matrices = x.array;
  if (matrices.ndim() > 2) {  // NumPy: the first two dims are the matrix, the diagonal comes last
    std::vector<int> permutation;
    for (int d = 2; d < matrices.ndim(); ++d) permutation.push_back(d);
    permutation.push_back(0);
    permutation.push_back(1);
    matrices = transpose(matrices, std::move(permutation));
  }
  const auto [n, m] = matrix_shape(matrices.shape());
  const auto first = std::max<std::int64_t>(0, -static_cast<std::int64_t>(offset));
  const auto count = std::max<std::int64_t>(0, std::min(n - first, m - std::max<std::int64_t>(0, offset)));
  const Array rows = record(row_diagonal_op, make_params(DiagonalParams{offset}), {matrices});
  return count == n ? rows : index(rows, {ellipsis, slice(first, first + count)});
}

Array diag(const Operand& x, int k) {
  const Call call("diag", x.where);
  check_usable(x.array);
  const int ndim = x.array.ndim();
  if (ndim == 2) return diagonal(x, k);
  if (ndim == 1) return matrix_with_diagonal(x.array, k);
  throw ShapeError(call_text() + ": the array has shape " + to_string(x.array.shape()) +
                   "; it must have one dimension or two");
}
Array diagflat(const Operand& x, int k) {
  const Call call("diagflat", x.where);
  return matrix_with_diagonal(ravel(x), k);
}

Array trace(const Operand& x, int offset) {
  const Call call("trace", x.where);
  check_matrix(x);
  return sum(diagonal(x, offset), Axes(-1));
}

}  // namespace tessera
