// .zarray, .zattrs and .zgroup: version 2 of the format.
#include <tessera/error.hpp>

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "io/formats/zarr/metadata/metadata.hpp"

namespace tessera::io::zarr {
namespace {

using Kind = Codec::Kind;
constexpr const char* file = ".zarray";

void check_format(const Json& document, const char* what) {
  const Json& format = member(document, "zarr_format", what);
  if (!format.is_number_integer() || format != 2)
    refuse("says zarr_format " + value_text(format).substr(0, 40) + " in " + what + ", where 2 is wanted");
}

struct StoredType {
  const char* name;  // NumPy's, without the byte order
  Dtype dtype;
};
constexpr StoredType stored_types[] = {
    {"b1", bool_},   {"i1", int8},    {"u1", uint8},     {"i2", int16},      {"i4", int32},
    {"i8", int64},   {"u2", uint16},  {"u4", uint32},    {"u8", uint64},     {"f2", float16},
    {"f4", float32}, {"f8", float64}, {"c8", complex64}, {"c16", complex128}};

// "<f4", "|b1"; the byte order goes to the codec.
Dtype read_dtype(const Json& value, Codec& bytes) {
  if (value.is_string() && value.get_ref<const std::string&>().size() > 1) {
    const auto text = value.get<std::string>();
    const auto* type = std::find_if(std::begin(stored_types), std::end(stored_types),
                                    [&](const StoredType& t) { return text.substr(1) == t.name; });
    if (type != std::end(stored_types)) {
      const bool is_small = itemsize(type->dtype) == 1;
      bytes.is_big_endian = text[0] == '>';
      if (is_small ? text[0] == '|' : text[0] == '<' || text[0] == '>') return type->dtype;
    }
  }
  refuse("holds " + value_text(value).substr(0, 80) +
         ", a data type that tessera does not have (it has bool, (u)int8-64, float16/32/64 and "
         "complex64/128; times can be written as int64 with units, as xarray does)");
}

std::string id_of(const Json& packer) {
  if (!packer.is_object() || !packer.contains("id") || !packer["id"].is_string())
    refuse("has no id of its compressor");
  return packer["id"].get<std::string>();
}
int number_in(const Json& packer, const char* key, int least, int most, int otherwise) {
  const auto found = packer.find(key);
  if (found == packer.end()) return otherwise;
  if (!found->is_number_integer() || *found < least || *found > most)
    refuse("has " + value_text(*found).substr(0, 40) + " for " + key + " of its compressor");
  return found->get<int>();
}
void check_keys(const Json& packer, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : packer.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      refuse("configures " + shown(key) + " of its compressor");
}

Codec read_packer(const Json& packer) {
  const std::string id = id_of(packer);
  if (id == "zlib" || id == "gzip") {
    check_keys(packer, {"id", "level"});
    return {.kind = id == "zlib" ? Kind::zlib : Kind::gzip, .level = number_in(packer, "level", -1, 9, 1)};
  }
  if (id == "zstd") {
    check_keys(packer, {"id", "level", "checksum"});
    Codec codec{.kind = Kind::zstd, .level = number_in(packer, "level", -131072, 22, 0)};
    const auto checksum = packer.find("checksum");
    if (checksum != packer.end() && !checksum->is_boolean())
      refuse("has a checksum of its compressor that is neither true nor false");
    codec.checksum = checksum != packer.end() && checksum->get<bool>();
    return codec;
  }
  if (id == "crc32c") {
    check_keys(packer, {"id"});
    return {.kind = Kind::crc32c};
  }
  if (id != "blosc")
    refuse("uses the compressor " + shown(id) +
           ", which tessera does not have (it has blosc, zstd, gzip, zlib)");
  check_keys(packer, {"id", "cname", "clevel", "shuffle", "blocksize", "typesize"});
  Codec codec{.kind = Kind::blosc, .level = number_in(packer, "clevel", 0, 9, 5)};
  if (packer.contains("cname") && !packer["cname"].is_string()) refuse("has a cname that is no text");
  codec.packer = packer.value("cname", "lz4");
  codec.shuffle = std::max(0, number_in(packer, "shuffle", -1, 2, 1));
  codec.blocksize = number_in(packer, "blocksize", 0, 1 << 30, 0);
  return codec;
}

[[noreturn]] void refuse_filters(const Json& filters) {
  std::vector<std::string> ids;
  for (const Json& filter : filters.is_array() ? filters : Json::array({filters}))
    ids.push_back(filter.is_object() && filter.contains("id") && filter["id"].is_string()
                      ? shown(filter["id"].get<std::string>())
                      : value_text(filter).substr(0, 40));
  ids.resize(std::min<std::size_t>(ids.size(), 8));
  throw IoError("passes its chunks through the filters " + join(ids) +
                ", which tessera does not have; write it without filters (zarr: filters=None)");
}

std::vector<std::string> dims_of(const Json& attributes, const Shape& shape) {
  const auto found = attributes.find("_ARRAY_DIMENSIONS");  // xarray's names of dims in this version
  std::vector<std::string> dims;
  if (found == attributes.end() || !found->is_array() || found->size() != shape.size()) return dims;
  for (const Json& dim : *found) dims.push_back(dim.is_string() ? dim.get<std::string>() : "");
  return dims;
}

std::vector<Codec> read_steps(const Json& document, const Codec& bytes, std::size_t ndim) {
  std::vector<Codec> steps;
  const Json &order = member(document, "order", file), &packer = member(document, "compressor", file);
  if (order != "C" && order != "F") refuse("has the order " + value_text(order).substr(0, 40));
  if (order == "F") {
    Codec transpose{.kind = Kind::transpose};
    for (std::size_t d = ndim; d-- > 0;) transpose.order.push_back(static_cast<int>(d));
    steps.push_back(transpose);
  }
  steps.push_back(bytes);
  const Json& filters = member(document, "filters", file);
  if (!filters.is_null() && !(filters.is_array() && filters.empty())) refuse_filters(filters);
  if (!packer.is_null()) steps.push_back(read_packer(packer));
  return steps;
}

}  // namespace

ArrayMeta read_array_v2(const Json& document, const Json& attributes) {
  check_format(document, file);
  ArrayMeta meta;
  meta.format = 2;
  meta.has_v2_keys = true;
  meta.separator = '.';
  meta.shape = read_shape(member(document, "shape", file), "shape");
  meta.chunk = read_shape(member(document, "chunks", file), "chunks");
  if (meta.chunk.size() != meta.shape.size())
    refuse("has chunks of " + to_string(meta.chunk) + " in an array of shape " + to_string(meta.shape));
  Codec bytes{.kind = Kind::bytes};
  meta.dtype = read_dtype(member(document, "dtype", file), bytes);
  const Json& fill = member(document, "fill_value", file);
  meta.fill_is_given = !fill.is_null();
  if (meta.fill_is_given) meta.fill = read_fill(fill, meta.dtype);
  if (const auto separator = document.find("dimension_separator"); separator != document.end()) {
    if (*separator != "." && *separator != "/")
      refuse("has the dimension_separator " + value_text(*separator).substr(0, 40));
    meta.separator = separator->get<std::string>()[0];
  }
  check_sizes(meta);
  meta.codecs = read_steps(document, bytes, meta.shape.size());
  if (!attributes.is_object()) refuse("has no JSON object in .zattrs");
  meta.attributes = attributes;
  meta.dims = dims_of(attributes, meta.shape);
  meta.document = document;
  return meta;
}
ArrayMeta parse_array_v2(std::string_view text, std::string_view attributes) {
  return read_array_v2(parse_document(text, file),
                       attributes.empty() ? Json::object() : parse_document(attributes, ".zattrs"));
}
void parse_group_v2(std::string_view text) { check_format(parse_document(text, ".zgroup"), ".zgroup"); }

}  // namespace tessera::io::zarr
