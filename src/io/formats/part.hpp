// The part of a stored array that slices select.
#pragma once
#include <tessera/array/index.hpp>
#include <tessera/shape.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "types/box.hpp"

namespace tessera::io {

// Start, step and count along each dim.
struct Selection {
  std::vector<std::int64_t> start, step, count;
  bool has_no_steps() const;
  Box span_of(const Box& box) const;  // a box of the part in the array, including the skipped elements
};
// `what` names the array in errors, which begin with the call. IndexError for more slices than dims, and for
// steps below 1.
Selection part_of(const std::string& call, const std::string& what, const std::vector<Slice>&, const Shape&);
// The slices as the user gave them: " [10:20, ::2]"; "" without slices.
std::string slices_text(const std::vector<Slice>&);

}  // namespace tessera::io
