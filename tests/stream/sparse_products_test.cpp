// Products of sparse matrices in memory with matrices in files.
#include <tessera/io/stream.hpp>

#include <tessera/sparse.hpp>

#include "io/folder.hpp"
#include "support/compare.hpp"
#include "types/buffer.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

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

// In every format that others write: x and the results are in memory, the entries are not.
TEST_F(SparseProducts, of_a_matrix_in_a_file_take_one_pass) {
  const Array dense = thirds(290, 301), x = sin(reshape(astype(arange(301 * 3), float64), {301, 3})),
              y = cos(astype(arange(290), float64));
  const auto a = sparse::from_dense(dense, all_rows());
  sparse::save_npz(path("a.npz"), a), sparse::save_npz(path("t.npz"), a.T());
  sparse::save_hdf5(path("a.h5"), "group/a", a);
  sparse::save_zarr(path("a.zarr"), a);
  const std::vector<sparse::FileMatrix> files{sparse::open(path("a.npz")), sparse::open(path("t.npz")).T(),
                                              sparse::open(path("a.h5"), "group/a"),
                                              sparse::open(path("a.zarr"))};
  for (const auto& file : files)
    for (const std::int64_t slab : {960, 7919}) {
      const io::ComputeOptions options{.slab = slab};
      ASSERT_EQ(file.shape, (Shape{290, 301}));
      expect_near(io::compute(sparse::matmul(file, x), options), matmul(dense, x));
      expect_near(io::compute(sparse::matmul(file.T(), y), options), matmul(y, dense));
      expect_near(io::compute(sum(square(file.values)), options), sum(square(dense)));
      expect_near(io::compute(segment_sum(file.values, file.rows, 290), options), sum(dense, 1));
    }
  const Array product = sparse::matmul(files[0], x);
  const auto plan = io::explain_compute({product}, {.memory_limit = 300 << 10});
  EXPECT_EQ(plan.passes, 1);
  EXPECT_GT(plan.slabs, 1);
  EXPECT_EQ(plan.bytes_spilled, 0);
  EXPECT_LE(plan.peak_bytes, plan.limit_bytes);
  EXPECT_LT(plan.bytes_read, 14 * files[0].values.shape().elements());
  reset_peak_memory();
  const auto before = memory_use().live_bytes;
  expect_near(io::compute(product, {.memory_limit = 300 << 10}), matmul(dense, x));
  EXPECT_LE(memory_use().peak_bytes - before, plan.limit_bytes);
}

// A list in memory, split over the ranks or not, and a list and updates in files.
TEST_F(SparseProducts, and_updates_of_lists_are_streamed_within_the_limit) {
  const Array x = sin(reshape(astype(arange(70000 * 13), float64), {70000, 13}));
  const auto file = file_of(x);
  const Array list = remainder(arange(500) * 7919, 70011);
  const auto updated = [&](const Array& v) {
    return v.at(list).add(2.5).at(device_put(list, all_rows())).min(1);
  };
  const auto summed = [](const Array& v) { return zeros({5, 13}, float64).at(arange(70000) % 5).add(v); };
  const io::StoreOptions options{.memory_limit = 900 << 10};
  expect_near(io::compute(summed(file), {.memory_limit = options.memory_limit}), summed(x));
  const auto plan = io::explain_store(path("y.npy"), updated(file), options);
  EXPECT_LE(plan.peak_bytes, plan.limit_bytes);
  EXPECT_GT(plan.slabs, 3);
  EXPECT_EQ(plan.bytes_read, x.nbytes());
  reset_peak_memory();
  const auto before = memory_use().live_bytes;
  io::store(path("y.npy"), updated(file), options);
  EXPECT_LE(memory_use().peak_bytes - before, plan.limit_bytes);
  expect_near(io::load_npy(path("y.npy")), updated(x));
  io::save_npy(path("list.npy"), list);
  const auto of_files = [](const Array& v, const Array& places) {
    return v.at(places).add(v(slice(0, 500)));
  };
  expect_near(io::compute(of_files(file, io::open(path("list.npy")))), of_files(x, list));
}

