#include <sys/resource.h>

#include <csignal>

#include "io/folder.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Hdf5 : public InFolder {};

TEST_F(Hdf5, comes_back_under_any_sharding_from_any_sharding) {
  std::mt19937 random(11);
  const std::vector<Shape> shapes = {{}, {1}, {11}, {5, 7}, {0, 4}, {4, 3, 5}};
  const std::vector<Dtype> dtypes = {float32, float64, int8, uint16, int64, bool_, complex64, complex128};
  for (int n = 0; n < 20; ++n) {
    const auto& shape = shapes[random() % shapes.size()];
    const auto dtype = dtypes[static_cast<std::size_t>(n) % dtypes.size()];
    const auto from = random_sharding(random, random_mesh(random), shape.ndim()),
               to = random_sharding(random, random_mesh(random), shape.ndim());
    const Array x = astype(reshape(arange(static_cast<int>(shape.elements())), shape) % 7, dtype);
    const std::string dataset = "/group/x" + std::to_string(n);  // all in one file
    io::save_hdf5(path("x.h5"), dataset, device_put(x, from));
    comm::barrier(comm::world());
    const Array y = io::load_hdf5(path("x.h5"), dataset, to);
    ASSERT_EQ(y.shape(), shape);
    ASSERT_EQ(y.dtype(), dtype);
    ASSERT_EQ(y.sharding(), to);
    ASSERT_EQ(to_vector<std::complex<double>>(y), to_vector<std::complex<double>>(x))
        << to_string(shape) << name(dtype);
  }
  EXPECT_EQ(io::hdf5_datasets(path("x.h5")).size(), 20u);
  EXPECT_THAT(entries(), ElementsAre("x.h5"));
}

TEST_F(Hdf5, mistakes_are_named_on_every_rank) {
  io::save_hdf5(path("x.h5"), "/a/values", device_put(ones({4}), all_rows()));
  comm::barrier(comm::world());
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_hdf5(path("x.h5"), "/a/value", all_rows()); }),
              testing::AllOf(HasSubstr("has no dataset '/a/value'"), HasSubstr("it has /a/values")));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_hdf5(path("x.h5"), "/a", all_rows()); }),
              HasSubstr("has no dataset '/a'"));
  EXPECT_THAT(text_of_error<IoError>(
                  [&] { io::save_hdf5(path("x.h5"), "/a/values", device_put(ones({4}), all_rows())); }),
              HasSubstr("already"));
  EXPECT_THAT(text_of_error<IoError>(
                  [&] { io::save_hdf5(path("x.h5"), "/a/values/b", device_put(ones({4}), all_rows())); }),
              HasSubstr("creation"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_hdf5(path("none.h5"), "/a", all_rows()); }),
              HasSubstr("No such file"));
  EXPECT_THAT(
      text_of_error<IoError>([&] { io::load_hdf5(put("text.h5", "no HDF5 at all"), "/a", all_rows()); }),
      HasSubstr("cannot be opened as HDF5"));
  EXPECT_THAT(text_of_error<ArgumentError>(
                  [&] { io::save_hdf5(path("x.h5"), "", device_put(ones({4}), all_rows())); }),
              HasSubstr("no name"));
  EXPECT_THAT(entries(), ElementsAre("text.h5", "x.h5"));
}

TEST_F(Hdf5, a_truncated_file_is_refused_on_every_rank) {
  io::save_hdf5(path("x.h5"), "x", device_put(astype(arange(3000), float64), all_rows()));
  comm::barrier(comm::world());
  for (const int part : {1, 5, 9}) {
    if (is_main_process()) {
      std::filesystem::copy_file(path("x.h5"), path("cut.h5"),
                                 std::filesystem::copy_options::overwrite_existing);
      std::filesystem::resize_file(
          path("cut.h5"), std::filesystem::file_size(path("x.h5")) * static_cast<std::uintmax_t>(part) / 10);
    }
    comm::barrier(comm::world());
    EXPECT_THAT(text_of_error<IoError>([&] { io::load_hdf5(path("cut.h5"), "x", all_rows()); }),
                HasSubstr("load_hdf5"));
    comm::barrier(comm::world());
  }
}

TEST_F(Hdf5, a_save_that_fails_on_one_rank_leaves_the_other_datasets) {
  io::save_hdf5(path("x.h5"), "x", device_put(astype(arange(4000), float32), all_rows()));
  comm::barrier(comm::world());
  const rlimit few{1000, RLIM_INFINITY};
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  if (process_index() == device_count() - 1) setrlimit(RLIMIT_FSIZE, &few);
  const auto text =
      text_of_error<IoError>([&] { io::save_hdf5(path("x.h5"), "y", device_put(ones({4000}), all_rows())); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(text, HasSubstr("save_hdf5"));
  EXPECT_THAT(entries(), ElementsAre("x.h5"));
  EXPECT_THAT(io::hdf5_datasets(path("x.h5")), ElementsAre("/x"));
}

}  // namespace
}  // namespace tessera::test
