// Zarr: stores written by other programs, and every chunk grid to and from every mesh.
#include <tessera/io/stream.hpp>
#include <tessera/io/zarr.hpp>

#include <sys/resource.h>

#include <cmath>
#include <numeric>

#include "io/folder.hpp"
#include "support/data.hpp"

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

class Zarr : public InFolder {
 protected:
  static std::string data(const std::string& name) { return (tests_folder() / "io/data" / name).string(); }
  // The values that tests/io/make_data.py writes into every array.
  static std::vector<double> made(std::int64_t n, bool is_unsigned = false) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i)
      values.push_back(static_cast<double>(7 * i % 100 - (is_unsigned ? 0 : 50)));
    return values;
  }
  static Array numbers(const Shape& shape, Dtype dtype) {
    const Array flat = arange(shape.elements()) % 100 - (is_unsigned_integer(dtype) ? 0 : 50);
    if (dtype == bool_) return reshape(flat > 0, shape);
    return astype(reshape(flat, shape), dtype);
  }
  static std::vector<std::complex<double>> values(const Array& x) {
    return to_vector<std::complex<double>>(astype(x, complex128));
  }
  static void once(const std::function<void()>& work) {
    if (is_main_process()) work();
    comm::barrier(comm::world());
  }
  std::vector<std::string> files_of(const std::string& store) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path(store)))
      if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), path(store)).string());
    std::sort(names.begin(), names.end());
    comm::barrier(comm::world());
    return names;
  }
};

TEST_F(Zarr, arrays_of_zarr_python_with_every_codec_have_their_values_in_every_layout) {
  std::mt19937 random(3);
  const std::string store = data("v3.zarr");
  const auto arrays = io::zarr_arrays(store);
  EXPECT_EQ(arrays.size(), 25U);
  for (const char* name : {"plain", "big_endian", "turned", "zstd", "gzip", "blosc/lz4", "blosc/zstd",
                           "blosc/zlib", "blosc/blosclz", "blosc/lz4hc", "summed", "sharded", "dots",
                           "v2_keys", "types/uint32", "types/uint64", "types/float16"}) {
    const auto& info = arrays.at(name);
    const auto wanted = made(info.shape.elements(), is_unsigned_integer(info.dtype));
    for (int round = 0; round < 3; ++round) {
      const Sharding layout = random_sharding(random, random_mesh(random), info.shape.ndim());
      const Array x = io::load_zarr(store + "/" + name, layout);
      EXPECT_EQ(x.dtype(), info.dtype) << name;
      EXPECT_EQ(to_vector<double>(astype(x, float64)), wanted) << name << " " << text_of(layout);
    }
  }
}

