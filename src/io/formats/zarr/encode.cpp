// Passes a dense chunk through its codecs.
#include <cstring>

#include "io/formats/zarr/chunk_write.hpp"
#include "io/formats/zarr/codecs/shard_index.hpp"
#include "kernels/move/copy.hpp"

namespace tessera::io::zarr {

bool holds_only(const Element& value, const std::byte* data, std::int64_t elements, std::size_t width) {
  if (elements == 0) return true;
  const auto bytes = static_cast<std::size_t>(elements) * width;
  return std::memcmp(data, value.data(), width) == 0 && std::memcmp(data, data + width, bytes - width) == 0;
}

namespace {

using Kind = Codec::Kind;

class Encoder {
 public:
  explicit Encoder(const ArrayMeta& meta) : meta_(meta), width_(itemsize(meta.dtype)) {}

  EncodedBytes encode(Codecs codecs, Shape chunk, const std::byte* data) const {
    Buffer turned;
    while (codecs.front().kind == Kind::transpose) {
      const auto& order = codecs.front().order;
      Buffer next = Buffer::allocate(bytes_in(chunk));
      kernels::transpose(next.data(), data, chunk, order, width_);
      std::vector<std::int64_t> extents;
      for (const int d : order) extents.push_back(chunk[static_cast<std::size_t>(d)]);
      chunk = Shape(extents);
      turned = next, data = turned.data(), codecs = codecs.subspan(1);
    }
    const EncodedBytes made = codecs.front().kind == Kind::sharding ? shard(codecs.front(), chunk, data)
                                                                    : plain(codecs.front(), chunk, data);
    EncodedBytes packed = pack(codecs.subspan(1), made.bytes, width_);
    if (!packed.memory) packed.memory = made.memory ? made.memory : turned;
    return packed;
  }

 private:
  std::size_t bytes_in(const Shape& chunk) const {
    return static_cast<std::size_t>(chunk.elements()) * width_;
  }

  EncodedBytes plain(const Codec& codec, const Shape& chunk, const std::byte* data) const {
    if (!codec.is_big_endian || width_ == 1) return {{data, bytes_in(chunk)}, {}};
    EncodedBytes swapped{.bytes = {}, .memory = Buffer::allocate(bytes_in(chunk))};
    std::memcpy(swapped.memory.data(), data, bytes_in(chunk));
    reverse_bytes(swapped.memory.data(), chunk.elements(), meta_.dtype);
    swapped.bytes = {swapped.memory.data(), bytes_in(chunk)};
    return swapped;
  }

  // Concatenates the inner chunks without those that hold only the fill value, and adds the index.
  EncodedBytes shard(const Codec& codec, const Shape& shape, const std::byte* data) const {
    std::vector<InnerPlace> index;
    std::vector<EncodedBytes> pieces;
    const auto strides = row_major_strides(shape), inner_strides = row_major_strides(codec.chunk);
    std::uint64_t at = codec.index_at_start ? static_cast<std::uint64_t>(index_bytes(codec, shape)) : 0;
    for_each_chunk(codec.chunk, whole_box(shape), [&](const ChunkIndex& place) {
      const Buffer inner = Buffer::allocate(bytes_in(codec.chunk));
      kernels::copy_strided(
          inner.data(), inner_strides,
          data + offset_of(box_of(codec.chunk, place), strides) * static_cast<std::int64_t>(width_), strides,
          codec.chunk, width_);
      index.emplace_back();
      if (holds_only(meta_.fill, inner.data(), codec.chunk.elements(), width_)) return;
      pieces.push_back(encode(codec.codecs, codec.chunk, inner.data()));
      if (!pieces.back().memory) pieces.back().memory = inner;
      index.back() = {at, pieces.back().bytes.size()};
      at += pieces.back().bytes.size();
    });
    const EncodedBytes table = index_piece(codec, index);
    const std::size_t before = codec.index_at_start ? 0 : static_cast<std::size_t>(at);
    EncodedBytes shard{.bytes = {},
                       .memory = Buffer::allocate(static_cast<std::size_t>(at) +
                                                  (codec.index_at_start ? 0 : table.bytes.size()))};
    std::memcpy(shard.memory.data() + before, table.bytes.data(), table.bytes.size());
    std::size_t put = codec.index_at_start ? table.bytes.size() : 0;
    for (const EncodedBytes& piece : pieces) {
      std::memcpy(shard.memory.data() + put, piece.bytes.data(), piece.bytes.size());
      put += piece.bytes.size();
    }
    shard.bytes = {shard.memory.data(), codec.index_at_start ? put : put + table.bytes.size()};
    return shard;
  }

  const ArrayMeta& meta_;
  std::size_t width_;
};

}  // namespace

EncodedBytes encode_chunk(const ArrayMeta& meta, const std::byte* data) {
  return Encoder(meta).encode(meta.codecs, meta.chunk, data);
}

}  // namespace tessera::io::zarr
