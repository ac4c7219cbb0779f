// Reads deflated chunks past the library's filters, which unpack one chunk at a time, a byte at a time.
#pragma once
#include <cstddef>
#include <vector>

#include "io/hdf5/library.hpp"
#include "types/box.hpp"

namespace tessera::io {

// Reads what it can of the box to dense memory, and returns the boxes that remain for the library: those of
// chunks that are missing, odd or damaged; all of it if the dataset is not deflated, or stored in another
// form than memory has. IoError for a chunk that unpacks to too few bytes: the library would read what lies
// behind them in its memory.
std::vector<Box> read_deflated(const Hdf5Source&, hid_t dataset, hid_t memory_type, const Box&,
                               std::byte* out);

}  // namespace tessera::io
