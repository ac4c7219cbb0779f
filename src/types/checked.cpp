#include "types/checked.hpp"

#include <tessera/error.hpp>

#include "base/call.hpp"

namespace tessera {
namespace {

[[noreturn]] void refuse(std::span<const std::int64_t> extents, const std::string& call,
                         const std::string& what) {
  const Shape shape(std::vector<std::int64_t>(extents.begin(), extents.end()));
  throw ShapeError(call_text_or(call) + ": " + what + " of shape " + to_string(shape) +
                   " does not fit 64 bits; use a smaller shape");
}

}  // namespace

std::int64_t checked_product(std::span<const std::int64_t> extents, const std::string& call) {
  std::int64_t product = 1;
  bool empty = false;
  for (const auto extent : extents) {
    if (extent < 0)
      throw ShapeError(call_text_or(call) + ": shape " +
                       to_string(Shape(std::vector<std::int64_t>(extents.begin(), extents.end()))) +
                       " has the negative extent " + std::to_string(extent));
    if (extent == 0)
      empty = true;
    else if (__builtin_mul_overflow(product, extent, &product))
      refuse(extents, call, "the number of elements");
  }
  return empty ? 0 : product;
}

std::int64_t checked_bytes(const Shape& shape, Dtype dtype, const std::string& call) {
  std::vector<std::int64_t> factors = shape.vector();
  checked_product(std::span<const std::int64_t>(factors), call);
  factors.push_back(static_cast<std::int64_t>(itemsize(dtype)));
  try {
    return checked_product(std::span<const std::int64_t>(factors), call);
  } catch (const ShapeError&) {
    refuse(shape.vector(), call, "the number of bytes (" + name(dtype) + ")");
  }
}

std::int64_t checked_sum(std::int64_t a, std::int64_t b, const std::string& call) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    throw ShapeError(call_text_or(call) + ": " + std::to_string(a) + " + " + std::to_string(b) +
                     " does not fit 64 bits; use a smaller shape");
  return sum;
}

}  // namespace tessera
