// The transform of a line that the ranks cannot hold.
#pragma once
#include <optional>

#include "ops/fourier/fft_op.hpp"
#include "stream/spill/file_views.hpp"

namespace tessera::stream {

// As a matrix; nullopt where the line fits in memory, or not even rows and columns of a matrix do.
std::optional<Array> long_line(const Array&, const FftParams&, std::int64_t room, FileNumbers&);

}  // namespace tessera::stream
