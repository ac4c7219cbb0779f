// Parses and prints rules.
#include <tessera/error.hpp>

#include <algorithm>
#include <cctype>

#include "mesh/rule.hpp"

namespace tessera {

std::string RuleText::shortened(const std::string& text) {
  constexpr std::size_t longest = 1000;  // errors stay readable
  return text.size() > longest ? text.substr(0, longest) + " ..." : text;
}

void RuleText::fail_reading(const std::string& rule, const std::string& why) {
  throw InternalError("sharding rule \"" + shortened(rule) + "\": " + shortened(why));
}

class RuleText::Parser {
 public:
  explicit Parser(RuleText& rule) : rule_(rule), rest_(rule.text_) {}

  void parse() {
    rule_.in_ = operands("->");
    if (rest_.empty()) fail("no '->'");
    rest_.remove_prefix(2);
    rule_.out_ = operands("|");
    while (!rest_.empty()) {
      rest_.remove_prefix(1);
      clause();
    }
    check();
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { fail_reading(rule_.text_, why); }

  void skip_spaces() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0]))) rest_.remove_prefix(1);
  }
  bool at(char c) {
    skip_spaces();
    return !rest_.empty() && rest_[0] == c;
  }
  bool take(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Parses a symbol: "i", "k2", "B.."
  int symbol() {
    if (rest_.empty()) fail("it ends where a factor should stand");
    const auto letter = static_cast<unsigned char>(rest_[0]);
    if (!std::isalpha(letter)) fail("'" + std::string(rest_) + "' does not start with a factor");
    std::size_t length = 1;
    while (length < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[length]))) ++length;
    const std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    const bool is_group = rest_.substr(0, 2) == "..";
    if (is_group) rest_.remove_prefix(2);
    const int known = find(name);
    if (known >= 0) return known;
    if (static_cast<int>(rule_.symbols_.size()) == most_symbols) fail("too many names");
    rule_.symbols_.push_back({name, is_group || std::isupper(letter) != 0});
    return static_cast<int>(rule_.symbols_.size()) - 1;
  }
  int find(const std::string& name) const {
    for (std::size_t s = 0; s < rule_.symbols_.size(); ++s)
      if (rule_.symbols_[s].name == name) return static_cast<int>(s);
    return -1;
  }

  Term term() {
    if (take('1')) return {Dim::lone, {}};
    if (take('~')) return {Dim::about, {symbol()}};
    if (!take('(')) return {Dim::lone, {symbol()}};
    Term compound{Dim::compound, {}};
    while (!take(')')) {
      if (rest_.empty()) fail("'(' without ')'");
      compound.symbols.push_back(symbol());
    }
    return compound;
  }

  // Parses operands up to the end of the list: "->" or "|".
  std::vector<Operand> operands(std::string_view end) {
    std::vector<Operand> list(1);
    const auto is_over = [&] { return rest_.empty() || rest_.starts_with(end); };
    while (skip_spaces(), !is_over()) {
      if (take(','))
        list.emplace_back();
      else if (take('{'))
        list.back().is_repeated = true;
      else if (!take('}'))
        list.back().terms.push_back(term());
    }
    // An empty list before the arrow has no operand; after it, one operand without dims.
    if (end == "->" && list.size() == 1 && list[0].terms.empty() && !list[0].is_repeated) list.clear();
    return list;
  }

  void clause() {
    std::string verb;
    for (skip_spaces(); !rest_.empty() && std::islower(static_cast<unsigned char>(rest_[0]));
         rest_.remove_prefix(1))
      verb += rest_[0];
    const auto reduce_kind = reduce_kind_named(verb);
    if (reduce_kind) rule_.reduce_kind_ = *reduce_kind;
    if (!reduce_kind && verb != "whole") fail("'" + verb + "' is no way to combine partial results");
    while (!at('|') && !rest_.empty()) {
      const auto known = rule_.symbols_.size();
      const int s = symbol();
      if (rule_.symbols_.size() > known) fail("'" + verb + "' names a factor that no operand has");
      rule_.symbols_[s].kind = verb == "whole" ? FactorKind::whole : FactorKind::reduce;
    }
  }

  void check() {
    std::vector<bool> in_output(rule_.symbols_.size());
    for (const auto& output : rule_.out_)
      for (const auto& term : output.terms)
        for (const int s : term.symbols) in_output[s] = true;
    for (std::size_t s = 0; s < rule_.symbols_.size(); ++s) {
      const auto& symbol = rule_.symbols_[s];
      if (symbol.kind == FactorKind::pass && !in_output[s])
        fail("factor " + symbol.name + " is in no output: say 'sum' or 'whole'");
      if (symbol.kind == FactorKind::reduce && in_output[s])
        fail("factor " + symbol.name + " is reduced and in an output");
    }
    for (const auto* list : {&rule_.in_, &rule_.out_})
      if (std::count_if(list->begin(), list->end(), [](const Operand& o) { return o.is_repeated; }) > 1)
        fail("two operands are repeated: how often each is does not follow from the shapes");
    rule_.is_regrouping_ = rule_.is_regrouping();
    rule_.is_one_group_ = rule_.is_one_group();
    for (const auto* list : {&rule_.in_, &rule_.out_})
      for (const auto& operand : *list)
        for (const auto& term : operand.terms) {
          rule_.has_compound_ = rule_.has_compound_ || term.kind == Dim::compound;
          if (term.kind == Dim::compound && !rule_.is_regrouping_)
            for (const int s : term.symbols)
              if (rule_.symbols_[s].is_group) fail("a group stands in a compound dim");
        }
  }

  RuleText& rule_;
  std::string_view rest_;
};

