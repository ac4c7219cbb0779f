// Zarr stores that are written array by array: their contents after each call.
#include <tessera/io/zarr.hpp>

#include <nlohmann/json.hpp>

#include "io/file.hpp"
#include "io/folder.hpp"
#include "io/formats/zarr/metadata/json_document.hpp"
#include "support/data.hpp"

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class ZarrStore : public InFolder {
 protected:
  std::string store() const { return path("run.zarr"); }
  static Array rows(std::int64_t first, std::int64_t n, std::int64_t columns, Dtype dtype = float64) {
    const Array all = reshape(arange((first + n) * columns) + 1, {first + n, columns});
    return astype(all(slice(first, first + n)), dtype);
  }
  std::vector<double> held(const std::string& name) const {
    comm::barrier(comm::world());
    return to_vector<double>(io::load_zarr(store() + "/" + name, all_rows()));
  }
  nlohmann::json document() const {
    comm::barrier(comm::world());
    return io::zarr::parse_document(io::read_text("test", store() + "/zarr.json"), "zarr.json");
  }
};

TEST_F(ZarrStore, slabs_are_appended_along_any_dim_whatever_their_layout_and_chunks) {
  std::mt19937 random(5);
  for (const bool is_new : {true, false}) {
    if (!is_new) io::Zarr(store(), {.mode = io::ZarrOpen::replace}).close();
    io::Zarr out(store(), {.mode = is_new ? io::ZarrOpen::replace : io::ZarrOpen::append});
    for (int n = 0; n < 4; ++n) {
      const auto name = "group/x" + std::to_string(n);
      std::int64_t first = 0;
      for (const std::int64_t count : {3, 0, 5, 1, 7}) {
        const Array slab = rows(first, count, 7);
        const Array put = n % 2 == 0 ? slab : transpose(slab);
        out.append(name, device_put(put, random_sharding(random, random_mesh(random), 2)), n % 2,
                   {.chunks = n < 2 ? std::vector<std::int64_t>{4, 3} : std::vector<std::int64_t>{2, 2},
                    .shards = n == 3 ? std::vector<std::int64_t>{4, 6} : std::vector<std::int64_t>{}});
        first += count;
      }
    }
    out.close();
    const Array all = rows(0, 16, 7);
    for (int n = 0; n < 4; ++n)
      EXPECT_EQ(held("group/x" + std::to_string(n)), to_vector<double>(n % 2 == 0 ? all : transpose(all)))
          << n;
    EXPECT_THAT(entries(), ElementsAre("run.zarr"));
  }
}

TEST_F(ZarrStore, a_region_is_overwritten_and_the_rest_stays) {
  std::mt19937 random(6);
  io::Zarr out(store());
  out.write("x", device_put(rows(0, 9, 8), all_rows()), {.chunks = {4, 3}});
  out.flush();
  for (const bool with_zeros : {false, true}) {
    const Array patch = with_zeros ? zeros({5, 6}, float64) : rows(100, 5, 6);
    out.overwrite("x", device_put(patch, random_sharding(random, random_mesh(random), 2)), {3, 1});
    const auto all = held("x"), wanted = to_vector<double>(patch), before = to_vector<double>(rows(0, 9, 8));
    for (std::size_t r = 0; r < 9; ++r)
      for (std::size_t c = 0; c < 8; ++c) {
        const bool is_inside = r >= 3 && r < 8 && c >= 1 && c < 7;
        EXPECT_EQ(all[r * 8 + c], is_inside ? wanted[(r - 3) * 6 + c - 1] : before[r * 8 + c])
            << r << " " << c;
      }
  }
  out.close();
  EXPECT_FALSE(fs::exists(store() + "/x/c/1/1"));  // only zeros now
}

TEST_F(ZarrStore, a_new_store_is_not_there_before_it_is_closed) {
  {
    io::Zarr out(store());
    out.write("x", rows(0, 3, 2));
    EXPECT_FALSE(fs::exists(store()));
    comm::barrier(comm::world());
  }
  EXPECT_THAT(entries(), testing::IsEmpty());
}

TEST_F(ZarrStore, groups_and_attributes_are_in_the_consolidated_metadata) {
  io::Zarr out(store());
  out.group("a/b");
  out.write("a/x", device_put(rows(0, 3, 2), all_rows()), {.dims = {"time", ""}});
  out.attribute("", "title", std::string("Größe"));
  out.attribute("a/x", "range", std::vector<double>{0.5, 1});
  out.attributes_json("a/b", R"({"nested": {"list": [1, null]}, "limit": NaN})");
  out.flush();
  EXPECT_EQ(document()["attributes"]["title"], "Größe");
  const auto nodes = document()["consolidated_metadata"]["metadata"];
  EXPECT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes["a/x"]["dimension_names"], nlohmann::json::array({"time", nullptr}));
  EXPECT_EQ(nodes["a/x"]["attributes"]["range"][0], 0.5);
  EXPECT_EQ(io::zarr_attributes_json(store() + "/a/b"), R"({"limit":NaN,"nested":{"list":[1,null]}})");
  out.append("a/x", device_put(rows(3, 4, 2), all_rows()), 0);
  EXPECT_EQ(document()["consolidated_metadata"]["metadata"]["a/x"]["shape"][0], 7);
  EXPECT_EQ(io::zarr_dims(store() + "/a/x").front(), "time");
  out.close();
}

