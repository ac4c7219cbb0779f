// Matrices in the files of SciPy and AnnData: what is written is read, on any mesh, and bad files are refused.
#include <tessera/io/zarr.hpp>
#include <tessera/runtime.hpp>

#include "base/call.hpp"
#include "base/settings.hpp"
#include "io/archive/npz_archive.hpp"
#include "io/folder.hpp"
#include "sparse/matrices.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using SparseFiles = InFolder;

Array vector_of(const std::vector<std::int64_t>& x) {
  return array(HostArray(std::vector<std::int64_t>(x), Shape{std::ssize(x)}));
}

void put_npz(const std::string& path, const std::map<std::string, Array>& arrays, const std::string& format) {
  const Call call("put_npz", std::source_location::current());
  io::save_npz_with_texts(path, arrays, {{"format", format}});
}

TEST_F(SparseFiles, hold_the_matrix_on_any_mesh) {
  std::vector<Sharding> layouts{by_rows()};
  if (device_count() % 2 == 0)
    layouts.push_back(NamedSharding(make_mesh({device_count() / 2, 2}, {"x", "y"}), P("x")));
  int number = 0;
  for (const Sharding& layout : layouts)
    for (const auto& [m, n] : {std::pair{23, 17}, {1, 20}}) {
      const auto made = scattered_matrix(m, n, layout);
      for (const auto& a : {made, made.T()}) {
        const Array dense = sparse::to_dense(a);
        const std::string name = path(std::to_string(number++));
        sparse::save_npz(name + ".npz", a);
        sparse::save_hdf5(name + ".h5", "group/X", a);
        sparse::save_zarr(name + ".zarr", a);
        for (const auto& back :
             {sparse::load_npz(name + ".npz", layout), sparse::load_hdf5(name + ".h5", "group/X", by_rows()),
              sparse::load_zarr(name + ".zarr", by_rows())}) {
          EXPECT_EQ(back.entries(), a.entries());
          EXPECT_EQ(back.dtype(), a.dtype());
          expect_alike(sparse::to_dense(back), dense);
        }
      }
    }
}

TEST_F(SparseFiles, have_sorted_columns_and_short_positions) {
  const auto a = sparse::from_coordinates({4, 9}, vector_of({2, 0, 2, 2}), vector_of({8, 3, 0, 4}),
                                          array<double>({1, 2, 3, 4}), by_rows());
  sparse::save_npz(path("x.npz"), a);
  const auto stored = io::load_npz(path("x.npz"), "indices");
  EXPECT_EQ(stored.dtype(), int32);
  expect_alike(stored, array<std::int32_t>({3, 0, 4, 8}));
  expect_alike(io::load_npz(path("x.npz"), "indptr"), array<std::int32_t>({0, 1, 1, 4, 4}));
  expect_alike(io::load_npz(path("x.npz"), "data"), array<double>({2, 3, 4, 1}));
}

TEST_F(SparseFiles, without_entries_or_rows) {
  for (const std::int64_t rows : {0, 5}) {
    const auto none = zeros({0}, int64);
    const auto a = sparse::from_coordinates({rows, 4}, none, none, zeros({0}, float64), by_rows());
    sparse::save_npz(path("none.npz"), a);
    const auto back = sparse::load_npz(path("none.npz"), by_rows());
    EXPECT_EQ(back.shape(), (Shape{rows, 4}));
    EXPECT_EQ(back.entries(), 0);
  }
}

