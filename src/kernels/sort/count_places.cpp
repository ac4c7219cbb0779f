#include "kernels/sort/count_places.hpp"

#include <algorithm>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

// Consecutive numbers are often equal: they are counted in separate tables to avoid store dependencies.
// Numbers out of range count in one extra element.
template <class T>
void count_range(const T* x, std::int64_t n, std::int64_t length, std::vector<std::int32_t>& counts) {
  constexpr std::int64_t tables = 4, few = 1 << 12;
  const std::int64_t used = length <= few ? tables : 1, stride = length + 1;
  counts.assign(static_cast<std::size_t>(used * stride), 0);
  const auto place = [length](T value) {
    const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));  // negative: above all
    return std::min(at, static_cast<std::uint64_t>(length));
  };
  std::int64_t i = 0;
  if (used == tables)
    for (; i + tables <= n; i += tables)
      for (std::int64_t t = 0; t < tables; ++t) ++counts[t * stride + place(x[i + t])];
  for (; i < n; ++i) ++counts[place(x[i])];
  for (std::int64_t t = 1; t < used; ++t)
    for (std::int64_t p = 0; p < length; ++p) counts[p] += counts[t * stride + p];
}

}  // namespace

void count_places(Dtype dtype, const void* x, std::int64_t n, std::int64_t length, std::int32_t* out) {
  std::fill_n(out, length, 0);
  visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      const std::int64_t worth_a_thread = std::max<std::int64_t>(1 << 16, 4 * length);
      share(n, worth_a_thread, [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int32_t> own;
        count_range(static_cast<const T*>(x) + begin, end - begin, length, own);
#pragma omp critical(tessera_count_places)
        for (std::int64_t p = 0; p < length; ++p) out[p] += own[p];
      });
    }
  });
}

}  // namespace tessera::kernels
