// Arrays as lines of a file that NumPy reads and writes: name, number, dtype, extents, the bytes in base64.
#pragma once
#include <tessera/ops.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace tessera::test {

inline constexpr char base64_letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string base64_of(const std::byte* bytes, std::int64_t size) {
  std::string text;
  for (std::int64_t i = 0; i < size; i += 3) {
    std::uint32_t group = 0;
    for (std::int64_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < size ? static_cast<std::uint32_t>(bytes[i + j]) : 0);
    for (int j = 0; j < 4; ++j) text += i + j <= size ? base64_letters[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

inline std::vector<std::byte> bytes_of_base64(const std::string& text) {
  std::array<std::int8_t, 256> value;
  value.fill(-1);
  for (int i = 0; i < 64; ++i)
    value[static_cast<unsigned char>(base64_letters[i])] = static_cast<std::int8_t>(i);
  std::vector<std::byte> bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (value[static_cast<unsigned char>(c)] < 0) break;  // the padding
    group = group << 6 | static_cast<std::uint32_t>(value[static_cast<unsigned char>(c)]);
    bits += 6;
    if (bits >= 8) bytes.push_back(static_cast<std::byte>(group >> (bits -= 8) & 255));
  }
  return bytes;
}

// Collective over all ranks.
inline std::string line_of(const std::string& name, std::size_t number, const Array& x) {
  const HostArray host = to_host(x);
  std::ostringstream line;
  line << name << '\t' << number << '\t' << tessera::name(x.dtype()) << '\t';
  for (int d = 0; d < x.ndim(); ++d) line << (d == 0 ? "" : ",") << x.shape()[d];
  line << '\t' << base64_of(host.bytes(), host.nbytes()) << '\n';
  return line.str();
}

struct NamedValues {
  std::string name;
  std::size_t number;
  HostArray values;
};
inline NamedValues values_from(const std::string& line) {
  std::istringstream in(line);
  std::array<std::string, 5> cells;
  for (auto& cell : cells) std::getline(in, cell, '\t');
  std::vector<std::int64_t> extents;
  std::istringstream shape(cells[3]);
  for (std::string extent; std::getline(shape, extent, ',');) extents.push_back(std::stoll(extent));
  HostArray host(Shape(extents), dtype_from_name(cells[2]));
  const auto bytes = bytes_of_base64(cells[4]);
  if (static_cast<std::int64_t>(bytes.size()) != host.nbytes())
    throw std::runtime_error("damaged: " + line.substr(0, 60));
  std::copy(bytes.begin(), bytes.end(), host.bytes());
  return {cells[0], std::stoul(cells[1]), host};
}

}  // namespace tessera::test
