// Constants: nested lists of numbers, one number for all elements, hexadecimal bytes, and resources at the
// end of the file.
#include <tessera/half.hpp>

#include <charconv>
#include <cstring>

#include "stablehlo/text/reader.hpp"

namespace tessera::stablehlo {

// The elements as they stand in the text; of complex numbers two tokens each.
struct PartReader::Elements {
  std::vector<Token> tokens;
  std::vector<std::int64_t> extents;  // of the nested lists
};

namespace {

bool is_hex(std::string_view text) { return text.size() > 2 && text[0] == '0' && text[1] == 'x'; }

template <class T> bool read_number(std::string_view text, T& value) {
  const auto* end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<T>)
    read = std::from_chars(text.data(), end, value);
  else
    read = is_hex(text) ? std::from_chars(text.data() + 2, end, value, 16)
                        : std::from_chars(text.data(), end, value);
  return read.ptr == end && (read.ec == std::errc() ||
                             (std::is_floating_point_v<T> && read.ec == std::errc::result_out_of_range));
}

template <class T> bool write_integer(std::string_view text, std::byte* out) {
  T value{};
  if (!read_number(text, value)) return false;
  std::memcpy(out, &value, sizeof value);
  return true;
}

// A decimal number, or the bits of one.
template <class T, class Bits, class Parsed> bool write_floating(std::string_view text, std::byte* out) {
  if (is_hex(text)) return write_integer<Bits>(text, out);
  Parsed parsed{};
  if (!read_number(text, parsed)) return false;
  const T value(parsed);
  std::memcpy(out, &value, sizeof value);
  return true;
}

bool write_bool(const Token& token, std::byte* out) {
  const bool is_true = token.text == "true" || token.text == "1" || token.text == "-1";
  *out = std::byte{is_true};
  return is_true || token.text == "false" || token.text == "0";
}

// False if the token is no number of that type.
bool write_element(const Token& token, Dtype dtype, std::byte* out) {
  if (dtype == bool_) return write_bool(token, out);
  if (token.kind != TokenKind::number) return false;
  const auto text = token.text;
  if (dtype == int8) return write_integer<std::int8_t>(text, out);
  if (dtype == int16) return write_integer<std::int16_t>(text, out);
  if (dtype == int32) return write_integer<std::int32_t>(text, out);
  if (dtype == int64) return write_integer<std::int64_t>(text, out);
  if (dtype == uint8) return write_integer<std::uint8_t>(text, out);
  if (dtype == uint16) return write_integer<std::uint16_t>(text, out);
  if (dtype == uint32) return write_integer<std::uint32_t>(text, out);
  if (dtype == uint64) return write_integer<std::uint64_t>(text, out);
  if (dtype == float32) return write_floating<float, std::uint32_t, float>(text, out);
  if (dtype == float64) return write_floating<double, std::uint64_t, double>(text, out);
  if (dtype == bfloat16) return write_floating<bfloat16_t, std::uint16_t, float>(text, out);
  return write_floating<float16_t, std::uint16_t, float>(text, out);
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool read_bytes(std::string_view digits, std::vector<std::byte>& bytes) {
  if (digits.size() % 2 != 0) return false;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit(digits[i]), low = digit(digits[i + 1]);
    if (high < 0 || low < 0) return false;
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return true;
}

}  // namespace

bool read_hex(std::string_view digits, Constant& dense) {
  if (!is_hex(digits)) return digits.empty() && dense.type.shape.elements() == 0;
  std::vector<std::byte> bytes;
  if (!read_bytes(digits.substr(2), bytes)) return false;
  const auto size = static_cast<std::int64_t>(itemsize(dense.type.dtype));
  const auto given = static_cast<std::int64_t>(bytes.size()), elements = dense.type.shape.elements();
  dense.is_splat = given == size && elements != 1;
  if (!dense.is_splat && given != elements * size) return false;
  dense.values = HostArray(dense.is_splat ? Shape{} : dense.type.shape, dense.type.dtype);
  if (dense.type.dtype == bool_)
    for (auto& byte : bytes) byte = std::byte{byte != std::byte{0}};
  if (!bytes.empty()) std::memcpy(dense.values.bytes(), bytes.data(), bytes.size());
  return true;
}

void PartReader::read_elements(Elements& into, std::size_t level) {
  const Deeper deeper(*this);
  const Token first = peek();
  if (accept("[")) {
    std::int64_t count = 0;
    while (!accept("]")) {
      if (count++ > 0) expect(",");
      read_elements(into, level + 1);
    }
    if (into.extents.size() <= level) into.extents.resize(level + 1, -1);
    if (into.extents[level] >= 0 && into.extents[level] != count)
      refuse(first, "a list of " + std::to_string(count) + " values beside lists of " +
                        std::to_string(into.extents[level]));
    into.extents[level] = count;
    return;
  }
  if (accept("(")) {
    into.tokens.push_back(take());
    expect(",");
    into.tokens.push_back(take());
    expect(")");
  } else {
    into.tokens.push_back(take());
  }
}

// After the word dense: <...> : type
Attribute PartReader::dense() {
  const Token open = expect("<");
  Elements elements;
  Token hex;
  if (peek().kind == TokenKind::string)
    hex = take();
  else if (!next_is(">"))
    read_elements(elements, 0);
  expect(">");
  expect(":");
  auto result = std::make_shared<Constant>();
  result->type = type();
  const Dtype dtype = result->type.dtype;
  Attribute attribute;
  attribute.kind = Attribute::Kind::dense, attribute.place = open.place;
  if (hex.kind == TokenKind::string) {
    if (!read_hex(hex.text, *result))
      refuse(hex, "these are not the bytes of " + to_string(result->type) + " in hexadecimal digits");
    attribute.dense = std::move(result);
    return attribute;
  }
  result->is_splat = elements.extents.empty() && !elements.tokens.empty();
  const Shape shape = result->is_splat ? Shape{} : result->type.shape;
  if (!result->is_splat && elements.tokens.empty()) {
    if (result->type.shape.elements() != 0) refuse(open, "no values for " + to_string(result->type));
  } else if (!result->is_splat && Shape(elements.extents) != result->type.shape) {
    refuse(open, "lists of extents " + tessera::to_string(Shape(elements.extents)) + " for " +
                     to_string(result->type));
  }
  const std::size_t parts = is_complex(dtype) ? 2 : 1;
  if (elements.tokens.size() != static_cast<std::size_t>(shape.elements()) * parts)
    refuse(open, std::to_string(elements.tokens.size()) + " numbers for " + to_string(result->type));
  result->values = HostArray(shape, dtype);
  const auto size = itemsize(dtype) / parts;
  for (std::size_t i = 0; i < elements.tokens.size(); ++i)
    if (!write_element(elements.tokens[i], real_dtype(dtype), result->values.bytes() + i * size))
      refuse(elements.tokens[i], shown(elements.tokens[i].text) + " is no " + name(real_dtype(dtype)));
  attribute.dense = std::move(result);
  return attribute;
}

// After the word: <name> : type. The bytes stand at the end of the file.
Attribute PartReader::dense_resource() {
  Attribute attribute;
  attribute.kind = Attribute::Kind::dense;
  attribute.place = expect("<").place;
  const Token name = take();
  if (name.text == "__elided__")
    refuse(name,
           "the values of this constant were left out when the text was written: write it with "
           "as_text() of jax.jit(f).lower(...), or mlir_module() of jax.export");
  expect(">");
  expect(":");
  auto result = std::make_shared<Constant>();
  result->type = type();
  attribute.dense = result;
  pending_.push_back({std::move(result), name});
  return attribute;
}

// {-# dialect_resources: { builtin: { name: "0x...", ... } } #-}
void PartReader::read_resources() {
  expect("{-#");
  int open = 0;
  while (!accept("#-}")) {
    const Token token = take();
    if (token.kind == TokenKind::end) refuse(token, "'#-}' is expected before the end of the file");
    if (token.text == "{") ++open;
    if (token.text == "}") --open;
    if (open < 0) refuse(token, "'}' without '{'");
    if ((token.kind == TokenKind::word || token.kind == TokenKind::string) && accept(":") &&
        peek().kind == TokenKind::string)
      resources_.emplace_back(token.text, take());
  }
}

void PartReader::resolve_resources() {
  for (const auto& [dense, name] : pending_) {
    const Token* found = nullptr;
    for (const auto& [key, value] : resources_)
      if (key == name.text) found = &value;
    if (found == nullptr) refuse(name, "the file has no resource " + shown(name.text));
    // 0x, four bytes that give the alignment, the values.
    const std::string_view digits = found->text;
    if (digits.size() < 10 || !read_hex("0x" + std::string(digits.substr(10)), *dense))
      refuse(*found,
             "these are not the bytes of " + to_string(dense->type) + " behind four bytes of alignment");
  }
  pending_.clear();
}

}  // namespace tessera::stablehlo