// The arrays as SciPy writes them for blocks of 1 x 2, and the same as coordinates.
TEST_F(SparseFiles, of_blocks_and_of_coordinates) {
  const Array shape = vector_of({3, 4}), dense = array<float>({{0, 0, 1, 2}, {0, 0, 0, 0}, {3, 4, 5, 6}});
  const Array values = array<float>({1, 2, 3, 4, 5, 6});
  put_npz(path("bsr.npz"),
          {{"data", reshape(values, {3, 1, 2})},
           {"indices", array<std::int32_t>({1, 0, 1})},
           {"indptr", array<std::int32_t>({0, 1, 1, 3})},
           {"shape", shape}},
          "bsr");
  expect_alike(sparse::to_dense(sparse::load_npz(path("bsr.npz"), by_rows())), dense);
  put_npz(path("coo.npz"),
          {{"data", astype(values, int16)},
           {"row", vector_of({0, 0, 2, 2, 2, 2})},
           {"col", vector_of({2, 3, 0, 1, 2, 3})},
           {"shape", shape}},
          "coo");
  const auto a = sparse::load_npz(path("coo.npz"), by_rows());
  EXPECT_EQ(a.dtype(), float32);
  expect_alike(sparse::to_dense(a), dense);
}

TEST_F(SparseFiles, that_no_rank_can_hold_are_refused_before_they_are_read) {
  const Array few = vector_of({0, 2}), many = zeros({400000}, int64);
  const auto refusal = [&](const Array& places, const Array& shape) {
    put_npz(path("x.npz"),
            {{"data", astype(places, float64)}, {"row", places}, {"col", places}, {"shape", shape}}, "coo");
    const SettingScope limit("TESSERA_MEM_LIMIT", std::to_string((memory_use().live_bytes >> 20) + 2) + "M");
    return text_of_error<MemoryError>([&] { sparse::load_npz(path("x.npz"), by_rows()); });
  };
  EXPECT_THAT(refusal(few, vector_of({std::int64_t{1} << 60, 4})),
              HasSubstr("a coo matrix of shape (1152921504606846976, 4)"));
  EXPECT_THAT(refusal(many, vector_of({3, 4})),
              HasSubstr("with entries (400000,), which is kept in memory whole, needs"));
}

TEST_F(SparseFiles, that_contradict_themselves_are_refused_on_all_ranks) {
  const std::map<std::string, Array> good{{"data", array<double>({1, 2, 3})},
                                          {"indices", vector_of({0, 3, 1})},
                                          {"indptr", vector_of({0, 1, 1, 3})},
                                          {"shape", vector_of({3, 4})}};
  const auto error = [&](const std::string& name, const Array& x, const std::string& format = "csr") {
    auto arrays = good;
    arrays[name] = x;
    put_npz(path("bad.npz"), arrays, format);
    return error_of<IoError>([&] { (void)sparse::load_npz(path("bad.npz"), by_rows()); });
  };
  EXPECT_THAT(error("indices", vector_of({0, 4, 1})), HasSubstr("has the position 4 in 'indices'"));
  EXPECT_THAT(error("indices", vector_of({0, -1, 1})), HasSubstr("has the position -1 in 'indices'"));
  EXPECT_THAT(error("indices", vector_of({0, 1})), HasSubstr("has 2 elements in 'indices', where csr"));
  EXPECT_THAT(error("indices", array<double>({0, 1, 2})), HasSubstr("of dtype float64"));
  EXPECT_THAT(error("indptr", vector_of({0, 1, 3})), HasSubstr("needs 4"));
  EXPECT_THAT(error("indptr", vector_of({0, 2, 1, 3})), HasSubstr("has 1 as element 2 of 'indptr'"));
  EXPECT_THAT(error("indptr", vector_of({0, 1, 1, 9})), HasSubstr("end with at most 3"));
  EXPECT_THAT(error("indptr", vector_of({1, 1, 1, 3})), HasSubstr("has 1 as element 0"));
  EXPECT_THAT(error("shape", vector_of({3})), HasSubstr("a matrix has two extents"));
  EXPECT_THAT(error("data", ones({3, 2, 1}), "bsr"), HasSubstr("blocks of 2 x 1, which do not divide"));
  EXPECT_THAT(error("shape", vector_of({3, 4}), "dia"), HasSubstr("convert it by .tocsr()"));
  io::save_zarr(path("plain.zarr"), {{"data", ones({3})}});
  EXPECT_THAT(error_of<IoError>([&] { (void)sparse::load_zarr(path("plain.zarr"), by_rows()); }),
              HasSubstr("has no attribute 'encoding-type'"));
}

}  // namespace
}  // namespace tessera::test
