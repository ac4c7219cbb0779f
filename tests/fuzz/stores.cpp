// Zarr: metadata of arrays and groups, and the bytes of chunks.
#include <tessera/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "fuzz/accepts.hpp"
#include "fuzz/mutator.hpp"
#include "fuzz/parsers.hpp"
#include "io/formats/zarr/codecs/shard_index.hpp"
#include "io/formats/zarr/grid.hpp"
#include "io/formats/zarr/metadata/metadata.hpp"
#include "types/checked.hpp"

namespace tessera::test {
namespace {

using namespace io::zarr;
using namespace std::string_literals;

bool accepts(const std::function<void()>& parse) { return test::accepts<IoError>(parse); }

void check(const ArrayMeta& meta) {
  checked_bytes(meta.shape, meta.dtype, "fuzz");
  checked_bytes(meta.chunk, meta.dtype, "fuzz");
  require(meta.chunk.size() == meta.shape.size(), "a chunk has the array's dims");
  require(meta.dims.empty() || meta.dims.size() == meta.shape.size(), "each dim has a name");
  for (const auto extent : meta.chunk) require(extent > 0, "chunks have elements");
  require(std::count_if(meta.codecs.begin(), meta.codecs.end(),
                        [](const Codec& c) {
                          return c.kind == Codec::Kind::bytes || c.kind == Codec::Kind::sharding;
                        }) == 1,
          "one codec makes bytes");
  if (meta.format == 2) return;
  const ArrayMeta again = parse_array_v3(document_text(array_document(meta)));
  require(again.shape == meta.shape && again.chunk == meta.chunk && again.dtype == meta.dtype &&
              again.dims == meta.dims,
          "what is written again says the same");
  require(codecs_json(again.codecs, meta.dtype) == codecs_json(meta.codecs, meta.dtype),
          "and so do its codecs");
}

std::vector<std::string> seeds_v3() {
  const std::string head = R"({"zarr_format": 3, "node_type": "array", "shape": [)",
                    keys =
                        R"("chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, )";
  return {
      head +
          R"(7, 5], "data_type": "float64", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 2]}}, )" +
          keys +
          R"("fill_value": "NaN", "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}], "attributes": {"units": "K", "limit": NaN}, "dimension_names": ["y", null], "storage_transformers": []})",
      head +
          R"(10, 9], "data_type": "int16", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}}, "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}, "fill_value": -7, )"
          R"("codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3], "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}], "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}], "index_location": "end"}}], "attributes": {}})",
      head +
          R"(], "data_type": "complex64", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": []}}, )" +
          keys +
          R"("fill_value": [0.0, "-Infinity"], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 5}}]})",
      head +
          R"(40], "data_type": "float32", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16]}}, )" +
          keys +
          R"("fill_value": "0x7fc00000", "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}], "later": {"must_understand": false}})",
      head +
          R"(0, 4], "data_type": "bool", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 4]}}, )" +
          keys + R"("fill_value": true, "codecs": [{"name": "bytes"}]})"};
}
std::vector<std::string> seeds_v2() {
  return {
      R"({"zarr_format": 2, "shape": [5, 7], "chunks": [2, 3], "dtype": "<f8", "fill_value": 0.5, "order": "C", "filters": null, "dimension_separator": ".", "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}})",
      R"({"zarr_format": 2, "shape": [5], "chunks": [2], "dtype": ">i2", "fill_value": null, "order": "F", "filters": null, "dimension_separator": "/", "compressor": {"id": "zlib", "level": 1}})",
      R"({"zarr_format": 2, "shape": [], "chunks": [], "dtype": "|b1", "fill_value": false, "order": "C", "filters": null, "compressor": null})",
      R"({"zarr_format": 2, "shape": [9], "chunks": [4], "dtype": "<c16", "fill_value": ["NaN", 1], "order": "C", "filters": null, "compressor": {"id": "zstd", "level": 3, "checksum": true}})"};
}

