// Everything in a manifest that can be checked is checked; errors name the path.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "io/folder.hpp"
#include "io/manifest.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class Manifest : public InFolder {
 protected:
  void SetUp() override {
    InFolder::SetUp();
    const Mesh mesh = make_mesh({device_count()}, {"x"});
    x_ = device_put(reshape(arange(8 * device_count()), {2 * device_count(), 4}), mesh, P("x"));
    io::checkpoint::save(folder_, 1, x_);
    comm::barrier(comm::world());
    std::ifstream file(manifest_path());
    body_ = json::parse(file)["body"];
  }
  std::string manifest_path() const { return path("step_00000001/manifest.json"); }
  json& leaf() { return body_["leaves"][0]; }
  json& block() { return leaf()["blocks"][0]; }
  // The error of restoring the changed body with a correct checksum.
  std::string refusal() {
    const auto text = body_.dump();
    return refusal(
        json{{"body", body_}, {"xxh3", io::checkpoint::hex(XXH3_64bits(text.data(), text.size()))}}.dump());
  }
  std::string refusal(const std::string& bytes) {
    comm::barrier(comm::world());
    if (is_main_process()) std::ofstream(manifest_path(), std::ios::binary) << bytes;
    comm::barrier(comm::world());
    return text_of_error<IoError>([&] { io::checkpoint::restore(folder_, x_); });
  }
  Array x_;
  json body_;
};

TEST_F(Manifest, that_is_written_again_is_as_good_as_before) { EXPECT_EQ(refusal(), "no error"); }

TEST_F(Manifest, nested_deep_is_refused_and_ends_nobody) {
  const std::string text =
      "{\"body\":" + std::string(100000, '[') + std::string(100000, ']') + ",\"xxh3\":\"\"}";
  EXPECT_THAT(refusal(text),
              AllOf(HasSubstr("'" + manifest_path() + "' is no manifest: it is nested more than 16 deep"),
                    HasSubstr("; restore another step")));
  EXPECT_EQ(io::checkpoint::latest_step(folder_), std::nullopt);
}

TEST_F(Manifest, of_another_checksum_format_or_byte_order_is_named) {
  EXPECT_THAT(refusal(json{{"body", body_}, {"xxh3", "0"}}.dump()), HasSubstr("does not have the checksum"));
  EXPECT_EQ(body_["byte_order"], "little");
  body_["byte_order"] = "big";
  EXPECT_THAT(refusal(),
              HasSubstr("was written on a machine of other byte order ('big', this one is little)"));
  body_["format"] = 7;
  EXPECT_THAT(refusal(), HasSubstr("has the format 7, this library reads 1"));
}

TEST_F(Manifest, without_a_field_names_it) {
  for (const char* key : {"format", "step", "structure", "piece_bytes"}) {
    const json before = body_;
    body_.erase(key);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(manifest_path()), HasSubstr("has no '" + std::string(key) + "'")));
    body_ = before;
  }
  for (const char* key : {"rank", "offset"}) {
    const json before = body_;
    block().erase(key);
    EXPECT_THAT(refusal(), HasSubstr("block 0 of array 0 has no '" + std::string(key) + "'"));
    body_ = before;
  }
}

TEST_F(Manifest, with_blocks_that_do_not_tile_their_array_is_refused) {
  const json before = body_;
  block()["box"] = {{0, 2 * device_count() + 1}, {0, 4}};
  EXPECT_THAT(refusal(), HasSubstr("block 0 of array 0's stop is no number from 0 to"));
  block()["box"] = {{0, 2}};
  EXPECT_THAT(refusal(), HasSubstr("block 0 of array 0 has 1 dimensions, its array has 2"));
  block()["box"] = {{0, 2}, {0, 3}};
  EXPECT_THAT(refusal(), HasSubstr("overlap or leave gaps in its shape"));
  block()["box"] = {{1, 1}, {0, 4}};
  EXPECT_THAT(refusal(), HasSubstr("is empty"));
  body_ = before;
  leaf()["blocks"].push_back(block());
  EXPECT_THAT(refusal(), HasSubstr("the blocks of array 0 overlap in its shape"));
  body_ = before;
  leaf()["blocks"].clear();
  EXPECT_THAT(refusal(), HasSubstr("the blocks of array 0 do not cover its shape"));
}

TEST_F(Manifest, with_names_and_places_outside_its_files_is_refused) {
  const json before = body_;
  body_["files"][0]["name"] = "../rank_00000.bin";
  EXPECT_THAT(refusal(), HasSubstr("file 0 is not called rank_00000.bin"));
  body_ = before;
  block()["rank"] = device_count();
  EXPECT_THAT(refusal(), HasSubstr("block 0 of array 0's 'rank' is no number from 0 to"));
  block()["rank"] = -1;
  EXPECT_THAT(refusal(), HasSubstr("'rank' is no number"));
  body_ = before;
  block()["offset"] = 8;
  EXPECT_THAT(refusal(), HasSubstr("the blocks in rank_00000.bin do not follow each other"));
  body_ = before;
  body_["files"][0]["data_bytes"] = 9223372036854775807;
  EXPECT_THAT(refusal(), HasSubstr("file 0's 'data_bytes' is no number from 0 to"));
}

TEST_F(Manifest, of_sizes_beyond_64_bits_or_unknown_dtypes_is_refused) {
  const json before = body_;
  leaf()["shape"] = {3, 6148914691236517206};
  EXPECT_THAT(refusal(), HasSubstr("the bytes of array 0 of shape (3, 6148914691236517206) exceed 2^63"));
  leaf()["shape"] = {-1, 4};
  EXPECT_THAT(refusal(), HasSubstr("array 0's extent is no number from 0 to"));
  body_ = before;
  leaf()["dtype"] = "float\x1b[2J";
  EXPECT_THAT(refusal(), HasSubstr("array 0 has the unknown dtype 'float\\x1b[2J'"));
}

}  // namespace
}  // namespace tessera::test
