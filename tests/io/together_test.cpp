// Collective calls on one file: all ranks take part, also those outside the array's mesh, and also if ranks
// pass different arguments.
#include <atomic>

#include "comm/watch/agreement.hpp"
#include "io/folder.hpp"
#include "io/many.hpp"

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SideBySide, each_item_is_done_once_and_a_failure_is_that_of_the_caller) {
  for (const std::int64_t n : {0, 1, 5, 1000})
    for (const int threads : {1, 3, 32}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(n));
      io::side_by_side(n, threads, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
      for (const auto& times : done) EXPECT_EQ(times, 1);
    }
  std::atomic<int> begun = 0;
  EXPECT_THAT(text_of_error<IoError>([&] {
                io::side_by_side(100000, 4, [&](std::int64_t i) {
                  ++begun;
                  if (i == 7) throw IoError("item 7");
                });
              }),
              HasSubstr("item 7"));
  EXPECT_GE(begun, 8);
}

class Together : public InFolder {
 protected:
  // Rows over all ranks but the last: with three ranks or more one is outside.
  static Sharding rows_of_some() {
    const int some = std::max(1, device_count() - 1);
    const auto all = devices();
    return NamedSharding(make_mesh({some}, {"x"}, {all.begin(), all.begin() + some}), P("x"));
  }
  static bool is_outside() { return !rows_of_some().mesh().contains(local_devices()[0]); }
  static std::string own(const std::string& name) { return name + std::to_string(process_index() % 2); }
};

TEST_F(Together, ranks_that_load_different_files_hear_of_it_before_one_is_opened) {
  if (device_count() == 1) return;
  const auto text =
      text_of_error<comm::DisagreementError>([&] { io::load_npy(path(own("none")), all_rows()); });
  EXPECT_THAT(text,
              AllOf(HasSubstr("load_npy of '" + path("none0")), HasSubstr("load_npy of '" + path("none1")),
                    testing::ContainsRegex("ranks? 1"), testing::Not(HasSubstr("No such file"))));
}

TEST_F(Together, ranks_that_save_other_datasets_or_paths_make_no_file) {
  if (!has_hdf5) GTEST_SKIP() << "HDF5 is not in this build";
  if (device_count() == 1) return;
  const auto x = device_put(ones({8}), all_rows());
  EXPECT_THAT(text_of_error<comm::DisagreementError>([&] { io::save_hdf5(path("x.h5"), own("/a"), x); }),
              AllOf(HasSubstr("dataset '/a0'"), HasSubstr("dataset '/a1'")));
  EXPECT_THAT(text_of_error<comm::DisagreementError>([&] { io::save_npy(path(own("x")), x); }),
              HasSubstr("save_npy to '" + path("x1")));
  EXPECT_THAT(
      text_of_error<comm::DisagreementError>([&] { io::checkpoint::save(folder_, process_index() % 2, x); }),
      HasSubstr("checkpoint::save of step 1"));
  EXPECT_THAT(entries(), ElementsAre());
}

TEST_F(Together, ranks_that_ask_for_other_layouts_are_told_both) {
  if (device_count() == 1) return;
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  EXPECT_THAT(text_of_error<comm::DisagreementError>([&] {
                io::load_npy(path("x.npy"), NamedSharding(mesh, process_index() % 2 == 1 ? P("x") : P()));
              }),
              AllOf(HasSubstr("P('x')"), HasSubstr("P()")));
}

TEST_F(Together, a_rank_outside_the_mesh_finds_the_file_that_the_others_saved) {
  if (!has_hdf5) GTEST_SKIP() << "HDF5 is not in this build";
  for (int n = 0; n < 10; ++n) {
    const auto x = device_put(arange(20) + n, rows_of_some());
    const auto name = path("x" + std::to_string(n));
    io::save_npy(name + ".npy", x);
    const Array npy = io::load_npy(name + ".npy", rows_of_some());
    io::save_hdf5(name + ".h5", "x", x);
    const Array hdf5 = io::load_hdf5(name + ".h5", "x", rows_of_some());
    io::checkpoint::save(folder_, n, x);
    const Array restored = io::checkpoint::restore(folder_, x + 1);
    for (const Array& y : {npy, hdf5, restored}) {
      EXPECT_EQ(y.dtype(), int32);
      EXPECT_EQ(y.shape(), Shape{20});
      EXPECT_EQ(local<int>(y).empty(), is_outside());
      EXPECT_EQ(to_vector<int>(y), to_vector<int>(x));
    }
  }
}