TEST_F(Zarr, complex_numbers_bools_scalars_and_empty_arrays_of_zarr_python_are_read) {
  const std::string store = data("v3.zarr");
  std::vector<std::complex<double>> complex_values;
  const auto forward = made(90);
  for (std::size_t i = 0; i < 90; ++i) complex_values.emplace_back(forward[i], forward[89 - i]);
  EXPECT_EQ(values(io::load_zarr(store + "/sharded_start")), complex_values);
  EXPECT_EQ(io::load_zarr(store + "/types/complex128").dtype(), complex128);
  EXPECT_THAT(to_vector<int>(astype(io::load_zarr(store + "/types/bool"), int32)),
              ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(to_vector<double>(io::load_zarr(store + "/scalar")), made(1));
  EXPECT_EQ(io::load_zarr(store + "/empty").shape(), (Shape{0, 4}));
}

TEST_F(Zarr, missing_chunks_hold_the_fill_value) {
  const std::string store = data("v3.zarr");
  const auto x = to_vector<float>(io::load_zarr(store + "/missing", all_rows()));
  EXPECT_EQ(std::count_if(x.begin(), x.end(), [](float v) { return std::isnan(v); }), 20);
  EXPECT_EQ(x[2 * 4 + 2], -50);
  EXPECT_EQ(x[3 * 4 + 3], -29);
  EXPECT_THAT(to_vector<int>(astype(io::load_zarr(store + "/below"), int32)), ElementsAre(-7, -7, -7));
  EXPECT_EQ(to_vector<double>(io::load_zarr(store + "/infinite"))[2], -INFINITY);
}

TEST_F(Zarr, names_of_dims_and_attributes_are_found) {
  const std::string store = data("v3.zarr");
  EXPECT_THAT(io::zarr_dims(store + "/missing"), ElementsAre("y", ""));
  const auto of_store = io::zarr_attributes(store), of_array = io::zarr_attributes(store + "/missing");
  EXPECT_EQ(std::get<std::string>(of_store.at("title")), "Größe µ");
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(of_store.at("levels")), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_FALSE(of_store.contains("nested"));
  EXPECT_EQ(io::zarr_attributes_json(store + "/missing"), R"({"units":"K","valid_max":Infinity})");
  EXPECT_EQ(std::get<double>(of_array.at("valid_max")), INFINITY);
}

TEST_F(Zarr, stores_of_version_2_are_read) {
  const std::string store = data("v2.zarr");
  EXPECT_EQ(io::zarr_arrays(store).size(), 5U);
  for (const char* name : {"c", "f", "plain"})
    EXPECT_EQ(to_vector<double>(astype(io::load_zarr(store + "/" + name, all_rows()), float64)), made(35))
        << name;
  const auto turned = values(io::load_zarr(store + "/gzip", all_rows()));
  EXPECT_EQ(turned[1], (std::complex<double>(made(35)[1], made(35)[33])));
  EXPECT_THAT(io::zarr_dims(store + "/zstd"), ElementsAre("y", "x"));
}

TEST_F(Zarr, what_is_saved_comes_back_from_any_grid_codec_and_layout_into_any_other) {
  std::mt19937 random(11);
  const char* packers[] = {"none", "zstd", "gzip", "blosc", "blosc-zstd"};
  for (int round = 0; round < 40; ++round) {
    const int ndim = round % 4;
    std::vector<std::int64_t> extents, chunks, shards;
    for (int d = 0; d < ndim; ++d) {
      extents.push_back(pick(random, round % 9 == 8 ? 0 : 1, 11));
      chunks.push_back(pick(random, 1, 5));
      shards.push_back(chunks.back() * pick(random, 1, 3));
    }
    const Dtype dtype{round % dtype_count};
    io::ZarrOptions options{.compression = packers[round % 5], .checksum = round % 3 == 0};
    if (round % 4 != 3) options.chunks = chunks;
    if (round % 2 == 1 && !options.chunks.empty()) options.shards = shards;
    const Array x = numbers(Shape(extents), dtype);
    const Sharding from = random_sharding(random, random_mesh(random), ndim),
                   to = random_sharding(random, random_mesh(random), ndim);
    const std::string store = path("x" + std::to_string(round) + ".zarr");
    io::save_zarr(store, device_put(x, from), options);
    const Array back = io::load_zarr(store, to);
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.shape(), x.shape());
    EXPECT_EQ(values(back), values(x)) << round << " " << text_of(from) << " -> " << text_of(to);
  }
}

// More chunks than files may be open, in one folder and in one each.
TEST_F(Zarr, many_small_chunks_come_back) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{std::min<rlim_t>(256, before.rlim_max), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const Array x = device_put(arange(1500) + 1, all_rows());
  io::save_zarr(path("flat.zarr"), x, {.chunks = {1}, .compression = "none"});
  io::save_zarr(path("deep.zarr"), reshape(x, {750, 2}), {.chunks = {1, 1}});
  const Array flat = io::load_zarr(path("flat.zarr"), all_rows()),
              deep = io::load_zarr(path("deep.zarr"), all_rows()),
              stepped = io::load_zarr(path("flat.zarr"), {.slices = {slice(1, None, 7)}});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(files_of("flat.zarr").size(), 1501U);
  EXPECT_EQ(to_vector<std::int32_t>(flat), to_vector<std::int32_t>(x));
  EXPECT_EQ(to_vector<std::int32_t>(deep), to_vector<std::int32_t>(x));
  EXPECT_EQ(to_vector<std::int32_t>(stepped), to_vector<std::int32_t>(x(slice(1, None, 7))));
}

