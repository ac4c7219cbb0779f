#include "io/formats/zarr/metadata/json_document.hpp"

#include <tessera/error.hpp>

#include <cmath>
#include <limits>
#include <utility>

#include "base/text.hpp"

namespace tessera::io::zarr {
namespace {

constexpr std::size_t most_bytes = std::size_t{256} << 20;
constexpr int deepest = 64;

// Numbers that JSON lacks pass through the parser as texts that begin with this character.
constexpr char marker = '\x01';
constexpr const char* escaped_marker = "\\u0001";
struct Special {
  const char* word;
  double value;
};
constexpr Special specials[] = {{"NaN", std::numeric_limits<double>::quiet_NaN()},
                                {"Infinity", std::numeric_limits<double>::infinity()},
                                {"-Infinity", -std::numeric_limits<double>::infinity()}};

// NaN outside of texts becomes "\u0001NaN".
std::string with_markers(std::string_view text) {
  std::string marked;
  bool is_inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_inside && text[i] == '\\' && i + 1 < text.size()) {
      marked += text[i++];
    } else if (text[i] == '"') {
      is_inside = !is_inside;
    } else if (!is_inside && (text[i] == 'N' || text[i] == 'I' || text[i] == '-')) {
      const Special* found = nullptr;
      for (const Special& special : specials)
        if (text.substr(i).starts_with(special.word)) found = &special;
      if (found != nullptr) {
        marked += '"' + std::string(escaped_marker) + found->word + '"';
        i += std::string_view(found->word).size() - 1;
        continue;
      }
    }
    marked += text[i];
  }
  return marked;
}

void numbers_from_markers(Json& value) {
  if (value.is_structured()) {
    for (Json& part : value) numbers_from_markers(part);
  } else if (value.is_string() && !value.get_ref<const std::string&>().empty() &&
             value.get_ref<const std::string&>()[0] == marker) {
    for (const Special& special : specials)
      if (value.get_ref<const std::string&>().substr(1) == special.word) {
        value = special.value;
        return;
      }
  }
}
bool markers_from_numbers(Json& value) {
  bool any = false;
  if (value.is_structured()) {
    for (Json& part : value) any = markers_from_numbers(part) || any;
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    value = marker + std::string(specials[std::isnan(number) ? 0 : number > 0 ? 1 : 2].word);
    any = true;
  }
  return any;
}

std::string text_of(const Json& value, int indent) {
  Json marked = value;
  const bool any = markers_from_numbers(marked);
  std::string text = marked.dump(indent);
  if (!any) return text;
  for (const Special& special : specials) {
    const std::string written = '"' + std::string(escaped_marker) + special.word + '"';
    for (std::size_t at = 0; (at = text.find(written, at)) != std::string::npos;)
      text.replace(at, written.size(), special.word);
  }
  return text;
}

}  // namespace

void refuse(const std::string& facts) {
  throw IoError(facts + "; write it again, or check it against the Zarr specification");
}
std::string shown(const std::string& text) { return in_quotes(text.substr(0, 80)); }

Json parse_value(std::string_view text, const std::string& what) {
  if (text.size() > most_bytes) refuse("has more than 256 MiB of metadata in " + what);
  if (text.find('\0') != text.npos) refuse("has a NUL in " + what);  // behind which the parser reads nothing
  const bool is_special =
      text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
  const std::string marked = is_special ? with_markers(text) : std::string();
  const std::string_view read = is_special ? std::string_view(marked) : text;
  bool is_deep = false;
  const auto look = [&](int depth, Json::parse_event_t, Json&) {
    is_deep = is_deep || depth > deepest;
    return !is_deep;
  };
  Json value = Json::parse(read.begin(), read.end(), look, false);
  if (is_deep) refuse("nests its metadata deeper than " + std::to_string(deepest) + " levels in " + what);
  if (value.is_discarded()) refuse("has no JSON in " + what);
  if (is_special) numbers_from_markers(value);
  return value;
}
Json parse_document(std::string_view text, const std::string& what) {
  Json value = parse_value(text, what);
  if (!value.is_object()) refuse("has no JSON object in " + what);
  return value;
}

std::string document_text(const Json& document) { return text_of(document, 2) + "\n"; }
std::string value_text(const Json& value) { return text_of(value, -1); }

const Json& member(const Json& object, const char* key, const std::string& what) {
  const auto found = object.find(key);
  if (found == object.end()) refuse("says no " + std::string(key) + " in " + what);
  return *found;
}

}  // namespace tessera::io::zarr