RuleText::RuleText(std::string_view sentence) : text_(sentence) { Parser(*this).parse(); }

bool RuleText::is_regrouping() const {
  const auto is_group = [&](const std::vector<Operand>& list) {
    return list.size() == 1 && !list[0].is_repeated && list[0].terms.size() == 1 &&
           list[0].terms[0].kind == Dim::compound && list[0].terms[0].symbols == std::vector<int>{0};
  };
  return symbols_.size() == 1 && symbols_[0].is_group && is_group(in_) && is_group(out_);
}

bool RuleText::is_one_group() const {
  if (symbols_.size() != 1 || !symbols_[0].is_group || symbols_[0].kind != FactorKind::pass) return false;
  for (const auto* list : {&in_, &out_})
    for (const auto& operand : *list)
      if (operand.terms.size() != 1 || operand.terms[0].kind != Dim::lone || operand.terms[0].symbols.empty())
        return false;
  return true;
}

std::string RuleText::letters(bool is_output, std::size_t operand) const {
  std::string letters;
  for (const auto& term : (is_output ? out_ : in_)[operand].terms)
    for (const int s : term.symbols)
      if (!symbols_[s].is_group) letters += symbols_[s].name;
  return letters;
}

std::string RuleText::missing_in_an_output() const {
  for (std::size_t s = 0; s < symbols_.size(); ++s) {
    if (symbols_[s].kind != FactorKind::pass) continue;
    for (const auto& output : out_)
      if (std::none_of(output.terms.begin(), output.terms.end(), [&](const Term& term) {
            return std::count(term.symbols.begin(), term.symbols.end(), static_cast<int>(s)) != 0;
          }))
        return symbols_[s].name;
  }
  return "";
}
bool RuleText::is_passed(const std::string& factor) const {
  return std::any_of(symbols_.begin(), symbols_.end(), [&](const Symbol& symbol) {
    return symbol.name == factor && symbol.kind == FactorKind::pass;
  });
}
bool RuleText::has_about(const std::string& factor) const {
  for (const auto& operand : in_)
    for (const auto& term : operand.terms)
      if (term.kind == Dim::about && symbols_[term.symbols[0]].name == factor) return true;
  return false;
}
bool RuleText::reduces() const {
  return std::any_of(symbols_.begin(), symbols_.end(),
                     [](const Symbol& symbol) { return symbol.kind == FactorKind::reduce; });
}

int RuleText::symbol(char letter) const {
  for (std::size_t s = 0; s < symbols_.size(); ++s)
    if (symbols_[s].letter() == letter) return static_cast<int>(s);
  fail_reading(text_, std::string("it has no ") + letter);
}
bool RuleText::is_whole(char factor) const { return symbols_[symbol(factor)].kind == FactorKind::whole; }

// ---- factors as text ----

namespace {

std::string letter_of(int factor) {
  const std::string letters = "ijklmnopqrstuvwxyzabcdefgh";
  const auto n = static_cast<std::size_t>(factor);
  return letters.substr(n % letters.size(), 1) +
         (n < letters.size() ? "" : std::to_string(n / letters.size()));
}

std::string operands_text(const std::vector<std::vector<DimFactors>>& operands) {
  std::string text;
  for (std::size_t o = 0; o < operands.size(); ++o) {
    text += o ? ", " : "";
    for (std::size_t d = 0; d < operands[o].size(); ++d) {
      const DimFactors& dim = operands[o][d];
      text += d ? " " : "";
      if (dim.empty()) text += "1";
      if (dim.size() > 1) text += "(";
      for (const int f : dim) text += letter_of(f);
      if (dim.size() > 1) text += ")";
    }
  }
  return text;
}

}  // namespace

std::string to_string(const FactorRule& rule) {
  std::string reduced, whole;
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind == FactorKind::reduce) reduced += " " + letter_of(static_cast<int>(f));
    if (rule.factors[f].kind == FactorKind::whole) whole += " " + letter_of(static_cast<int>(f));
  }
  return operands_text(rule.inputs) + " -> " + operands_text(rule.outputs) +
         (reduced.empty() ? "" : " | " + std::string(name(rule.reduce_kind)) + reduced) +
         (whole.empty() ? "" : " | whole" + whole);
}

}  // namespace tessera
