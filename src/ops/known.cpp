#include "ops/known.hpp"

#include "kernels/visit.hpp"

namespace tessera {

std::optional<std::pair<double, double>> known_range(const Array& x) {
  const Node& node = *x.node();
  const Output& output = output_of(x);
  const bool is_everywhere = output.stored && !output.sharding && output.stored->layout.is_fully_replicated();
  if (node.traced || node.region || output.deleted || !is_everywhere || x.size() == 0) return std::nullopt;
  if (!is_integer(x.dtype()) && x.dtype() != float32 && x.dtype() != float64) return std::nullopt;
  return kernels::visit(x.dtype(), [&]<class T>(T) -> std::optional<std::pair<double, double>> {
    if constexpr (!std::is_arithmetic_v<T> || std::is_same_v<T, bool>)
      return std::nullopt;
    else {
      const T* values = reinterpret_cast<const T*>(output.stored->buffer.data());
      T low = values[0], high = values[0];
      bool is_ordered = true;
      for (std::int64_t i = 0; i < x.size(); ++i) {
        is_ordered &= values[i] == values[i];
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
      }
      if (!is_ordered) return std::nullopt;
      return std::pair{static_cast<double>(low), static_cast<double>(high)};
    }
  });
}

}  // namespace tessera
