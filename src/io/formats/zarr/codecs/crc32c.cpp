#include "io/formats/zarr/codecs/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tessera::io::zarr {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t n = 0; n < 256; ++n) {
    std::uint32_t sum = n;
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1U) != 0 ? sum >> 1 ^ 0x82f63b78U : sum >> 1;
    table[n] = sum;
  }
  return table;
}
constexpr auto table = make_table();

std::uint32_t plainly(std::uint32_t sum, const std::byte* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    sum = table[(sum ^ static_cast<std::uint32_t>(data[i])) & 0xffU] ^ sum >> 8;
  return sum;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t sum, const std::byte* data,
                                                               std::size_t bytes) {
  std::uint64_t wide = sum;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  return plainly(static_cast<std::uint32_t>(wide), data, bytes);
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(~std::uint32_t{0}, bytes.data(), bytes.size());
#endif
  return ~plainly(~std::uint32_t{0}, bytes.data(), bytes.size());
}

}  // namespace tessera::io::zarr
