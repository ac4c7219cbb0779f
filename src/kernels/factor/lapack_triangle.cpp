#include "kernels/factor/lapack.hpp"

#include <algorithm>
#include <vector>

#include "kernels/factor/lapack_calls.hpp"
#include "kernels/factor/lapack_workspace.hpp"
#include "kernels/factor/magnitude.hpp"
#include "kernels/factor/row_major.hpp"
#include "kernels/factor/share_batch.hpp"

namespace tessera::kernels {
namespace {

// exponent_to_scale of a triangle; all of it is read only if its diagonal is tiny or huge.
template <class T> int exponent_of_triangle(std::int64_t n, bool lower, const T* a) {
  Magnitude diagonal, triangle;
  for (std::int64_t i = 0; i < n; ++i) diagonal.add(a + i * n + i, 1);
  if (diagonal.largest != 0 && exponent_to_scale<T>(diagonal) == 0) return 0;
  for (std::int64_t i = 0; i < n; ++i) triangle.add(a + i * n + (lower ? 0 : i), lower ? i + 1 : n - i);
  return exponent_to_scale<T>(triangle);
}

bool needs_conjugate(Dtype dtype, const TriangleUse& use) {
  return use.conjugate && !use.transpose && (dtype == complex64 || dtype == complex128);
}

}  // namespace

void triangular_solve(Dtype dtype, std::int64_t batch, std::int64_t n64, std::int64_t k64, TriangleUse use,
                      const void* a, const void* b, void* x) {
  const int n = lapack_int(n64, "a matrix extent"), k = lapack_int(k64, "a number of right-hand sides");
  if (n == 0 || k == 0) return;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    share_batch(batch, n64 * (n64 + k64), [&](std::int64_t begin, std::int64_t end) {
      std::vector<T> conjugated(needs_conjugate(dtype, use) ? static_cast<std::size_t>(n64 * n64) : 0);
      std::vector<T> scaled;
      for (std::int64_t i = begin; i < end; ++i) {
        const T* matrix = as<T>(a) + i * n64 * n64;
        if (!conjugated.empty()) {
          std::transform(matrix, matrix + n64 * n64, conjugated.begin(), conjugate<T>);
          matrix = conjugated.data();
        }
        const T* sides = as<T>(b) + i * n64 * k64;
        T* result = as<T>(x) + i * n64 * k64;
        std::copy(sides, sides + n64 * k64, result);
        const int exponent = use.unit_diagonal ? 0 : exponent_of_triangle(n64, use.lower, matrix);
        int of_sides = 0;
        if (exponent != 0) {
          scaled.assign(matrix, matrix + n64 * n64);
          scale(scaled.data(), n64 * n64, exponent);
          matrix = scaled.data();
          Magnitude magnitude;
          magnitude.add(sides, n64 * k64);
          scale(result, n64 * k64, of_sides = exponent_to_scale<T>(magnitude));
        }
        // Read by columns, the memory holds x^T op(a)^T = b^T with a^T in the opposite triangle.
        const char trans = !use.transpose ? 'N' : use.conjugate ? 'C' : 'T';
        lapack::trsm_right(!use.lower, trans, use.unit_diagonal, k, n, matrix, n, result, k);
        if (exponent != 0) scale(result, n64 * k64, exponent - of_sides);
      }
      return Breakdown{};
    });
  });
  check_refusals();
}

std::int64_t triangular_workspace(Dtype dtype, std::int64_t batch, std::int64_t n, TriangleUse use) {
  return needs_conjugate(dtype, use) ? workers_of(batch) * n * n * static_cast<std::int64_t>(itemsize(dtype))
                                     : 0;
}

}  // namespace tessera::kernels
