// The text of factor rules: "(ij) k -> i (jk) | whole k".
#include <tessera/error.hpp>

#include <cctype>
#include <map>

#include "mesh/factors.hpp"

namespace tessera {
namespace {

class RuleParser {
 public:
  RuleParser(std::string_view text, std::span<const Shape> in, std::span<const Shape> out)
      : text_(text), in_(in), out_(out) {}

  FactorRule parse() {
    const auto arrow = text_.find("->");
    if (arrow == text_.npos) fail("no '->'");
    const auto bar = text_.find('|', arrow);
    rule_.inputs = operands(text_.substr(0, arrow), in_.size());
    rule_.outputs = operands(text_.substr(arrow + 2, bar == text_.npos ? bar : bar - arrow - 2), out_.size());
    find_sizes();
    drop_broadcast(rule_.inputs, in_);
    drop_broadcast(rule_.outputs, out_);
    for (auto rest = bar; rest != text_.npos;) {
      const auto next = text_.find('|', rest + 1);
      clause(text_.substr(rest + 1, next == text_.npos ? next : next - rest - 1));
      rest = next;
    }
    check();
    return std::move(rule_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    std::string shapes;
    for (const auto& shape : in_) shapes += " " + to_string(shape);
    shapes += " ->";
    for (const auto& shape : out_) shapes += " " + to_string(shape);
    throw InternalError("factor rule \"" + std::string(text_) + "\" on" + shapes + ": " + why);
  }

  static void skip_spaces(std::string_view& rest) {
    while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest[0]))) rest.remove_prefix(1);
  }
  std::string name(std::string_view& rest) const {
    if (!std::isalpha(static_cast<unsigned char>(rest[0])))
      fail("'" + std::string(rest) + "' does not start with a factor");
    std::size_t length = 1;
    while (length < rest.size() && std::isdigit(static_cast<unsigned char>(rest[length]))) ++length;
    std::string name(rest.substr(0, length));
    rest.remove_prefix(length);
    return name;
  }
  int factor(const std::string& name) {
    const auto [place, is_new] = numbers_.emplace(name, static_cast<int>(numbers_.size()));
    if (is_new) rule_.factors.push_back({-1, FactorKind::pass});
    return place->second;
  }

  std::vector<std::vector<DimFactors>> operands(std::string_view list, std::size_t count) {
    std::vector<std::vector<DimFactors>> parsed(1);
    skip_spaces(list);
    if (list.empty() && count == 0) return {};
    while (skip_spaces(list), !list.empty()) {
      if (list[0] == ',') {
        parsed.emplace_back();
        list.remove_prefix(1);
      } else if (list[0] == '1') {
        parsed.back().emplace_back();
        list.remove_prefix(1);
      } else if (list[0] == '(') {
        parsed.back().emplace_back();
        list.remove_prefix(1);
        while (skip_spaces(list), !list.empty() && list[0] != ')')
          parsed.back().back().push_back(factor(name(list)));
        if (list.empty()) fail("'(' without ')'");
        list.remove_prefix(1);
      } else {
        parsed.back().push_back({factor(name(list))});
      }
    }
    if (parsed.size() != count)
      fail(std::to_string(parsed.size()) + " operands in the text, " + std::to_string(count) + " shapes");
    return parsed;
  }

  template <class Visit> void each_dim(Visit visit) {
    for (const auto& [list, shapes] : {std::pair(&rule_.inputs, in_), std::pair(&rule_.outputs, out_)})
      for (std::size_t operand = 0; operand < list->size(); ++operand) {
        if ((*list)[operand].size() != shapes[operand].size())
          fail("operand " + std::to_string(operand) + " has " + std::to_string((*list)[operand].size()) +
               " dims in the text");
        for (std::size_t d = 0; d < shapes[operand].size(); ++d)
          visit((*list)[operand][d], shapes[operand][d]);
      }
  }

