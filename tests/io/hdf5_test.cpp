#include <hdf5.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tessera/io/netcdf.hpp>
#include <tessera/io/stream.hpp>
#include <tessera/sparse.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>

#include "io/folder.hpp"
#include "io/hdf5/dataset.hpp"
#include "io/hdf5/library.hpp"
#include "support/data.hpp"
#include "support/watchdog.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Hdf5 : public InFolder {};

TEST_F(Hdf5, comes_back_under_any_sharding_from_any_sharding) {
  std::mt19937 random(11);
  const std::vector<Shape> shapes = {{}, {1}, {11}, {5, 7}, {0, 4}, {4, 3, 5}};
  const std::vector<Dtype> dtypes = {float32, float64,   int8,       uint16,   int64,
                                     bool_,   complex64, complex128, bfloat16, float16};
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

TEST_F(Hdf5, a_part_of_a_dataset_is_read_alone) {
  const Array x = reshape(arange(20 * 7), {20, 7});
  io::save_hdf5(path("x.h5"), "x", device_put(x, all_rows()));
  comm::barrier(comm::world());
  const auto columns = NamedSharding(make_mesh({device_count()}, {"x"}), P(None, "x"));
  for (const auto& layout : {all_rows(), columns}) {
    const Array some = io::load_hdf5(path("x.h5"), "x", layout, {.slices = {slice(3, -2, 4), slice(1, 100)}});
    EXPECT_EQ(some.sharding(), layout);
    EXPECT_EQ(to_vector<int>(some), to_vector<int>(x(slice(3, -2, 4), slice(1, 100))));
  }
  EXPECT_EQ(io::load_hdf5(path("x.h5"), "x", {.slices = {slice(9, 4)}}).shape(), (Shape{0, 7}));
  EXPECT_THAT(
      text_of_error<IndexError>([&] { io::load_hdf5(path("x.h5"), "x", {.slices = {slice(0, 5, -1)}}); }),
      HasSubstr("dimension 0 has the step -1; of a file only positive steps are read"));
}

TEST_F(Hdf5, boxes_are_read_by_several_threads_at_a_time) {  // a slab that comes, and what a slab asks for
  constexpr std::int64_t n = 64;
  io::save_hdf5(path("x.h5"), "x", device_put(reshape(arange(n * n), {n, n}), all_rows()));
  comm::barrier(comm::world());
  const io::Hdf5Dataset dataset{"read", path("x.h5"), "x"};
  const auto info = io::info_of_dataset(dataset);
  std::atomic<int> wrong = 0;
  const auto read = [&](std::int64_t first) {
    std::vector<std::int32_t> row(n);
    for (std::int64_t i = 0; i < 60; ++i) try {
        const std::int64_t at = (first + i) % n;
        io::read_dataset_box(dataset, info, {{at, at + 1}, {0, n}}, reinterpret_cast<std::byte*>(row.data()));
        if (row.front() != at * n || row.back() != at * n + n - 1) ++wrong;
      } catch (const std::exception&) {
        ++wrong;
      }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) threads.emplace_back(read, 17 * t);
  read(5);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Hdf5, mistakes_are_named_on_every_rank) {
  io::save_hdf5(path("x.h5"), "/a/values", device_put(ones({4}), all_rows()));
  comm::barrier(comm::world());
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_hdf5(path("x.h5"), "/a/value", all_rows()); }),
              testing::AllOf(HasSubstr("has no dataset '/a/value'"), HasSubstr("it has '/a/values'")));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_hdf5(path("x.h5"), "/a", all_rows()); }),
              HasSubstr("has a group '/a' and no dataset"));
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

