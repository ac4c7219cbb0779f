// Packing by zstd and Blosc.
#include "io/formats/zarr/codecs/packers.hpp"

#include <blosc.h>
#include <zstd.h>
#include <tessera/error.hpp>

#include <limits>
#include <string>

#include "base/text.hpp"

namespace tessera::io::zarr {

EncodedBytes pack_zstd(const Codec& codec, std::span<const std::byte> in) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (!context) throw MemoryError("zstd has no memory to pack a chunk");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, codec.level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, codec.checksum ? 1 : 0);
  const std::size_t most = ZSTD_compressBound(in.size());
  EncodedBytes piece{.bytes = {}, .memory = Buffer::allocate(most)};
  const std::size_t packed = ZSTD_compress2(context.get(), piece.memory.data(), most, in.data(), in.size());
  if (ZSTD_isError(packed) != 0)
    throw IoError(std::string("zstd cannot pack a chunk: ") + ZSTD_getErrorName(packed) +
                  "; choose another compression");
  piece.bytes = {piece.memory.data(), packed};
  return piece;
}

std::size_t unpack_zstd(std::span<const std::byte> in, std::span<std::byte> out) {
  const std::size_t unpacked = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(unpacked) != 0)
    refuse(std::string("cannot be unpacked by zstd: ") + ZSTD_getErrorName(unpacked));
  return unpacked;
}

EncodedBytes pack_blosc(const Codec& codec, std::span<const std::byte> in, std::size_t itemsize) {
  if (in.size() > BLOSC_MAX_BUFFERSIZE)
    throw IoError("Blosc packs at most 2 GiB at once, and a chunk has " +
                  format_bytes(static_cast<std::int64_t>(in.size())) +
                  "; choose smaller chunks, or another compression");
  const std::size_t most = in.size() + BLOSC_MAX_OVERHEAD;
  EncodedBytes piece{.bytes = {}, .memory = Buffer::allocate(most)};
  const int packed = blosc_compress_ctx(
      codec.level, codec.shuffle, codec.typesize > 1 ? static_cast<std::size_t>(codec.typesize) : itemsize,
      in.size(), in.data(), piece.memory.data(), most, codec.packer.c_str(),
      static_cast<std::size_t>(codec.blocksize), 1);
  if (packed <= 0)
    throw IoError("Blosc cannot pack a chunk with " + in_quotes(codec.packer) +
                  "; choose another compression");
  piece.bytes = {piece.memory.data(), static_cast<std::size_t>(packed)};
  return piece;
}

std::size_t unpack_blosc(std::span<const std::byte> in, std::span<std::byte> out) {
  std::size_t bytes = 0;
  if (in.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(in.data(), in.size(), &bytes) != 0)
    refuse("is not what Blosc packs");
  if (bytes > out.size())
    refuse("is packed from " + std::to_string(bytes) + " bytes, more than its chunk has");
  const int unpacked = bytes == 0 ? 0 : blosc_decompress_ctx(in.data(), out.data(), out.size(), 1);
  if (unpacked < 0) refuse("cannot be unpacked by Blosc (" + std::to_string(unpacked) + ")");
  return static_cast<std::size_t>(unpacked);
}

}  // namespace tessera::io::zarr
