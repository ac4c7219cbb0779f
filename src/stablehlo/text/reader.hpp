// The parts of the text that stand inside of operations: types, attributes, constants.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stablehlo/text/syntax.hpp"

namespace tessera::stablehlo {

class PartReader {
 public:
  PartReader(const std::string& file, std::string_view text) : lexer_(file, text) {}

 protected:
  // ---- tokens ----
  const Token& peek() { return lexer_.peek(); }
  Token take() { return lexer_.take(); }
  bool next_is(std::string_view text);  // a word or punctuation
  bool accept(std::string_view text);   // takes it if it is next
  Token expect(std::string_view text);
  Token expect(TokenKind, const char* what);
  [[noreturn]] void refuse(const Token& token, const std::string& text) { lexer_.refuse(token, text); }
  // The text of a name that errors and plans repeat: refused with control characters, or if it is very long.
  std::string printable(const Token&);
  void skip_balanced();  // one bracket and all up to its end
  void skip_location();  // loc(...), if it is next

  // ---- types ----
  TensorType type();
  std::vector<TensorType> types_until_closed();  // after "(" up to ")"

  // ---- attributes ----
  Attribute attribute();
  Attribute dictionary();                            // { ... }
  void entries_until(std::string_view, Attribute&);  // name = value, ... up to the closing bracket
  Attribute list();                                  // [ ... ]
  Attribute joined();                                // a x b -> c as a list, or one attribute
  Attribute ranges();                                // [0:4, 2:8:2] as lists of numbers
  Attribute sharding();                              // @mesh, [{"x"}, {?}], ... > after its "<"
  std::int64_t integer();

  // Gives constants of large data their values, which stand at the end of the file.
  void resolve_resources();
  void read_resources();  // {-# ... #-}

  // Refuses what is nested too deeply, so that no file can exhaust the stack.
  class Deeper {
   public:
    explicit Deeper(PartReader& reader);
    ~Deeper() { --reader_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    PartReader& reader_;
  };

 private:
  friend class Deeper;
  struct Elements;
  Attribute dense();
  Attribute dense_resource();
  Attribute typed_array();
  Attribute of_dialect();
  void read_elements(Elements&, std::size_t level);
  std::pair<Shape, std::string> extents_and_element();
  struct LateConstant {
    std::shared_ptr<Constant> dense;
    Token name;
  };
  Lexer lexer_;
  std::vector<LateConstant> pending_;
  std::vector<std::pair<std::string_view, Token>> resources_;
  int depth_ = 0;
};

// Values of a constant from hexadecimal digits; false if they are neither all elements nor one.
bool read_hex(std::string_view digits, Constant&);

}  // namespace tessera::stablehlo