TEST_F(Hdf5, a_second_run_adds_replaces_or_refuses_as_it_was_asked) {
  const auto saved = [&](io::Hdf5Mode mode, const std::string& dataset, const Array& x) {
    return [=, this] { io::save_hdf5(path("x.h5"), dataset, device_put(x, all_rows()), {.mode = mode}); };
  };
  const auto values = [&](const std::string& dataset) {
    return to_vector<double>(io::load_hdf5(path("x.h5"), dataset, all_rows()));
  };
  using enum io::Hdf5Mode;
  saved(fail, "/g/x", arange(5))();
  EXPECT_THAT(text_of_error<IoError>(saved(fail, "y", arange(5))),
              HasSubstr("exists, and the mode is fail; save with {.mode = io::Hdf5Mode::append}"));
  saved(append, "y", ones({3}))();
  EXPECT_THAT(text_of_error<IoError>(saved(append, "y", arange(3))),
              HasSubstr("has a dataset '/y' already; save with {.mode = io::Hdf5Mode::replace}, or"));
  const auto bytes = std::filesystem::file_size(path("x.h5"));
  saved(replace, "/g/x", arange(5) * 2)();  // replaces the old one
  EXPECT_EQ(std::filesystem::file_size(path("x.h5")), bytes);
  EXPECT_THAT(values("/g/x"), ElementsAre(0, 2, 4, 6, 8));
  saved(replace, "/g/x", ones({2, 3}))();  // another dtype and shape
  EXPECT_EQ(io::hdf5_info(path("x.h5"), "/g/x").shape, (Shape{2, 3}));
  EXPECT_EQ(io::hdf5_info(path("x.h5"), "/g/x").dtype, float32);
  saved(replace, "z", arange(2))();  // creates the file if there is none
  EXPECT_THAT(values("y"), ElementsAre(1, 1, 1));
  EXPECT_THAT(values("/g/x"), ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(text_of_error<IoError>(saved(replace, "g", ones({2}))),
              HasSubstr("creation of the dataset 'g'"));
  EXPECT_THAT(entries(), ElementsAre("x.h5"));
}

std::string hdf5_mutant(std::string bytes, unsigned number) {
  std::mt19937 random(number);
  for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes)
    bytes[random() % bytes.size()] = static_cast<char>(random());
  if (random() % 8 == 0) bytes.resize(random() % bytes.size());
  return bytes;
}