TEST_F(Together, a_rank_outside_the_mesh_takes_part_in_every_error) {
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_npy(path("none.npy"), rows_of_some()); }),
              HasSubstr("No such file"));
  EXPECT_THAT(
      text_of_error<IoError>([&] { io::save_npy(path("no/x.npy"), device_put(ones({4}), rows_of_some())); }),
      HasSubstr("there is no folder"));
  put("v.npy", "no array");
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_npy(path("v.npy"), rows_of_some()); }),
              HasSubstr("does not begin with"));
  EXPECT_EQ(item<float>(sum(device_put(ones({4}), all_rows()))), 4);  // all ranks continue
}

TEST_F(Together, what_fails_while_the_value_is_computed_reaches_the_ranks_outside) {
  const Sharding everywhere = NamedSharding(rows_of_some().mesh(), P());
  const Array singular = device_put(zeros({3, 3}), everywhere), b = device_put(ones({3}), everywhere);
  EXPECT_THAT(text_of_error<LinAlgError>([&] { io::save_npy(path("x.npy"), linalg::solve(singular, b)); }),
              HasSubstr("singular"));
  EXPECT_THAT(entries(), ElementsAre());
}

TEST_F(Together, arrays_from_own_data_are_known_outside_their_mesh) {
  const auto some = rows_of_some();
  const int parts = some.mesh().size();
  const Array x = make_array_from_callback({2 * parts}, some, [](const Index& box) {
    return HostArray(std::vector<double>(static_cast<std::size_t>(box[0].size()), box[0].start),
                     {box[0].size()});
  });
  EXPECT_EQ(x.dtype(), float64);
  EXPECT_EQ(x.shape(), Shape{2 * parts});
  const Array y = make_array_from_process_local_data(
      some, is_outside() ? HostArray() : HostArray(std::vector<std::int64_t>{1, 2, 3}, {3}));
  EXPECT_EQ(y.dtype(), int64);
  EXPECT_EQ(y.shape(), Shape{3 * parts});
  EXPECT_EQ(item<std::int64_t>(sum(device_put(y, all_rows()))), 6 * parts);
}

TEST_F(Together, a_callback_that_fails_fails_on_the_ranks_outside_too) {
  EXPECT_THAT(text_of_error<ArgumentError>([&] {
                make_array_from_callback({8}, rows_of_some(), [](const Index&) -> HostArray {
                  throw std::runtime_error("no such part");
                });
              }),
              AllOf(HasSubstr("rank 0: make_array_from_callback"), HasSubstr("the callback failed at [0:")));
  EXPECT_THAT(text_of_error<ShapeError>([&] {
                make_array_from_process_local_data(rows_of_some(), HostArray(std::vector<float>(9), {9}),
                                                   Shape{4});
              }),
              HasSubstr("does not match"));
}

TEST_F(Together, without_a_sharding_the_array_is_uncommitted_and_whole_on_every_rank) {
  if (!has_hdf5) GTEST_SKIP() << "HDF5 is not in this build";
  const auto x = device_put(astype(arange(30), float32), all_rows());
  io::save_npy(path("x.npy"), x);
  io::save_hdf5(path("x.h5"), "x", x);
  put("x.mtx", "%%MatrixMarket matrix array real general\n1 2\n3\n4\n");
  const Array npy = io::load_npy(path("x.npy")), hdf5 = io::load_hdf5(path("x.h5"), "x");
  EXPECT_FALSE(npy.is_committed());
  EXPECT_FALSE(hdf5.is_committed());
  EXPECT_EQ((x + npy + hdf5).sharding(), x.sharding());  // npy, hdf5 are uncommitted
  EXPECT_EQ(to_vector<float>(x + npy + hdf5), to_vector<float>(x * 3));
  EXPECT_THAT(to_vector<double>(io::load_matrix_market(path("x.mtx"))), ElementsAre(3, 4));
}

}  // namespace
}  // namespace tessera::test
