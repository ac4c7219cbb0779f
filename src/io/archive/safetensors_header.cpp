#include "io/archive/safetensors_header.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "base/text.hpp"
#include "types/checked.hpp"

namespace tessera::io {
namespace {

using nlohmann::json;

constexpr std::int64_t most_json_bytes = 100'000'000;  // the limit of the format's own reader

[[noreturn]] void refuse(const std::string& facts) {
  throw IoError(facts + "; write it again, or check it against the safetensors format");
}
std::string shown(const std::string& name) { return in_quotes(name.substr(0, 80)); }

struct StoredType {
  const char* name;
  Dtype dtype;
};
constexpr StoredType stored_types[] = {
    {"BOOL", bool_},  {"U8", uint8},      {"I8", int8},     {"U16", uint16},   {"I16", int16},
    {"U32", uint32},  {"I32", int32},     {"U64", uint64},  {"I64", int64},    {"F32", float32},
    {"F64", float64}, {"C64", complex64}, {"F16", float16}, {"BF16", bfloat16}};

std::int64_t number_in(const json& value, const std::string& name, const char* what) {
  if (!value.is_number_integer() && !value.is_number_unsigned())
    refuse("gives " + shown(name) + " " + what + " that is no whole number");
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse("gives " + shown(name) + " " + what + " beyond 2^63");
  const auto number = value.get<std::int64_t>();
  if (number < 0) refuse("gives " + shown(name) + " " + what + " that is negative");
  return number;
}

const json& field(const json& tensor, const std::string& name, const char* key) {
  const auto found = tensor.find(key);
  if (found == tensor.end()) refuse("says no " + std::string(key) + " of " + shown(name));
  return *found;
}

SafeTensor read_tensor(const std::string& name, const json& value, std::int64_t data_bytes) {
  if (!value.is_object()) refuse("has an entry " + shown(name) + " that describes no tensor");
  SafeTensor tensor;
  const json& dtype = field(value, name, "dtype");
  const auto* type = std::find_if(std::begin(stored_types), std::end(stored_types),
                                  [&](const StoredType& t) { return dtype == t.name; });
  if (type == std::end(stored_types))
    refuse("holds " + shown(name) + " as " +
           (dtype.is_string() ? shown(dtype.get<std::string>()) : "no dtype") +
           ", which tessera does not have");
  tensor.dtype = type->dtype;
  const json &shape = field(value, name, "shape"), &place = field(value, name, "data_offsets");
  constexpr std::size_t most_dims = 64;
  if (!shape.is_array() || shape.size() > most_dims)
    refuse("gives " + shown(name) + " no shape of at most 64 dims");
  std::vector<std::int64_t> extents;
  for (const json& extent : shape) extents.push_back(number_in(extent, name, "an extent"));
  tensor.shape = Shape(extents);
  if (!place.is_array() || place.size() != 2)
    refuse("gives " + shown(name) + " no data_offsets [begin, end]");
  tensor.begin = number_in(place[0], name, "a place");
  tensor.end = number_in(place[1], name, "a place");
  if (tensor.begin > tensor.end || tensor.end > data_bytes)
    refuse("places " + shown(name) + " from " + std::to_string(tensor.begin) + " to " +
           std::to_string(tensor.end) + " of " + std::to_string(data_bytes) + " bytes");
  std::int64_t bytes = 0;
  try {
    bytes = checked_bytes(tensor.shape, itemsize(tensor.dtype), "safetensors");
  } catch (const ShapeError&) {
    refuse("claims a shape for " + shown(name) + " whose bytes exceed 2^63");
  }
  if (bytes != tensor.end - tensor.begin)
    refuse("has " + std::to_string(tensor.end - tensor.begin) + " bytes for " + shown(name) + " of shape " +
           to_string(tensor.shape) + ", which needs " + std::to_string(bytes));
  return tensor;
}

// Every byte behind the header must belong to exactly one tensor.
void check_coverage(const SafetensorsHeader& header, std::int64_t data_bytes) {
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const auto& [name, tensor] : header.tensors) places.emplace_back(tensor.begin, tensor.end);
  std::sort(places.begin(), places.end());
  std::int64_t at = 0;
  for (const auto& [begin, end] : places) {
    if (begin < at) refuse("places two tensors at byte " + std::to_string(begin));
    if (begin > at) refuse("leaves a hole at byte " + std::to_string(at));
    at = end;
  }
  if (at != data_bytes)
    refuse("has " + std::to_string(data_bytes) + " bytes of data, but its tensors need " +
           std::to_string(at));
}

// Parses JSON and refuses duplicate names, of which the JSON library would silently keep the last, and a NUL,
// behind which it reads nothing. Bounds the depth, since the value is freed by recursion.
std::optional<json> parse_strictly(std::string_view text, std::string& twice) {
  if (text.find('\0') != text.npos) return std::nullopt;
  std::vector<std::set<std::string>> names;
  bool is_deep = false;
  constexpr int deepest = 16;
  const auto look = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > deepest) is_deep = true;
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return !is_deep;
  };
  json value = json::parse(text.begin(), text.end(), look, false);
  if (value.is_discarded() || is_deep || !value.is_object()) return std::nullopt;
  return value;
}

}  // namespace

std::int64_t parse_safetensors_prefix(std::string_view first_bytes, std::int64_t file_bytes) {
  if (first_bytes.size() < safetensors_prefix_bytes)
    refuse("is no safetensors file: it has fewer than 8 bytes");
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(first_bytes[i]);
  if (length > std::uint64_t{most_json_bytes} ||
      static_cast<std::int64_t>(length) > file_bytes - safetensors_prefix_bytes)
    refuse("is no whole safetensors file: it claims a header of " + std::to_string(length) + " bytes");
  return static_cast<std::int64_t>(length);
}

SafetensorsHeader parse_safetensors(std::string_view text, std::int64_t file_bytes) {
  std::string twice;
  const auto value = parse_strictly(text, twice);
  if (!value) refuse("is no safetensors file: its header is no JSON object");
  if (!twice.empty()) refuse("has two entries " + shown(twice));
  const std::int64_t start = safetensors_prefix_bytes + static_cast<std::int64_t>(text.size()),
                     data_bytes = file_bytes - start;
  SafetensorsHeader header;
  for (const auto& [name, entry] : value->items()) {
    if (name != "__metadata__") {
      header.tensors.emplace(name, read_tensor(name, entry, data_bytes));
      continue;
    }
    if (!entry.is_object()) refuse("has a __metadata__ that is no object");
    for (const auto& [key, word] : entry.items()) {
      if (!word.is_string()) refuse("has a __metadata__ " + shown(key) + " that is no text");
      header.metadata.emplace(key, word.get<std::string>());
    }
  }
  check_coverage(header, data_bytes);
  for (auto& [name, tensor] : header.tensors) tensor.begin += start, tensor.end += start;
  return header;
}

std::string safetensors_header_text(const SafetensorsHeader& header) {
  json value = json::object();
  for (const auto& [name, tensor] : header.tensors) {
    const auto* type = std::find_if(std::begin(stored_types), std::end(stored_types),
                                    [dtype = tensor.dtype](const StoredType& t) { return t.dtype == dtype; });
    value[name] = {{"dtype", type->name},
                   {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
                   {"data_offsets", {tensor.begin, tensor.end}}};
  }
  if (!header.metadata.empty()) value["__metadata__"] = header.metadata;
  std::string text = value.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string prefix;
  for (std::size_t i = 0; i < 8; ++i) prefix += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return prefix + text;
}

}  // namespace tessera::io