// 0: done, 1: IoError or MemoryError, 2: another exception; -1: the child died, or took 10 s.
int in_a_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE}) std::signal(number, SIG_DFL);
    ::alarm(10);
    int status = 0;
    try {
      work();
    } catch (const IoError&) {
      status = 1;
    } catch (const MemoryError&) {
      status = 1;
    } catch (...) {
      status = 2;
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Files as other programs may write them.
class ForeignHdf5 : public InFolder {
 protected:
  void make(const std::function<void(hid_t)>& fill) {
    if (is_main_process()) {
      const hid_t file = H5Fcreate(path("f.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
      fill(file);
      H5Fclose(file);
    }
    comm::barrier(comm::world());
  }
  static void dataset(hid_t file, const char* name, const std::vector<hsize_t>& extents, hid_t creation) {
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t made = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    EXPECT_GE(made, 0);
    H5Dclose(made);
    H5Sclose(space);
    H5Pclose(creation);
  }
  static hid_t creation() { return H5Pcreate(H5P_DATASET_CREATE); }
  std::string load(const std::string& name, bool other_files = false) {
    std::string text = "loaded";
    try {
      io::load_hdf5(path("f.h5"), name, all_rows(), {.other_files = other_files});
    } catch (const IoError& error) {
      text = error.what();
    }
    comm::barrier(comm::world());
    return text;
  }
};

TEST_F(ForeignHdf5, sizes_that_do_not_fit_64_bits_are_refused) {
  make([](hid_t file) {
    const auto chunked = [](hsize_t columns) {
      const hid_t p = creation();
      const hsize_t chunk[] = {1, columns};
      H5Pset_chunk(p, 2, chunk);
      return p;
    };
    dataset(file, "long", {hsize_t{1} << 60, 16}, chunked(16));
    dataset(file, "wide", {3, 6148914691236517206}, chunked(1000));
    dataset(file, "empty", {0, hsize_t{1} << 60, hsize_t{1} << 60}, [] {
      const hid_t p = creation();
      const hsize_t chunk[] = {1, 1, 1};
      H5Pset_chunk(p, 3, chunk);
      return p;
    }());
  });
  EXPECT_THAT(load("long"), HasSubstr("claims the shape (1152921504606846976, 16) of float64, whose bytes "
                                      "exceed 2^63; it is damaged"));
  EXPECT_THAT(load("wide"), HasSubstr("claims the shape (3, 6148914691236517206) of float64"));
  EXPECT_THAT(load("empty"), HasSubstr("exceed 2^63"));
}

// A filter that this process has when it writes, but no longer when it reads.
TEST_F(ForeignHdf5, a_filter_that_is_not_there_is_named) {
  const H5Z_class2_t stranger = {
      H5Z_CLASS_T_VERS,
      31999,
      1,
      1,
      "stranger",
      nullptr,
      nullptr,
      [](unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void**) { return bytes; }};
  make([&](hid_t file) {
    H5Zregister(&stranger);
    const hid_t p = creation();
    const hsize_t chunk[] = {4};
    H5Pset_chunk(p, 1, chunk);
    H5Pset_filter(p, 31999, H5Z_FLAG_MANDATORY, 0, nullptr);
    dataset(file, "packed", {8}, p);
  });
  if (is_main_process()) H5Zunregister(31999);
  EXPECT_THAT(
      load("packed"),
      testing::AllOf(HasSubstr("packs its dataset 'packed' with the filter 31999 ('stranger'), which this "
                               "HDF5 library does not have"),
                     HasSubstr("HDF5_PLUGIN_PATH: no code is loaded otherwise")));
  EXPECT_THAT(text_of_error<IoError>([&] { io::open(path("f.h5"), {.name = "packed"}); }),
              HasSubstr("with the filter 31999 ('stranger'), which this HDF5 library does not have"));
}

TEST_F(ForeignHdf5, lzf_is_named_with_its_cure) {
  const H5Z_class2_t lzf = {
      H5Z_CLASS_T_VERS,
      32000,
      1,
      1,
      "lzf",
      nullptr,
      nullptr,
      [](unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void**) { return bytes; }};
  make([&](hid_t file) {
    H5Zregister(&lzf);
    const hid_t p = creation();
    const hsize_t chunk[] = {4};
    H5Pset_chunk(p, 1, chunk);
    H5Pset_filter(p, 32000, H5Z_FLAG_OPTIONAL, 0, nullptr);
    dataset(file, "packed", {8}, p);
  });
  if (is_main_process()) H5Zunregister(32000);
  const auto is_told = testing::AllOf(HasSubstr("with the filter 32000 ('lzf')"),
                                      HasSubstr("by h5py, which alone has lzf: compression='gzip'"));
  EXPECT_THAT(load("packed"), is_told);
  EXPECT_THAT(text_of_error<IoError>([&] { io::open(path("f.h5"), {.name = "packed"}); }), is_told);
}

// h5py wrote it with libver='latest'; HDF5 2 can open both datasets.
TEST_F(ForeignHdf5, a_dataset_of_a_newer_library_is_not_called_missing) {
  const std::string newer = (tests_folder() / "io/data/newer.h5").string();
  EXPECT_EQ(to_vector<double>(io::load_hdf5(newer, "plain", all_rows()))[14], 7 * 14 % 100 - 50);
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  if (major > 1) return;
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_hdf5(newer, "packed"); }),
              testing::AllOf(HasSubstr("has a dataset 'packed' that HDF5 1."), HasSubstr("cannot open"),
                             HasSubstr("libver='earliest'")));
}

TEST(Hdf5Plugins, are_not_loaded_unless_the_user_names_their_folder) {
  unsigned before = 0, during = 9, after = 0;
  H5PLget_loading_state(&before);
  {
    const io::Quiet quiet;
    H5PLget_loading_state(&during);
  }
  H5PLget_loading_state(&after);
  EXPECT_EQ(during, 0u);
  EXPECT_EQ(after, before);
  setenv("HDF5_PLUGIN_PATH", "/opt/plugins", 1);
  {
    const io::Quiet quiet;
    H5PLget_loading_state(&during);
  }
  unsetenv("HDF5_PLUGIN_PATH");
  EXPECT_EQ(during, before);
}

