#include "stablehlo/text/lexer.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cctype>

#include "base/text.hpp"

namespace tessera::stablehlo {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_of_word(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '$'; }
bool is_of_name(char c) { return is_of_word(c) || c == '-'; }

// The number of characters of a number: 12, -1.5e-3, 0x7FC0.
std::size_t number_length(std::string_view text) {
  std::size_t n = text[0] == '-' ? 1 : 0;
  if (text.size() > n + 2 && text[n] == '0' && text[n + 1] == 'x' && is_hex(text[n + 2])) {
    n += 2;
    while (n < text.size() && is_hex(text[n])) ++n;
    return n;
  }
  const auto digits = [&] {
    while (n < text.size() && is_digit(text[n])) ++n;
  };
  digits();
  if (n < text.size() && text[n] == '.') ++n, digits();
  if (n + 1 < text.size() && (text[n] == 'e' || text[n] == 'E')) {
    const std::size_t sign = text[n + 1] == '+' || text[n + 1] == '-' ? 1 : 0;
    if (n + 1 + sign < text.size() && is_digit(text[n + 1 + sign])) n += 1 + sign, digits();
  }
  return n;
}

}  // namespace

void refuse_text(const std::string& file, TextPlace place, const std::string& text) {
  throw ArgumentError(file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " +
                      text);
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 60;
  std::string result(text.substr(0, most));
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  return in_quotes(text.size() > most ? result + "..." : result);
}

void Lexer::refuse(const Token& token, const std::string& text) const {
  refuse_text(file_, token.place, text);
}

void Lexer::advance(std::size_t characters) {
  for (std::size_t i = 0; i < characters && next_ < text_.size(); ++i, ++next_) {
    if (text_[next_] == '\n')
      ++place_.line, place_.column = 1;
    else
      ++place_.column;
  }
}

void Lexer::skip_blanks() {
  while (next_ < text_.size()) {
    const char c = text_[next_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      advance(1);
    } else if (c == '/' && at(1) == '/') {
      while (next_ < text_.size() && text_[next_] != '\n') advance(1);
    } else {
      return;
    }
  }
}

Token Lexer::lex_string(TextPlace place) {
  const auto start = next_ + 1;
  auto end = start;
  while (end < text_.size() && text_[end] != '"') {
    if (text_[end] == '\n') break;
    end += text_[end] == '\\' ? 2 : 1;
  }
  if (end >= text_.size() || text_[end] != '"')
    refuse_text(file_, place, "a string begins here that does not end in its line");
  const Token token{TokenKind::string, text_.substr(start, end - start), place};
  place_.column += static_cast<int>(end + 1 - next_);
  next_ = end + 1;
  return token;
}

// %name, @name, #name, !name, ^name; @"any characters". Of %name#2 the number belongs to the text.
Token Lexer::sigil(TokenKind kind, TextPlace place) {
  advance(1);
  if (kind == TokenKind::symbol && at(0) == '"') {
    Token token = lex_string(place);
    token.kind = kind;
    return token;
  }
  const auto start = next_;
  auto end = start;
  while (end < text_.size() && is_of_name(text_[end])) ++end;
  if (kind == TokenKind::value && end < text_.size() && text_[end] == '#') {
    ++end;
    while (end < text_.size() && is_digit(text_[end])) ++end;
  }
  if (end == start && kind != TokenKind::alias) refuse_text(file_, place, "a name is missing here");
  advance(end - start);
  return {kind, text_.substr(start, end - start), place};
}

Token Lexer::lex() {
  skip_blanks();
  const TextPlace place = place_;
  if (next_ >= text_.size()) return {TokenKind::end, {}, place};
  const char c = text_[next_];
  if (c == '"') return lex_string(place);
  if (c == '%') return sigil(TokenKind::value, place);
  if (c == '@') return sigil(TokenKind::symbol, place);
  if (c == '!') return sigil(TokenKind::type_alias, place);
  if (c == '^') return sigil(TokenKind::label, place);
  std::size_t length = 1;
  TokenKind kind = TokenKind::punct;
  if (c == '#' && at(1) == '-' && at(2) == '}') {
    length = 3;
  } else if (c == '#') {
    return sigil(TokenKind::alias, place);
  } else if (is_letter(c)) {
    kind = TokenKind::word;
    while (next_ + length < text_.size() && is_of_word(text_[next_ + length])) ++length;
  } else if (is_digit(c) || (c == '-' && is_digit(at(1)))) {
    kind = TokenKind::number;
    length = number_length(text_.substr(next_));
  } else if (c == '-' && at(1) == '>') {
    length = 2;
  } else if (c == '{' && at(1) == '-' && at(2) == '#') {
    length = 3;
  }
  const Token token{kind, text_.substr(next_, length), place};
  advance(length);
  return token;
}

const Token& Lexer::peek() {
  if (!has_peeked_) peeked_ = lex(), has_peeked_ = true;
  return peeked_;
}

Token Lexer::take() {
  const Token token = peek();
  has_peeked_ = false;
  return token;
}

Token Lexer::take_run() {
  const TextPlace place = place_;
  auto end = next_;
  while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '?')) ++end;
  const Token token{TokenKind::word, text_.substr(next_, end - next_), place};
  advance(end - next_);
  return token;
}

std::string decoded(std::string_view string) {
  std::string result;
  const auto digit = [](char c) {
    return is_digit(c) ? c - '0' : std::tolower(static_cast<unsigned char>(c)) - 'a' + 10;
  };
  for (std::size_t i = 0; i < string.size(); ++i) {
    if (string[i] != '\\' || i + 1 >= string.size()) {
      result += string[i];
    } else if (i + 2 < string.size() && is_hex(string[i + 1]) && is_hex(string[i + 2])) {
      result += static_cast<char>(digit(string[i + 1]) * 16 + digit(string[i + 2]));
      i += 2;
    } else {
      const char c = string[++i];
      result += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  return result;
}

}  // namespace tessera::stablehlo
