// Words of MLIR's text form, one at a time, each with its place in the file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::stablehlo {

// A position in the file, counted from 1.
struct TextPlace {
  int line = 1, column = 1;
};

// Raises what a broken or unsupported text is: an ArgumentError "FILE:LINE:COLUMN: text".
[[noreturn]] void refuse_text(const std::string& file, TextPlace, const std::string& text);

enum class TokenKind : std::uint8_t {
  end,
  value,
  symbol,
  alias,
  type_alias,
  label,
  word,
  number,
  string,
  punct
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // without its sigil; a string without its quotes, escapes as written
  TextPlace place;
};

class Lexer {
 public:
  // Both must outlive it.
  Lexer(const std::string& file, std::string_view text) : file_(file), text_(text) {}
  const Token& peek();  // the next token, which stays
  Token take();
  // The characters of an identifier or of extents: from here to the next character that is neither a letter,
  // a digit, '?' nor '_'. The next token must not have been looked at.
  Token take_run();
  const std::string& file() const { return file_; }
  [[noreturn]] void refuse(const Token&, const std::string& text) const;

 private:
  Token lex();
  Token lex_string(TextPlace);
  Token sigil(TokenKind, TextPlace);
  void skip_blanks();
  char at(std::size_t ahead) const { return next_ + ahead < text_.size() ? text_[next_ + ahead] : '\0'; }
  void advance(std::size_t characters);
  const std::string& file_;
  std::string_view text_;
  std::size_t next_ = 0;
  TextPlace place_;
  Token peeked_;
  bool has_peeked_ = false;
};

std::string decoded(std::string_view string);  // the escapes of a string resolved
// A piece of the file for an error's text: quoted, cut, without control characters.
std::string shown(std::string_view text);

}  // namespace tessera::stablehlo
