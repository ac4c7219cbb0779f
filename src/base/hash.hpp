// 64-bit hashes for structural keys and fingerprints: fast, the same on every rank, not for hostile input.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>

namespace tessera {

// A bijection that spreads every input bit over all output bits (the finaliser of splitmix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Combines a hash with a value in few cycles; order matters.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 32);
}
template <class Range> std::uint64_t mix_range(std::uint64_t hash, const Range& values) {
  hash = mix(hash, std::size(values));
  for (const auto& value : values) hash = mix(hash, static_cast<std::uint64_t>(value));
  return hash;
}

// Hash of bytes, eight at a time.
inline std::uint64_t hash_bytes(const void* data, std::size_t bytes, std::uint64_t seed = 0) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t hash = mix(seed ^ (bytes * 0x9e3779b97f4a7c15u));
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mix(hash ^ word) + 0x9e3779b97f4a7c15u;
  }
  std::uint64_t rest = 0;
  if (bytes > 0) std::memcpy(&rest, at, bytes);
  return mix(hash ^ rest);
}

// Collects the parts of a key; order matters: Hasher().add(shape.size()).add_range(shape).value()
class Hasher {
 public:
  explicit Hasher(std::uint64_t seed = 0) : hash_(mix(seed + 0x9e3779b97f4a7c15u)) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) Hasher& add(T value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(T) < 8 ? sizeof(T) : 8);
    hash_ = mix(hash_ ^ word) + 0x9e3779b97f4a7c15u;
    return *this;
  }
  Hasher& add(std::string_view text) {
    hash_ = hash_bytes(text.data(), text.size(), hash_);
    return *this;
  }
  template <class Range> Hasher& add_range(const Range& range) {
    std::uint64_t length = 0;
    for (const auto& item : range) add(item), ++length;
    return add(length);
  }
  std::uint64_t value() const { return mix(hash_); }

 private:
  std::uint64_t hash_;
};

}  // namespace tessera
