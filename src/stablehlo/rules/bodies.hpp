// The small functions in reductions, sorts and scatters: which ones they are.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

// "add" of a region that is one operation of its two arguments and returns its result; "" for any other.
std::string simple_body(const RegionText&);
// The region of a reduction: "add" of `applies stablehlo.add`, or simple_body.
std::string body_of_reduction(const OpCall&);
// The region's operations in one line, its arguments and results by number: equal for equal regions. Types
// of comparisons are left out unless they say TOTALORDER. "" if it reads a value from outside.
std::string canonical(const RegionText&);
// The operation of a region that makes a value; null: an argument, or a value from outside.
const Operation* maker_in(const RegionText&, int value);
// Whether the value counts 0, 1, ... along a dim.
bool is_iota_along(const OpCall&, int value, int d);
// direction and type of stablehlo.compare
std::pair<std::string, std::string> comparison_of(const Operation&);

// One pair of arrays combined elementwise by the kind of a simple body; nullopt: unknown kind.
std::optional<Array> combined(const std::string& kind, const Array& a, const Array& b);
bool is_known_kind(const std::string& kind);

// Lines along a dim, combined in pairs until one element is left; the dim goes. For associative and
// commutative functions, which XLA's reductions want.
template <class Combine> Arrays folded(Combine combine, Arrays arrays, int d);

}  // namespace tessera::stablehlo

#include <tessera/ops.hpp>

#include "stablehlo/rules/moves.hpp"

namespace tessera::stablehlo {

template <class Combine> Arrays folded(Combine combine, Arrays arrays, int d) {
  while (arrays[0].shape()[static_cast<std::size_t>(d)] > 1) {
    const auto n = arrays[0].shape()[static_cast<std::size_t>(d)], half = n / 2;
    Arrays left, right;
    for (const auto& x : arrays)
      left.push_back(part_along(x, d, 0, half)), right.push_back(part_along(x, d, half, 2 * half));
    Arrays both = combine(left, right);
    if (n % 2 != 0)
      for (std::size_t i = 0; i < both.size(); ++i)
        both[i] = concatenate({both[i], part_along(arrays[i], d, n - 1, n)}, d);
    arrays = std::move(both);
  }
  for (auto& x : arrays) x = squeeze(x, {d});
  return arrays;
}

}  // namespace tessera::stablehlo
