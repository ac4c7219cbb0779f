// Compiled instead of packers.cpp if the build found no zstd or no Blosc.
#include <tessera/error.hpp>

#include "io/formats/zarr/codecs/packers.hpp"

namespace tessera::io::zarr {
namespace {

[[noreturn]] void lack(const char* packer) {
  throw IoError(std::string("needs ") + packer +
                ", and this build of tessera was made without zstd and Blosc; pass compression \"gzip\" or "
                "\"none\" to save, or build with them (-D TESSERA_ZARR=ON says what is missing)");
}

}  // namespace

EncodedBytes pack_zstd(const Codec&, std::span<const std::byte>) { lack("zstd"); }
EncodedBytes pack_blosc(const Codec&, std::span<const std::byte>, std::size_t) { lack("Blosc"); }
std::size_t unpack_zstd(std::span<const std::byte>, std::span<std::byte>) { lack("zstd"); }
std::size_t unpack_blosc(std::span<const std::byte>, std::span<std::byte>) { lack("Blosc"); }

}  // namespace tessera::io::zarr
