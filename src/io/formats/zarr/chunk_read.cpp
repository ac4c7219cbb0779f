#include "io/formats/zarr/chunk_read.hpp"

#include <algorithm>
#include <cstring>

#include "api/memory.hpp"
#include "base/text.hpp"
#include "io/file.hpp"
#include "io/formats/zarr/codecs/shard_index.hpp"
#include "io/many.hpp"
#include "kernels/move/copy.hpp"

namespace tessera::io::zarr {
namespace {

using Kind = Codec::Kind;

constexpr const char* mend = "write it again, or copy it anew from where it came";

// A range of a file that holds a chunk.
struct Stored {
  const File& file;
  std::int64_t start, bytes;
};
// The requested box of a chunk at the current codec, with the transposes so far applied.
struct Wanted {
  Shape chunk;
  Box box;  // within the chunk
  Target target;
};

bool is_dense(const Wanted& wanted) {
  const Shape extents = box_shape(wanted.box);
  const auto strides = row_major_strides(extents);
  for (std::size_t d = 0; d < extents.size(); ++d)
    if (extents[d] > 1 && strides[d] != wanted.target.strides[d]) return false;
  return true;
}

template <class T> std::vector<T> turned(const std::vector<T>& values, const std::vector<int>& order) {
  std::vector<T> result;
  for (const int d : order) result.push_back(values[static_cast<std::size_t>(d)]);
  return result;
}

class Chunks {
 public:
  Chunks(const std::string& call, const ArrayMeta& meta)
      : call_(call), meta_(meta), width_(itemsize(meta.dtype)) {}

  // A transpose costs nothing: it only permutes the dims of the request.
  void read(const Stored& stored, Codecs codecs, Wanted wanted) const {
    while (codecs.front().kind == Kind::transpose) {
      const auto& order = codecs.front().order;
      wanted = {Shape(turned(wanted.chunk.vector(), order)),
                turned(wanted.box, order),
                {wanted.target.at, turned(wanted.target.strides, order)}};
      codecs = codecs.subspan(1);
    }
    if (codecs.front().kind == Kind::sharding)
      read_sharded(stored, codecs, wanted);
    else
      read_plain(stored, codecs, wanted);
  }

 private:
  // Checks large chunks only, since reading the host's free memory costs more than a small chunk.
  void check_large(std::int64_t bytes, const std::string& path) const {
    if (bytes > std::int64_t{64} << 20) check_memory(bytes, call_ + " of a chunk of " + in_quotes(path));
  }

  void read_plain(const Stored& stored, Codecs codecs, const Wanted& wanted) const {
    const std::int64_t bytes = chunk_bytes(wanted.chunk, meta_.dtype);
    const bool is_swapped = codecs.front().is_big_endian && width_ > 1;
    if (codecs.size() == 1 && stored.bytes != bytes)
      stored.file.fail("holds a chunk of " + std::to_string(stored.bytes) + " bytes, where " +
                           to_string(wanted.chunk) + " of " + name(meta_.dtype) + " need " +
                           std::to_string(bytes),
                       mend);
    if (codecs.size() == 1) return read_part(stored, wanted, is_swapped);
    const bool is_whole = is_dense(wanted) && box_shape(wanted.box) == wanted.chunk;
    if (!is_whole) check_large(bytes, stored.file.path());
    const EncodedBytes packed = bytes_of(stored);
    const EncodedBytes chunk = parsed(stored.file, mend, [&] {
      return unpack(behind_serializer(codecs), packed.bytes, bytes, is_whole ? wanted.target.at : nullptr);
    });
    if (is_whole && chunk.bytes.data() != wanted.target.at && bytes > 0)
      std::memcpy(wanted.target.at, chunk.bytes.data(), static_cast<std::size_t>(bytes));
    if (is_whole) return swap_dense(wanted.target.at, box_elements(wanted.box), is_swapped);
    Buffer swapped;
    const std::byte* data = chunk.bytes.data();
    if (is_swapped) {
      swapped = Buffer::allocate(static_cast<std::size_t>(bytes));
      std::memcpy(swapped.data(), data, static_cast<std::size_t>(bytes));
      swap_dense(swapped.data(), wanted.chunk.elements(), true);
      data = swapped.data();
    }
    const auto strides = row_major_strides(wanted.chunk);
    kernels::copy_strided(wanted.target.at, wanted.target.strides,
                          data + offset_of(wanted.box, strides) * static_cast<std::int64_t>(width_), strides,
                          box_shape(wanted.box), width_);
  }

