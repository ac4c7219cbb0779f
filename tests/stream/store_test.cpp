// Results as Zarr and netCDF files, and the memory of the process while a program runs.
#include <tessera/fft.hpp>
#include <tessera/io/netcdf.hpp>
#include <tessera/io/stream.hpp>
#include <tessera/io/zarr.hpp>

#include <unistd.h>

#include <fstream>

#include "comm/collectives/collectives.hpp"
#include "io/folder.hpp"
#include "support/compare.hpp"
#include "types/buffer.hpp"
#include "types/other_memory.hpp"

namespace tessera::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Store : public InFolder {
 protected:
  static Array numbers(Shape shape, Dtype dtype = float64) {
    return astype(reshape(arange(static_cast<int>(shape.elements())), shape) - 17, dtype);
  }
  io::FileArray file_of(const Array& x) const {
    io::save_npy(path("x.npy"), x);
    return io::open(path("x.npy"));
  }
};

// One file is read for all of them, and none has its name before all are written.
TEST_F(Store, several_results_share_the_passes) {
  const Array x = reshape(astype(arange(23 * 5), float64), {23, 5});
  io::save_npy(path("x.npy"), x);
  const auto file = io::open(path("x.npy"));
  const Array centred = file - mean(file, 0), spread = tessera::std(file, 0);
  const std::vector<io::StoredResult> results = {{path("c.npy"), centred},
                                                 {path("s.h5"), spread, {.name = "s"}},
                                                 {path("y.zarr"), file * 2, {.chunks = {4, 4}}},
                                                 {path("memory.npy"), x + 1}};
  EXPECT_LE(io::explain_store(results, {.slab = 4}).bytes_read,
            io::explain_store({results[0]}, {.slab = 4}).bytes_read);  // the others are made in its passes
  const auto last = std::to_string(device_count() - 1);
  setenv("TESSERA_TEST_FAULT", ("slab@" + last + ":throw").c_str(), 1);
  EXPECT_THROW(io::store(results, {.slab = 4}), IoError);
  unsetenv("TESSERA_TEST_FAULT");
  EXPECT_THAT(entries(), testing::ElementsAre("x.npy"));
  io::store(results, {.slab = 4});
  const std::vector<std::pair<Array, Array>> pairs = {{io::load_npy(path("c.npy")), x - mean(x, 0)},
                                                      {io::load_hdf5(path("s.h5"), "s"), tessera::std(x, 0)},
                                                      {io::load_zarr(path("y.zarr")), x * 2},
                                                      {io::load_npy(path("memory.npy")), x + 1}};
  for (const auto& [found, expected] : pairs) EXPECT_TRUE(item<bool>(allclose(found, expected)));
  EXPECT_THAT(text_of_error<ArgumentError>([&] {
                io::store({{path("a.npy"), x}, {path("./a.npy"), x}});
              }),
              testing::HasSubstr("is given twice"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] {
                io::store({{path("a.npy"), x, {.slab = 3}}});
              }),
              testing::HasSubstr("has a memory_limit or a slab of its own"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::store(std::vector<io::StoredResult>{}); }),
              testing::HasSubstr("there is no result"));
}

TEST_F(Store, a_zarr_array_has_any_chunks) {
  const Array x = numbers({23, 7, 2});
  const auto file = file_of(x);
  const std::vector<std::vector<std::int64_t>> grids = {{}, {5, 3, 2}, {23, 7, 2}, {1, 7, 1}, {40, 9, 9}};
  for (const auto& chunks : grids)
    for (const std::int64_t slab : {4, 9, 23}) {
      io::store(path("y.zarr"), file * 2, {.slab = slab, .chunks = chunks});
      EXPECT_EQ(to_vector<double>(io::load_zarr(path("y.zarr"))), to_vector<double>(x * 2))
          << to_string(Shape(chunks)) << " " << slab;
      EXPECT_THAT(entries(), Not(Contains(HasSubstr(".tmp-"))));
    }
  io::store(path("y.zarr"), x.T() + file.T(), {.slab = 5, .shards = {2, 4, 12}, .compression = "none"});
  EXPECT_EQ(to_vector<double>(io::load_zarr(path("y.zarr"))), to_vector<double>(x.T() * 2));
  io::store(path("y.zarr"), sum(file, 1), {.slab = 5, .chunks = {4, 1}});
  EXPECT_EQ(to_vector<double>(io::load_zarr(path("y.zarr"))), to_vector<double>(sum(x, 1)));
  io::store(path("y.zarr"), sum(file), {.slab = 5});  // a value that has no streamed dim
  EXPECT_EQ(item<double>(io::load_zarr(path("y.zarr"))), item<double>(sum(x)));
}