TEST_F(ForeignHdf5, an_array_beyond_memory_is_refused_before_it_is_allocated) {
  make([](hid_t file) {
    const hid_t p = creation();
    const hsize_t chunk[] = {1 << 20};
    H5Pset_chunk(p, 1, chunk);
    dataset(file, "x", {hsize_t{1} << 50}, p);
  });
  EXPECT_THAT(text_of_error<MemoryError>([&] { io::load_hdf5(path("f.h5"), "x", all_rows()); }),
              HasSubstr("f.h5', dataset 'x' needs"));
}

TEST_F(ForeignHdf5, values_in_other_files_are_read_only_where_they_are_asked_for) {
  put("secret", std::string(80, 's'));
  io::save_hdf5(path("other.h5"), "x", device_put(arange(10.0), all_rows()));
  make([&](hid_t file) {
    const hid_t external = creation();
    H5Pset_external(external, path("secret").c_str(), 0, 80);
    dataset(file, "external", {10}, external);
    const hid_t parts = creation();
    const hsize_t ten[] = {10};
    const hid_t space = H5Screate_simple(1, ten, nullptr);
    H5Pset_virtual(parts, space, path("other.h5").c_str(), "x", space);
    H5Sclose(space);
    dataset(file, "virtual", {10}, parts);
    H5Lcreate_external(path("other.h5").c_str(), "x", file, "link", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_THAT(load("external"),
              HasSubstr("takes the values of its dataset 'external' from other files (external "
                        "storage); pass {.other_files = true} if you trust it"));
  EXPECT_THAT(load("virtual"), HasSubstr("(a virtual dataset)"));
  EXPECT_THAT(load("link"), HasSubstr("has a link to another file on the way to 'link'"));
  for (const auto* name : {"external", "virtual", "link"}) EXPECT_EQ(load(name, true), "loaded") << name;
}

TEST_F(ForeignHdf5, a_raw_file_that_is_not_there_is_named) {
  make([&](hid_t file) {
    const hid_t external = creation();
    H5Pset_external(external, "raw-of-nobody.bin", 0, 80);
    dataset(file, "external", {10}, external);
  });
  EXPECT_THAT(
      load("external", true),
      HasSubstr("its values are in 'raw-of-nobody.bin', which is looked for in the working directory"));
}

// netCDF's enumerations, and those of h5py, in any byte order.
TEST_F(ForeignHdf5, enumerations_are_their_numbers) {
  const auto put_enum = [](hid_t file, const char* name, hid_t base, const char* second) {
    const hid_t type = H5Tenum_create(H5T_NATIVE_INT), stored = H5Tenum_create(base);
    const int numbers[] = {0, 1};
    for (const int number : numbers) {
      H5Tenum_insert(type, number == 0 ? "FALSE" : second, &number);
      char at[8] = {};  // the number in the stored type
      std::memcpy(at, &number, sizeof number);
      H5Tconvert(H5T_NATIVE_INT, base, 1, at, nullptr, H5P_DEFAULT);
      H5Tenum_insert(stored, number == 0 ? "FALSE" : second, at);
    }
    const hsize_t four[] = {4};
    const hid_t space = H5Screate_simple(1, four, nullptr),
                made = H5Dcreate2(file, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const int values[] = {1, 0, 0, 1};
    EXPECT_GE(H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Dclose(made);
    H5Sclose(space);
    H5Tclose(stored);
    H5Tclose(type);
  };
  make([&](hid_t file) {
    put_enum(file, "bytes", H5T_STD_U8LE, "yes");
    put_enum(file, "big", H5T_STD_I32BE, "yes");
    put_enum(file, "truth", H5T_STD_I8LE, "TRUE");
  });
  const std::map<std::string, Dtype> wanted = {{"bytes", uint8}, {"big", int32}, {"truth", bool_}};
  for (const auto& [name, dtype] : wanted) {
    const Array x = io::load_hdf5(path("f.h5"), name, all_rows());
    EXPECT_EQ(x.dtype(), dtype) << name;
    EXPECT_THAT(to_vector<int>(astype(x, int32)), ElementsAre(1, 0, 0, 1)) << name;
  }
}

// 20 x 6 in chunks of 4 x 4: some were never written, one is stored without its filters, one is damaged.
TEST_F(ForeignHdf5, deflated_chunks_are_read_as_the_library_reads_them) {
  for (const bool is_shuffled : {false, true}) {
    make([&](hid_t file) {
      const hid_t how = creation();
      const hsize_t chunk[] = {4, 4}, extents[] = {20, 6};
      const std::int32_t nothing = -7;
      H5Pset_chunk(how, 2, chunk);
      H5Pset_fill_value(how, H5T_NATIVE_INT32, &nothing);
      if (is_shuffled) H5Pset_shuffle(how);
      H5Pset_deflate(how, 6);
      const hid_t space = H5Screate_simple(2, extents, nullptr),
                  memory = H5Screate_simple(2, extents, nullptr);
      const hid_t made = H5Dcreate2(file, "x", H5T_NATIVE_INT32, space, H5P_DEFAULT, how, H5P_DEFAULT);
      std::vector<std::int32_t> values(120);
      std::iota(values.begin(), values.end(), 0);
      const hsize_t start[] = {3, 1}, count[] = {13, 3};
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr);
      H5Sselect_hyperslab(memory, H5S_SELECT_SET, start, nullptr, count, nullptr);
      EXPECT_GE(H5Dwrite(made, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, values.data()), 0);
      const hsize_t plain[] = {16, 0};
      EXPECT_GE(H5Dwrite_chunk(made, H5P_DEFAULT, is_shuffled ? 3 : 1, plain, 64, values.data()), 0);
      H5Dclose(made), H5Sclose(space), H5Sclose(memory), H5Pclose(how);
    });
    const Array n = reshape(arange(120), {20, 6}), row = reshape(arange(20), {20, 1}), column = arange(6);
    const Array is_written = (row >= 3) & (row < 16) & (column >= 1) & (column < 4),
                plain = (row - 16) * 4 + column;
    const Array expected = where((row >= 16) & (column < 4), plain, where(is_written, n, -7));
    const auto columns = NamedSharding(make_mesh({device_count()}, {"x"}), P(None, "x"));
    for (const auto& layout : {all_rows(), columns}) {
      EXPECT_EQ(to_vector<int>(io::load_hdf5(path("f.h5"), "x", layout)), to_vector<int>(expected));
      const auto part = slice(5, 19, 3);
      EXPECT_EQ(to_vector<int>(io::load_hdf5(path("f.h5"), "x", layout, {.slices = {part, slice(1, 6)}})),
                to_vector<int>(expected(part, slice(1, 6))));
      const auto inner = slice(2, 17);
      EXPECT_EQ(to_vector<int>(io::load_hdf5(path("f.h5"), "x", layout, {.slices = {inner, slice(3, 5)}})),
                to_vector<int>(expected(inner, slice(3, 5))));
    }
    const auto damaged = [&](const std::string& stored) {
      make([&](hid_t file) {
        const hid_t how = creation();
        const hsize_t chunk[] = {4, 4}, first[] = {0, 0};
        H5Pset_chunk(how, 2, chunk), H5Pset_deflate(how, 6);
        dataset(file, "x", {4, 4}, how);
        const hid_t made = H5Dopen2(file, "x", H5P_DEFAULT);
        EXPECT_GE(H5Dwrite_chunk(made, H5P_DEFAULT, 0, first, stored.size(), stored.data()), 0);
        H5Dclose(made);
      });
      return load("x");
    };
    const std::string abcd("\x78\x9c\x4b\x4c\x4a\x4e\x01\x00\x03\xd8\x01\x8b", 12);
    EXPECT_THAT(damaged(abcd),
                HasSubstr("has a chunk at [0:4, 0:4] of its dataset 'x' that unpacks to 4 bytes, "
                          "where it has 128; it is damaged"));
    EXPECT_THAT(damaged("no zlib"),
                testing::AllOf(HasSubstr("cannot be read at [0:"), HasSubstr("inflate() failed")));
  }
}

TEST_F(ForeignHdf5, a_group_is_not_called_missing) {
  io::save_hdf5(path("f.h5"), "/g/x", device_put(arange(3.0), all_rows()));
  EXPECT_THAT(load("g"), HasSubstr("has a group 'g' and no dataset of that name; it has '/g/x'"));
}

TEST_F(ForeignHdf5, names_cannot_act_on_the_terminal) {
  make([](hid_t file) { dataset(file, "a\x1b]0;title\x07", {2}, creation()); });
  EXPECT_THAT(load("b"), HasSubstr("it has '/a\\x1b]0;title\\x07'"));
}

// Small files, and what reads each.
struct Mutated {
  const char* what;
  std::function<void(const std::string&path)> make, load;
};
std::vector<Mutated> mutated_files() {
  const auto load = [](const std::string& path) { io::load_hdf5(path, "/g/x", all_rows()); };
  return {{"a dense dataset",
           [](const std::string& path) { io::save_hdf5(path, "/g/x", device_put(arange(64.0), all_rows())); },
           load},
          {"deflated chunks",
           [](const std::string& path) {
             io::Hdf5Writer out(path);
             out.write("g/x", device_put(reshape(arange(200), {20, 10}), all_rows()),
                       {.compression = 1, .chunk = {8, 4}});
             out.close();
           },
           load},
          {"a sparse matrix",
           [](const std::string& path) {
             io::Hdf5Writer out(path);
             out.write("m/data", arange(3.0)), out.write("m/indices", array({1, 0, 2}));
             out.write("m/indptr", array({0, 1, 1, 3, 3}));
             out.attribute("m", "encoding-type", std::string("csr_matrix"));
             out.attribute("m", "shape", std::vector<std::int64_t>{4, 6});
             out.close();
           },
           [](const std::string& path) { sparse::load_hdf5(path, "m", all_rows()); }},
          {"a netCDF variable",
           [](const std::string& path) {
             io::Netcdf out(path);
             out.write("v", astype(arange(12), int16), {"time"});
             out.attribute("v", "scale_factor", 0.5), out.attribute("v", "add_offset", 10.0);
             out.attribute("v", "valid_range", std::vector<std::int64_t>{1, 9});
             out.attribute("v", "missing_value", std::int64_t{3});
             out.attribute("v", "units", std::string("K"));
             out.close();
           },
           [](const std::string& path) { io::load_netcdf(path, "v", all_rows()); }}};
}

// Mutants of small files must be read or refused by our code. The HDF5 library (1.10.8) itself crashes on
// some, as its security notes say: each mutant is loaded in a child process, and crashes are counted.
TEST_F(ForeignHdf5, mutants_are_read_or_refused) {
  if (device_count() > 1) return;  // no collective calls here, and a child has no other ranks
  const char* wanted = std::getenv("TESSERA_TEST_INPUTS");
  const int inputs = wanted != nullptr ? std::atoi(wanted) : 200;  // of each
  for (const auto& [what, make, load] : mutated_files()) {
    std::filesystem::remove(path("x.h5"));
    make(path("x.h5"));
    std::ifstream whole(path("x.h5"), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
    int read = 0, refused = 0, ended = 0;
    for (int number = 0; number < inputs; ++number) {
      if (number % 200 == 0) test_started("ForeignHdf5", "mutants");
      put("f.h5", hdf5_mutant(bytes, static_cast<unsigned>(number)));
      const int status = in_a_child([&] { load(path("f.h5")); });
      EXPECT_NE(status, 2) << what << ", " << number << ": another exception than IoError or MemoryError";
      ++(status == 0 ? read : status == 1 ? refused : ended);
    }
    EXPECT_GT(read, inputs / 10) << what;
    EXPECT_GT(refused, inputs / 20) << what;
    EXPECT_LE(ended, std::max(2, inputs / 200))
        << what << ": the library ends the process more often than it was seen to";
    std::printf("%d mutants of %s: %d read, %d refused, %d ended the HDF5 library\n", inputs, what, read,
                refused, ended);
  }
}

}  // namespace
}  // namespace tessera::test
