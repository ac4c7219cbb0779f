// A .npy file, or one embedded in another file: its header, and boxes of its array.
#pragma once
#include <tessera/io.hpp>

#include "io/file.hpp"
#include "io/npy_header.hpp"

namespace tessera::io {

// Reads the header from the `bytes` bytes at `start`; data_offset counts from the start of the file. IoError
// with path and mend.
NpyHeader read_npy_header(const File&, std::int64_t start, std::int64_t bytes);
// Converts bytes from the file into values: this machine's byte order, bools of 0 and 1.
void finish_npy_values(const NpyHeader&, std::int64_t elements, std::byte* values);
void read_npy_box(const File&, const NpyHeader&, const Box&, std::byte* out);
// The box as File::mapped gives it; nothing if its bytes are not the values in memory.
Buffer mapped_npy_box(const File&, const NpyHeader&, const Box&);
FileInfo npy_file_info(const NpyHeader&);

}  // namespace tessera::io
