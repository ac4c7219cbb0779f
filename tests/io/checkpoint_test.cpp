#include "io/folder.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Model {
  Array w, b;
  std::vector<Array> moments;
  int seed = 0;
};

class Checkpoint : public InFolder {
 protected:
  Model model(std::mt19937& random, bool zero) {
    const auto make = [&](const Shape& shape, Dtype dtype) {
      const Array x = astype(reshape(arange(static_cast<int>(shape.elements())), shape), dtype);
      return device_put(zero ? zeros_like(x) : x, random_sharding(random, random_mesh(random), shape.ndim()));
    };
    return {make({37, 11}, float32),
            make({5}, complex128),
            {make({}, int32), make({3, 0}, float64), make({2, 3, 4}, bfloat16)},
            4};
  }
  std::string file(int step, const std::string& name) const {
    char folder[32];
    std::snprintf(folder, sizeof folder, "step_%08d/", step);
    return path(folder + name);
  }
  void damage(const std::string& name, std::streamoff at) const {
    if (is_main_process()) {
      std::fstream f(name, std::ios::in | std::ios::out | std::ios::binary);
      f.seekg(at);
      const char c = static_cast<char>(f.get());
      f.seekp(at);
      f.put(static_cast<char>(c ^ 1));
    }
    comm::barrier(comm::world());
  }
};

TEST_F(Checkpoint, restores_onto_any_meshes_and_specs) {
  std::mt19937 random(3);
  for (int n = 0; n < 8; ++n) {
    const Model saved = model(random, false), like = model(random, true);
    io::checkpoint::save(folder_, n, saved);
    const Model back = io::checkpoint::restore(folder_, like);
    for (std::size_t leaf = 0; leaf < 5; ++leaf) {
      ASSERT_EQ(to_vector<std::complex<double>>(tree_leaves(back)[leaf]),
                to_vector<std::complex<double>>(tree_leaves(saved)[leaf]));
      ASSERT_EQ(tree_leaves(back)[leaf].sharding(), tree_leaves(like)[leaf].sharding());
    }
    ASSERT_EQ(io::checkpoint::latest_step(folder_), n);
  }
  EXPECT_EQ(entries().size(), 8u);
}

TEST_F(Checkpoint, steps_are_complete_or_not_there) {
  EXPECT_EQ(io::checkpoint::latest_step(path("none")), std::nullopt);
  const Array x = device_put(arange(10), all_rows());
  io::checkpoint::save(folder_, 7, x);
  EXPECT_THAT(text_of_error<IoError>([&] { io::checkpoint::save(folder_, 7, x); }), HasSubstr("exists"));
  if (is_main_process())
    std::filesystem::create_directories(path("step_00000009.tmp-1")),
        std::filesystem::create_directories(path("step_00000008"));
  comm::barrier(comm::world());
  EXPECT_EQ(io::checkpoint::latest_step(folder_), 7);  // 8 has no manifest, 9 was never finished
  EXPECT_EQ(to_vector<int>(io::checkpoint::restore(folder_, zeros_like(x))), to_vector<int>(x));
}

TEST_F(Checkpoint, other_trees_shapes_and_dtypes_are_refused) {
  const Array x = device_put(arange(10), all_rows());
  io::checkpoint::save(folder_, 1, x);
  EXPECT_THAT(text_of_error<IoError>([&] {
                io::checkpoint::restore(folder_, std::vector<Array>{x, x});
              }),
              HasSubstr("asked for is (*,*,)"));
  EXPECT_THAT(
      text_of_error<IoError>([&] { io::checkpoint::restore(folder_, device_put(zeros({10}), all_rows())); }),
      HasSubstr("is int32(10,), asked for is float32(10,)"));
  using Tree = std::map<std::string, std::vector<Array>>;
  io::checkpoint::save(folder_, 3, Tree{{"bias", {x}}, {"layers", {x, x}}});
  EXPECT_THAT(text_of_error<IoError>([&] {
                io::checkpoint::restore(folder_, Tree{{"bias", {x}}, {"layers", {x, x(slice(0, 4))}}}, 3);
              }),
              HasSubstr("the array ['layers'][1] of "));
  EXPECT_THAT(text_of_error<IoError>([&] { io::checkpoint::restore(folder_, x, 2); }),
              HasSubstr("has no step 2; it has 1"));
}

TEST_F(Checkpoint, a_flipped_bit_or_a_missing_byte_is_found) {
  const Array x = device_put(astype(arange(2000), float64), all_rows());
  for (int n = 0; n < 4; ++n) {
    io::checkpoint::save(folder_, n, x);
    const auto last = file(n, "rank_0000" + std::to_string(device_count() - 1) + ".bin");
    if (n == 0) damage(last, 100);
    if (n == 1) damage(last, static_cast<std::streamoff>(std::filesystem::file_size(last)) - 1);
    comm::barrier(comm::world());
    if (n == 2 && is_main_process()) std::filesystem::resize_file(last, 50);
    if (n == 3) damage(file(n, "manifest.json"), 300);
    comm::barrier(comm::world());
    const std::vector<std::string> expected = {"is damaged between the bytes 0 and", "damaged checksums",
                                               "has 50 bytes instead of", "manifest"};
    EXPECT_THAT(text_of_error<IoError>([&] { io::checkpoint::restore(folder_, x); }), HasSubstr(expected[n]));
    comm::barrier(comm::world());
  }
}

TEST_F(Checkpoint, a_damaged_step_is_passed_over_for_the_newest_whole_one) {
  const auto x = [](int step) { return device_put(astype(arange(2000) + step, float64), all_rows()); };
  for (int n = 0; n < 5; ++n) io::checkpoint::save(folder_, n, x(n));
  damage(file(4, "rank_00000.bin"), 10);
  damage(file(3, "manifest.json"), 300);
  if (is_main_process()) std::filesystem::resize_file(file(2, "rank_00000.bin"), 50);
  comm::barrier(comm::world());
  EXPECT_EQ(io::checkpoint::latest_step(folder_),
            4);  // the length is right; the bytes are not checked here
  EXPECT_EQ(io::checkpoint::latest_whole_step(folder_), 1);
  EXPECT_EQ(to_vector<double>(io::checkpoint::restore(folder_, x(9))), to_vector<double>(x(1)));
  for (const int asked : {2, 3, 4})
    EXPECT_THAT(text_of_error<IoError>([&] { io::checkpoint::restore(folder_, x(9), asked); }),
                testing::AllOf(HasSubstr(file(asked, "")), HasSubstr("; restore another step")));
  EXPECT_THAT(
      text_of_error<IoError>([&] { io::checkpoint::restore(folder_, device_put(zeros({10}), all_rows())); }),
      HasSubstr("(10,); give a tree like the one"));  // not damage: no other step is tried
}

TEST_F(Checkpoint, where_no_step_is_whole_the_newest_ones_damage_is_told) {
  const Array x = device_put(arange(10), all_rows());
  for (int n = 0; n < 3; ++n) io::checkpoint::save(folder_, n, x);
  for (int n = 0; n < 3; ++n) damage(file(n, "rank_00000.bin"), 1);
  EXPECT_THAT(text_of_error<IoError>([&] { io::checkpoint::restore(folder_, x); }),
              testing::AllOf(HasSubstr(file(2, "rank_00000.bin") + "' is damaged between the bytes 0 and"),
                             HasSubstr("(of the 2 older steps none is whole either)")));
  EXPECT_EQ(io::checkpoint::latest_whole_step(folder_), std::nullopt);
}

}  // namespace
}  // namespace tessera::test
