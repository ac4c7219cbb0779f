// reduce: tessera's reductions where the function is one of theirs; otherwise halves are combined by it.
#include <tessera/ops.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stablehlo/rules/bodies.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

Shape without(const Shape& shape, const std::vector<int>& dims) {
  std::vector<std::int64_t> extents;
  for (int d = 0; d < shape.ndim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end())
      extents.push_back(shape[static_cast<std::size_t>(d)]);
  return Shape(std::move(extents));
}

bool has_no_lines(const Shape& shape, const std::vector<int>& dims) {
  return std::any_of(dims.begin(), dims.end(),
                     [&](int d) { return shape[static_cast<std::size_t>(d)] == 0; });
}

// The arrays' elements along the dims combined in pairs; there is at least one element.
template <class Combine> Arrays folded_along(Combine combine, Arrays arrays, std::vector<int> dims) {
  std::sort(dims.rbegin(), dims.rend());
  for (const int d : dims) arrays = folded(combine, std::move(arrays), d);
  return arrays;
}

Array xor_of_bools(const Array& x, const std::vector<int>& dims) {
  return equal(bitwise_and(sum(astype(x, int32), dims), 1), 1);
}

// A reduction by a known function of an array that has elements along the dims.
Array reduced(const std::string& kind, const Array& x, const std::vector<int>& dims) {
  if (is_bool(x.dtype())) {
    if (kind == "add" || kind == "or" || kind == "maximum") return any(x, dims);
    if (kind == "xor") return xor_of_bools(x, dims);
    return all(x, dims);
  }
  if (kind == "add") return sum(x, dims, x.dtype());
  if (kind == "multiply") return prod(x, dims, x.dtype());
  if (kind == "maximum" && !is_complex(x.dtype())) return max(x, dims);
  if (kind == "minimum" && !is_complex(x.dtype())) return min(x, dims);
  return folded_along([&](const Arrays& a, const Arrays& b) { return Arrays{*combined(kind, a[0], b[0])}; },
                      {x}, dims)[0];
}

// The number that a maximum (minimum) begins with; NaN where no double is that number.
double neutral_number(Dtype dtype, bool of_maximum) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const int bits = static_cast<int>(itemsize(dtype)) * 8;
  if (is_bool(dtype)) return of_maximum ? 0 : 1;
  if (is_floating(dtype)) return of_maximum ? -infinity : infinity;
  if (is_unsigned_integer(dtype) && of_maximum) return 0;
  if (is_unsigned_integer(dtype)) return bits < 64 ? std::ldexp(1.0, bits) - 1 : std::nan("");
  if (of_maximum) return -std::ldexp(1.0, bits - 1);
  return bits < 64 ? std::ldexp(1.0, bits - 1) - 1 : std::nan("");
}

// Whether the init of operand n changes nothing.
bool is_neutral(const OpCall& s, const std::string& kind, std::size_t n) {
  const auto value = constant_of(s.frame, s.op.operands[n]);
  if (!value || s.is_lifted) return false;
  const Dtype dtype = s.x[n].dtype();
  if (kind == "add" || kind == "or" || kind == "xor") return *value == 0;
  if (kind == "multiply") return *value == 1;
  if (kind == "and") return is_bool(dtype) ? *value == 1 : false;
  return *value == neutral_number(dtype, kind == "maximum");
}

Arrays by_known_function(OpCall& s, const std::string& kind, const std::vector<int>& dims) {
  const Array &x = s.x[0], &init = s.x[1];
  if (has_no_lines(x.shape(), dims)) return {broadcast_to(init, without(x.shape(), dims))};
  const Array result = dims.empty() ? x : reduced(kind, x, dims);
  return {is_neutral(s, kind, 1) ? result : *combined(kind, init, result)};
}

// ---- the place of the largest or smallest element ----

// JAX's functions of (value, place), for floats, where NaN wins, and for integers.
struct Extremum {
  bool is_largest = false, is_known = false;
};
Extremum place_body(const RegionText& region) {
  const auto text = canonical(region);
  for (const bool is_largest : {true, false}) {
    const std::string better = is_largest ? "compare GT 0 2;" : "compare LT 0 2;";
    const std::string of_floats = better +
                                  "compare NE 0 0;or 4 5;compare EQ 0 2;compare LT 1 3;and 7 8;or 6 9;"
                                  "select 6 0 2;select 10 1 3;return 11 12;";
    const std::string of_integers = better +
                                    "compare EQ 0 2;compare LT 1 3;and 5 6;or 4 7;"
                                    "select 4 0 2;select 8 1 3;return 9 10;";
    if (text == of_floats || text == of_integers) return {is_largest, true};
  }
  return {};
}

// nullopt: it is something else.
std::optional<Arrays> place_of_extremum(OpCall& s, const std::vector<int>& dims) {
  if (s.x.size() != 4 || dims.size() != 1 || s.is_lifted || s.x[0].size() == 0) return std::nullopt;
  const auto body = place_body(s.op.regions[0]);
  const auto first = constant_of(s.frame, s.op.operands[3]);
  if (!body.is_known || !is_iota_along(s, s.op.operands[1], dims[0]) || !first || *first != 0)
    return std::nullopt;
  const auto init = constant_of(s.frame, s.op.operands[2]);
  const Dtype dtype = s.x[0].dtype();
  if (!init || *init != neutral_number(dtype, body.is_largest)) return std::nullopt;
  const Array x = is_bool(dtype) ? astype(s.x[0], int32) : s.x[0];
  const int d = dims[0];
  const Array best = reduced(body.is_largest ? "maximum" : "minimum", s.x[0], dims);
  return Arrays{best, astype(body.is_largest ? argmax(x, d) : argmin(x, d), s.type(1).dtype)};
}

// ---- any function ----

Arrays by_own_function(OpCall& s, const std::vector<int>& dims) {
  const auto n = s.x.size() / 2;
  Arrays arrays(s.x.begin(), s.x.begin() + static_cast<std::ptrdiff_t>(n));
  Arrays inits(s.x.begin() + static_cast<std::ptrdiff_t>(n), s.x.end());
  const auto combine = [&](const Arrays& a, const Arrays& b) {
    Arrays both = a;
    both.insert(both.end(), b.begin(), b.end());
    return s.run.elementwise(s.frame, s.op.regions[0], both);
  };
  const Shape shape = without(arrays[0].shape(), dims);
  for (auto& init : inits) init = broadcast_to(init, shape);
  if (has_no_lines(arrays[0].shape(), dims)) return inits;
  return combine(inits, folded_along(combine, std::move(arrays), dims));
}

Arrays reduce(OpCall& s) {
  if (s.x.size() < 2 || s.x.size() % 2 != 0) s.refuse("takes arrays and as many first values");
  const auto n = s.x.size() / 2;
  for (std::size_t i = 0; i < n; ++i)
    if (s.x[i].shape() != s.x[0].shape() || s.x[n + i].ndim() != 0 || s.x[i].dtype() != s.x[n + i].dtype())
      s.refuse("arrays of different shapes, or first values of other types");
  const auto dims = s.dims("dimensions", s.x[0].ndim());
  const auto kind = body_of_reduction(s);
  if (!kind.empty() && n == 1) return by_known_function(s, kind, dims);
  if (s.op.regions.empty() || s.op.regions[0].arguments.size() != s.x.size())
    s.refuse("its function takes another number of arguments");
  if (auto place = place_of_extremum(s, dims)) return *place;
  return by_own_function(s, dims);
}

}  // namespace

void add_reductions(Rules& rules) { rules["stablehlo.reduce"] = reduce; }

}  // namespace tessera::stablehlo