// A sum of 80 KB, which each rank has apart: once at the end with much room, with each slab with little.
TEST_F(SparseProducts, are_combined_once_or_with_each_slab_as_memory_allows) {
  const Array x = sin(astype(arange(120007), float64)), rows = astype(arange(120007) * 7 % 10000, int64);
  io::save_npy(path("rows.npy"), rows);
  const Array sums = segment_sum(file_of(x), io::open(path("rows.npy")), 10000);
  const Array expected = segment_sum(x, rows, 10000);
  for (const std::int64_t kib : {360, 400, 500, 700, 1500}) {
    const io::ComputeOptions options{.memory_limit = kib << 10};
    const auto plan = io::explain_compute({sums}, options);
    EXPECT_LE(plan.peak_bytes, plan.limit_bytes) << kib;
    EXPECT_LT(plan.slabs, 1000) << kib;
    EXPECT_EQ(plan.passes, 1);
    expect_near(io::compute(sums, options), expected);
  }
}

// Halving for the line of entry 0 would find line 2 and leave out those before.
TEST_F(SparseProducts, of_a_file_whose_lines_fall_back_are_refused) {
  sparse::save_zarr(path("a.zarr"), sparse::from_dense(ones({4, 2}, float64), all_rows()));
  io::save_zarr(path("a.zarr") + "/indptr", array({0, 2, 0, 6, 8}));
  EXPECT_THAT(text_of_error<IoError>([&] { sparse::open(path("a.zarr")); }),
              HasSubstr("has 0 as element 2 of 'indptr'; it must begin with 0, never fall"));
}

// A row that is longer than a slab: entries are streamed, not rows.
TEST_F(SparseProducts, of_a_long_row_are_streamed) {
  const Array dense = concatenate({ones({1, 5000}, float64), thirds(3, 5000)}, 0),
              x = sin(astype(arange(5000), float64));
  sparse::save_npz(path("a.npz"), sparse::from_dense(dense, all_rows()));
  const auto a = sparse::open(path("a.npz"));
  expect_near(io::compute(sparse::matmul(a, x), {.slab = 960}), matmul(dense, x));
}

TEST_F(SparseProducts, of_damaged_files_are_errors) {
  const Array data = ones({4}, float64), first = astype(array({0, 2, 4}), int64);
  const auto save = [&](const Array& indices, const Array& indptr) {
    const auto file = [&](const char* name) { return path("a.zarr") + "/" + name; };
    sparse::save_zarr(path("a.zarr"), sparse::from_dense(ones({2, 2}, float64), all_rows()));
    io::save_zarr(file("indices"), indices), io::save_zarr(file("indptr"), indptr);
    return sparse::open(path("a.zarr"));
  };
  const auto text = [&](const Array& indices, const Array& indptr) {
    return text_of_error<IoError>(
        [&] { io::compute(sparse::matmul(save(indices, indptr), ones({2}, float64)), {.slab = 2}); });
  };
  EXPECT_THAT(text(array({0, 1, 0, 2}), first),
              HasSubstr("has 2 as element 3 of 'indices'; there are 0 to 1"));
  EXPECT_THAT(text(array({0, 1, 0}), first), HasSubstr("needs 4 integers"));
  EXPECT_THAT(text(array({0, 1, 0, 1}), array({0, 2, 3})),
              HasSubstr("fewer entries in 'indptr' than in 'data'"));
  EXPECT_THAT(text(array({0, 1, 0, 1}), array({0, 7, 4})), HasSubstr("has 7 as element 1 of 'indptr'"));
  EXPECT_THAT(text(array({0, 1, 0, 1}), array({2, 0, 4})), HasSubstr("has 2 as element 0 of 'indptr'"));
}

}  // namespace
}  // namespace tessera::test
