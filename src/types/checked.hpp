// Sizes in 64 bits without overflow: every product of extents from a user or a file is computed here. An
// extent of 0 does not hide the others, since strides are products of them too.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <span>
#include <string>

#include "types/box.hpp"

namespace tessera {

// The product of the extents; 0 if one is 0. ShapeError, which begins with the call, if an extent is negative
// or the product of the nonzero ones exceeds 2^63 - 1.
std::int64_t checked_product(std::span<const std::int64_t> extents, const std::string& call);
inline std::int64_t checked_product(const Shape& shape, const std::string& call) {
  return checked_product(std::span(shape.begin(), shape.end()), call);
}
std::int64_t checked_bytes(const Shape&, Dtype, const std::string& call);
std::int64_t checked_sum(std::int64_t a, std::int64_t b, const std::string& call);

}  // namespace tessera