  // Reads only the wanted bytes of an uncompressed chunk, directly into memory where they are dense.
  void read_part(const Stored& stored, const Wanted& wanted, bool is_swapped) const {
    const DenseInFile dense{wanted.chunk, static_cast<std::int64_t>(width_), stored.start};
    const std::int64_t elements = box_elements(wanted.box);
    if (is_dense(wanted)) {
      io::read_box(stored.file, dense, wanted.box, wanted.target.at);
      return swap_dense(wanted.target.at, elements, is_swapped);
    }
    const Buffer part = Buffer::allocate(static_cast<std::size_t>(elements) * width_);
    io::read_box(stored.file, dense, wanted.box, part.data());
    swap_dense(part.data(), elements, is_swapped);
    const Shape extents = box_shape(wanted.box);
    kernels::copy_strided(wanted.target.at, wanted.target.strides, part.data(), row_major_strides(extents),
                          extents, width_);
  }

  void read_sharded(const Stored& stored, Codecs codecs, const Wanted& wanted) const {
    if (codecs.size() == 1) return read_inner(stored, codecs.front(), wanted);
    const EncodedBytes packed = bytes_of(stored);  // bytes packed as a whole must be unpacked as a whole
    const std::int64_t chunk = chunk_bytes(wanted.chunk, meta_.dtype),
                       index = index_bytes(codecs.front(), wanted.chunk);
    check_large(chunk, stored.file.path());
    check_large(index, stored.file.path());
    const std::int64_t most = 2 * chunk + 2 * index;
    const EncodedBytes shard =
        parsed(stored.file, mend, [&] { return unpack_most(behind_serializer(codecs), packed.bytes, most); });
    const File unpacked(call_, stored.file.path(),
                        std::string(reinterpret_cast<const char*>(shard.bytes.data()), shard.bytes.size()));
    read_inner({unpacked, 0, unpacked.bytes()}, codecs.front(), wanted);
  }

  void read_inner(const Stored& stored, const Codec& sharding, const Wanted& wanted) const {
    const auto index = index_of(stored, sharding, wanted.chunk);
    const auto strides = row_major_strides(inner_counts(sharding, wanted.chunk));
    for_each_chunk(sharding.chunk, wanted.box, [&](const ChunkIndex& place) {
      const Box inner = box_of(sharding.chunk, place), part = intersect(inner, wanted.box);
      const Target target{wanted.target.at + offset_of(within(wanted.box, part), wanted.target.strides) *
                                                 static_cast<std::int64_t>(width_),
                          wanted.target.strides};
      std::int64_t number = 0;
      for (std::size_t d = 0; d < place.size(); ++d) number += place[d] * strides[d];
      const InnerPlace& at = index[static_cast<std::size_t>(number)];
      if (!at.is_there()) return fill_box(meta_, box_shape(part), target);
      read({stored.file, stored.start + static_cast<std::int64_t>(at.offset),
            static_cast<std::int64_t>(at.bytes)},
           sharding.codecs, {sharding.chunk, within(inner, part), target});
    });
  }

  std::vector<InnerPlace> index_of(const Stored& stored, const Codec& sharding, const Shape& shard) const {
    const std::int64_t bytes = index_bytes(sharding, shard);
    if (bytes > stored.bytes)
      stored.file.fail("holds a shard of " + std::to_string(stored.bytes) + " bytes, whose index needs " +
                           std::to_string(bytes),
                       mend);
    const std::int64_t at = sharding.index_at_start ? 0 : stored.bytes - bytes;
    const EncodedBytes table = bytes_of({stored.file, stored.start + at, bytes});
    return parsed(stored.file, mend, [&] { return read_index(sharding, shard, table.bytes, stored.bytes); });
  }

