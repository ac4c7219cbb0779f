// The part of a stored array that slices ask for.
#pragma once
#include <tessera/array/index.hpp>
#include <tessera/shape.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "types/box.hpp"

namespace tessera::io {

// Along each dim where the part starts, its step, and how much there is.
struct Part {
  std::vector<std::int64_t> start, step, count;
  bool has_no_steps() const;
  Box span_of(const Box& box) const;  // of a box of the part in the array, with what is between the steps
};
// `what` names the array in errors, which begin with the call. IndexError for more slices than dims, and for
// steps below 1.
Part part_of(const std::string& call, const std::string& what, const std::vector<Slice>&, const Shape&);
// As it is asked for: " [10:20, ::2]"; "" without slices.
std::string slices_text(const std::vector<Slice>&);

}  // namespace tessera::io