// Chunks of 24 columns have elements on two ranks, which takes memory for the parts of others.
TEST_F(Store, columns_of_whole_chunks_take_no_memory_for_parts_of_others) {
  const int extent = 32 * device_count();
  const Array x = numbers({10 * extent + 7, 4096});
  const auto file = file_of(x);
  const auto options = [&](std::int64_t columns) {
    return io::StoreOptions{.slab = extent, .chunks = {4096, columns}, .compression = "none"};
  };
  const auto peak = [&](std::int64_t columns) {
    return io::explain_store(path("y.zarr"), file.T(), options(columns)).peak_bytes;
  };
  if (device_count() > 1) {
    EXPECT_LT(peak(32), peak(24));
  }
  io::store(path("y.zarr"), file.T(), options(32));
  EXPECT_EQ(to_vector<double>(io::load_zarr(path("y.zarr"))), to_vector<double>(x.T()));
}

TEST_F(Store, a_zarr_array_in_groups_has_named_dims) {
  const auto file = file_of(numbers({11, 4}, float32));
  io::store(path("y.zarr"), file + 1, {.name = "run/a/y", .slab = 3, .dims = {"time", "cell"}});
  EXPECT_THAT(io::zarr_dims(path("y.zarr/run/a/y")), ElementsAre("time", "cell"));
  EXPECT_THAT(io::zarr_arrays(path("y.zarr")), ElementsAre(testing::Key("run/a/y")));
  io::Zarr more(path("y.zarr"));
  more.write("run/b", numbers({3}));
  more.close();
  EXPECT_EQ(to_vector<float>(io::load_zarr(path("y.zarr/run/a/y"))),
            to_vector<float>(numbers({11, 4}, float32) + 1));
}

TEST_F(Store, a_netcdf_variable_has_named_dims) {
  const Array x = numbers({23, 5}, float32);
  const auto file = file_of(x);
  io::store(path("y.nc"), file * 2, {.name = "y", .slab = 4, .dims = {"time", "cell"}});
  EXPECT_THAT(io::netcdf_variables(path("y.nc")).at("y").dims, ElementsAre("time", "cell"));
  EXPECT_EQ(io::netcdf_dims(path("y.nc")).at("time").size, 23);
  EXPECT_EQ(to_vector<float>(io::load_netcdf(path("y.nc"), "y")), to_vector<float>(x * 2));
  io::store(path("y.nc"), mean(file, 0), {.name = "m", .slab = 4});
  EXPECT_THAT(io::netcdf_variables(path("y.nc")).at("m").dims, ElementsAre("dim_0"));
  EXPECT_THAT(text_of_error<DtypeError>([&] { io::store(path("y.nc"), file > 0, {.name = "y"}); }),
              HasSubstr("netCDF does not have"));
  EXPECT_THAT(entries(), ElementsAre("x.npy", "y.nc"));
}

TEST_F(Store, options_that_do_not_suit_the_format_are_refused) {
  const auto file = file_of(numbers({6, 4}));
  EXPECT_THAT(text_of_error<ArgumentError>([&] {
                io::store(path("y.npy"), file, {.chunks = {2, 2}});
              }),
              HasSubstr("only .zarr has them"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::store(path("y.zarr"), file, {.dims = {"a"}}); }),
              HasSubstr("1 name of dims for an array of shape (6, 4)"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::store(path("y.zarr"), file, {.name = "a//b"}); }),
              HasSubstr("cannot be the name"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::store(path("y.nc"), file); }),
              HasSubstr("needs a name"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::store(path("y.zarr"), file, {.chunks = {2}}); }),
              HasSubstr("do not suit"));
  EXPECT_THAT(entries(), ElementsAre("x.npy"));
}

