// Attributes: numbers, words, lists, dictionaries, shardings.
#include "stablehlo/text/reader.hpp"

namespace tessera::stablehlo {
namespace {

Attribute of_token(Attribute::Kind kind, const Token& token) {
  Attribute result;
  result.kind = kind, result.place = token.place, result.text = std::string(token.text);
  return result;
}

// Attributes whose parameters rules read. What is written in all others is for XLA.
bool has_entries(std::string_view name) {
  return name == "stablehlo.gather" || name == "stablehlo.scatter" || name == "stablehlo.dot";
}

}  // namespace

Attribute PartReader::attribute() {
  const Deeper deeper(*this);
  const Token token = peek();
  switch (token.kind) {
    case TokenKind::number: {
      take();
      if (next_is(":")) {  // its type
        take();
        type();
      }
      return of_token(Attribute::Kind::number, token);
    }
    case TokenKind::string: {
      take();
      Attribute result = of_token(Attribute::Kind::string, token);
      result.text = decoded(token.text);
      return result;
    }
    case TokenKind::symbol: {
      take();
      Attribute result = of_token(Attribute::Kind::symbol, token);
      result.text = decoded(token.text);
      return result;
    }
    case TokenKind::alias: return of_dialect();
    case TokenKind::type_alias: take(); return of_token(Attribute::Kind::word, token);
    case TokenKind::word: break;
    default:
      if (token.text == "[") return list();
      if (token.text == "{") return dictionary();
      if (token.text == "(" || token.text == "<") {
        skip_balanced();
        return of_token(Attribute::Kind::skipped, token);
      }
      refuse(token, "an attribute is expected here, and not " +
                        (token.kind == TokenKind::end ? "the end of the file" : shown(token.text)));
  }
  if (token.text == "tensor") return type(), of_token(Attribute::Kind::word, token);
  take();
  if (token.text == "dense") return dense();
  if (token.text == "dense_resource") return dense_resource();
  if (token.text == "array" && next_is("<")) return typed_array();
  if (token.text == "loc" && next_is("(")) skip_balanced();
  return of_token(Attribute::Kind::word, token);
}

// array<i64: 1, 2>
Attribute PartReader::typed_array() {
  Attribute result = of_token(Attribute::Kind::list, expect("<"));
  type();
  if (accept(":")) {
    do result.items.push_back(attribute());
    while (accept(","));
  }
  expect(">");
  return result;
}

// #stablehlo.gather<name = value, ...>, #stablehlo<precision HIGHEST>, #sdy.sharding<...>
Attribute PartReader::of_dialect() {
  const Token name = take();
  Attribute result = of_token(Attribute::Kind::skipped, name);
  if (!next_is("<")) return result;
  if (name.text == "sdy.sharding") {
    take();
    return sharding();
  }
  if (has_entries(name.text)) {
    take();
    result.kind = Attribute::Kind::dictionary;
    entries_until(">", result);
    return result;
  }
  if (name.text == "stablehlo") {  // an enumeration: its last word
    take();
    while (peek().kind == TokenKind::word) result = of_token(Attribute::Kind::word, take());
    expect(">");
    return result;
  }
  skip_balanced();
  return result;
}

void PartReader::entries_until(std::string_view close, Attribute& into) {
  while (!accept(close)) {
    if (!into.entries.empty()) {
      expect(",");
      if (accept(close)) return;
    }
    const Token name = take();
    if (name.kind != TokenKind::word && name.kind != TokenKind::string)
      refuse(name, "the name of an attribute is expected here, and not " + shown(name.text));
    Attribute value;
    value.place = name.place;
    if (accept("=")) value = attribute();
    into.entries.emplace_back(std::string(name.text), std::move(value));
  }
}

Attribute PartReader::dictionary() {
  const Deeper deeper(*this);
  Attribute result = of_token(Attribute::Kind::dictionary, expect("{"));
  entries_until("}", result);
  return result;
}

Attribute PartReader::list() {
  const Deeper deeper(*this);
  Attribute result = of_token(Attribute::Kind::list, expect("["));
  while (!accept("]")) {
    if (!result.items.empty()) expect(",");
    result.items.push_back(attribute());
  }
  return result;
}

// [1] x [0], [b, f, 0]x[o, i, 0]->[b, f, 0]: a list of what is joined.
Attribute PartReader::joined() {
  // The colon behind a number is that of the operation's types.
  if (peek().kind == TokenKind::number) return of_token(Attribute::Kind::number, take());
  Attribute first = attribute();
  if (!next_is("x") && !next_is("->")) return first;
  Attribute result;
  result.kind = Attribute::Kind::list, result.place = first.place;
  result.items.push_back(std::move(first));
  while (accept("x") || accept("->")) result.items.push_back(attribute());
  return result;
}

Attribute PartReader::ranges() {
  Attribute result = of_token(Attribute::Kind::list, expect("["));
  while (!accept("]")) {
    if (!result.items.empty()) expect(",");
    Attribute range = of_token(Attribute::Kind::list, peek());
    do range.items.push_back(of_token(Attribute::Kind::number, expect(TokenKind::number, "a bound")));
    while (accept(":"));
    result.items.push_back(std::move(range));
  }
  return result;
}

// A dictionary: mesh, dims (a list of names per dim, '?' as a word where a dim is open), and what follows.
Attribute PartReader::sharding() {
  Attribute result = of_token(Attribute::Kind::dictionary, peek());
  if (next_is("mesh"))
    refuse(peek(), "a sharding with a mesh of its own: name one of the module's (sdy.mesh)");
  result.entries.emplace_back("mesh", of_token(Attribute::Kind::symbol, expect(TokenKind::symbol, "a mesh")));
  expect(",");
  Attribute dims = of_token(Attribute::Kind::list, expect("["));
  while (!accept("]")) {
    if (!dims.items.empty()) expect(",");
    Attribute dim = of_token(Attribute::Kind::list, expect("{"));
    while (!accept("}")) {
      if (!dim.items.empty()) expect(",");
      const Token name = take();
      if (name.kind == TokenKind::string) {
        dim.items.push_back(of_token(Attribute::Kind::string, name));
        dim.items.back().text = printable(name);
      } else if (name.text == "?") {
        dim.items.push_back(of_token(Attribute::Kind::word, name));
      } else {
        refuse(name, "the name of a mesh's axis is expected here, and not " + shown(name.text));
      }
      if (next_is(":"))
        refuse(peek(), "a part of an axis (\"x\":(1)2) has no counterpart: name axes of that size");
    }
    if (peek().kind == TokenKind::word) take();  // a priority, which orders Shardy's own propagation
    dims.items.push_back(std::move(dim));
  }
  result.entries.emplace_back("dims", std::move(dims));
  while (accept(",")) {
    const Token name = expect(TokenKind::word, "'replicated' or 'unreduced'");
    expect("=");
    if (!next_is("{")) refuse(peek(), "'{' is expected here");
    skip_balanced();
    result.entries.emplace_back(std::string(name.text), of_token(Attribute::Kind::skipped, name));
  }
  expect(">");
  return result;
}

}  // namespace tessera::stablehlo
