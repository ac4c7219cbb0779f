// Tokens and types.
#include "stablehlo/text/reader.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.hpp"

namespace tessera::stablehlo {

std::string to_string(const TensorType& type) {
  return type.is_token ? "a token" : name(type.dtype) + tessera::to_string(type.shape);
}

const Attribute* Attribute::find(std::string_view name) const {
  for (const auto& [key, value] : entries)
    if (key == name) return &value;
  return nullptr;
}

PartReader::Deeper::Deeper(PartReader& reader) : reader_(reader) {
  if (reader.depth_ >= deepest_nesting)
    reader.refuse(reader.peek(),
                  "brackets and regions are nested more than " + std::to_string(deepest_nesting) + " deep");
  ++reader.depth_;
}

bool PartReader::next_is(std::string_view text) {
  const Token& token = peek();
  return (token.kind == TokenKind::word || token.kind == TokenKind::punct) && token.text == text;
}

bool PartReader::accept(std::string_view text) {
  if (!next_is(text)) return false;
  take();
  return true;
}

Token PartReader::expect(std::string_view text) {
  if (!next_is(text))
    refuse(peek(), in_quotes(text) + " is expected here, and not " +
                       (peek().kind == TokenKind::end ? "the end of the file" : shown(peek().text)));
  return take();
}

Token PartReader::expect(TokenKind kind, const char* what) {
  if (peek().kind != kind)
    refuse(peek(), std::string(what) + " is expected here, and not " +
                       (peek().kind == TokenKind::end ? "the end of the file" : shown(peek().text)));
  return take();
}

std::string PartReader::printable(const Token& token) {
  std::string name = decoded(token.text);
  constexpr std::size_t longest = 500;
  const bool is_plain = std::none_of(name.begin(), name.end(),
                                     [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; });
  if (!is_plain || name.empty() || name.size() > longest)
    refuse(token, "the name " + shown(name) + " is empty, too long or has control characters");
  return name;
}

void PartReader::skip_balanced() {
  const Token first = take();
  int open = 1;
  while (open > 0) {
    const Token token = take();
    if (token.kind == TokenKind::end) refuse(first, "the bracket that opens here is not closed");
    if (token.kind != TokenKind::punct) continue;
    const char c = token.text[0];
    if (token.text == "->") continue;
    if (c == '(' || c == '[' || c == '{' || c == '<') ++open;
    if (c == ')' || c == ']' || c == '}' || c == '>') --open;
  }
}

void PartReader::skip_location() {
  if (!next_is("loc")) return;
  take();
  if (!next_is("(")) refuse(peek(), "'(' is expected here: loc(...)");
  skip_balanced();
}

std::int64_t PartReader::integer() {
  const Token token = expect(TokenKind::number, "an integer");
  std::int64_t value = 0;
  const auto* end = token.text.data() + token.text.size();
  const auto read = std::from_chars(token.text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end)
    refuse(token, shown(token.text) + " is no integer of 64 bits");
  return value;
}

namespace {

const std::map<std::string, Dtype, std::less<>>& element_types() {
  static const std::map<std::string, Dtype, std::less<>> types{
      {"i1", bool_},    {"i8", int8},       {"i16", int16},   {"i32", int32},   {"i64", int64},
      {"ui8", uint8},   {"ui16", uint16},   {"ui32", uint32}, {"ui64", uint64}, {"f32", float32},
      {"f64", float64}, {"bf16", bfloat16}, {"f16", float16}, {"index", int64}, {"si8", int8},
      {"si16", int16},  {"si32", int32},    {"si64", int64}};
  return types;
}

std::string why_not(std::string_view element) {
  if (element.find('?') != std::string_view::npos)
    return "the extent is not known: export the program for shapes in numbers";
  return "the element type " + shown(element) +
         " has no counterpart; there are i1, i8 to i64, ui8 to ui64, bf16, f16, f32, f64, and complex ones "
         "of the last two";
}

}  // namespace

// "6x5xf32" -> (6, 5) and "f32"; after extents may come a type of its own: 6x5xcomplex<f32>.
std::pair<Shape, std::string> PartReader::extents_and_element() {
  const Token run = lexer_.take_run();
  std::vector<std::int64_t> extents;
  std::string_view rest = run.text;
  while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
    std::int64_t extent = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
    const auto length = static_cast<std::size_t>(read.ptr - rest.data());
    if (read.ec != std::errc() || length >= rest.size() || rest[length] != 'x')
      refuse(run, shown(run.text) + " is no shape");
    extents.push_back(extent);
    rest.remove_prefix(length + 1);
  }
  constexpr std::size_t most_dims = 64;
  if (extents.size() > most_dims) refuse(run, "an array of more than 64 dims");
  if (rest.empty() || rest.find('?') != std::string_view::npos) refuse(run, why_not(run.text));
  std::int64_t bytes = 16;
  for (const auto extent : extents)
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes))
      refuse(run, "the bytes of an array of " + shown(run.text) + " do not fit 64 bits");
  return {Shape(std::move(extents)), std::string(rest)};
}

TensorType PartReader::type() {
  const Deeper deeper(*this);
  const Token first = take();
  if (first.kind == TokenKind::type_alias) {
    if (first.text == "stablehlo.token") return {{}, bool_, true};
    refuse(first, "the type !" + std::string(first.text.substr(0, 60)) + " has no counterpart");
  }
  if (first.kind != TokenKind::word) refuse(first, "a type is expected here, and not " + shown(first.text));
  if (first.text != "tensor") {
    if (first.text == "tuple") refuse(first, "tuples have no counterpart: results are returned one by one");
    const auto found = element_types().find(first.text);
    if (found == element_types().end()) refuse(first, why_not(first.text));
    return {{}, found->second, false};
  }
  if (!next_is("<")) refuse(peek(), "'<' is expected here: tensor<...>");
  take();
  auto [shape, element] = extents_and_element();
  TensorType result{std::move(shape), float32, false};
  if (element == "complex") {
    expect("<");
    const Token part = take();
    if (part.text != "f32" && part.text != "f64") refuse(part, why_not("complex<" + std::string(part.text)));
    result.dtype = part.text == "f32" ? complex64 : complex128;
    expect(">");
  } else {
    const auto found = element_types().find(element);
    if (found == element_types().end()) refuse(first, why_not(element));
    result.dtype = found->second;
  }
  if (next_is(",")) refuse(peek(), "a tensor with an encoding has no counterpart");
  expect(">");
  return result;
}

std::vector<TensorType> PartReader::types_until_closed() {
  std::vector<TensorType> types;
  while (!accept(")")) {
    if (!types.empty()) expect(",");
    types.push_back(type());
  }
  return types;
}

}  // namespace tessera::stablehlo
