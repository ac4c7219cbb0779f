// zarr.json: version 3 of the format.
#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "io/formats/zarr/metadata/metadata.hpp"

namespace tessera::io::zarr {
namespace {

using Kind = Codec::Kind;
constexpr const char* v3_file = "zarr.json";

void check_header(const Json& document, const char* node) {
  const Json &format = member(document, "zarr_format", v3_file),
             &type = member(document, "node_type", v3_file);
  if (!format.is_number_integer() || format != 3)
    refuse("says zarr_format " + value_text(format).substr(0, 40) + " in zarr.json, where tessera knows 3");
  if (type != node)
    refuse("says node_type " + value_text(type).substr(0, 40) + " in zarr.json, where " + in_quotes(node) +
           " is wanted");
}

// Refuses unknown members unless they are marked as not necessary to understand.
void check_extras(const Json& document, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : document.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const bool is_optional =
        value.is_object() && value.contains("must_understand") && value["must_understand"] == false;
    if (!is_optional) refuse("has the entry " + shown(key) + " in zarr.json, which must be understood");
  }
}

Dtype read_dtype(const Json& value) {
  if (!value.is_string())
    refuse("holds " + value_text(value).substr(0, 80) +
           ", a data type that tessera does not have (it has bool, (u)int8-64, float16/32/64 and "
           "complex64/128; times can be written as int64 with units, as xarray does)");
  const auto text = value.get<std::string>();
  for (int code = 0; code < dtype_count; ++code)
    if (name(Dtype{code}) == text) return Dtype{code};
  refuse("holds " + shown(text) +
         ", a data type that tessera does not have (it has bool, (u)int8-64, float16/32/64 and "
         "complex64/128; times can be written as int64 with units, as xarray does)");
}

Shape read_grid(const Json& grid, const Shape& shape) {
  if (!grid.is_object() || !grid.contains("name") || grid["name"] != "regular" ||
      !grid.contains("configuration") || !grid["configuration"].is_object())
    refuse("has a chunk_grid that is not the regular one");
  for (const auto& [key, value] : grid.items())
    if (key != "name" && key != "configuration") refuse("has the entry " + shown(key) + " in its chunk_grid");
  const Json& configuration = grid["configuration"];
  if (configuration.size() != 1) refuse("configures its chunk_grid with more than chunk_shape");
  const Shape chunk = read_shape(member(configuration, "chunk_shape", "its chunk_grid"), "chunk_shape");
  if (chunk.size() != shape.size())
    refuse("has chunks of " + to_string(chunk) + " in an array of shape " + to_string(shape));
  return chunk;
}

void read_keys(const Json& encoding, ArrayMeta& meta) {
  if (!encoding.is_object() || !encoding.contains("name") || !encoding["name"].is_string())
    refuse("has no chunk_key_encoding with a name");
  const auto name = encoding["name"].get<std::string>();
  if (name != "default" && name != "v2") refuse("has the chunk_key_encoding " + shown(name));
  meta.has_v2_keys = name == "v2";
  meta.separator = meta.has_v2_keys ? '.' : '/';
  for (const auto& [key, value] : encoding.items()) {
    if (key == "name") continue;
    if (key != "configuration" || !value.is_object())
      refuse("has the entry " + shown(key) + " in its chunk_key_encoding");
    for (const auto& [word, separator] : value.items()) {
      if (word != "separator" || (separator != "." && separator != "/"))
        refuse("configures its chunk_key_encoding with " + shown(word));
      meta.separator = separator.get<std::string>()[0];
    }
  }
}

std::vector<std::string> read_dims(const Json& document, const Shape& shape) {
  const auto found = document.find("dimension_names");
  if (found == document.end() || found->is_null()) return {};
  if (!found->is_array() || found->size() != shape.size())
    refuse("has no name for each of its " + std::to_string(shape.size()) + " dims in dimension_names");
  std::vector<std::string> dims;
  for (const Json& dim : *found) {
    if (!dim.is_string() && !dim.is_null()) refuse("has a name of a dim that is no text");
    dims.push_back(dim.is_null() ? "" : dim.get<std::string>());
  }
  return dims;
}

Json read_attributes(const Json& document) {
  const auto found = document.find("attributes");
  if (found == document.end() || found->is_null()) return Json::object();
  if (!found->is_object()) refuse("has attributes that are no object");
  return *found;
}

}  // namespace

