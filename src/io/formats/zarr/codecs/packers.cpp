// Packing by zstd and Blosc.
#include "io/formats/zarr/codecs/packers.hpp"

#include <blosc.h>
#include <zstd.h>
#include <tessera/error.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace tessera::io::zarr {

namespace {

// A context that goes to the next chunk of any thread: a new one for each took a tenth of the time.
template <class Context, Context* (*create)(), std::size_t (*release)(Context*)> class LentContext {
 public:
  LentContext() {
    {
      const std::scoped_lock lock(idle().guard);
      if (idle().count > 0) one_ = std::move(idle().all[--idle().count]);
    }
    if (!one_) one_.reset(create());
    if (!one_) throw MemoryError("zstd has no memory for a chunk");
  }
  LentContext(const LentContext&) = delete;
  ~LentContext() {
    constexpr std::size_t most_bytes = 8 << 20;  // tables of high levels take 100 MiB
    const std::scoped_lock lock(idle().guard);
    if (size(one_.get()) <= most_bytes && idle().count < idle().all.size())
      idle().all[idle().count++] = std::move(one_);
  }
  Context* get() const { return one_.get(); }

 private:
  struct Release {
    void operator()(Context* context) const { release(context); }
  };
  struct Idle {
    std::mutex guard;
    std::array<std::unique_ptr<Context, Release>, 16> all;
    std::size_t count = 0;
  };
  static Idle& idle() {
    static auto* const kept = new Idle;  // never destroyed: writers' threads may outlive a session
    return *kept;
  }
  static std::size_t size(const ZSTD_CCtx* x) { return ZSTD_sizeof_CCtx(x); }
  static std::size_t size(const ZSTD_DCtx* x) { return ZSTD_sizeof_DCtx(x); }

  std::unique_ptr<Context, Release> one_;
};

}  // namespace

EncodedBytes pack_zstd(const Codec& codec, std::span<const std::byte> in) {
  const LentContext<ZSTD_CCtx, ZSTD_createCCtx, ZSTD_freeCCtx> context;
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
  const LentContext<ZSTD_DCtx, ZSTD_createDCtx, ZSTD_freeDCtx> context;
  const std::size_t unpacked =
      ZSTD_decompressDCtx(context.get(), out.data(), out.size(), in.data(), in.size());
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
