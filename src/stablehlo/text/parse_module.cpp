// The module: its functions and meshes.
#include <charconv>

#include "stablehlo/text/parser.hpp"

namespace tessera::stablehlo {

Module parse_module(const std::string& file, std::string_view text) { return Parser(file, text).module(); }

Module Parser::module() {
  while (peek().kind == TokenKind::alias) {  // #loc1 = loc(...)
    take();
    expect("=");
    attribute();
  }
  if (next_is("module") || next_is("builtin.module")) {
    take();
    if (peek().kind == TokenKind::symbol) take();
    if (accept("attributes")) read_partitions(dictionary());
    expect("{");
    top_level("}");
    skip_location();
  } else if (peek().kind == TokenKind::end) {
    refuse(peek(),
           "the file is empty; a program in StableHLO text is expected: jax.jit(f).lower(...).as_text()");
  } else {
    top_level("");
  }
  while (peek().kind != TokenKind::end) {
    if (peek().kind == TokenKind::alias) {
      take();
      expect("=");
      attribute();
    } else if (next_is("{-#")) {
      read_resources();
    } else {
      refuse(peek(), "the end of the file is expected here, and not " + shown(peek().text));
    }
  }
  resolve_resources();
  return std::move(module_);
}

void Parser::read_partitions(const Attribute& attributes) {
  const Attribute* found = attributes.find("mhlo.num_partitions");
  if (found == nullptr) return;
  const auto& text = found->text;
  std::from_chars(text.data(), text.data() + text.size(), module_.partitions);
}

void Parser::top_level(std::string_view close) {
  while (true) {
    const Token& token = peek();
    if (token.kind == TokenKind::end && close.empty()) return;
    if (!close.empty() && accept(close)) return;
    if (next_is("func.func") || next_is("func"))
      function();
    else if (next_is("sdy.mesh"))
      mesh();
    else
      refuse(token, "a function is expected here (func.func), and not " +
                        (token.kind == TokenKind::end ? "the end of the file" : shown(token.text)));
  }
}

// sdy.mesh @mesh = <["x"=4, "y"=2], device_ids=[...]> {...}
void Parser::mesh() {
  const Token word = take();
  const std::string name = printable(expect(TokenKind::symbol, "the name of the mesh"));
  expect("=");
  expect("<");
  MeshText mesh{word.place, {}, {}};
  expect("[");
  while (!accept("]")) {
    if (!mesh.axes.empty()) expect(",");
    const std::string axis = printable(expect(TokenKind::string, "the name of an axis"));
    expect("=");
    mesh.axes.push_back({axis, integer()});
  }
  if (accept(",")) {
    expect("device_ids");
    expect("=");
    expect("[");
    while (!accept("]")) {
      if (!mesh.devices.empty()) expect(",");
      mesh.devices.push_back(integer());
    }
  }
  expect(">");
  if (next_is("{")) dictionary();
  skip_location();
  module_.meshes[name] = std::move(mesh);
}

void Parser::function() {
  take();
  if (next_is("public") || next_is("private")) take();
  const Token name = expect(TokenKind::symbol, "the name of the function");
  const std::string key = printable(name);
  if (module_.functions.count(key) != 0) refuse(name, "a second function of the name " + shown(name.text));
  Function made;
  made.name = key, made.place = name.place;
  function_ = &made;
  scopes_.assign(1, {});
  function_arguments(made);
  function_results(made);
  if (accept("attributes")) dictionary();
  if (!next_is("{")) refuse(peek(), "a function without a body: " + shown(name.text));
  take();
  block_until_closed(made.body);
  skip_location();
  function_ = nullptr;
  scopes_.clear();
  module_.functions.emplace(key, std::move(made));
}

// (%arg0: type {attributes} loc(...), ...)
void Parser::function_arguments(Function& made) {
  expect("(");
  while (!accept(")")) {
    if (!made.body.arguments.empty()) expect(",");
    const Token name = expect(TokenKind::value, "an argument");
    expect(":");
    const int value = new_value(type());
    Attribute attributes;
    if (next_is("{")) attributes = dictionary();
    skip_location();
    bind(name, {value});
    made.body.arguments.push_back(value);
    made.argument_attributes.push_back(std::move(attributes));
  }
}

void Parser::function_results(Function& made) {
  if (!accept("->")) return;
  if (!accept("(")) {
    made.results.push_back(type());
    made.result_attributes.emplace_back();
    return;
  }
  while (!accept(")")) {
    if (!made.results.empty()) expect(",");
    made.results.push_back(type());
    Attribute attributes;
    if (next_is("{")) attributes = dictionary();
    skip_location();
    made.result_attributes.push_back(std::move(attributes));
  }
}

int Parser::new_value(TensorType type) {
  constexpr std::size_t most_values = 50'000'000;
  if (function_->values.size() >= most_values) refuse(peek(), "a function of more than 50,000,000 values");
  function_->values.push_back(std::move(type));
  return static_cast<int>(function_->values.size()) - 1;
}

// %name stands for one value, %name#2 for the third of several.
int Parser::use(const Token& token) {
  const auto cut = token.text.find('#');
  const auto name = token.text.substr(0, cut);
  std::size_t number = 0;
  if (cut != std::string_view::npos) {
    const auto digits = token.text.substr(cut + 1);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (read.ec != std::errc()) refuse(token, "%" + std::string(name.substr(0, 60)) + "# wants a number");
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(name);
    if (found == scope->end()) continue;
    if (number >= found->second.size() || (cut == std::string_view::npos && found->second.size() != 1))
      refuse(token, "%" + std::string(token.text.substr(0, 60)) + ": the name stands for " +
                        std::to_string(found->second.size()) + " values");
    return found->second[number];
  }
  refuse(token, "%" + std::string(token.text.substr(0, 60)) + " is not known here");
}

void Parser::bind(const Token& name, std::vector<int> values) {
  if (name.text.find('#') != std::string_view::npos)
    refuse(name, "a name is expected here, not one of several values");
  if (!scopes_.back().emplace(std::string(name.text), std::move(values)).second)
    refuse(name, "%" + std::string(name.text.substr(0, 60)) + " is defined twice");
}

}  // namespace tessera::stablehlo
