// Helpers of the tables' calls: operands that a function can take, calls that take a
// function, and results of any kind as arrays.
#pragma once
#include <tessera/tessera.hpp>

#include "catalogue/samples.hpp"

namespace tessera::test {

// ---- results ----
template <class T> void add_arrays(Out& out, const T& result) {
  if constexpr (std::is_convertible_v<T, Array>) {
    out.push_back(result);
  } else if constexpr (std::is_same_v<T, random::Key>) {
    out.push_back(result.data);
  } else if constexpr (requires { result.begin(); }) {
    for (const auto& part : result) add_arrays(out, part);
  } else if constexpr (requires { T{Array(), Array(), Array(), Array()}; }) {
    const auto& [a, b, c, d] = result;
    for (const Array* part : {&a, &b, &c, &d}) out.push_back(*part);
  } else if constexpr (requires { T{Array(), Array(), Array()}; }) {
    const auto& [a, b, c] = result;
    for (const Array* part : {&a, &b, &c}) out.push_back(*part);
  } else {
    const auto& [a, b] = result;
    add_arrays(out, a);
    add_arrays(out, b);
  }
}
// Arrays, keys, lists of them, and structs of arrays, one after the other.
template <class... T> Out outs(const T&... results) {
  Out out;
  (add_arrays(out, results), ...);
  return out;
}

// ---- operands ----
inline Array identity_like(const Array& x) { return astype(eye(x.shape()[x.shape().size() - 1]), x.dtype()); }
inline Array regular(const Array& x) { return x + 4 * identity_like(x); }
inline Array hermitian(const Array& x) { return x + conj(swapaxes(x, -1, -2)); }
inline Array definite(const Array& x) { return matmul(x, conj(swapaxes(x, -1, -2))) + identity_like(x); }
inline Array with_nan(const Array& x, int column) {
  return where(arange(x.shape()[1]) == column, astype(NAN, x.dtype()), x);
}
// The parts of an SVD that do not depend on the phases of singular vectors.
Out parts_of_svd(const Array& x);
Array on_all_devices(const Array& x);

// ---- control flow and collectives ----
Out scanned(const Array& xs, const Array& start);
Out scanned_rows(const Array& xs, const Array& start);
Array relaxed(const Array& x);
Array chosen(const Array& a, const Array& b);
Array grown(const Array& x);
Array switched(const Array& x, int branch);
std::vector<std::pair<int, int>> ring_of_devices();
// f in a shard_map over x's devices, on as many rows and columns as they divide.
std::function<Array(const Array&)> over_devices(Array (*f)(const Array&), PartitionSpec out);

// ---- sparse matrices ----
// Entries at (i, i), (i, 3 i + 1) and (i, 5 i + 2) modulo n, duplicates summed; rows split over x's devices,
// in their order.
sparse::Csr banded(std::int64_t m, std::int64_t n, const Array& x);
sparse::Csr from_lists(std::int64_t m, std::int64_t n, const Array& x);
sparse::Csr from_dense_of(std::int64_t m, std::int64_t n, const Array& x);
inline sparse::Csr scaled(const sparse::Csr& a, const Array& factor) {
  return a.with_values(a.values() * factor);
}
Array symmetric_banded(std::int64_t n, const Array& x);

// ---- calls that must be refused ----
inline const Array none;  // an empty handle, which every function refuses
inline Array scalar() { return Array(1.f); }
inline Array vector() { return ones({3}); }
inline Array matrix() { return ones({2, 3}); }
inline random::Key no_key() { return {none}; }

}  // namespace tessera::test