const std::vector<std::string> words_v3 = {"\"shape\"",
                                           "\"data_type\"",
                                           "\"uint8\"",
                                           "\"int64\"",
                                           "\"float16\"",
                                           "\"bool\"",
                                           "\"complex128\"",
                                           "\"chunk_grid\"",
                                           "null",
                                           "true",
                                           "NaN",
                                           "-Infinity",
                                           "Infinity",
                                           "\"Infinity\"",
                                           "{}",
                                           "[]",
                                           "[[[[[[[[",
                                           "{\"name\": \"bytes\"}",
                                           "{\"name\": \"crc32c\"}, ",
                                           "\"configuration\": {}",
                                           "\"must_understand\": false",
                                           "0.0",
                                           "1e400",
                                           "18446744073709551615",
                                           "\"0x7ff8000000000001\"",
                                           "\"big\"",
                                           "\"order\": [0, 1]",
                                           "\"start\"",
                                           "\\ud800",
                                           "\"storage_transformers\": [{}], "};
const std::vector<std::string> words_v2 = {"\"<i4\"",
                                           "\"|u1\"",
                                           "\">f2\"",
                                           "\"|V2\"",
                                           "\"<U5\"",
                                           "null",
                                           "true",
                                           "NaN",
                                           "\"gzip\"",
                                           "\"lz4\"",
                                           "\"F\"",
                                           "{}",
                                           "[]",
                                           "\"NaN\"",
                                           "{\"id\": \"zstd\"}",
                                           "-1",
                                           "1e400",
                                           "18446744073709551615",
                                           "\"filters\": [], "};

bool parse_v3(std::string_view text) {
  return accepts([&] { check(parse_array_v3(text)); });
}
bool parse_v2(std::string_view text) {
  return accepts([&] { check(parse_array_v2(text, "")); });
}

// A shard: its index, and each unpacked chunk.
bool parse_shard(std::string_view bytes) {
  const ArrayMeta meta = parse_array_v3(seeds_v3()[1]);
  const Codec& sharding = meta.codecs[0];
  const std::span<const std::byte> all(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  return accepts([&] {
    const auto length = static_cast<std::size_t>(index_bytes(sharding, meta.chunk));
    if (all.size() < length) refuse("is too short");
    const auto places = read_index(sharding, meta.chunk, all.last(length), std::ssize(all));
    require(std::ssize(places) == inner_counts(sharding, meta.chunk).elements(), "each chunk has a place");
    for (const auto& place : places) {
      if (!place.is_there()) continue;
      require(place.offset + place.bytes <= all.size(), "it is in the shard");
      const auto piece =
          unpack(behind_serializer(sharding.codecs), all.subspan(place.offset, place.bytes), 12);
      require(piece.bytes.size() == 12, "it has the bytes of a chunk");
    }
  });
}
std::string whole_shard() {
  const ArrayMeta meta = parse_array_v3(seeds_v3()[1]);
  std::string text;
  std::vector<InnerPlace> places(4);
  for (InnerPlace& place : places) {
    const std::string values = "abcdefabcdef"s;
    const EncodedBytes packed = pack(behind_serializer(meta.codecs[0].codecs),
                                     {reinterpret_cast<const std::byte*>(values.data()), values.size()}, 2);
    place = {text.size(), packed.bytes.size()};
    text.append(reinterpret_cast<const char*>(packed.bytes.data()), packed.bytes.size());
  }
  places[2] = {};
  const EncodedBytes table = index_piece(meta.codecs[0], places);
  return text.append(reinterpret_cast<const char*>(table.bytes.data()), table.bytes.size());
}

// A chunk that is packed by every codec in sequence.
std::vector<Codec> all_packers() {
  return {{.kind = Codec::Kind::gzip, .level = 1},
          {.kind = Codec::Kind::zstd, .level = 1},
          {.kind = Codec::Kind::blosc, .level = 5, .packer = "lz4", .shuffle = 1, .typesize = 4}};
}
const std::string chunk_values = "0123456789abcdef0123456789abcdef";
bool parse_chunk(std::string_view bytes) {
  if (bytes.empty()) return false;
  const auto packers = all_packers();
  const auto kind = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0])) % packers.size();
  return accepts([&] {
    const auto piece = unpack(std::span(packers).subspan(kind, 1),
                              {reinterpret_cast<const std::byte*>(bytes.data()) + 1, bytes.size() - 1},
                              std::ssize(chunk_values));
    require(piece.bytes.size() == chunk_values.size(), "it has the bytes of a chunk");
  });
}
std::vector<std::string> whole_chunks() {
  const auto packers = all_packers();
  std::vector<std::string> seeds;
  for (std::size_t kind = 0; kind < packers.size(); ++kind) {
    const EncodedBytes packed =
        pack(std::span(packers).subspan(kind, 1),
             {reinterpret_cast<const std::byte*>(chunk_values.data()), chunk_values.size()}, 4);
    seeds.push_back(static_cast<char>(kind) +
                    std::string(reinterpret_cast<const char*>(packed.bytes.data()), packed.bytes.size()));
  }
  return seeds;
}