  // A lone factor has the extent of its dim (a 1 gives way to anything larger); the last unknown one of a
  // compound dim follows.
  void find_sizes() {
    each_dim([&](const DimFactors& dim, std::int64_t extent) {
      if (dim.size() != 1) return;
      auto& size = rule_.factors[dim[0]].size;
      if (size >= 0 && size != 1 && extent != 1 && size != extent)
        fail("factor " + letter(dim[0]) + " is " + std::to_string(size) + " and " + std::to_string(extent));
      if (size < 0 || size == 1) size = extent;
    });
    for (std::size_t round = 0; round <= rule_.factors.size(); ++round)
      each_dim([&](const DimFactors& dim, std::int64_t extent) {
        std::int64_t known = 1;
        int unknown = -1, unknowns = 0;
        for (int f : dim) {
          const std::int64_t size = rule_.factors[f].size;
          if (size < 0)
            unknown = f, ++unknowns;
          else
            known *= size;
        }
        if (dim.size() < 2 || unknowns != 1) return;
        if (known == 0 || extent % known != 0)
          fail("extent " + std::to_string(extent) + " of a compound dim is not a multiple of " +
               std::to_string(known));
        rule_.factors[unknown].size = extent / known;
      });
    for (std::size_t f = 0; f < rule_.factors.size(); ++f)
      if (rule_.factors[f].size < 0)
        fail("the size of factor " + letter(static_cast<int>(f)) + " does not follow from the shapes");
  }

  void drop_broadcast(std::vector<std::vector<DimFactors>>& list, std::span<const Shape> shapes) {
    for (std::size_t operand = 0; operand < list.size(); ++operand)
      for (std::size_t d = 0; d < list[operand].size(); ++d) {
        DimFactors& dim = list[operand][d];
        std::int64_t product = 1;
        for (int f : dim) product *= rule_.factors[f].size;
        if (product == shapes[operand][d]) continue;
        if (shapes[operand][d] != 1)
          fail("a dim of extent " + std::to_string(shapes[operand][d]) + " has factors of product " +
               std::to_string(product));
        dim.clear();
      }
  }

  void clause(std::string_view words) {
    skip_spaces(words);
    std::size_t length = 0;
    while (length < words.size() && std::isalpha(static_cast<unsigned char>(words[length]))) ++length;
    const std::string verb(words.substr(0, length));
    words.remove_prefix(length);
    if (verb != "whole") rule_.reduce_kind = verb;
    while (skip_spaces(words), !words.empty()) {
      const auto known = numbers_.find(name(words));
      if (known == numbers_.end()) fail("'" + verb + "' names a factor that no operand has");
      rule_.factors[known->second].kind = verb == "whole" ? FactorKind::whole : FactorKind::reduce;
    }
  }

  void check() const {
    std::vector<bool> in_output(rule_.factors.size());
    for (const auto& output : rule_.outputs)
      for (const auto& dim : output)
        for (int f : dim) in_output[f] = true;
    for (std::size_t f = 0; f < rule_.factors.size(); ++f) {
      if (rule_.factors[f].kind == FactorKind::pass && !in_output[f] && rule_.factors[f].size != 1)
        fail("factor " + letter(static_cast<int>(f)) + " is in no output: say 'sum' or 'whole'");
      if (rule_.factors[f].kind == FactorKind::reduce && in_output[f])
        fail("factor " + letter(static_cast<int>(f)) + " is reduced and in an output");
    }
  }

  std::string letter(int number) const {
    for (const auto& [name, f] : numbers_)
      if (f == number) return name;
    return "?";
  }

  std::string_view text_;
  std::span<const Shape> in_, out_;
  std::map<std::string, int> numbers_;
  FactorRule rule_;
};

}  // namespace

FactorRule parse_rule(std::string_view text, std::span<const Shape> in, std::span<const Shape> out) {
  return RuleParser(text, in, out).parse();
}

std::string to_string(const FactorRule& rule) {
  const auto letter = [](int f) {
    const std::string letters = "ijklmnopqrstuvwxyzabcdefgh";
    const auto n = static_cast<std::size_t>(f);
    return letters.substr(n % letters.size(), 1) +
           (n < letters.size() ? "" : std::to_string(n / letters.size()));
  };
  const auto list = [&](const std::vector<std::vector<DimFactors>>& operands) {
    std::string text;
    for (std::size_t o = 0; o < operands.size(); ++o) {
      text += o ? ", " : "";
      for (std::size_t d = 0; d < operands[o].size(); ++d) {
        const DimFactors& dim = operands[o][d];
        text += d ? " " : "";
        if (dim.empty()) text += "1";
        if (dim.size() > 1) text += "(";
        for (int f : dim) text += letter(f);
        if (dim.size() > 1) text += ")";
      }
    }
    return text;
  };
  std::string reduced, whole;
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind == FactorKind::reduce) reduced += " " + letter(static_cast<int>(f));
    if (rule.factors[f].kind == FactorKind::whole) whole += " " + letter(static_cast<int>(f));
  }
  return list(rule.inputs) + " -> " + list(rule.outputs) +
         (reduced.empty() ? "" : " | " + rule.reduce_kind + reduced) +
         (whole.empty() ? "" : " | whole" + whole);
}

}  // namespace tessera
