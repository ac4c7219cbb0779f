// The Markdown table src/ops/elementwise/TABLE.md, generated from the rows.
#include <algorithm>
#include <sstream>

#include "ops/elementwise/define.hpp"

namespace tessera {
namespace {

std::string what_it_takes(DtypeRule rule) {
  switch (rule) {
    case DtypeRule::numeric: return "numbers; bool as int32";
    case DtypeRule::ordered: return "real numbers; bool as int32";
    case DtypeRule::any: return "any";
    case DtypeRule::inexact: return "float or complex; integers as float32";
    case DtypeRule::real_part: return "numbers, and gives their real dtype";
    case DtypeRule::predicate:
    case DtypeRule::comparison: return "any, and gives bool";
    case DtypeRule::integral: return "integers or bool";
    case DtypeRule::shift: return "integers";
    case DtypeRule::floating: return "float; integers as float32";
    case DtypeRule::parts: return "two of float, and gives complex";
    case DtypeRule::choice: return "a bool, then two of any";
  }
  return "";
}

std::string linearity(const ElementwiseOp& op) {
  switch (op.def.linear) {
    case Linear::no: return "yes";
    case Linear::in_either: return "yes, linear in each";
    case Linear::jointly: return "yes, linear";
    case Linear::in_first: return op.row.kernel->arity() == 1 ? "yes, linear" : "yes, linear in the first";
  }
  return "yes";
}

std::string accuracy(const ElementwiseOp& op) {
  const auto& [ulp, precise_ulp, of_one, of_two] = op.trials.accuracy;
  if (ulp == 0) return "";
  std::ostringstream text;
  text << ulp << " ulp";
  if (precise_ulp < ulp) text << ", precise " << precise_ulp;
  return text.str();
}

}  // namespace

std::string elementwise_table() {
  auto ops = elementwise_ops();
  std::sort(ops.begin(), ops.end(), [](auto* a, auto* b) { return a->def.name < b->def.name; });
  std::string text =
      "| op | what it computes | dtypes | float32 and float64 within | derivative |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const auto* op : ops) {
    std::string says = op->says;
    for (std::size_t at = 0; (at = says.find('|', at)) != std::string::npos; at += 2) says.insert(at, "\\");
    text += "| " + op->def.name + " | " + says + " | " + what_it_takes(op->rule) + " | " + accuracy(*op) +
            " | " + (!op->def.vjp ? "no" : linearity(*op)) + " |\n";
  }
  return text;
}

}  // namespace tessera
