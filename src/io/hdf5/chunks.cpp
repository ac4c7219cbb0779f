#include "io/hdf5/chunks.hpp"

#include <tessera/error.hpp>
#include <tessera/ops.hpp>

#include <zlib.h>

#include <algorithm>

#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "types/buffer.hpp"

namespace tessera::io {
namespace {

std::int64_t place_in(const Box& outer, const Box& inner) {
  const auto strides = row_major_strides(box_shape(outer));
  std::int64_t place = 0;
  for (std::size_t d = 0; d < outer.size(); ++d) place += (inner[d].start - outer[d].start) * strides[d];
  return place;
}

// A dense copy of `part` of a block.
std::vector<std::byte> packed(const Box& block, const std::byte* data, const Box& part, std::size_t width) {
  std::vector<std::byte> dense(static_cast<std::size_t>(box_elements(part)) * width);
  const Shape extents = box_shape(part);
  kernels::copy_strided(dense.data(), row_major_strides(extents),
                        data + place_in(block, part) * static_cast<std::int64_t>(width),
                        row_major_strides(box_shape(block)), extents, width);
  return dense;
}

void write_part(File& file, const Box& block, const std::byte* data, const Box& chunk, std::int64_t place,
                std::size_t width) {
  const Box part = intersect(block, chunk);
  if (is_empty(part)) return;
  Box inside;
  for (std::size_t d = 0; d < part.size(); ++d)
    inside.push_back({part[d].start - chunk[d].start, part[d].stop - chunk[d].start});
  const auto dense = packed(block, data, part, width);
  write_box(file, {box_shape(chunk), static_cast<std::int64_t>(width), place}, inside, dense.data());
}

// HDF5's shuffle filter: byte 0 of all elements, byte 1 of all, ...
Buffer shuffled(const std::byte* in, std::int64_t elements, std::size_t width) {
  Buffer out = Buffer::allocate(static_cast<std::size_t>(elements) * width);
  kernels::transpose(out.data(), in, {elements, static_cast<std::int64_t>(width)}, std::vector<int>{1, 0}, 1);
  return out;
}

std::vector<std::byte> deflated(const std::byte* in, std::size_t bytes, std::int64_t level) {
  uLongf length = compressBound(static_cast<uLong>(bytes));
  std::vector<std::byte> out(length);
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &length, reinterpret_cast<const Bytef*>(in),
                static_cast<uLong>(bytes), static_cast<int>(level)) != Z_OK)
    throw MemoryError("zlib has not enough memory to compress a chunk of " + std::to_string(bytes) +
                      " bytes");
  out.resize(length);
  return out;
}

std::int64_t count_of(std::int64_t extent, std::int64_t chunk) { return (extent + chunk - 1) / chunk; }

}  // namespace

void write_parts(File& file, const Array& x, std::int64_t first_row, const Hdf5Chunks& plan,
                 const std::vector<Chunk>& chunks, const std::vector<std::int64_t>& places) {
  OwnBlock own = own_block(x);
  if (!own.writes || is_empty(own.box)) return;
  own.box[0].start += first_row, own.box[0].stop += first_row;
  for (const Chunk& at : chunks_of(plan.chunk, own.box)) {
    const auto found = std::lower_bound(chunks.begin(), chunks.end(), at);
    write_part(file, own.box, own.data, box_of_chunk(plan.chunk, at),
               places[static_cast<std::size_t>(found - chunks.begin())], itemsize(x.dtype()));
  }
}

Array chunk_rows(const Array& x, const Shape& chunk) {
  std::vector<std::pair<int, int>> widths;
  std::vector<std::int64_t> split;           // (n0, c0, n1, c1, ...)
  std::vector<int> grid_first, inside_last;  // to (n0, n1, ..., c0, c1, ...)
  std::int64_t chunks = 1;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    const std::int64_t count = count_of(x.shape()[d], chunk[d]);
    widths.emplace_back(0, static_cast<int>(count * chunk[d] - x.shape()[d]));
    split.push_back(count), split.push_back(chunk[d]);
    grid_first.push_back(static_cast<int>(2 * d)), inside_last.push_back(static_cast<int>(2 * d + 1));
    chunks *= count;
  }
  grid_first.insert(grid_first.end(), inside_last.begin(), inside_last.end());
  const Array whole = pad(x, widths);
  return in_rows(reshape(transpose(reshape(whole, Shape(split)), grid_first), {chunks, chunk.elements()}));
}

StoredChunks compressed_rows(const Array& rows, const Hdf5Chunks& plan) {
  const OwnBlock own = own_block(rows);
  StoredChunks stored;
  if (!own.writes || is_empty(own.box)) return stored;
  stored.first = own.box[0].start;
  const std::size_t width = itemsize(rows.dtype());
  const std::int64_t elements = rows.shape()[1];
  const auto bytes = static_cast<std::size_t>(elements) * width;
  stored.bytes.resize(static_cast<std::size_t>(own.box[0].size()));
  kernels::share(own.box[0].size(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = static_cast<std::size_t>(begin); row < static_cast<std::size_t>(end); ++row) {
      const std::byte* data = own.data + row * bytes;
      const Buffer turned = plan.is_shuffled != 0 ? shuffled(data, elements, width) : Buffer();
      stored.bytes[row] = deflated(turned ? turned.data() : data, bytes, plan.compression);
    }
  });
  return stored;
}

}  // namespace tessera::io