TEST_F(Zarr, by_default_a_shard_of_the_array_is_a_chunk_and_nothing_is_sent) {
  const int n = device_count();
  io::save_zarr(path("x.zarr"), device_put(numbers({4 * n, 3}, float32), all_rows()),
                {.compression = "none"});
  std::vector<std::string> wanted{"zarr.json"};
  for (int r = 0; r < n; ++r) wanted.push_back("c/" + std::to_string(r) + "/0");
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(files_of("x.zarr"), wanted);
}

TEST_F(Zarr, chunks_that_hold_only_the_fill_value_have_no_file) {
  io::save_zarr(path("x.zarr"), device_put(zeros({8, 3}), all_rows()), {.chunks = {2, 3}});
  EXPECT_THAT(files_of("x.zarr"), ElementsAre("zarr.json"));
  io::save_zarr(path("y.zarr"), device_put(zeros({8, 3}), all_rows()), {.chunks = {8, 3}, .fill = NAN});
  EXPECT_THAT(files_of("y.zarr"), ElementsAre("c/0/0", "zarr.json"));
  EXPECT_EQ(to_vector<float>(io::load_zarr(path("x.zarr"), all_rows())), std::vector<float>(24, 0.0F));
}

TEST_F(Zarr, slices_read_only_their_part) {
  const Array x = numbers({9, 10}, float64);
  io::save_zarr(path("x.zarr"), device_put(x, all_rows()), {.chunks = {4, 3}});
  const Array part = io::load_zarr(path("x.zarr"), all_rows(), {.slices = {slice(1, 8, 2), slice(-4, None)}});
  EXPECT_EQ(to_vector<double>(part), to_vector<double>(x(slice(1, 8, 2), slice(-4, None))));
  EXPECT_THAT(
      text_of_error<IndexError>([&] { io::load_zarr(path("x.zarr"), {.slices = {slice(None, None, -1)}}); }),
      HasSubstr("only positive steps"));
}

TEST_F(Zarr, a_save_takes_the_place_of_an_old_store_and_leaves_nothing_else) {
  io::save_zarr(path("x.zarr"), device_put(numbers({40, 2}, int32), all_rows()), {.chunks = {1, 1}});
  io::save_zarr(path("x.zarr"), device_put(numbers({3, 2}, int32), all_rows()), {.chunks = {3, 2}});
  EXPECT_THAT(files_of("x.zarr"), ElementsAre("c/0/0", "zarr.json"));
  EXPECT_THAT(entries(), ElementsAre("x.zarr"));
}

TEST_F(Zarr, a_folder_that_holds_something_else_is_not_replaced) {
  once([&] {
    fs::create_directories(path("home"));
    std::ofstream(path("home/letter")) << "dear";
  });
  EXPECT_THAT(text_of_error<IoError>([&] { io::save_zarr(path("home"), zeros({2})); }),
              AllOf(HasSubstr("home'"), HasSubstr("holds no Zarr store, and would be lost")));
  EXPECT_TRUE(fs::exists(path("home/letter")));
}

