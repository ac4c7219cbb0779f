#define XXH_INLINE_ALL
#include <xxhash.h>

#include "io/manifest.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"
#include "types/checked.hpp"

namespace tessera::io::checkpoint {
namespace {

using nlohmann::json;

constexpr int format_version = 1;
constexpr const char* byte_order = std::endian::native == std::endian::little ? "little" : "big";
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t most_dims = 64;

[[noreturn]] void damaged(const std::string& facts) {
  throw IoError(facts + "; restore another step, or write this one again");
}

// Bounds the nesting depth, since the JSON library recurses; a manifest has six levels.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{') && ++depth > 16)
      return true;
    else if (!in_string && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

const json& field(const json& in, const char* key, const std::string& where) {
  if (!in.is_object()) damaged("is damaged: " + where + " is no object");
  const auto found = in.find(key);
  if (found == in.end()) damaged("is damaged: " + where + " has no '" + key + "'");
  return *found;
}
std::int64_t number(const json& value, const std::string& where, std::int64_t low, std::int64_t high) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{most});
  const auto result = fits ? value.get<std::int64_t>() : 0;
  if (!fits || result < low || result > high)
    damaged("is damaged: " + where + " is no number from " + std::to_string(low) + " to " +
            std::to_string(high));
  return result;
}
std::int64_t number(const json& in, const char* key, const std::string& where, std::int64_t low = 0,
                    std::int64_t high = most) {
  return number(field(in, key, where), where + "'s '" + key + "'", low, high);
}
std::string text_of(const json& in, const char* key, const std::string& where) {
  const auto& value = field(in, key, where);
  if (!value.is_string()) damaged("is damaged: " + where + "'s '" + key + "' is no text");
  return value.get<std::string>();
}
// A missing list counts as empty: a tree without arrays has none.
std::vector<json> list(const json& in, const char* key, const std::string& where) {
  const auto found = in.find(key);
  if (found == in.end()) return {};
  if (!found->is_array()) damaged("is damaged: " + where + "'s '" + key + "' is no list");
  return *found;
}

Dtype dtype_named(const std::string& word, const std::string& where) {
  for (int code = 0; code < dtype_count; ++code)
    if (name(Dtype{code}) == word) return Dtype{code};
  damaged("is damaged: " + where + " has the unknown dtype " + in_quotes(word.substr(0, 40)));
}

Box box_of(const json& in, const Shape& shape, const std::string& where) {
  const auto ranges = list(in, "box", where);
  if (ranges.size() != shape.size())
    damaged("is damaged: " + where + " has " + std::to_string(ranges.size()) + " dimensions, its array has " +
            std::to_string(shape.size()));
  Box box;
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    if (!ranges[d].is_array() || ranges[d].size() != 2) damaged("is damaged: " + where + " has no box");
    const auto start = number(ranges[d][0], where + "'s start", 0, shape[d]),
               stop = number(ranges[d][1], where + "'s stop", 0, shape[d]);
    if (start >= stop) damaged("is damaged: " + where + " is empty");
    box.push_back({start, stop});
  }
  return box;
}

// Checks that the blocks are the cells of the grid given by their starts along each dim: if there are as many
// distinct cells as the grid has, the blocks cover the array without overlap.
void check_tiling(const Manifest::Leaf& leaf, const std::string& where) {
  const auto wrong = [&](const char* how) {
    damaged("is damaged: the blocks of " + where + " " + how + " its shape " + to_string(leaf.shape));
  };
  const auto elements = checked_product(leaf.shape, where);
  if (leaf.blocks.empty() && elements > 0) wrong("do not cover");
  if (elements == 0 && !leaf.blocks.empty()) wrong("do not fit");
  if (leaf.blocks.empty()) return;
  std::int64_t cells = 1;
  std::vector<std::vector<std::int64_t>> cell_of(leaf.blocks.size());
  for (std::size_t d = 0; d < leaf.shape.size(); ++d) {
    std::vector<std::int64_t> lines;
    for (const auto& block : leaf.blocks) lines.push_back(block.box[d].start);
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    if (lines.front() != 0) wrong("do not cover");
    if (__builtin_mul_overflow(cells, static_cast<std::int64_t>(lines.size()), &cells)) wrong("do not cover");
    lines.push_back(leaf.shape[d]);
    for (std::size_t n = 0; n < leaf.blocks.size(); ++n) {
      const auto& range = leaf.blocks[n].box[d];
      const auto line = std::lower_bound(lines.begin(), lines.end(), range.start);
      if (range.stop != *(line + 1)) wrong("overlap or leave gaps in");
      cell_of[n].push_back(line - lines.begin());
    }
  }
  std::sort(cell_of.begin(), cell_of.end());
  if (std::adjacent_find(cell_of.begin(), cell_of.end()) != cell_of.end()) wrong("overlap in");
  if (static_cast<std::int64_t>(cell_of.size()) != cells) wrong("do not cover");
}

// Checks that the blocks in each file cover it from its first byte to its last, none twice.
void check_files(const Manifest& manifest) {
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> parts(manifest.files.size());
  for (const auto& leaf : manifest.leaves)
    for (const auto& block : leaf.blocks)
      parts[block.rank].push_back({block.offset, checked_bytes(box_shape(block.box), leaf.dtype, "block")});
  for (std::size_t r = 0; r < parts.size(); ++r) {
    std::sort(parts[r].begin(), parts[r].end());
    std::int64_t end = 0;
    for (const auto& [offset, bytes] : parts[r]) {
      if (offset != end || bytes > manifest.files[r].data_bytes - end)
        damaged("is damaged: the blocks in " + rank_file(static_cast<int>(r)) + " do not follow each other");
      end += bytes;
    }
    if (end != manifest.files[r].data_bytes)
      damaged("is damaged: " + rank_file(static_cast<int>(r)) + " should hold " +
              std::to_string(manifest.files[r].data_bytes) + " bytes, its blocks are " + std::to_string(end));
  }
}

