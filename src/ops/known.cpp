#include "ops/known.hpp"

#include <algorithm>

#include "kernels/reduce/reduce_rows.hpp"
#include "kernels/visit.hpp"
#include "ops/build.hpp"
#include "ops/create/scalar.hpp"

namespace tessera {
namespace {

// The extremes of n > 0 elements; nullopt if one is NaN. Both are computed for one piece at a time, while it
// is in the cache.
template <class T>
std::optional<std::pair<double, double>> range_of(Dtype dtype, const T* values, std::int64_t n) {
  constexpr std::int64_t piece = 4096;
  const auto least = kernels::find_row_reduce(ReduceKind::min, dtype),
             most = kernels::find_row_reduce(ReduceKind::max, dtype);
  T low = values[0], high = values[0];
  for (std::int64_t i = 0; i < n; i += piece) {
    const auto count = std::min(piece, n - i);
    T ends[2];
    least(values + i, 1, count, &ends[0]), most(values + i, 1, count, &ends[1]);
    if (ends[1] != ends[1]) return std::nullopt;
    low = std::min(low, ends[0]), high = std::max(high, ends[1]);
  }
  return std::pair{static_cast<double>(low), static_cast<double>(high)};
}

// The memory of x if every rank holds all of it, in one of the usual dtypes of real numbers; else null.
const std::byte* held_everywhere(const Array& x) {
  const Node& node = *x.node();
  const Output& output = output_of(x);
  const bool is_everywhere = output.stored && !output.sharding && output.stored->layout.is_fully_replicated();
  if (node.traced || node.region || output.deleted || !is_everywhere) return nullptr;
  const bool is_usual =
      is_integer(x.dtype()) || is_bool(x.dtype()) || x.dtype() == float32 || x.dtype() == float64;
  return is_usual ? output.stored->buffer.data() : nullptr;
}

}  // namespace

std::optional<std::pair<double, double>> known_range(const Array& x) {
  const std::byte* const held = held_everywhere(x);
  if (held == nullptr || x.size() == 0) return std::nullopt;
  return kernels::visit(x.dtype(), [&]<class T>(T) -> std::optional<std::pair<double, double>> {
    if constexpr (!std::is_arithmetic_v<T> || std::is_same_v<T, bool>)
      return std::nullopt;
    else
      return range_of(x.dtype(), reinterpret_cast<const T*>(held), x.size());
  });
}

void check_known_indices(const Array& indices, Range allowed, const std::string& why,
                         const std::string& cure) {
  if (!is_integer(indices.dtype())) return;
  const auto found = known_range(indices);
  if (!found) return;
  const auto [least, most] = *found;
  if (least >= static_cast<double>(allowed.start) && most < static_cast<double>(allowed.stop)) return;
  throw IndexError(call_text() + ": the indices go from " + std::to_string(static_cast<std::int64_t>(least)) +
                   " to " + std::to_string(static_cast<std::int64_t>(most)) + ", but " + why + "; " + cure);
}

std::optional<std::vector<double>> known_values(const Array& x) {
  if (const auto number = scalar_value(x); number && !is_complex(x.dtype()))  // as written, not in its dtype
    return std::vector{number->is_integer ? static_cast<double>(number->integer) : number->floating.real()};
  const std::byte* const held = held_everywhere(x);
  if (held == nullptr) return std::nullopt;
  std::vector<double> values;
  kernels::visit(x.dtype(), [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T>)
      values.assign(reinterpret_cast<const T*>(held), reinterpret_cast<const T*>(held) + x.size());
  });
  return values;
}

}  // namespace tessera