TEST_F(Zarr, mistakes_are_the_same_error_on_all_ranks) {
  const Array x = device_put(numbers({6, 4}, float32), all_rows());
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::save_zarr(path("x"), x, {.chunks = {2}}); }),
              HasSubstr("chunks (2,) do not suit an array of shape (6, 4)"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] {
                io::save_zarr(path("x"), x, {.chunks = {2, 3}, .shards = {4, 4}});
              }),
              HasSubstr("no multiples of chunks (2, 3)"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::save_zarr(path("x"), x, {.compression = "zst"}); }),
              HasSubstr("did you mean 'zstd'?"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::save_zarr(path("x"), x, {.dims = {"y"}}); }),
              HasSubstr("1 name of dims for an array of shape (6, 4)"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::save_zarr(path("x"), astype(x, int8), {.fill = 300}); }),
              HasSubstr("the fill value 300.0 is no int8"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_zarr(path("nothing.zarr")); }),
              HasSubstr("is not there"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_zarr(data("v3.zarr")); }),
              AllOf(HasSubstr("is a group and no array"), HasSubstr("'below'")));
  EXPECT_THAT(entries(), IsEmpty());
}

TEST_F(Zarr, filters_of_version_2_are_named) {
  once([&] {
    fs::create_directory(path("f.zarr"));
    std::ofstream(path("f.zarr/.zarray"))
        << R"({"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<i4", "compressor": null, "fill_value": 0,)"
        << R"( "order": "C", "filters": [{"id": "delta", "dtype": "<i4"}, {"id": "fixedscaleoffset"}]})";
  });
  const auto is_told = HasSubstr(
      "passes its chunks through the filters 'delta', 'fixedscaleoffset', which tessera "
      "does not have; write it without filters (zarr: filters=None)");
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_zarr(path("f.zarr")); }), is_told);
  EXPECT_THAT(text_of_error<IoError>([&] { io::open(path("f.zarr")); }), is_told);
}

TEST_F(Zarr, a_nul_does_not_end_the_metadata) {
  io::save_zarr(path("x.zarr"), device_put(numbers({6}, int32), all_rows()));
  once([&] { std::ofstream(path("x.zarr/zarr.json"), std::ios::app | std::ios::binary) << '\0' << "{}"; });
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_zarr(path("x.zarr")); }),
              HasSubstr("has a NUL in zarr.json; write it again"));
}

TEST_F(Zarr, damaged_chunks_are_errors_that_name_the_file) {
  const Array x = device_put(numbers({6, 4}, float32), all_rows());
  const std::pair<io::ZarrOptions, const char*> cases[] = {
      {{.chunks = {6, 4}, .compression = "none"},
       "holds a chunk of 11 bytes, where (6, 4) of float32 need 96"},
      {{.chunks = {6, 4}, .compression = "zstd"}, "cannot be unpacked by zstd"},
      {{.chunks = {6, 4}, .compression = "gzip"}, "cannot be unpacked by zlib"},
      {{.chunks = {6, 4}, .compression = "blosc"}, "is not what Blosc packs"},
      {{.chunks = {6, 4}, .compression = "none", .checksum = true}, "CRC-32C checksum is another one"},
      {{.chunks = {2, 2}, .shards = {6, 4}}, "holds a shard of 11 bytes, whose index needs 100"}};
  for (const auto& [options, text] : cases) {
    io::save_zarr(path("x.zarr"), x, options);
    once([&] { std::ofstream(path("x.zarr/c/0/0"), std::ios::binary) << "hello world"; });
    EXPECT_THAT(
        text_of_error<IoError>([&] { io::load_zarr(path("x.zarr"), all_rows()); }),
        AllOf(HasSubstr("x.zarr/c/0/0' " + std::string(text == cases[2].second ? "" : "")), HasSubstr(text)));
  }
}

TEST_F(Zarr, a_store_that_a_dead_save_put_aside_is_found_again) {
  io::save_zarr(path("x.zarr"), device_put(numbers({6}, int32), all_rows()));
  once([&] { fs::rename(path("x.zarr"), path("x.zarr.old-0123456789abcdef")); });
  EXPECT_EQ(to_vector<int>(io::load_zarr(path("x.zarr")))[5], -45);
  EXPECT_THAT(entries(), ElementsAre("x.zarr"));
}

}  // namespace
}  // namespace tessera::test