// Input of against_zarr_python.py: TESSERA_TEST_MUTANTS names the file that receives each mutant with our
// result.
std::string verdict(bool is_v3, const std::string& text) {
  try {
    ArrayMeta meta = is_v3 ? parse_array_v3(text) : parse_array_v2(text, "");
    Json names = Json::array();
    for (const Codec& codec : meta.codecs) names.push_back(name_of(codec.kind));
    Json dims = Json::array();
    for (const auto& dim : meta.dims) dims.push_back(dim);
    return value_text({{"shape", meta.shape.vector()},
                       {"chunks", meta.chunk.vector()},
                       {"dtype", name(meta.dtype)},
                       {"codecs", names},
                       {"dims", dims},
                       {"key", key_of(meta, ChunkIndex(meta.shape.size(), 1))},
                       {"attributes", meta.attributes},
                       {"fill", meta.fill_is_given ? fill_json(meta.fill, meta.dtype) : Json()}});
  } catch (const IoError&) {
    return "null";
  }
}

TEST(ZarrMetadata, mutants_are_written_for_the_comparison_with_zarr_python) {
  const char* path = std::getenv("TESSERA_TEST_MUTANTS");
  if (path == nullptr) GTEST_SKIP() << "TESSERA_TEST_MUTANTS names the file that they go to";
  const char* inputs = std::getenv("TESSERA_TEST_INPUTS");
  const std::uint64_t count = inputs == nullptr ? 20000 : std::strtoull(inputs, nullptr, 10);
  std::ofstream out(path, std::ios::binary);
  const auto of_v3 = seeds_v3(), of_v2 = seeds_v2();
  for (std::uint64_t number = 0; number < count; ++number) {
    const bool is_v3 = number % 3 != 0;
    const auto text = Mutator(number).mutant(is_v3 ? of_v3 : of_v2, is_v3 ? words_v3 : words_v2);
    out << (is_v3 ? 3 : 2) << ' ' << text.size() << ' ' << verdict(is_v3, text) << '\n' << text << '\n';
  }
  EXPECT_TRUE(out.good());
}

}  // namespace

std::vector<Parser> store_parsers() {
  return {{"zarr", seeds_v3(), words_v3, parse_v3},
          {"zarr_v2", seeds_v2(), words_v2, parse_v2},
          {"zarr_shard",
           {whole_shard()},
           {"\xff\xff\xff\xff\xff\xff\xff\xff", "\0\0\0\0\0\0\0\0"s, "\x28\xb5\x2f\xfd"},
           parse_shard},
          {"zarr_chunk",
           whole_chunks(),
           {"\xff\xff\xff\xff", "\0\0\0\0"s, "\x28\xb5\x2f\xfd", "\x1f\x8b\x08"},
           parse_chunk}};
}

}  // namespace tessera::test