TEST_F(Store, a_failure_leaves_the_old_store) {
  const Array x = numbers({23, 5});
  const auto file = file_of(x);
  const auto last = std::to_string(device_count() - 1);
  io::save_zarr(path("y.zarr"), numbers({3}));
  io::save_netcdf(path("y.nc"), std::map<std::string, Array>{{"y", numbers({3})}},
                  std::map<std::string, std::vector<std::string>>{{"y", std::vector<std::string>{"n"}}});
  for (const std::string& point : std::vector<std::string>{"slab@" + last, "prepared@0", "written@" + last}) {
    setenv("TESSERA_TEST_FAULT", (point + ":throw").c_str(), 1);
    for (const char* name : {"y.zarr", "y.nc"}) {
      const io::StoreOptions options{.name = std::string(name) == "y.nc" ? "y" : "", .slab = 4};
      EXPECT_THAT(text_of_error<IoError>([&] { io::store(path(name), sqrt(file), options); }),
                  HasSubstr("the fault at " + point))
          << point;
    }
    unsetenv("TESSERA_TEST_FAULT");
    EXPECT_EQ(io::load_zarr(path("y.zarr")).shape(), (Shape{3}));
    EXPECT_EQ(io::load_netcdf(path("y.nc"), "y").shape(), (Shape{3}));
    EXPECT_THAT(entries(), Not(Contains(HasSubstr(".tmp-")))) << point;
  }
}

// ---- memory ----

#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory for a while
std::int64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::atoll(line.c_str() + field.size() + 1) * 1024;
  return 0;
}
// The most memory of the process from now on; false where the system does not tell.
bool reset_high_water() { return bool(std::ofstream("/proc/self/clear_refs") << "5" << std::flush); }

TEST_F(Store, the_process_stays_within_the_limit) {
  if (!reset_high_water()) GTEST_SKIP() << "the system keeps no resettable peak";
  const auto file = file_of(numbers({3000, 2500 * device_count()}, float32));
  constexpr std::int64_t limit = 12 << 20, other = 16 << 20;  // threads, malloc's own pools, messages
  ASSERT_GT(file.nbytes() / device_count(), limit + other);
  struct Program {
    const char* target;
    Array before, y;  // the first one brings pages of the program, and plans of other FFTs
    std::vector<std::int64_t> chunks = {};
  };
  const auto part = file.part({slice(0, 500), slice(0, 1000)});
  const std::vector<Program> programs = {{"y.zarr", sqrt(abs(file)) * 2, sqrt(abs(file)) * 2},
                                         {"y.npy", fft::rfft2(part), fft::rfft2(file)},
                                         {"y.zarr", file * 3, file * 2, {3000, 100}}};
  for (const auto& [target, first, y, chunks] : programs) {
    const io::StoreOptions options{.memory_limit = limit, .chunks = chunks};
    const auto plan = io::explain_store(path(target), y, options);
    io::store(path(target), first, options);
    release_pooled_memory();
    reset_high_water();
    const auto before = status_bytes("VmRSS");
    io::store(path(target), y, options);
    const auto most = status_bytes("VmHWM") - before;
    EXPECT_LE(most, plan.limit_bytes + other) << target << ", from " << before;
  }
}
#endif

TEST_F(Store, pools_make_room_under_a_bound) {
  release_pooled_memory();
  const auto pooled_and_live = [] { return memory_use().live_bytes + memory_use().pooled_bytes; };
  const auto before = pooled_and_live();
  const std::int64_t bound = before + (20 << 20);
  const auto take = [](std::int64_t mib) { return Buffer::allocate(static_cast<std::size_t>(mib) << 20); };
  {
    std::vector<Buffer> blocks;
    for (int i = 0; i < 30; ++i) blocks.push_back(take(1));
  }
  EXPECT_GT(pooled_and_live(), bound);
  const PoolBound within(bound);
  EXPECT_LE(pooled_and_live(), bound);
  for (const std::int64_t mib : {16, 5, 11, 3, 7}) {
    const Buffer block = take(mib);
    EXPECT_LE(pooled_and_live(), bound) << mib;
  }
  const Buffer block = take(4);
  const auto* const place = take(3).data();
  EXPECT_EQ(take(3).data(), place);  // a block of its own size is used again
}

}  // namespace
}  // namespace tessera::test
