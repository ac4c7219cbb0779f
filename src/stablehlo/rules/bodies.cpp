#include "stablehlo/rules/bodies.hpp"

#include <map>

#include "stablehlo/rules/numbers.hpp"

namespace tessera::stablehlo {
namespace {

constexpr std::string_view dialect = "stablehlo.";
std::string short_name(const Operation& op) {
  return op.name.starts_with(dialect) ? op.name.substr(dialect.size()) : op.name;
}

}  // namespace

bool is_known_kind(const std::string& kind) {
  return kind == "add" || kind == "multiply" || kind == "maximum" || kind == "minimum" || kind == "and" ||
         kind == "or" || kind == "xor";
}

std::string simple_body(const RegionText& region) {
  if (region.arguments.size() != 2 || region.operations.size() != 2) return "";
  const auto &op = region.operations[0], &back = region.operations[1];
  const int a = region.arguments[0], b = region.arguments[1];
  const bool reads_both = op.operands == std::vector<int>{a, b} || op.operands == std::vector<int>{b, a};
  if (!reads_both || op.results.size() != 1 || back.operands != op.results) return "";
  const auto name = short_name(op);
  return is_known_kind(name) ? name : "";
}

std::string body_of_reduction(const OpCall& s) {
  const auto& words = s.op.words;
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "applies" && words[i + 1].starts_with(dialect)) {
      const auto name = words[i + 1].substr(dialect.size());
      if (!is_known_kind(name))
        s.refuse("applies " + shown(words[i + 1]) + ", which has no counterpart in a reduction");
      return name;
    }
  if (s.op.regions.size() != 1) s.refuse("without the function that reduces");
  return simple_body(s.op.regions[0]);
}

const Operation* maker_in(const RegionText& region, int value) {
  for (const auto& op : region.operations)
    for (const int result : op.results)
      if (result == value) return &op;
  return nullptr;
}

std::pair<std::string, std::string> comparison_of(const Operation& op) {
  std::pair<std::string, std::string> result;
  if (const auto* found = op.attributes.find("comparison_direction")) result.first = found->text;
  if (const auto* found = op.attributes.find("compare_type")) result.second = found->text;
  if (!op.words.empty()) result.first = op.words[0];
  if (op.words.size() > 1) result.second = op.words[1];
  return result;
}

bool is_iota_along(const OpCall& s, int value, int d) {
  const Operation* op = s.maker(value);
  if (op == nullptr || op->name != "stablehlo.iota") return false;
  const Attribute* dim =
      op->attributes.find(op->attributes.find("dim") != nullptr ? "dim" : "iota_dimension");
  return dim != nullptr && dim->text == std::to_string(d);
}

std::string canonical(const RegionText& region) {
  std::map<int, int> numbers;
  for (const int argument : region.arguments) numbers.emplace(argument, static_cast<int>(numbers.size()));
  std::string text;
  for (const auto& op : region.operations) {
    text += op.name.ends_with("return") ? "return" : short_name(op);
    if (op.name == "stablehlo.compare") {
      const auto [direction, type] = comparison_of(op);
      text += " " + direction + (type == "TOTALORDER" ? " total" : "");
    }
    for (const int operand : op.operands) {
      const auto found = numbers.find(operand);
      if (found == numbers.end()) return "";
      text += " " + std::to_string(found->second);
    }
    if (!op.regions.empty()) return "";
    for (const int result : op.results) numbers.emplace(result, static_cast<int>(numbers.size()));
    text += ";";
  }
  return text;
}

std::optional<Array> combined(const std::string& kind, const Array& a, const Array& b) {
  if (kind == "add") return add(a, b);
  if (kind == "multiply") return multiply(a, b);
  if (kind == "maximum") return larger(a, b);
  if (kind == "minimum") return smaller(a, b);
  if (kind == "and") return bitwise_and(a, b);
  if (kind == "or") return bitwise_or(a, b);
  if (kind == "xor") return bitwise_xor(a, b);
  return std::nullopt;
}

}  // namespace tessera::stablehlo
