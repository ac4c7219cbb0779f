// tril, triu, diagonal, trace: parts of a matrix selected by its indices, which every rank knows from its
// box.
#include <algorithm>
#include <cstring>

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

// result[..., i] = x[..., i, i + offset], and 0 if the row has no such column. A split of the rows stays;
// over a split of the columns each rank contributes the elements that it holds.
struct DiagonalParams {
  std::int64_t offset;
  template <class V> void fields(V&& visit) const { visit("offset", offset); }
};
const OpDef row_diagonal_op{
    .name = "diagonal",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{Shape(std::vector<std::int64_t>(in[0].shape.begin(), in[0].shape.end() - 1)), in[0].dtype}};
    },
    .sharding = Rule("B.. i j -> B.. i | sum j"),
    .runs = Kernel{[](const KernelArgs& a) {
      const Tile &in = a.in[0], &out = a.out[0];
      const auto item = itemsize(out.dtype);
      const Range rows = in.box[in.box.size() - 2], columns = in.box.back();
      std::memset(out.data, 0, out.bytes());
      if (in.elements() == 0) return;
      const auto matrices = in.elements() / (rows.size() * columns.size());
      for (std::int64_t m = 0; m < matrices; ++m)
        for (auto i = rows.start; i < rows.stop; ++i) {
          const auto j = i + a.params.as<DiagonalParams>().offset;
          if (j < columns.start || j >= columns.stop) continue;
          const auto row = m * rows.size() + i - rows.start;
          std::memcpy(out.data + row * static_cast<std::int64_t>(item),
                      in.data + (row * columns.size() + j - columns.start) * static_cast<std::int64_t>(item),
                      item);
        }
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto [n, m] = matrix_shape(v.in[0].shape());
      const Array g = expand_dims(v.cotangents[0], -1);
      return {where(column_minus_row(n, m) == v.node.params->as<DiagonalParams>().offset, g,
                    zeros({}, g.dtype()))};
    },
    .batch = batch_leading,
    .linear = Linear::in_first,
};
const Registered registered_diagonal(row_diagonal_op);

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
  return index(rows, {ellipsis, slice(first, first + count)});
}

Array trace(const Operand& x, int offset) {
  const Call call("trace", x.where);
  check_matrix(x);
  return sum(diagonal(x, offset), Axes(-1));
}

}  // namespace tessera