ArrayMeta read_array_v3(const Json& document) {
  check_header(document, "array");
  check_extras(document,
               {"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
                "fill_value", "codecs", "attributes", "storage_transformers", "dimension_names"});
  ArrayMeta meta;
  meta.shape = read_shape(member(document, "shape", v3_file), "shape");
  meta.dtype = read_dtype(member(document, "data_type", v3_file));
  meta.chunk = read_grid(member(document, "chunk_grid", v3_file), meta.shape);
  meta.fill = read_fill(member(document, "fill_value", v3_file), meta.dtype);
  read_keys(member(document, "chunk_key_encoding", v3_file), meta);
  check_sizes(meta);
  meta.codecs = read_codecs(member(document, "codecs", v3_file), meta.chunk, meta.dtype, 0);
  const auto transformers = document.find("storage_transformers");
  if (transformers != document.end() && !(transformers->is_array() && transformers->empty()) &&
      !transformers->is_null())
    refuse("has storage_transformers, which tessera does not have");
  meta.dims = read_dims(document, meta.shape);
  meta.attributes = read_attributes(document);
  meta.document = document;
  return meta;
}
ArrayMeta parse_array_v3(std::string_view text) { return read_array_v3(parse_document(text, v3_file)); }

void check_sizes(ArrayMeta& meta) {
  chunk_bytes(meta.shape, meta.dtype);
  std::vector<std::int64_t> extents = meta.chunk.vector();
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 0 && meta.shape[d] > 0)
      refuse("has chunks of " + to_string(meta.chunk) + " in an array of shape " + to_string(meta.shape));
    extents[d] = std::max<std::int64_t>(extents[d], 1);
  }
  meta.chunk = Shape(extents);
  chunk_bytes(meta.chunk, meta.dtype);
}

Json read_group_v3(const Json& document) {
  check_header(document, "group");
  check_extras(document, {"zarr_format", "node_type", "attributes", "consolidated_metadata"});
  return read_attributes(document);
}

namespace {

Json named(const char* name, Json configuration) {
  return {{"name", name}, {"configuration", std::move(configuration)}};
}
Json codec_json(const Codec& codec, Dtype dtype) {
  switch (codec.kind) {
    case Kind::bytes:
      if (itemsize(dtype) == 1) return {{"name", "bytes"}};
      return named("bytes", {{"endian", codec.is_big_endian ? "big" : "little"}});
    case Kind::transpose: return named("transpose", {{"order", codec.order}});
    case Kind::crc32c: return {{"name", "crc32c"}};
    case Kind::zstd: return named("zstd", {{"level", codec.level}, {"checksum", codec.checksum}});
    case Kind::blosc: {
      constexpr const char* shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};
      return named("blosc", {{"cname", codec.packer},
                             {"clevel", codec.level},
                             {"shuffle", shuffles[codec.shuffle]},
                             {"typesize", codec.typesize},
                             {"blocksize", codec.blocksize}});
    }
    case Kind::sharding:
      return named("sharding_indexed", {{"chunk_shape", codec.chunk.vector()},
                                        {"codecs", codecs_json(codec.codecs, dtype)},
                                        {"index_codecs", codecs_json(codec.index_codecs, uint64)},
                                        {"index_location", codec.index_at_start ? "start" : "end"}});
    default: return named(name_of(codec.kind), {{"level", codec.level}});
  }
}

}  // namespace

Json codecs_json(const std::vector<Codec>& codecs, Dtype dtype) {
  Json list = Json::array();
  for (const Codec& codec : codecs) list.push_back(codec_json(codec, dtype));
  return list;
}

Json array_document(const ArrayMeta& meta) {
  Json document = {{"zarr_format", 3},
                   {"node_type", "array"},
                   {"shape", meta.shape.vector()},
                   {"data_type", name(meta.dtype)},
                   {"chunk_grid", named("regular", {{"chunk_shape", meta.chunk.vector()}})},
                   {"chunk_key_encoding", named(meta.has_v2_keys ? "v2" : "default",
                                                {{"separator", std::string(1, meta.separator)}})},
                   {"fill_value", fill_json(meta.fill, meta.dtype)},
                   {"codecs", codecs_json(meta.codecs, meta.dtype)},
                   {"attributes", meta.attributes},
                   {"storage_transformers", Json::array()}};
  if (!meta.dims.empty()) {
    Json names = Json::array();
    for (const auto& dim : meta.dims) names.push_back(dim.empty() ? Json() : Json(dim));
    document["dimension_names"] = names;
  }
  return document;
}
Json group_document(const Json& attributes) {
  return {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", attributes}};
}

}  // namespace tessera::io::zarr
