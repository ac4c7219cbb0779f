#include "ops/contract/matrices.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/dense/gemm.hpp"
#include "kernels/move/copy.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

// Several dims merged into one: its extent, and its stride if they are contiguous in memory.
struct MergedDims {
  std::int64_t extent = 1;
  std::optional<std::int64_t> stride = 1;
};
MergedDims run_of(const StridedBlock& block, const std::vector<int>& dims) {
  MergedDims run;
  bool empty = true;
  for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
    const auto extent = block.extents[*d], stride = block.strides[*d];
    if (extent == 1) continue;
    if (empty)
      run.stride = stride;
    else if (run.stride && *run.stride * run.extent != stride)
      run.stride.reset();
    run.extent *= extent;
    empty = false;
  }
  return run;
}

// (batch, rows, columns), or (batch, columns, rows) when transposed, as gemm takes it.
struct Matrices {
  std::byte* data = nullptr;
  std::vector<std::int64_t> batch_strides;
  std::int64_t rows = 1, columns = 1, ld = 1;
  bool transposed = false;
  Buffer copy = {};
};

std::optional<Matrices> in_place(const StridedBlock& block, const std::vector<int>& batch,
                                 const std::vector<int>& rows, const std::vector<int>& columns) {
  const MergedDims r = run_of(block, rows), c = run_of(block, columns);
  if (!r.stride || !c.stride) return std::nullopt;
  Matrices m{block.data, {}, r.extent, c.extent};
  for (const int d : batch) m.batch_strides.push_back(block.strides[d]);
  if ((*c.stride == 1 || c.extent == 1) && (r.extent == 1 || *r.stride >= c.extent)) {
    m.ld = r.extent == 1 ? c.extent : *r.stride;
    return m;
  }
  if ((*r.stride == 1 || r.extent == 1) && (c.extent == 1 || *c.stride >= r.extent)) {
    m.ld = c.extent == 1 ? r.extent : *c.stride;
    m.transposed = true;
    return m;
  }
  return std::nullopt;
}

// Views the block as (batch, rows, columns), or makes a dense copy if its strides do not allow it.
Matrices as_matrices(Dtype dtype, const StridedBlock& block, const std::vector<int>& batch,
                     const std::vector<int>& rows, const std::vector<int>& columns) {
  if (auto m = in_place(block, batch, rows, columns)) return *m;
  std::vector<int> order = batch;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  StridedBlock dense;
  std::vector<std::int64_t> extents, strides;
  for (const int d : order) extents.push_back(block.extents[d]), strides.push_back(block.strides[d]);
  dense.extents = Shape(extents);
  dense.strides = row_major_strides(dense.extents);
  Buffer copy = Buffer::allocate(static_cast<std::size_t>(dense.extents.elements()) * itemsize(dtype));
  dense.data = copy.data();
  kernels::copy_strided(dense.data, dense.strides, block.data, strides, dense.extents, itemsize(dtype));
  std::vector<int> at(order.size());
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int>(i);
  const auto first = at.begin(), second = first + static_cast<std::ptrdiff_t>(batch.size()),
             third = second + static_cast<std::ptrdiff_t>(rows.size());
  auto m = *in_place(dense, {first, second}, {second, third}, {third, at.end()});
  m.copy = std::move(copy);
  return m;
}

void clear(Dtype dtype, const Matrices& c, std::byte* data) {
  const auto item = itemsize(dtype);
  for (std::int64_t row = 0; row < c.rows; ++row)
    std::memset(data + static_cast<std::size_t>(row * c.ld) * item, 0,
                static_cast<std::size_t>(c.columns) * item);
}

std::vector<int> range_of(int from, std::size_t count) {
  std::vector<int> dims(count);
  for (std::size_t i = 0; i < count; ++i) dims[i] = from + static_cast<int>(i);
  return dims;
}

}  // namespace

StridedBlock block_of(const Tile& tile, const Box& box) {
  StridedBlock block{tile.data, row_major_strides(tile.shape()), box_shape(box)};
  for (std::size_t d = 0; d < box.size(); ++d)
    block.offset += (box[d].start - tile.box[d].start) * block.strides[d];
  block.data += block.offset * static_cast<std::int64_t>(itemsize(tile.dtype));
  return block;
}

void multiply_blocks(Dtype dtype, const DotDims& p, const StridedBlock& a, const StridedBlock& b,
                     bool accumulate, const StridedBlock& c, const kernels::Beside& beside) {
  if (c.extents.elements() == 0) return;
  const auto free_a = free_dims(a.extents.ndim(), p.contract_a, p.batch_a),
             free_b = free_dims(b.extents.ndim(), p.contract_b, p.batch_b);
  const auto in_batch = range_of(0, p.batch_a.size());
  const auto rows_at = static_cast<int>(p.batch_a.size()),
             columns_at = rows_at + static_cast<int>(free_a.size());
  const auto mc =
      in_place(c, in_batch, range_of(rows_at, free_a.size()), range_of(columns_at, free_b.size()));
  if (!mc || mc->transposed) throw InternalError("dot: rows and columns of a block of the result lie apart");
  const auto ma = as_matrices(dtype, a, p.batch_a, free_a, p.contract_a),
             mb = as_matrices(dtype, b, p.batch_b, p.contract_b, free_b);
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  // The distance in elements between rows of the tile.
  const auto pitch = columns_at > 0 ? std::max<std::int64_t>(c.strides[columns_at - 1], 1)
                                    : std::max<std::int64_t>(c.extents.elements(), 1);
  std::vector<std::int64_t> at(in_batch.size(), 0);
  for (;;) {
    std::int64_t to_a = 0, to_b = 0, to_c = 0;
    for (std::size_t d = 0; d < at.size(); ++d)
      to_a += at[d] * ma.batch_strides[d], to_b += at[d] * mb.batch_strides[d],
          to_c += at[d] * mc->batch_strides[d];
    const auto first = c.offset + to_c;
    const kernels::Beside here = kernels::beside_block(beside, first / pitch, first % pitch);
    std::byte* const result = mc->data + to_c * item;
    if (ma.columns > 0) {
      kernels::gemm({dtype,
                     ma.rows,
                     mb.columns,
                     ma.columns,
                     {ma.data + to_a * item, ma.ld, ma.transposed},
                     {mb.data + to_b * item, mb.ld, mb.transposed},
                     result,
                     mc->ld,
                     accumulate},
                    here);
    } else {
      if (!accumulate) clear(dtype, *mc, result);
      if (here.last_pass) here.last_pass(0, mc->rows, 0, mc->columns);
    }
    std::size_t d = at.size();
    while (d > 0 && ++at[d - 1] == c.extents[static_cast<int>(d) - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace tessera
