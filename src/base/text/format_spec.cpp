#include "base/text/format_spec.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace tessera {
namespace {

constexpr int most_columns = 1000;

std::size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return columns;
}
bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Parses the text at `at` and advances.
struct Reader {
  std::string_view text;
  std::size_t at = 0;
  char peek(std::size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  bool take(char c) {
    if (peek() != c || at >= text.size()) return false;
    ++at;
    return true;
  }
  // nullopt if the number is too large; 0 if there is no digit.
  std::optional<int> number() {
    int value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (text[at++] - '0');
      if (value > most_columns) return std::nullopt;
    }
    return value;
  }
};

std::string filled(const FormatSpec& spec, std::size_t columns) {
  std::string text;
  for (std::size_t i = 0; i < columns; ++i) text += spec.fill;
  return text;
}
std::string aligned(const FormatSpec& spec, char align, const std::string& sign, const std::string& body) {
  const auto own = columns_of(sign) + columns_of(body), width = static_cast<std::size_t>(spec.width);
  if (own >= width) return sign + body;
  const auto missing = width - own;
  if (spec.zeros && spec.align == 0) return sign + std::string(missing, '0') + body;
  if (align == '=') return sign + filled(spec, missing) + body;
  const auto before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  return filled(spec, before) + sign + body + filled(spec, missing - before);
}
std::string number_aligned(const FormatSpec& spec, const std::string& sign, const std::string& body) {
  return aligned(spec, spec.align == 0 ? '>' : spec.align, sign, body);
}
std::string sign_of(const FormatSpec& spec, bool negative) {
  return negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

// The text of a number without its sign.
std::optional<std::string> magnitude(const FormatSpec& spec, double value) {
  const bool percent = spec.type == '%';
  const char type = spec.type == 0 ? 'g' : percent ? 'f' : spec.type;
  if (std::string_view("fFeEgG").find(type) == std::string_view::npos) return std::nullopt;
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return "inf";
  const int precision = spec.precision.value_or(spec.type == 0 ? 9 : 6);
  const std::array<char, 6> format{'%', '.', '*', type, '\0', '\0'};
  std::string text(400 + static_cast<std::size_t>(precision), '\0');
  const int length = std::snprintf(text.data(), text.size(), format.data(), precision,
                                   std::fabs(percent ? 100 * value : value));
  text.resize(static_cast<std::size_t>(length));
  return percent ? text + "%" : text;
}

std::optional<std::string> digits(const FormatSpec& spec, std::uint64_t value) {
  const char type = spec.type == 0 ? 'd' : spec.type;
  const unsigned base = type == 'd'                  ? 10
                        : type == 'x' || type == 'X' ? 16
                        : type == 'o'                ? 8
                        : type == 'b'                ? 2
                                                     : 0;
  if (base == 0) return std::nullopt;
  const char* const names = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string text;
  do text.insert(text.begin(), names[value % base]);
  while ((value /= base) > 0);
  return (spec.alternate && base != 10 ? std::string{'0', type} : "") + text;
}

std::optional<std::string> integer(const FormatSpec& spec, bool negative, std::uint64_t size,
                                   double as_double) {
  if (spec.type != 0 && std::string_view("fFeEgG%").find(spec.type) != std::string_view::npos)
    return formatted(spec, as_double);
  if (spec.precision) return std::nullopt;
  const auto body = digits(spec, size);
  if (!body) return std::nullopt;
  return number_aligned(spec, sign_of(spec, negative), *body);
}

}  // namespace

std::optional<FormatSpec> parse_format_spec(std::string_view text) {
  FormatSpec spec;
  Reader reader{text};
  const auto first = text.empty() ? 1 : character_bytes(text[0]);
  if (first < text.size() && is_align(text[first])) {
    spec.fill = std::string(text.substr(0, first));
    spec.align = text[first];
    reader.at = first + 1;
  } else if (is_align(reader.peek())) {
    spec.align = text[reader.at++];
  }
  if (reader.peek() == '+' || reader.peek() == '-' || reader.peek() == ' ') spec.sign = text[reader.at++];
  spec.alternate = reader.take('#');
  spec.zeros = reader.take('0');
  const auto width = reader.number();
  if (!width) return std::nullopt;
  spec.width = *width;
  if (reader.take('.')) {
    const bool has_digit = reader.peek() >= '0' && reader.peek() <= '9';
    spec.precision = reader.number();
    if (!has_digit || !spec.precision) return std::nullopt;
  }
  if (reader.at < text.size()) spec.type = text[reader.at++];
  const bool is_type =
      spec.type == 0 || std::string_view("dxXobfFeEgG%s").find(spec.type) != std::string_view::npos;
  return is_type && reader.at == text.size() ? std::optional(spec) : std::nullopt;
}

std::optional<std::string> formatted(const FormatSpec& spec, double value) {
  const auto body = magnitude(spec, value);
  if (!body) return std::nullopt;
  return number_aligned(spec, sign_of(spec, std::signbit(value) && !std::isnan(value)), *body);
}
std::optional<std::string> formatted(const FormatSpec& spec, std::complex<double> value) {
  FormatSpec part = spec;
  part.width = 0, part.zeros = false;
  const auto re = formatted(part, value.real());
  part.sign = '+';
  const auto im = formatted(part, value.imag());
  if (!re || !im) return std::nullopt;
  return number_aligned(spec, "", *re + *im + "j");
}
std::optional<std::string> formatted(const FormatSpec& spec, std::int64_t value) {
  const auto size = static_cast<std::uint64_t>(value);
  return integer(spec, value < 0, value < 0 ? 0 - size : size, static_cast<double>(value));
}
std::optional<std::string> formatted(const FormatSpec& spec, std::uint64_t value) {
  return integer(spec, false, value, static_cast<double>(value));
}
std::optional<std::string> formatted(const FormatSpec& spec, std::string_view value) {
  if ((spec.type != 0 && spec.type != 's') || spec.zeros || spec.alternate || spec.sign != '-' ||
      spec.align == '=')
    return std::nullopt;
  std::string text(value);
  if (spec.precision) {
    std::size_t end = 0;
    for (int i = 0; i < *spec.precision && end < text.size(); ++i) end += character_bytes(text[end]);
    text.resize(std::min(end, text.size()));
  }
  return aligned(spec, spec.align == 0 ? '<' : spec.align, "", text);
}

}  // namespace tessera
