#include "io/formats/zarr/codecs/chain.hpp"

#include <zlib.h>
#include <tessera/error.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/text.hpp"
#include "io/formats/zarr/codecs/crc32c.hpp"

namespace tessera::io::zarr {
namespace {

using Kind = Codec::Kind;
constexpr std::size_t sum_bytes = 4;

constexpr int gzip_window = 15 + 16, zlib_window = 15;

// A z_stream that frees itself.
struct Deflater {
  z_stream stream = {};
  Deflater(int level, int window) {
    if (deflateInit2(&stream, level, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw MemoryError("zlib has no memory to pack a chunk");
  }
  Deflater(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream); }
};
struct Inflater {
  z_stream stream = {};
  explicit Inflater(int window) {
    if (inflateInit2(&stream, window) != Z_OK) throw MemoryError("zlib has no memory to unpack a chunk");
  }
  Inflater(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

// A step of at most 2^30 bytes, since zlib counts in 32 bits.
uInt step_of(std::size_t left) {
  return static_cast<uInt>(std::min<std::size_t>(left, std::size_t{1} << 30));
}
Bytef* of_zlib(const std::byte* data) { return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data)); }

EncodedBytes pack_deflate(const Codec& codec, std::span<const std::byte> in) {
  Deflater deflater(codec.level, codec.kind == Kind::gzip ? gzip_window : zlib_window);
  z_stream& stream = deflater.stream;
  const std::size_t most = in.size() + (in.size() >> 9) + 4096;  // exceeds deflateBound of stored blocks
  EncodedBytes piece{.bytes = {}, .memory = Buffer::allocate(most)};
  std::size_t taken = 0, put = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    const uInt give = step_of(in.size() - taken), room = step_of(most - put);
    stream.next_in = of_zlib(in.data() + taken), stream.avail_in = give;
    stream.next_out = of_zlib(piece.memory.data() + put), stream.avail_out = room;
    state = deflate(&stream, taken + give == in.size() ? Z_FINISH : Z_NO_FLUSH);
    taken += give - stream.avail_in, put += room - stream.avail_out;
    if (state != Z_OK && state != Z_STREAM_END)
      throw IoError("zlib cannot pack a chunk; choose another compression");
  }
  piece.bytes = {piece.memory.data(), put};
  return piece;
}

// Concatenated members, which gzip allows, unpack to one text.
std::size_t unpack_deflate(std::span<const std::byte> in, std::span<std::byte> out, int window) {
  Inflater inflater(window);
  z_stream& stream = inflater.stream;
  std::size_t taken = 0, put = 0;
  std::byte beyond{};
  while (taken < in.size()) {
    const uInt give = step_of(in.size() - taken);
    const bool is_full = put == out.size();
    const uInt room = is_full ? 1 : step_of(out.size() - put);
    stream.next_in = of_zlib(in.data() + taken), stream.avail_in = give;
    stream.next_out = of_zlib(is_full ? &beyond : out.data() + put), stream.avail_out = room;
    const int state = inflate(&stream, Z_NO_FLUSH);
    taken += give - stream.avail_in;
    if (is_full && stream.avail_out == 0) refuse("unpacks to more bytes than its chunk has");
    if (!is_full) put += room - stream.avail_out;
    if (state == Z_STREAM_END) {
      if (taken < in.size() && inflateReset(&stream) != Z_OK) refuse("cannot be unpacked by zlib");
      if (taken == in.size()) return put;
    } else if (state != Z_OK || (give == stream.avail_in && room == stream.avail_out)) {
      refuse(std::string("cannot be unpacked by zlib: ") +
             (stream.msg != nullptr ? stream.msg : "it ends early"));
    }
  }
  refuse("cannot be unpacked by zlib: it ends early");
}

EncodedBytes with_sum(std::span<const std::byte> in) {
  EncodedBytes piece{.bytes = {}, .memory = Buffer::allocate(in.size() + sum_bytes)};
  const std::uint32_t sum = crc32c(in);
  if (!in.empty()) std::memcpy(piece.memory.data(), in.data(), in.size());
  std::memcpy(piece.memory.data() + in.size(), &sum, sum_bytes);
  piece.bytes = {piece.memory.data(), in.size() + sum_bytes};
  return piece;
}
std::span<const std::byte> without_sum(std::span<const std::byte> in) {
  std::uint32_t stored = 0;
  if (in.size() < sum_bytes) refuse("has " + std::to_string(in.size()) + " bytes, fewer than its checksum");
  const auto content = in.first(in.size() - sum_bytes);
  std::memcpy(&stored, in.data() + content.size(), sum_bytes);
  if (stored != crc32c(content)) refuse("is damaged: its CRC-32C checksum is another one");
  return content;
}

std::size_t unpack_one(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  switch (codec.kind) {
    case Kind::zstd: return unpack_zstd(in, out);
    case Kind::blosc: return unpack_blosc(in, out);
    case Kind::gzip: return unpack_deflate(in, out, gzip_window);
    default: return unpack_deflate(in, out, zlib_window);
  }
}

// An upper bound on the packed size of so many bytes.
std::int64_t most_packed(std::int64_t bytes) { return bytes + (bytes >> 7) + (std::int64_t{1} << 16); }

}  // namespace

const Codec& serializer_of(Codecs codecs) {
  return *std::find_if(codecs.begin(), codecs.end(), [](const Codec& codec) {
    return codec.kind == Kind::bytes || codec.kind == Kind::sharding;
  });
}
Codecs behind_serializer(Codecs codecs) {
  const auto at = static_cast<std::size_t>(&serializer_of(codecs) - codecs.data());
  return codecs.subspan(at + 1);
}

EncodedBytes pack(Codecs steps, std::span<const std::byte> in, std::size_t itemsize) {
  EncodedBytes piece{.bytes = in};
  for (const Codec& codec : steps) switch (codec.kind) {
      case Kind::crc32c: piece = with_sum(piece.bytes); break;
      case Kind::zstd: piece = pack_zstd(codec, piece.bytes); break;
      case Kind::blosc: piece = pack_blosc(codec, piece.bytes, itemsize); break;
      default: piece = pack_deflate(codec, piece.bytes); break;
    }
  return piece;
}

EncodedBytes unpack(Codecs steps, std::span<const std::byte> in, std::int64_t bytes, std::byte* out) {
  EncodedBytes piece{.bytes = in};
  for (std::size_t i = steps.size(); i-- > 0;) {
    if (steps[i].kind == Kind::crc32c) {
      piece.bytes = without_sum(piece.bytes);
      continue;
    }
    // The preceding steps may have enlarged the chunk; each sum adds 4 bytes.
    const auto is_packer = [](const Codec& codec) { return codec.kind != Kind::crc32c; };
    const bool is_last =
        std::none_of(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(i), is_packer);
    const std::int64_t room = is_last ? bytes + static_cast<std::int64_t>(sum_bytes * i) : most_packed(bytes);
    const bool goes_out = is_last && i == 0 && out != nullptr;
    Buffer memory = goes_out ? Buffer::wrap(out, static_cast<std::size_t>(bytes), [] {})
                             : Buffer::allocate(static_cast<std::size_t>(room));
    const auto put = unpack_one(steps[i], piece.bytes, {memory.data(), static_cast<std::size_t>(room)});
    piece.bytes = {memory.data(), put};
    piece.memory = memory;
  }
  if (std::ssize(piece.bytes) != bytes)
    refuse("holds " + std::to_string(piece.bytes.size()) + " bytes, where its chunk has " +
           std::to_string(bytes));
  return piece;
}

EncodedBytes unpack_most(Codecs steps, std::span<const std::byte> in, std::int64_t most) {
  EncodedBytes piece{.bytes = in};
  for (std::size_t i = steps.size(); i-- > 0;) {
    if (steps[i].kind == Kind::crc32c) {
      piece.bytes = without_sum(piece.bytes);
      continue;
    }
    const auto room = static_cast<std::size_t>(most_packed(most));
    Buffer memory = Buffer::allocate(room);
    const auto put = unpack_one(steps[i], piece.bytes, {memory.data(), room});
    piece = {{memory.data(), put}, memory};
  }
  return piece;
}

void reverse_bytes(std::byte* data, std::int64_t elements, Dtype dtype) {
  const std::size_t width = itemsize(real_dtype(dtype));
  const std::int64_t numbers = elements * (is_complex(dtype) ? 2 : 1);
  for (std::int64_t i = 0; i < numbers; ++i, data += width) std::reverse(data, data + width);
}

}  // namespace tessera::io::zarr
