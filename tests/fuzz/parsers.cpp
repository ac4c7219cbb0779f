#include "fuzz/parsers.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <tessera/error.hpp>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "fuzz/accepts.hpp"
#include "fuzz/words.hpp"
#include "io/manifest.hpp"
#include "io/matrix_market_text.hpp"
#include "io/npy_header.hpp"
#include "types/checked.hpp"

namespace tessera::test {
namespace {

using namespace std::string_literals;

bool accepts(const std::function<void()>& parse) { return test::accepts<IoError>(parse); }

// --- .npy: the file's first bytes, as the loader reads them -----------------------------------------------
bool parse_npy(std::string_view file) {
  return accepts([&] {
    const auto size = static_cast<std::int64_t>(file.size());
    const auto prefix = io::parse_npy_prefix(file.substr(0, 12), size);
    require(
        prefix.dict_offset >= 10 && prefix.dict_bytes >= 0 && prefix.dict_offset + prefix.dict_bytes <= size,
        "the header lies inside the file");
    const auto header = io::parse_npy_dict(file.substr(static_cast<std::size_t>(prefix.dict_offset),
                                                       static_cast<std::size_t>(prefix.dict_bytes)),
                                           prefix);
    for (const auto extent : header.shape) require(extent >= 0, "no extent is negative");
    require(header.shape.size() <= 64, "at most 64 dimensions");
    require(header.dtype.code >= 0 && header.dtype.code < dtype_count, "the dtype exists");
  });
}
Parser npy() {
  Parser parser{"npy", {}, {}, parse_npy};
  for (const auto& shape : {Shape{}, Shape{3}, Shape{2, 3, 4}, Shape{0, 7}})
    for (const auto dtype : {float32, bool_, complex128})
      parser.seeds.push_back(io::npy_header_text(shape, dtype));
  const std::string dict = "{'descr': '>i8', 'fortran_order': True, 'shape': (5L, 2), }\n";
  parser.seeds.push_back("\x93NUMPY\2\0"s + static_cast<char>(dict.size()) + "\0\0\0"s + dict);
  parser.words =
      words_of(R"('descr';'fortran_order';'shape';True;False;(;);{;};,;:;';";-1;9223372036854775807)"
               R"(;9223372036854775808;'|O';'>f8';'<U3';[('a', '<f4')];();(1,);1L;)"
               "\x93NUMPY;\xff\xff;\x1b[2J",
               ';');
  for (const auto& word : {"\1\0"s, "\3\0"s, "\0"s}) parser.words.push_back(word);
  return parser;
}

// --- manifests; half of the changed ones get a correct checksum again -------------------------------------
io::checkpoint::Manifest small_manifest() {
  io::checkpoint::Manifest m{7, "(*,[*])", {}, {}};
  m.leaves.push_back({Shape{4, 6}, float32, {{{{0, 2}, {0, 6}}, 0, 0}, {{{2, 4}, {0, 6}}, 1, 0}}});
  m.leaves.push_back({Shape{}, complex128, {{{}, 0, 48}}});
  m.leaves.push_back({Shape{0, 3}, int8, {}});
  m.leaves.push_back({Shape{2, 2},
                      int64,
                      {{{{0, 1}, {0, 1}}, 0, 64},
                       {{{0, 1}, {1, 2}}, 1, 48},
                       {{{1, 2}, {0, 1}}, 1, 56},
                       {{{1, 2}, {1, 2}}, 0, 72}}});
  m.files = {{80, std::string(16, 'a')}, {64, std::string(16, '0')}};
  return m;
}
std::string with_right_sum(std::string_view text) {
  auto whole = nlohmann::json::parse(text, nullptr, false);
  if (whole.is_discarded() || !whole.is_object() || !whole.contains("body")) return std::string(text);
  const auto body = whole["body"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  whole["xxh3"] = io::checkpoint::hex(XXH3_64bits(body.data(), body.size()));
  return whole.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
// The invariant that restore relies on: each element is in exactly one block; counted element by element for
// small arrays.
void check_promises(const io::checkpoint::Manifest& manifest) {
  for (const auto& leaf : manifest.leaves) {
    const auto elements = checked_product(leaf.shape, "leaf");
    std::int64_t found = 0;
    for (std::size_t a = 0; a < leaf.blocks.size(); ++a) {
      const auto& block = leaf.blocks[a];
      require(block.box.size() == leaf.shape.size(), "a box has the dimensions of its array");
      require(contains(whole_box(leaf.shape), block.box) && !is_empty(block.box), "a box lies in its array");
      require(block.rank >= 0 && block.rank < static_cast<int>(manifest.files.size()), "a block has a file");
      const auto bytes = checked_bytes(box_shape(block.box), leaf.dtype, "block");
      require(block.offset >= 0 && block.offset + bytes <= manifest.files[block.rank].data_bytes,
              "a block lies in its file");
      found += box_elements(block.box);
      for (std::size_t b = 0; b < a; ++b)
        require(block.box.empty() || is_empty(intersect(block.box, leaf.blocks[b].box)),
                "no two blocks overlap");
    }
    require(found == elements, "the blocks cover the array");
  }
}
bool parse_manifest(std::string_view text) {
  bool nested = false;
  int depth = 0;
  for (const char c : text) nested = nested || (depth += c == '[' || c == '{' ? 1 : 0) > 1000;
  const auto check = [](std::string_view bytes) {
    return accepts([&] { check_promises(io::checkpoint::parse_manifest(bytes)); });
  };
  const bool as_it_is = check(text);
  return (!nested && check(with_right_sum(text))) || as_it_is;
}
Parser manifest() {
  Parser parser{"manifest", {io::checkpoint::to_text(small_manifest())}, {}, parse_manifest};
  parser.seeds.push_back(io::checkpoint::to_text({0, "", {}, {{0, std::string(16, '0')}}}));
  parser.words = words_of(
      R"([|]|{|}|,|:|null|true|-1|0|1|2|3|4|6|48|1e3|9223372036854775807|18446744073709551615|"body"|"files")"
      R"(|"leaves"|"blocks"|"box"|"rank"|"offset"|"shape"|"dtype"|"name"|"../rank_00000.bin"|"big"|"float64")"
      R"(|[0,4]|[[0,4],[0,6]]|[]|{}|[[[[[[[[[[[[[[[[[[[[|"\u001b")");
  return parser;
}

// --- Matrix Market
// ------------------------------------------------------------------------------------------
bool parse_matrix_market(std::string_view text) {
  return accepts([&] {
    const io::MatrixMarketText matrix(text, "load_matrix_market: 'm.mtx'");
    const auto& banner = matrix.banner();
    const auto bytes = checked_bytes(Shape{banner.rows, banner.columns}, banner.dtype, "matrix");
    if (bytes > 1 << 20) return;  // larger ones are refused by their size before they are read
    std::vector<std::byte> whole(static_cast<std::size_t>(bytes));
    matrix.read({{0, banner.rows}, {0, banner.columns}}, whole.data());
    // Reading only the lower right quarter gives the same values.
    const Box part = {{banner.rows / 2, banner.rows}, {banner.columns / 2, banner.columns}};
    const auto width = static_cast<std::int64_t>(itemsize(banner.dtype));
    std::vector<std::byte> quarter(static_cast<std::size_t>(box_elements(part) * width));
    matrix.read(part, quarter.data());
    for (std::int64_t row = 0; row < part[0].size() && part[1].size() > 0; ++row)
      require(std::memcmp(quarter.data() + row * part[1].size() * width,
                          whole.data() + ((part[0].start + row) * banner.columns + part[1].start) * width,
                          static_cast<std::size_t>(part[1].size() * width)) == 0,
              "a part has the values of the whole");
  });
}
Parser matrix_market() {
  const std::string banner = "%%MatrixMarket matrix ";
  return {"matrix_market",
          {banner + "array real general\n% a comment\n2 3\n1\n2\n\n3e0\n+4\n-5.5\n6\n",
           banner + "coordinate integer general\n2 3 3\n1 1 5\n2 3 -1\n1 1 2\r\n",
           banner + "coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 3 4\n",
           banner + "coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
           banner + "array integer skew-symmetric\n3 3\n3\n2\n1\n"},
          {"%%MatrixMarket",
           "matrix",
           "coordinate",
           "array",
           "real",
           "integer",
           "complex",
           "pattern",
           "general",
           "symmetric",
           "skew-symmetric",
           "hermitian",
           "\n",
           " ",
           "%",
           "-1",
           "0",
           "1e308",
           "nan",
           "inf",
           "+-1",
           "9223372036854775807",
           "-9223372036854775808",
           "1152921504606846976 16 1",
           "\r",
           "\t",
           "\x1b",
           "\0"s},
          parse_matrix_market};
}

}  // namespace

const std::vector<Parser>& parsers() {
  static const std::vector<Parser> all = [] {
    std::vector<Parser> list{npy(), manifest(), matrix_market()};
    for (auto& parser : container_parsers()) list.push_back(std::move(parser));
    for (auto& parser : store_parsers()) list.push_back(std::move(parser));
    for (auto& parser : program_parsers()) list.push_back(std::move(parser));
    for (auto& parser : sentence_parsers()) list.push_back(std::move(parser));
    return list;
  }();
  return all;
}

}  // namespace tessera::test
