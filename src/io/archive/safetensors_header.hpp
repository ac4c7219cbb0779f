// The header of a .safetensors file: 8 bytes of length, then JSON with each tensor's dtype, shape and offsets
// in the bytes behind it. Pure: error texts start with the fact, as in npy_header.hpp.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tessera::io {

struct SafeTensor {
  Shape shape;
  Dtype dtype;
  std::int64_t begin = 0, end = 0;  // in the file
};
struct SafetensorsHeader {
  std::map<std::string, SafeTensor> tensors;
  std::map<std::string, std::string> metadata;
};

constexpr std::int64_t safetensors_prefix_bytes = 8;
// The length of the JSON, from the first 8 bytes.
std::int64_t parse_safetensors_prefix(std::string_view first_bytes, std::int64_t file_bytes);
// Every byte behind the header must belong to exactly one tensor.
SafetensorsHeader parse_safetensors(std::string_view json, std::int64_t file_bytes);

// Length and JSON, padded to 8 bytes, for tensors whose begin and end count from the end of the header.
std::string safetensors_header_text(const SafetensorsHeader&);

}  // namespace tessera::io
