// The predicted memory of LAPACK calls besides operands and results, compared with their actual allocations.
#include "kernels/factor/lapack_workspace.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <type_traits>
#include <vector>

#include "kernels/spectral/nonsymmetric.hpp"

namespace {

// The peak of memory from operator new in this program since `watching` was set.
std::atomic<bool> watching{false};
std::atomic<std::int64_t> live{0}, peak{0};

void* counted(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  if (watching) {
    const std::int64_t now = live += static_cast<std::int64_t>(malloc_usable_size(block));
    for (std::int64_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {}
  }
  return block;
}
void given_back(void* block) {
  if (watching && block != nullptr) live -= static_cast<std::int64_t>(malloc_usable_size(block));
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* const block = std::malloc(size);
  return block == nullptr ? nullptr : counted(block);
}
void operator delete(void* block) noexcept { given_back(block); }
void operator delete(void* block, std::size_t) noexcept { given_back(block); }

namespace tessera::kernels {
namespace {

std::int64_t taken_by(const std::function<void()>& work) {
  live = peak = 0;
  watching = true;
  work();
  watching = false;
  return peak;
}

// n x n, symmetric, well conditioned; and space for any result.
struct Operands {
  Operands(Dtype dtype, std::int64_t rows, std::int64_t columns)
      : a(rows * columns * 16), x(4 * rows * rows * 16), y(4 * rows * rows * 16), z(4 * rows * rows * 16) {
    visit_matrix(dtype, [&](auto zero) {
      using T = decltype(zero);
      T* values = reinterpret_cast<T*>(a.data());
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          T& value = values[i * columns + j];
          value = T(i == j ? 100.0 : 1.0 / static_cast<double>(1 + i + j));
          if constexpr (!std::is_floating_point_v<T>)  // eig takes a shorter way without imaginary parts
            value.imag(static_cast<typename T::value_type>(1e-3 * static_cast<double>(j - i)));
        }
    });
  }
  template <class F> static void visit_matrix(Dtype dtype, F&& f) {
    if (dtype == float32) f(float{});
    if (dtype == float64) f(double{});
    if (dtype == complex64) f(std::complex<float>{});
    if (dtype == complex128) f(std::complex<double>{});
  }
  std::vector<char> a, x, y, z;
};

class Workspace : public testing::TestWithParam<Dtype> {
 protected:
  // Blocks are slightly larger than requested.
  static void expect(const char* what, std::int64_t told, const std::function<void()>& work) {
    const auto taken = taken_by(work);
    EXPECT_GE(told, 0.98 * static_cast<double>(taken) - 4096) << what;
    EXPECT_LE(told, 1.02 * static_cast<double>(taken) + 4096) << what;
    EXPECT_GT(told, 0) << what;
  }
  static constexpr std::int64_t m = 150, n = 97;
  const Dtype dtype = GetParam();
};

TEST_P(Workspace, of_factorizations_is_what_they_take) {
  Operands o(dtype, m, n);
  std::vector<std::int32_t> pivots(m);
  expect("lu", lu_workspace(dtype, 1, m, n),
         [&] { lu_factor(dtype, 1, m, n, o.a.data(), o.x.data(), pivots.data()); });
  for (const bool complete : {false, true})
    expect("qr", qr_workspace(dtype, 1, m, n, complete),
           [&] { qr(dtype, 1, m, n, complete, o.a.data(), o.x.data(), o.y.data()); });
  constexpr std::int64_t tall = 50000, narrow = 11;
  std::vector<char> a(tall * narrow * 16), q(tall * narrow * 16), r(narrow * narrow * 16);
  expect("qr of a tall matrix", qr_workspace(dtype, 1, tall, narrow, false),
         [&] { qr(dtype, 1, tall, narrow, false, a.data(), q.data(), r.data()); });
  expect("pivoted columns", pivots_workspace(dtype, m, n),
         [&] { pivoted_columns(dtype, 1, m, n, o.a.data(), pivots.data()); });
}
TEST_P(Workspace, of_spectra_is_what_they_take) {
  Operands o(dtype, n, n), tall(dtype, m, n);
  for (const bool vectors : {false, true}) {
    expect("eigh", eigh_workspace(dtype, 1, n, vectors),
           [&] { eigh(dtype, 1, n, o.a.data(), o.x.data(), vectors ? o.y.data() : nullptr); });
    for (const bool full : {false, true})
      expect("svd", svd_workspace(dtype, 1, m, n, full, vectors), [&] {
        svd(dtype, 1, m, n, full, tall.a.data(), vectors ? tall.x.data() : nullptr, tall.y.data(),
            vectors ? tall.z.data() : nullptr);
      });
    if (dtype == complex64 || dtype == complex128)
      expect("eig", eig_workspace(dtype, n, vectors),
             [&] { eig(dtype, 1, n, o.a.data(), o.x.data(), vectors ? o.y.data() : nullptr); });
  }
  expect("schur", schur_workspace(dtype, n), [&] { schur(dtype, 1, n, o.a.data(), o.x.data(), o.y.data()); });
}
TEST_P(Workspace, of_many_matrices_is_that_of_one_for_each_thread) {
  Operands o(dtype, n, n);
  EXPECT_EQ(qr_workspace(dtype, 0, n, n, false), 0);
  EXPECT_EQ(qr_workspace(dtype, 64, n, n, false) % qr_workspace(dtype, 1, n, n, false), 0);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Workspace, testing::Values(float32, float64, complex64, complex128),
                         [](const auto& dtype) { return name(dtype.param); });

}  // namespace
}  // namespace tessera::kernels
