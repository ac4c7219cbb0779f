// Products of sparse matrices in memory with matrices in files.
#include <tessera/io/stream.hpp>

#include <tessera/sparse.hpp>

#include "io/folder.hpp"
#include "support/compare.hpp"

namespace tessera::test {
namespace {

class SparseProducts : public InFolder {
 protected:
  io::FileArray file_of(const Array& x) const {
    io::save_npy(path("x.npy"), x);
    return io::open(path("x.npy"));
  }
  // Every third element is not zero.
  static Array thirds(int m, int n) {
    const Array at = reshape(arange(m * n), {m, n});
    return where(remainder(at, 3) == 0, cos(astype(at, float64)), zeros({m, n}, float64));
  }
  static void expect_near(const Array& found, const Array& expected) {
    expect_close(astype(found, float64), expected, 1e-11);
  }
};

TEST_F(SparseProducts, with_a_file_are_streamed_along_its_columns) {
  const Array x = sin(reshape(astype(arange(19 * 23), float64), {19, 23})), y = x(slice(0, 13));
  const Array dense = thirds(13, 19);
  const auto a = sparse::from_dense(dense, all_rows());
  const auto file = file_of(x);
  for (const std::int64_t slab : {1, 5, 23}) {
    const io::ComputeOptions options{.slab = slab};
    expect_near(io::compute(sparse::matmul(a, file), options), matmul(dense, x));
    expect_near(io::compute(sparse::matmul(a, sqrt(abs(file))) * 2, options),
                matmul(dense, sqrt(abs(x))) * 2);
    expect_near(io::compute(sparse::matmul(a.T(), file.part({slice(0, 13)})), options),
                matmul(transpose(dense), y));
    expect_near(io::compute(sum(sparse::matmul(a, file), 1), options), sum(matmul(dense, x), 1));
    expect_near(io::compute(sparse::matmul(a, file) + file.part({slice(0, 13)}), options),
                matmul(dense, x) + y);
  }
}

TEST_F(SparseProducts, are_stored_within_the_limit) {
  const Array x = sin(reshape(astype(arange(300 * 211), float64), {300, 211}));
  const Array dense = thirds(290, 300);
  const auto a = sparse::from_dense(dense, all_rows());
  const auto file = file_of(x);
  const io::StoreOptions options{.memory_limit = 1500 << 10};
  const Array y = sparse::matmul(a, file);
  const auto plan = io::explain_store(path("y.npy"), y, options);
  EXPECT_GT(plan.slabs, 1);
  EXPECT_LE(plan.peak_bytes, plan.limit_bytes);
  EXPECT_EQ(plan.bytes_spilled, 0);
  io::store(path("y.npy"), y, options);
  expect_near(io::load_npy(path("y.npy")), matmul(dense, x));
}

}  // namespace
}  // namespace tessera::test