// As zarr-python opens it; a folder that the store does not name holds no array.
TEST_F(ZarrStore, an_array_that_only_consolidated_metadata_describe_is_read) {
  io::Zarr out(path("x.zarr"));
  out.write("a/x", device_put(arange(7), all_rows()));
  out.close();
  comm::barrier(comm::world());
  if (is_main_process()) {
    std::filesystem::remove(path("x.zarr/a/x/zarr.json"));
    std::filesystem::create_directory(path("x.zarr/a/y"));
  }
  comm::barrier(comm::world());
  EXPECT_EQ(to_vector<int>(io::load_zarr(path("x.zarr/a/x"), all_rows())), to_vector<int>(arange(7)));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_zarr(path("x.zarr/a/y"), all_rows()); }),
              testing::HasSubstr("holds no Zarr array"));
}

TEST_F(ZarrStore, mistakes_leave_the_store_as_it_was) {
  io::Zarr out(store());
  out.write("x", device_put(rows(0, 4, 3), all_rows()));
  out.flush();
  EXPECT_THAT(
      text_of_error<ShapeError>([&] { out.append("x", rows(0, 2, 2), 0); }),
      AllOf(HasSubstr("has the shape (4, 3)"), HasSubstr("(2, 2) cannot be added along dimension 0")));
  EXPECT_THAT(text_of_error<DtypeError>([&] { out.append("x", rows(0, 2, 3, float32), 0); }),
              HasSubstr("holds float64, not float32"));
  EXPECT_THAT(text_of_error<ShapeError>([&] {
                out.overwrite("x", rows(0, 2, 3), {3, 0});
              }),
              HasSubstr("(2, 3) from (3, 0) on is not within"));
  EXPECT_THAT(text_of_error<IoError>([&] {
                out.overwrite("y", rows(0, 2, 3), {3, 0});
              }),
              HasSubstr("no array 'y'"));
  EXPECT_THAT(text_of_error<IoError>([&] { out.write("x/y", rows(0, 2, 3)); }),
              HasSubstr("has an array 'x'"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { out.write("../y", rows(0, 2, 3)); }),
              HasSubstr("cannot be the name of an array"));
  out.close();
  EXPECT_EQ(held("x"), to_vector<double>(rows(0, 4, 3)));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { out.group("g"); }), HasSubstr("is closed"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::Zarr(store(), {.mode = io::ZarrOpen::fail}); }),
              HasSubstr("the mode is fail"));
}

TEST_F(ZarrStore, arrays_that_others_made_are_appended_to_in_their_own_codecs) {
  if (is_main_process()) fs::copy(tests_folder() / "io/data/v3.zarr", store(), fs::copy_options::recursive);
  comm::barrier(comm::world());
  io::Zarr out(store());
  for (const char* name : {"turned", "big_endian", "sharded_start", "v2_keys", "gzip"}) {
    const auto info = io::zarr_info(store() + "/" + name);
    const Array before = io::load_zarr(store() + "/" + std::string(name));
    out.append(name, before, 1);
    comm::barrier(comm::world());
    const Array after = io::load_zarr(store() + "/" + std::string(name));
    EXPECT_EQ(to_vector<std::complex<double>>(astype(after, complex128)),
              to_vector<std::complex<double>>(astype(concatenate({before, before}, 1), complex128)))
        << name;
    EXPECT_EQ(io::zarr_info(store() + "/" + name).detail, info.detail);
  }
  out.close();
}

TEST_F(ZarrStore, several_arrays_are_one_save) {
  io::save_zarr(store(), {{"u", rows(0, 3, 2)}, {"deep/v", device_put(rows(3, 3, 2), all_rows())}});
  EXPECT_EQ(held("deep/v"), to_vector<double>(rows(3, 3, 2)));
  EXPECT_EQ(io::zarr_arrays(store()).size(), 2U);
}

// The target of a link is not removed with the link.
TEST_F(ZarrStore, the_target_of_a_link_that_is_replaced_stays) {
  io::save_zarr(store(), {{"x", rows(0, 8, 3)}});
  const auto link = path("link.zarr");
  if (process_index() == 0) fs::create_directory_symlink("run.zarr", link);
  comm::barrier(comm::world());
  io::save_zarr(link, {{"x", rows(0, 5, 3)}});
  EXPECT_EQ(to_vector<double>(io::load_zarr(link + "/x")), to_vector<double>(rows(0, 5, 3)));
  EXPECT_EQ(held("x"), to_vector<double>(fs::is_symlink(link) ? rows(0, 5, 3) : rows(0, 8, 3)));
}

TEST_F(ZarrStore, a_failure_in_the_midst_leaves_the_old_values) {
  io::save_zarr(store(), {{"x", device_put(rows(0, 8, 3), all_rows())}}, {.chunks = {3, 3}});
  io::Zarr out(store());
  const std::string last = std::to_string(device_count() - 1);
  const auto fails = [&](const std::string& fault, const std::function<void()>& call) {
    setenv("TESSERA_TEST_FAULT", (fault + ":throw").c_str(), 1);
    const auto text = text_of_error<IoError>(call);
    unsetenv("TESSERA_TEST_FAULT");
#ifdef TESSERA_VERIFY
    EXPECT_THAT(text, HasSubstr("the fault at " + fault));
    EXPECT_EQ(held("x"), to_vector<double>(rows(0, 8, 3))) << fault;
#endif
  };
  const Array more = device_put(rows(8, 5, 3), all_rows());
  for (const std::string& fault : {"written@" + last, "appended@" + last, std::string("document@0")})
    fails(fault, [&] { out.append("x", more, 0); });
  for (const std::string& fault : {"written@" + last, std::string("renaming@0")})
    fails(fault, [&] { out.overwrite("x", more, {1, 0}); });
  fails("renaming@0", [&] { out.write("x", more); });
  out.append("x", more, 0);
  EXPECT_EQ(held("x"), to_vector<double>(rows(0, 13, 3)));
  out.close();
  EXPECT_THAT(entries(), ElementsAre("run.zarr"));
}

}  // namespace
}  // namespace tessera::test
