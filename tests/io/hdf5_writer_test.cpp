// An HDF5 file that stays open: its contents when closed, readable by other programs.
#include <hdf5.h>
#include <sys/resource.h>
#include <tessera/io/hdf5_writer.hpp>

#include <csignal>
#include <numeric>

#include "comm/watch/agreement.hpp"
#include "io/folder.hpp"

namespace tessera::test {
namespace {

using io::Hdf5Open;
using io::Hdf5Writer;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Writer : public InFolder {
 protected:
  std::string file() const { return path("x.h5"); }
  std::vector<double> values(const std::string& dataset) const {
    comm::barrier(comm::world());
    return to_vector<double>(io::load_hdf5(file(), dataset));
  }
  // Rows first, first + 1, ... of a matrix with distinct elements.
  static Array rows(std::int64_t first, std::int64_t n, std::int64_t columns, Dtype dtype = float64) {
    const Array all = reshape(arange((first + n) * columns), {first + n, columns});
    return astype(all(slice(first, first + n)), dtype);
  }
};

// The values as read by the HDF5 library alone, without tessera.
std::vector<double> read_plainly(const std::string& file, const char* dataset) {
  const hid_t in = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
              data = H5Dopen2(in, dataset, H5P_DEFAULT), space = H5Dget_space(data);
  std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Sclose(space), H5Dclose(data), H5Fclose(in);
  return values;
}

TEST_F(Writer, appended_slabs_lie_behind_each_other_whatever_their_layout_and_compression) {
  std::mt19937 random(5);
  const std::vector<Dtype> dtypes = {float64, float32, int16, complex64, bool_};
  Hdf5Writer out(file());
  for (int n = 0; n < 10; ++n) {
    const auto name = "/group/x" + std::to_string(n);
    const Dtype dtype = dtypes[static_cast<std::size_t>(n) % dtypes.size()];
    const io::Hdf5DatasetOptions options{
        .compression = n % 3, .shuffle = n % 2 == 0, .chunk = n % 4 == 1 ? Shape{4, 3} : Shape{}};
    std::int64_t first = 0;
    for (const std::int64_t count : {3, 0, 5, 1, 7}) {
      out.append(name,
                 device_put(rows(first, count, 7, dtype), random_sharding(random, random_mesh(random), 2)),
                 options);
      first += count;
    }
  }
  out.close();
  comm::barrier(comm::world());
  for (int n = 0; n < 10; ++n) {
    const Dtype dtype = dtypes[static_cast<std::size_t>(n) % dtypes.size()];
    const Array x = io::load_hdf5(file(), "group/x" + std::to_string(n), all_rows());
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_EQ(to_vector<std::complex<double>>(x), to_vector<std::complex<double>>(rows(0, 16, 7, dtype)))
        << n;
  }
  EXPECT_EQ(read_plainly(file(), "group/x0"), to_vector<double>(rows(0, 16, 7)));
  EXPECT_EQ(read_plainly(file(), "group/x5"), to_vector<double>(rows(0, 16, 7)));
  EXPECT_THAT(entries(), ElementsAre("x.h5"));
}

TEST_F(Writer, chunks_that_do_not_divide_the_extents_keep_every_element) {
  const Array x = reshape(arange(9 * 10 * 11), {9, 10, 11});
  const auto columns = NamedSharding(make_mesh({device_count()}, {"x"}), P(None, None, "x"));
  Hdf5Writer out(file());
  for (const int compression : {0, 6}) {
    const io::Hdf5DatasetOptions options{.compression = compression, .chunk = {4, 3, 5}};
    const auto name = "x" + std::to_string(compression);
    out.append("grown/" + name, device_put(x(slice(0, 5)), columns), options);
    out.append("grown/" + name, device_put(x(slice(5, 9)), all_rows()), options);
    out.write("whole/" + name, device_put(x, columns), options);
  }
  out.close();
  for (const char* name : {"grown/x0", "grown/x6", "whole/x0", "whole/x6"})
    EXPECT_EQ(values(name), to_vector<double>(x)) << name;
  EXPECT_EQ(read_plainly(file(), "whole/x6"), to_vector<double>(x));
}

TEST_F(Writer, what_is_written_is_a_dataset_of_any_dtype_and_shape) {
  Hdf5Writer out(file());
  out.write("number", array({2.5})(0));
  out.write("/a/b/zeros", device_put(zeros({4, 0}), all_rows()));
  out.write("flags", device_put(arange(9) % 2 == 0, all_rows()), {.compression = 9});
  out.write("x", device_put(rows(0, 13, 3, complex128), all_rows()));
  out.close();
  EXPECT_THAT(values("number"), ElementsAre(2.5));
  EXPECT_EQ(io::hdf5_info(file(), "/a/b/zeros").shape, (Shape{4, 0}));
  EXPECT_EQ(io::hdf5_info(file(), "flags").dtype, bool_);
  EXPECT_THAT(values("flags"), ElementsAre(1, 0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_EQ(to_vector<std::complex<double>>(io::load_hdf5(file(), "x", all_rows())),
            to_vector<std::complex<double>>(rows(0, 13, 3, complex128)));
}

// The bytes that this process has passed to write calls, as counted by the system.
std::int64_t bytes_handed_over() {
  std::ifstream facts("/proc/self/io");
  for (std::string word; facts >> word;)
    if (std::int64_t bytes = 0; word == "wchar:" && facts >> bytes) return bytes;
  return -1;
}

TEST_F(Writer, an_append_writes_the_slab_and_not_the_file) {
  if (bytes_handed_over() < 0) GTEST_SKIP() << "no /proc/self/io here";
  const auto piece = [](int n) { return device_put(rows(n * 64, 64, 512), all_rows()); };
  Hdf5Writer out(file());
  for (int n = 0; n < 20; ++n) {
    const Array x = piece(n);
    eval({x});
    const std::int64_t before = bytes_handed_over();
    out.append("x", x);
    EXPECT_LT(bytes_handed_over() - before, 64 * 512 * 8 + 32768) << n;
  }
  out.close();
  comm::barrier(comm::world());
  EXPECT_LT(std::filesystem::file_size(file()), 20u * 64 * 512 * 8 + 65536);
  EXPECT_EQ(values("x"), to_vector<double>(rows(0, 20 * 64, 512)));
}

TEST_F(Writer, twenty_snapshots_of_4_MB_write_84_MB_in_all_and_the_last_no_more_than_the_first) {
  if (bytes_handed_over() < 0) GTEST_SKIP() << "no /proc/self/io here";
  constexpr std::int64_t n = 1024, columns = 512, snapshot = n * columns * 8, some = 64 << 10;
  const Array x = device_put(rows(0, n, columns), all_rows());
  std::vector<std::int64_t> written;
  Hdf5Writer out(file());
  for (int step = 0; step < 20; ++step) {
    const Array u = x + step;
    eval({u});
    const std::int64_t before = bytes_handed_over();
    out.append("u", u);
    std::int64_t by_all = bytes_handed_over() - before;
    comm::all_reduce(comm::world(), ReduceKind::sum, int64, &by_all, &by_all, 1);
    written.push_back(by_all);
  }
  out.close();
  EXPECT_LT(written.back(), written.front() + some);
  EXPECT_LT(std::accumulate(written.begin(), written.end(), std::int64_t{0}), 20 * (snapshot + some));
  comm::barrier(comm::world());
  EXPECT_LT(std::filesystem::file_size(file()), static_cast<std::uintmax_t>(20 * snapshot + some));
  const Array last = io::load_hdf5(file(), "u", all_rows(), {.slices = {slice(19 * n, None)}});
  EXPECT_EQ(to_vector<double>(last), to_vector<double>(x + 19));
}

TEST_F(Writer, a_file_is_gone_on_with_where_an_earlier_run_ended) {
  for (int run = 0; run < 3; ++run) {
    Hdf5Writer out(file());
    for (int step = 0; step < 2; ++step) {
      const auto first = (2 * run + step) * 3;
      out.append("dense", device_put(rows(first, 3, 5), all_rows()));
      out.append("small", device_put(rows(first, 3, 5), all_rows()), {.compression = 4});
    }
    out.attribute("/", "runs", run + 1);
    out.close();
    comm::barrier(comm::world());
  }
  io::save_hdf5(file(), "beside", device_put(ones({4}), all_rows()));
  EXPECT_EQ(values("dense"), to_vector<double>(rows(0, 18, 5)));
  EXPECT_EQ(values("small"), to_vector<double>(rows(0, 18, 5)));
  EXPECT_EQ(std::get<std::int64_t>(io::hdf5_attributes(file()).at("runs")), 3);
}

TEST_F(Writer, under_the_final_name_stands_what_was_flushed_last) {
  {
    Hdf5Writer out(file());
    out.append("x", device_put(rows(0, 2, 3), all_rows()));
    EXPECT_FALSE(std::filesystem::exists(file()));
    comm::barrier(comm::world());
    out.flush();
    EXPECT_EQ(values("x"), to_vector<double>(rows(0, 2, 3)));
    comm::barrier(comm::world());
    out.append("x", device_put(rows(2, 2, 3), all_rows()));
    EXPECT_EQ(values("x"), to_vector<double>(rows(0, 2, 3)));
    comm::barrier(comm::world());
    out.flush();
    out.append("x", device_put(rows(4, 2, 3), all_rows()));
  }  // without close
  EXPECT_EQ(values("x"), to_vector<double>(rows(0, 4, 3)));
  EXPECT_THAT(entries(), ElementsAre("x.h5"));
}

TEST_F(Writer, the_mode_says_what_becomes_of_an_old_file) {
  io::save_hdf5(file(), "old", device_put(ones({4}), all_rows()));
  comm::barrier(comm::world());
  EXPECT_THAT(text_of_error<IoError>([&] { Hdf5Writer(file(), {.mode = Hdf5Open::fail}); }),
              AllOf(HasSubstr("exists, and the mode is fail"), HasSubstr("hdf5_writer_test.cpp:")));
  Hdf5Writer kept(file());
  kept.close();
  EXPECT_THAT(io::hdf5_datasets(file()), ElementsAre("/old"));
  comm::barrier(comm::world());
  Hdf5Writer fresh(file(), {.mode = Hdf5Open::replace});
  fresh.write("new", device_put(ones({4}), all_rows()));
  EXPECT_THAT(io::hdf5_datasets(file()), ElementsAre("/old"));  // until it is closed
  comm::barrier(comm::world());
  fresh.close();
  EXPECT_THAT(io::hdf5_datasets(file()), ElementsAre("/new"));
}

TEST_F(Writer, attributes_come_back_as_they_were_given) {
  Hdf5Writer out(file());
  out.write("x", device_put(ones({4}), all_rows()));
  out.group("/runs/first");
  out.group("runs");  // exists already
  out.attribute("/", "steps", 20);
  out.attribute("/", "viscosity", 0.25);
  out.attribute("x", "unit", "m/s");
  out.attribute("x", "unit", "µm/s");  // replaces it
  out.attribute("x", "origin", std::vector<double>{0, -1.5});
  out.attribute("runs/first", "shape", std::vector<std::int64_t>{3, 4});
  out.attribute("runs/first", "axes", std::vector<std::string>{"time", "", "x"});
  out.attribute("runs/first", "nothing", std::vector<double>{});
  out.close();
  comm::barrier(comm::world());
  using Attributes = std::map<std::string, io::Hdf5Attribute>;
  EXPECT_EQ(io::hdf5_attributes(file()), (Attributes{{"steps", std::int64_t{20}}, {"viscosity", 0.25}}));
  EXPECT_EQ(io::hdf5_attributes(file(), "x"),
            (Attributes{{"unit", std::string("µm/s")}, {"origin", std::vector<double>{0, -1.5}}}));
  EXPECT_EQ(io::hdf5_attributes(file(), "/runs/first"),
            (Attributes{{"shape", std::vector<std::int64_t>{3, 4}},
                        {"axes", std::vector<std::string>{"time", "", "x"}},
                        {"nothing", std::vector<double>{}}}));
}

TEST_F(Writer, a_damaged_attribute_is_named_instead_of_read_as_nothing) {
  Hdf5Writer out(file());
  out.attribute("/", "unit", "m/s");
  out.close();
  if (is_main_process()) {
    std::ifstream in(file(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const auto heap = bytes.find("GCOL");  // holds the texts
    ASSERT_NE(heap, std::string::npos);
    std::ofstream(file(), std::ios::binary) << bytes.replace(heap, 4, "none");
  }
  comm::barrier(comm::world());
  EXPECT_THAT(text_of_error<IoError>([&] { io::hdf5_attributes(file()); }),
              AllOf(HasSubstr("x.h5"), HasSubstr("an attribute 'unit' of '/' that cannot be read")));
}

TEST_F(Writer, mistakes_are_the_same_error_on_every_rank_and_leave_the_writer_as_it_was) {
  const auto put_rows = [](const Array& x) { return device_put(x, all_rows()); };
  Hdf5Writer out(file());
  out.append("x", put_rows(rows(0, 4, 3)));
  out.write("fixed", put_rows(ones({4})));
  EXPECT_THAT(text_of_error<ShapeError>([&] { out.append("x", put_rows(rows(0, 4, 2))); }),
              AllOf(HasSubstr("Hdf5Writer::append at"),
                    HasSubstr("has the shape (4, 3), and what is appended (4, 2)")));
  EXPECT_THAT(text_of_error<DtypeError>([&] { out.append("/x", put_rows(rows(0, 4, 3, int32))); }),
              HasSubstr("holds float64, and what is appended is int32; use astype"));
  EXPECT_THAT(text_of_error<IoError>([&] { out.append("fixed", put_rows(ones({4}))); }),
              HasSubstr("'/fixed' that cannot grow; make it with append"));
  EXPECT_THAT(text_of_error<IoError>([&] { out.write("x", put_rows(ones({4}))); }),
              HasSubstr("has '/x' already; choose another name, or append to it"));
  EXPECT_THAT(text_of_error<IoError>([&] { out.write("x/inside", put_rows(ones({4}))); }),
              HasSubstr("creation"));
  EXPECT_THAT(text_of_error<IoError>([&] { out.attribute("none", "unit", "m"); }),
              HasSubstr("has no '/none'; make the dataset or group first"));
  EXPECT_THAT(text_of_error<IoError>([&] { out.attribute("x", "long", std::vector<double>(10000)); }),
              HasSubstr("attributes are for small things (64 KiB)"));
  EXPECT_THAT(text_of_error<IoError>([&] { out.group("x"); }), HasSubstr("'x', which is no group"));
  EXPECT_THAT(text_of_error<ShapeError>([&] { out.append("y", array({1.0})(0)); }),
              HasSubstr("reshape(x, {1})"));
  EXPECT_THAT(text_of_error<ShapeError>([&] {
                out.append("y", put_rows(ones({4})), {.chunk = {2, 2}});
              }),
              HasSubstr("the chunk (2, 2) does not fit the shape (4,)"));
  EXPECT_THAT(
      text_of_error<ArgumentError>([&] { out.append("y", put_rows(ones({4})), {.compression = 10}); }),
      HasSubstr("compression is 10; give 0 (none) or 1 (fast) to 9 (small)"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { out.write("", put_rows(ones({4}))); }),
              HasSubstr("has no name"));
  out.append("x", put_rows(rows(4, 2, 3)));
  out.close();
  EXPECT_THAT(text_of_error<ArgumentError>([&] { out.append("x", put_rows(rows(0, 1, 3))); }),
              HasSubstr("is closed; make a new one, which appends"));
  EXPECT_EQ(values("x"), to_vector<double>(rows(0, 6, 3)));
  EXPECT_THAT(io::hdf5_datasets(file()), testing::UnorderedElementsAre("/x", "/fixed"));
}

TEST_F(Writer, ranks_that_write_other_things_hear_of_it) {
  if (device_count() == 1) return;
  Hdf5Writer out(file());
  const auto own = "x" + std::to_string(process_index() % 2);
  EXPECT_THAT(
      text_of_error<comm::DisagreementError>([&] { out.append(own, device_put(ones({8}), all_rows())); }),
      AllOf(HasSubstr("dataset 'x0'"), HasSubstr("dataset 'x1'")));
  EXPECT_THAT(text_of_error<comm::DisagreementError>([&] { out.attribute("/", "rank", process_index()); }),
              HasSubstr("Hdf5Writer::attribute"));
}

TEST_F(Writer, a_write_that_fails_on_one_rank_leaves_the_old_file_and_a_writer_that_refuses) {
  io::save_hdf5(file(), "x", device_put(arange(6.0), all_rows()));
  comm::barrier(comm::world());
  {
    Hdf5Writer out(file());
    const rlimit few{10000, RLIM_INFINITY};
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    if (process_index() == device_count() - 1) setrlimit(RLIMIT_FSIZE, &few);
    const auto text =
        text_of_error<IoError>([&] { out.append("y", device_put(rows(0, 4000, 2), all_rows())); });
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_THAT(text, HasSubstr("Hdf5Writer::append"));
    EXPECT_THAT(text_of_error<IoError>([&] { out.close(); }),
                HasSubstr("failed in the midst of a write; the file stands as it was at the last flush"));
  }
  EXPECT_THAT(values("x"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(io::hdf5_datasets(file()), ElementsAre("/x"));
  EXPECT_THAT(entries(), ElementsAre("x.h5"));
}

TEST_F(Writer, datasets_of_other_programs_grow_too) {
  if (is_main_process()) {
    const hid_t made = H5Fcreate(file().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t extents[] = {2, 3}, most[] = {H5S_UNLIMITED, 3}, chunk[] = {4, 2};
    const double first[] = {0, 1, 2, 3, 4, 5};
    const hid_t space = H5Screate_simple(2, extents, most);
    for (const char* name : {"plain", "small", "sums"}) {
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_chunk(creation, 2, chunk);
      if (name[1] == 'm') H5Pset_deflate(creation, 5);
      if (name[1] == 'u') H5Pset_fletcher32(creation);
      const hid_t data = H5Dcreate2(made, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
      H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, first);
      H5Dclose(data), H5Pclose(creation);
    }
    H5Sclose(space), H5Fclose(made);
  }
  comm::barrier(comm::world());
  Hdf5Writer out(file());
  for (const char* name : {"plain", "small"}) {
    out.append(name, device_put(rows(2, 5, 3), all_rows()));
    out.append(name, device_put(rows(7, 6, 3), all_rows()));
  }
  EXPECT_THAT(text_of_error<IoError>([&] { out.append("sums", device_put(rows(2, 5, 3), all_rows())); }),
              HasSubstr("with the filter 'fletcher32'; only deflate, and shuffle before it"));
  out.close();
  EXPECT_EQ(values("plain"), to_vector<double>(rows(0, 13, 3)));
  EXPECT_EQ(values("small"), to_vector<double>(rows(0, 13, 3)));
  comm::barrier(comm::world());
}

TEST_F(Writer, ranks_outside_of_the_mesh_take_part) {
  const int some = std::max(1, device_count() - 1);
  const auto all = devices();
  const auto layout =
      NamedSharding(make_mesh({some}, {"x"}, {all.begin() + (device_count() - some), all.end()}), P("x"));
  Hdf5Writer out(file());
  for (const int first : {0, 5}) {
    out.append("x", device_put(rows(first, 5, 2), layout));
    out.append("small", device_put(rows(first, 5, 2), layout), {.compression = 1});
  }
  out.close();
  EXPECT_EQ(values("x"), to_vector<double>(rows(0, 10, 2)));
  EXPECT_EQ(values("small"), to_vector<double>(rows(0, 10, 2)));
}

}  // namespace
}  // namespace tessera::test
