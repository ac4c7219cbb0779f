// Operations: the generic form, which all have, and the short forms that are printed for most of them.
#include "base/text.hpp"
#include "stablehlo/text/parser.hpp"

namespace tessera::stablehlo {
namespace {

bool ends_block(std::string_view name) {
  return name == "return" || name == "func.return" || name == "stablehlo.return" || name == "sdy.return";
}

Attribute* find_or_add(Attribute& dictionary, const std::string& name) {
  for (auto& [key, value] : dictionary.entries)
    if (key == name) return &value;
  dictionary.entries.emplace_back(name, Attribute{});
  return &dictionary.entries.back().second;
}

}  // namespace

void Parser::block_until_closed(RegionText& into) {
  while (true) {
    const Token token = peek();
    if (token.kind == TokenKind::end) refuse(token, "'}' is expected before the end of the file");
    if (accept("}")) break;
    if (!into.operations.empty() && ends_block(into.operations.back().name))
      refuse(token, "'}' is expected behind the return, and not " + shown(token.text));
    operation(into);
  }
  if (into.operations.empty() || !ends_block(into.operations.back().name))
    refuse(peek(), "a block before this ends without a return");
}

void Parser::operation(RegionText& into) {
  const Deeper deeper(*this);
  std::vector<Binding> bindings;
  if (peek().kind == TokenKind::value) {
    do {
      Binding binding{expect(TokenKind::value, "the name of a result"), 1};
      if (accept(":")) {
        const Token count = peek();
        const auto many = integer();
        if (many < 1 || many > 100'000) refuse(count, "a name for " + std::to_string(many) + " values");
        binding.count = static_cast<int>(many);
      }
      bindings.push_back(binding);
    } while (accept(","));
    expect("=");
  }
  std::size_t results = 0;
  for (const auto& binding : bindings) results += static_cast<std::size_t>(binding.count);
  const Token name = take();
  Operation op;
  op.place = name.place;
  if (name.kind == TokenKind::word || name.kind == TokenKind::string) op.name = printable(name);
  op.attributes.kind = Attribute::Kind::dictionary;
  std::vector<TensorType> types;
  if (name.kind == TokenKind::string)
    generic_form(op, types);
  else if (name.kind == TokenKind::word && name.text == "sdy.manual_computation")
    manual_computation(op, types);
  else if (name.kind == TokenKind::word)
    short_form(op, types, results);
  else
    refuse(name, "an operation is expected here, and not " + shown(name.text));
  skip_location();
  if (types.size() != results)
    refuse(name, op.name + " has " + format_count(static_cast<std::int64_t>(types.size()), "result") +
                     ", and " + std::to_string(results) + " are named");
  std::size_t next = 0;
  for (const auto& binding : bindings) {
    std::vector<int> values;
    for (int i = 0; i < binding.count; ++i) values.push_back(new_value(types[next++]));
    op.results.insert(op.results.end(), values.begin(), values.end());
    bind(binding.name, std::move(values));
  }
  into.operations.push_back(std::move(op));
}

// "name"(%a, %b) <{properties}> ({regions}) {attributes} : (types) -> types
void Parser::generic_form(Operation& op, std::vector<TensorType>& types) {
  expect("(");
  while (!accept(")")) {
    if (!op.operands.empty()) expect(",");
    op.operands.push_back(use(expect(TokenKind::value, "an operand")));
  }
  if (accept("<")) {
    expect("{");
    entries_until("}", op.attributes);
    expect(">");
  }
  if (accept("(")) {
    do op.regions.push_back(region());
    while (accept(","));
    expect(")");
  }
  if (next_is("{")) {
    Attribute more = dictionary();
    for (auto& entry : more.entries) op.attributes.entries.push_back(std::move(entry));
  }
  const Token colon = expect(":");
  expect("(");
  check_operand_types(op, colon, types_until_closed());
  expect("->");
  types = types_after_arrow();
}

std::vector<TensorType> Parser::types_after_arrow() {
  if (accept("(")) return types_until_closed();
  std::vector<TensorType> types{type()};
  return types;
}

void Parser::check_operand_types(const Operation& op, const Token& where,
                                 const std::vector<TensorType>& types) {
  if (types.size() != op.operands.size())
    refuse(where, op.name + " has " + format_count(static_cast<std::int64_t>(op.operands.size()), "operand") +
                      " and " + format_count(static_cast<std::int64_t>(types.size()), "type") + " of them");
  for (std::size_t i = 0; i < types.size(); ++i) {
    const TensorType& actual = function_->values[static_cast<std::size_t>(op.operands[i])];
    if (!(types[i] == actual))
      refuse(where, op.name + ": operand " + std::to_string(i) + " is " + to_string(actual) + " and not " +
                        to_string(types[i]));
  }
}

RegionText Parser::region() {
  const Deeper deeper(*this);
  expect("{");
  scopes_.emplace_back();
  RegionText made;
  if (peek().kind == TokenKind::label) {
    take();
    if (accept("(")) region_arguments(made, ")");
    expect(":");
  }
  block_until_closed(made);
  scopes_.pop_back();
  return made;
}

// %a: type loc(...), ... up to the closing bracket
void Parser::region_arguments(RegionText& into, std::string_view close) {
  while (!accept(close)) {
    if (!into.arguments.empty()) expect(",");
    const Token name = expect(TokenKind::value, "an argument");
    expect(":");
    const int value = new_value(type());
    skip_location();
    bind(name, {value});
    into.arguments.push_back(value);
  }
}

void Parser::short_form(Operation& op, std::vector<TensorType>& types, std::size_t results) {
  if (op.name == "stablehlo.constant") {
    if (next_is("{")) op.attributes = dictionary();
    const Token first = peek();
    Attribute value = attribute();
    if (value.kind != Attribute::Kind::dense)
      refuse(first, "the values of the constant are expected here: dense<...>");
    types = {value.dense->type};
    op.attributes.entries.emplace_back("value", std::move(value));
    return;
  }
  short_words(op);
  if (!accept(":")) {
    if (!ends_block(op.name) && results > 0)
      refuse(peek(), "the type of " + op.name + " is expected here: ':'");
    return;
  }
  types = types_of_results(op, results);
  if (op.name == "stablehlo.while")
    regions_of_loop(op, carried_);
  else if (op.name == "stablehlo.reduce" && next_is("reducer"))
    reducer(op);
}

// All up to the colon before the types.
void Parser::short_words(Operation& op) {
  std::vector<int> inits;
  carried_.clear();
  while (!next_is(":") && !next_is("}")) {
    const Token token = peek();
    switch (token.kind) {
      case TokenKind::value: op.operands.push_back(use(take())); break;
      case TokenKind::symbol: *find_or_add(op.attributes, "callee") = attribute(); break;
      case TokenKind::string: *find_or_add(op.attributes, "name") = attribute(); break;
      case TokenKind::word: short_word(op); break;
      case TokenKind::punct:
        if (accept(",")) break;
        if (token.text == "(") {
          group(op, inits, carried_);
          break;
        }
        if (token.text == "[") {
          *find_or_add(op.attributes, "ranges") = ranges();
          break;
        }
        if (token.text == "{") {
          Attribute more = dictionary();
          for (auto& entry : more.entries) op.attributes.entries.push_back(std::move(entry));
          break;
        }
        if (accept("<")) {
          if (accept("{")) {
            entries_until("}", op.attributes);
            expect(">");
          } else {
            *find_or_add(op.attributes, "sharding") = sharding();
          }
          break;
        }
        [[fallthrough]];
      default:
        refuse(token, op.name + ": " +
                          (token.kind == TokenKind::end ? "the end of the file" : shown(token.text)) +
                          " is not expected here");
    }
    if (ends_block(op.name) && next_is("loc")) return;
  }
  op.operands.insert(op.operands.end(), inits.begin(), inits.end());
}

// A word, or name = attribute.
void Parser::short_word(Operation& op) {
  const Token word = take();
  if (word.text == "loc" && next_is("(")) {
    skip_balanced();
  } else if (accept("=")) {
    *find_or_add(op.attributes, std::string(word.text)) = joined();
  } else {
    op.words.emplace_back(word.text);
  }
}

// (%a, %b), (%a init: %b), (%arg = %init), (%a, k = 3)
void Parser::group(Operation& op, std::vector<int>& inits, std::vector<Token>& carried) {
  expect("(");
  while (!accept(")")) {
    if (accept(",")) continue;
    const Token token = take();
    if (token.kind == TokenKind::value) {
      if (accept("=")) {
        carried.push_back(token);
        op.operands.push_back(use(expect(TokenKind::value, "a value")));
      } else {
        op.operands.push_back(use(token));
      }
    } else if (token.kind == TokenKind::word && token.text == "init") {
      expect(":");
      inits.push_back(use(expect(TokenKind::value, "a value")));
    } else if (token.kind == TokenKind::word && accept("=")) {
      *find_or_add(op.attributes, std::string(token.text)) = attribute();
    } else {
      refuse(token, op.name + ": " +
                        (token.kind == TokenKind::end ? "the end of the file" : shown(token.text)) +
                        " is not expected among its operands");
    }
  }
}

// (types) -> types, types -> types, or types: one for all, or one for each result.
std::vector<TensorType> Parser::types_of_results(Operation& op, std::size_t results) {
  const Token first = peek();
  std::vector<TensorType> types;
  const bool is_function = accept("(");
  if (is_function) {
    types = types_until_closed();
  } else {
    do types.push_back(type());
    while (accept(","));
  }
  if (accept("->")) {
    if (is_function) check_operand_types(op, first, types);
    return types_after_arrow();
  }
  if (is_function) refuse(peek(), "'->' is expected here");
  if (ends_block(op.name)) {
    check_operand_types(op, first, types);
    return {};
  }
  if (op.name == "stablehlo.select" || (results == 1 && types.size() > 1)) return {types.back()};
  return types;
}

// cond { ... } do { ... }, both with the carried values as arguments
void Parser::regions_of_loop(Operation& op, const std::vector<Token>& given) {
  const std::vector<Token> carried = given;
  const Deeper deeper(*this);
  if (accept("attributes")) {
    Attribute more = dictionary();
    for (auto& entry : more.entries) op.attributes.entries.push_back(std::move(entry));
  }
  if (carried.size() != op.operands.size()) refuse(peek(), op.name + ": its carried values have no names");
  for (const char* word : {"cond", "do"}) {
    expect(word);
    expect("{");
    scopes_.emplace_back();
    RegionText made;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      const int value = new_value(function_->values[static_cast<std::size_t>(op.operands[i])]);
      bind(carried[i], {value});
      made.arguments.push_back(value);
    }
    block_until_closed(made);
    scopes_.pop_back();
    op.regions.push_back(std::move(made));
  }
}

// reducer(%a: t, %b: t) (%c: u, %d: u) { ... }: pairs per operand; as a region all left ones come first.
void Parser::reducer(Operation& op) {
  const Deeper deeper(*this);
  const Token word = take();
  scopes_.emplace_back();
  RegionText made;
  std::vector<int> left, right;
  while (accept("(")) {
    RegionText pair;
    region_arguments(pair, ")");
    if (pair.arguments.size() != 2) refuse(word, "reducer: a pair of arguments is expected for each operand");
    left.push_back(pair.arguments[0]);
    right.push_back(pair.arguments[1]);
  }
  made.arguments = left;
  made.arguments.insert(made.arguments.end(), right.begin(), right.end());
  if (accept("attributes")) dictionary();
  expect("{");
  block_until_closed(made);
  scopes_.pop_back();
  op.regions.push_back(std::move(made));
}

// (%a) in_shardings=[...] out_shardings=[...] manual_axes={...} (%b: type) { ... } : (types) -> types
void Parser::manual_computation(Operation& op, std::vector<TensorType>& types) {
  const Deeper deeper(*this);
  std::vector<int> inits;
  std::vector<Token> carried;
  group(op, inits, carried);
  for (const char* name : {"in_shardings", "out_shardings"}) {
    expect(name);
    expect("=");
    Attribute all;
    all.kind = Attribute::Kind::list, all.place = expect("[").place;
    while (!accept("]")) {
      if (!all.items.empty()) expect(",");
      expect("<");
      all.items.push_back(sharding());
    }
    *find_or_add(op.attributes, name) = std::move(all);
  }
  expect("manual_axes");
  expect("=");
  Attribute axes;
  axes.kind = Attribute::Kind::list, axes.place = expect("{").place;
  while (!accept("}")) {
    if (!axes.items.empty()) expect(",");
    Attribute axis;
    const Token name = expect(TokenKind::string, "the name of an axis");
    axis.kind = Attribute::Kind::string, axis.text = decoded(name.text), axis.place = name.place;
    axes.items.push_back(std::move(axis));
  }
  *find_or_add(op.attributes, "manual_axes") = std::move(axes);
  scopes_.emplace_back();
  RegionText made;
  expect("(");
  region_arguments(made, ")");
  expect("{");
  block_until_closed(made);
  scopes_.pop_back();
  op.regions.push_back(std::move(made));
  const Token colon = expect(":");
  expect("(");
  check_operand_types(op, colon, types_until_closed());
  expect("->");
  types = types_after_arrow();
}

}  // namespace tessera::stablehlo