  EncodedBytes bytes_of(const Stored& stored) const {
    check_large(stored.bytes, stored.file.path());
    EncodedBytes piece{.bytes = {}, .memory = Buffer::allocate(static_cast<std::size_t>(stored.bytes))};
    stored.file.read(piece.memory.data(), stored.bytes, stored.start);
    piece.bytes = {piece.memory.data(), static_cast<std::size_t>(stored.bytes)};
    return piece;
  }
  void swap_dense(std::byte* data, std::int64_t elements, bool is_swapped) const {
    if (is_swapped) reverse_bytes(data, elements, meta_.dtype);
  }

  const std::string& call_;
  const ArrayMeta& meta_;
  std::size_t width_;
};

// Normalizes bools to 0 or 1, as everywhere in tessera; files may hold other bytes.
void make_bools(std::byte* data, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i) data[i] = data[i] == std::byte{0} ? std::byte{0} : std::byte{1};
}

}  // namespace

void fill_box(const ArrayMeta& meta, const Shape& extents, const Target& target) {
  kernels::fill_strided(target.at, target.strides, meta.fill.data(), extents, itemsize(meta.dtype));
}

namespace {

// Reads the part of a box that lies in one chunk.
void read_chunk(const Chunks& chunks, const std::string& call, const std::string& folder,
                const ArrayMeta& meta, const Box& box, const Target& target, const ChunkIndex& place) {
  const auto width = static_cast<std::int64_t>(itemsize(meta.dtype));
  const Box chunk = box_of(meta.chunk, place), part = intersect(chunk, box);
  const Target part_target{target.at + offset_of(within(box, part), target.strides) * width, target.strides};
  const std::string path = folder + "/" + key_of(meta, place);
  const File file(call, path, File::Mode::read_if_there);
  if (!file.is_there()) return fill_box(meta, box_shape(part), part_target);
  chunks.read({file, 0, file.bytes()}, meta.codecs, {meta.chunk, within(chunk, part), part_target});
}

}  // namespace

int reading_threads(const ArrayMeta& meta) {
  constexpr std::int64_t most_threads = 16, most_bytes = std::int64_t{4} << 20;
  const std::int64_t bytes = 2 * chunk_bytes(meta.chunk, meta.dtype);  // packed and unpacked
  return static_cast<int>(
      std::clamp<std::int64_t>(most_bytes / std::max<std::int64_t>(bytes, 1), 1, most_threads));
}

void read_box(const std::string& call, const std::string& folder, const ArrayMeta& meta, const Box& box,
              const Target& target, int threads) {
  const Chunks chunks(call, meta);
  const auto read_one = [&](const ChunkIndex& place) {
    read_chunk(chunks, call, folder, meta, box, target, place);
  };
  if (threads == 1) return for_each_chunk(meta.chunk, box, read_one);
  constexpr std::size_t most_pending =
      4096;  // indices in memory; reading these takes longer than new threads
  std::vector<ChunkIndex> pending;
  const auto read_pending = [&] {
    side_by_side(std::ssize(pending), threads,
                 [&](std::int64_t i) { read_one(pending[static_cast<std::size_t>(i)]); });
    pending.clear();
  };
  for_each_chunk(meta.chunk, box, [&](const ChunkIndex& place) {
    pending.push_back(place);
    if (pending.size() == most_pending) read_pending();
  });
  read_pending();
}

void read_box(const std::string& call, const std::string& folder, const ArrayMeta& meta, const Box& box,
              std::byte* dense, int threads) {
  read_box(call, folder, meta, box, {dense, row_major_strides(box_shape(box))}, threads);
  if (meta.dtype == bool_) make_bools(dense, box_elements(box));
}

}  // namespace tessera::io::zarr