Manifest::File file_of(const json& in, std::size_t rank) {
  const std::string where = "file " + std::to_string(rank);
  if (text_of(in, "name", where) != rank_file(static_cast<int>(rank)))
    damaged("is damaged: " + where + " is not called " + rank_file(static_cast<int>(rank)));
  Manifest::File file{number(in, "data_bytes", where, 0, most / 2), text_of(in, "xxh3_of_sums", where)};
  if (file.sum_of_sums.size() != 16) damaged("is damaged: " + where + " has no checksum");
  return file;
}

Manifest::Leaf leaf_of(const json& in, std::size_t n, std::size_t files) {
  const std::string where = "array " + std::to_string(n);
  std::vector<std::int64_t> extents;
  for (const auto& extent : list(in, "shape", where))
    extents.push_back(number(extent, where + "'s extent", 0, most));
  if (extents.size() > most_dims) damaged("is damaged: " + where + " has too many dimensions");
  Manifest::Leaf leaf{Shape(std::move(extents)), dtype_named(text_of(in, "dtype", where), where), {}};
  try {
    checked_bytes(leaf.shape, leaf.dtype, where);
  } catch (const ShapeError&) {
    damaged("is damaged: the bytes of " + where + " of shape " + to_string(leaf.shape) + " exceed 2^63");
  }
  for (const auto& block : list(in, "blocks", where)) {
    const std::string which = "block " + std::to_string(leaf.blocks.size()) + " of " + where;
    const auto last = static_cast<std::int64_t>(files) - 1;
    leaf.blocks.push_back({box_of(block, leaf.shape, which),
                           static_cast<int>(number(block, "rank", which, 0, last)),
                           number(block, "offset", which)});
  }
  check_tiling(leaf, where);
  return leaf;
}

json box_json(const Box& box) {
  json ranges = json::array();
  for (const auto& range : box) ranges.push_back({range.start, range.stop});
  return ranges;
}
json leaf_json(const Manifest::Leaf& leaf) {
  json result = {{"shape", leaf.shape.vector()}, {"dtype", name(leaf.dtype)}, {"blocks", json::array()}};
  for (const auto& block : leaf.blocks)
    result["blocks"].push_back(
        {{"box", box_json(block.box)}, {"rank", block.rank}, {"offset", block.offset}});
  return result;
}

std::string sum_of(const json& body) {
  const auto text = body.dump();
  return hex(XXH3_64bits(text.data(), text.size()));
}

// The body of a text that is JSON, has the checksum that it names, and is of a format that this library
// reads.
json trusted_body(std::string_view text) {
  if (is_too_deep(text)) damaged("is no manifest: it is nested more than 16 deep");
  const json whole = json::parse(text, nullptr, false);
  if (text.find('\0') != text.npos || whole.is_discarded() || !whole.is_object() || !whole.contains("body") ||
      !whole.contains("xxh3") || !whole["body"].is_object())
    damaged("is no manifest");
  const json& body = whole["body"];
  if (whole["xxh3"] != sum_of(body)) damaged("does not have the checksum that it names");
  const auto format = number(body, "format", "the manifest");
  if (format != format_version)
    damaged("has the format " + std::to_string(format) + ", this library reads " +
            std::to_string(format_version));
  const auto order = body.contains("byte_order") ? text_of(body, "byte_order", "the manifest") : "little";
  if (order != byte_order)
    throw IoError("was written on a machine of other byte order (" + in_quotes(order.substr(0, 20)) +
                  ", this one is " + byte_order + "); convert it through HDF5 there");
  number(body, "piece_bytes", "the manifest", piece_bytes, piece_bytes);
  return body;
}

}  // namespace

std::string rank_file(int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "rank_%05d.bin", rank);
  return name;
}
std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}
std::int64_t pieces_of(std::int64_t bytes) {
  return bytes / piece_bytes + (bytes % piece_bytes != 0 ? 1 : 0);
}
std::int64_t file_bytes(const Manifest::File& file) {
  return file.data_bytes + pieces_of(file.data_bytes) * static_cast<std::int64_t>(sizeof(std::uint64_t));
}

std::string to_text(const Manifest& manifest) {
  json body = {{"format", format_version},
               {"byte_order", byte_order},
               {"step", manifest.step},
               {"structure", manifest.structure},
               {"piece_bytes", piece_bytes}};
  for (const auto& leaf : manifest.leaves) body["leaves"].push_back(leaf_json(leaf));
  for (std::size_t r = 0; r < manifest.files.size(); ++r)
    body["files"].push_back({{"name", rank_file(static_cast<int>(r))},
                             {"data_bytes", manifest.files[r].data_bytes},
                             {"xxh3_of_sums", manifest.files[r].sum_of_sums}});
  return json{{"body", body}, {"xxh3", sum_of(body)}}.dump(1) + "\n";
}

Manifest parse_manifest(std::string_view text) {
  const json body = trusted_body(text);
  Manifest manifest;
  manifest.step = static_cast<int>(number(body, "step", "the manifest", INT32_MIN, INT32_MAX));
  manifest.structure = text_of(body, "structure", "the manifest");
  for (const auto& file : list(body, "files", "the manifest"))
    manifest.files.push_back(file_of(file, manifest.files.size()));
  for (const auto& leaf : list(body, "leaves", "the manifest"))
    manifest.leaves.push_back(leaf_of(leaf, manifest.leaves.size(), manifest.files.size()));
  check_files(manifest);
  return manifest;
}

}  // namespace tessera::io::checkpoint
