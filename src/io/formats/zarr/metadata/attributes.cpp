// Converts attributes between JSON and C++: numbers, texts, and lists of one type.
#include "io/formats/zarr/metadata/node.hpp"

namespace tessera::io::zarr {
namespace {

std::optional<Attribute> list_of(const Json& list) {
  bool all_texts = !list.empty(), all_numbers = true, all_whole = true;
  for (const Json& part : list) {
    all_texts = all_texts && part.is_string();
    all_numbers = all_numbers && part.is_number();
    all_whole = all_whole && part.is_number_integer();
  }
  if (all_texts) return list.get<std::vector<std::string>>();
  if (all_numbers && all_whole) return list.get<std::vector<std::int64_t>>();
  if (all_numbers) return list.get<std::vector<double>>();
  return std::nullopt;
}

std::optional<Attribute> attribute_of(const Json& value) {
  if (value.is_boolean()) return std::int64_t{value.get<bool>() ? 1 : 0};
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return list_of(value);
  return std::nullopt;
}

}  // namespace

std::map<std::string, Attribute> attributes_of(const Json& object) {
  std::map<std::string, Attribute> found;
  for (const auto& [name, value] : object.items())
    if (auto attribute = attribute_of(value)) found.emplace(name, std::move(*attribute));
  return found;
}
Json json_of(const Attribute& attribute) {
  return std::visit([](const auto& value) { return Json(value); }, attribute);
}

}  // namespace tessera::io::zarr
