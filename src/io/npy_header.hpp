// The header of a .npy file (NEP 1): a Python dict literal with exactly the keys descr, fortran_order and
// shape. Pure.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::io {

struct NpyHeader {
  Shape shape;
  Dtype dtype;
  bool fortran_order = false;
  bool swap_bytes = false;  // the file's byte order is not this machine's
  int major = 1, minor = 0;
  std::int64_t data_offset = 0, bytes_behind = 0;  // of the array
};

// The complete header: magic, version, length, dict, padded to 64 bytes.
std::string npy_header_text(const Shape&, Dtype);
// The same for a text without dims, which NumPy stores as '|S3'.
std::string npy_header_of_text(std::size_t bytes);

// The start of the file: the first 12 bytes give the header's length. IoError texts start with the fact
// ("does not begin with ..."): the caller adds call and path in front.
struct NpyPrefix {
  int major = 0, minor = 0;
  std::int64_t dict_offset = 0, dict_bytes = 0;
};
NpyPrefix parse_npy_prefix(std::string_view first_bytes, std::int64_t file_bytes);
NpyHeader parse_npy_dict(std::string_view dict, const NpyPrefix&);

}  // namespace tessera::io
