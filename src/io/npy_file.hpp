// A .npy file, or one that stands inside another: its header, and boxes of its array.
#pragma once
#include <tessera/io.hpp>

#include "io/file.hpp"
#include "io/npy_header.hpp"

namespace tessera::io {

// Reads the header from `bytes` at `start` on; data_offset counts from the start of the file. IoError with
// path and mend.
NpyHeader read_npy_header(const File&, std::int64_t start, std::int64_t bytes);
// Turns bytes as they are in the file into values: this machine's byte order, bools of 0 and 1.
void finish_npy_values(const NpyHeader&, std::int64_t elements, std::byte* values);
void read_npy_box(const File&, const NpyHeader&, const Box&, std::byte* out);
FileInfo npy_file_info(const NpyHeader&);

}  // namespace tessera::io
