// Running sums and products of a line, a vector at a time: the order of additions is not that of a loop.
#pragma once
#include <cstdint>
#include <type_traits>

#include "tessera/dtype.hpp"

namespace tessera::kernels {

template <class T> inline constexpr bool has_vector_scan =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>;

// A line of n > 0 elements; before: what the running value starts with, or null. out: x, or other memory.
template <class T> struct LineToScan {
  const T* x;
  std::int64_t n;
  bool reverse;
  const T* before;
  T* out;
};

void sum_by_vectors(const LineToScan<float>&);
void sum_by_vectors(const LineToScan<double>&);
void sum_by_vectors(const LineToScan<std::uint32_t>&);
void sum_by_vectors(const LineToScan<std::uint64_t>&);
void multiply_by_vectors(const LineToScan<float>&);
void multiply_by_vectors(const LineToScan<double>&);

}  // namespace tessera::kernels
