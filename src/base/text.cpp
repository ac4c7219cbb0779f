#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace tessera {
namespace {

// The Levenshtein distance of two words.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Whether one word is a prefix of the other: warn, warning.
bool begins_alike(std::string_view a, std::string_view b) {
  const std::size_t n = std::min(a.size(), b.size());
  return n >= 3 && a.substr(0, n) == b.substr(0, n);
}

// The length in bytes of the first character; 0 for control characters and invalid UTF-8.
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : std::uint32_t{0};
  };
  const auto first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  constexpr std::uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};  // below 0xa0: control characters again
  std::uint32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  // Characters that change the direction of text are not shown either.
  const bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return first < 0xc2 || code < least[length] || code > 0x10ffff || surrogate || turns ? 0 : length;
}

void append_hex(std::string& text, char c) {
  char hex[8];
  std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
  text += hex;
}

}  // namespace

// Quotes a name, which may come from an untrusted file: bytes that a terminal would act on are shown as \x1b,
// and so is invalid UTF-8.
std::string in_quotes(std::string_view text) {
  std::string shown = "'";
  while (!text.empty()) {
    const auto length = printable_length(text);
    if (length > 0)
      shown += text.substr(0, length);
    else
      append_hex(shown, text[0]);
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return shown + "'";
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string format_count(std::int64_t n, std::string_view singular) {
  std::string noun(singular);
  if (n != 1) {
    if (noun.ends_with("axis"))
      noun.replace(noun.size() - 2, 2, "es");
    else if (noun.ends_with("entry"))
      noun.replace(noun.size() - 1, 1, "ies");
    else
      noun += "s";
  }
  return std::to_string(n) + " " + noun;
}

std::string format_ids(const std::vector<int>& ids) {
  std::string text;
  for (std::size_t first = 0; first < ids.size();) {
    std::size_t last = first;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ids[first]);
    if (last > first) text += (last == first + 1 ? ", " : "-") + std::to_string(ids[last]);
    first = last + 1;
  }
  return text;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : known)
    if (const auto distance = begins_alike(word, candidate) ? 1 : edits(word, candidate); distance < fewest)
      fewest = distance, nearest = &candidate;
  return nearest ? " (did you mean " + in_quotes(*nearest) + "?)" : "";
}

std::string format_site(const std::source_location& site) {
  std::string_view file = site.file_name();
  if (const auto slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return std::string(file) + ":" + std::to_string(site.line());
}

}  // namespace tessera
