// The documentation's table of structured ops: the behaviour of each on split dims, from its record.
#include <gtest/gtest.h>

#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "graph/op.hpp"
#include "support/data.hpp"

namespace tessera::test {
namespace {

// The cost of a split in words, from the end of a rule's sentence: "| sum K | whole n".
std::string along_split_dims(const std::string& sentence) {
  std::string text;
  std::istringstream parts(sentence);
  std::string part;
  std::getline(parts, part, '|');
  if (part.find('~') != std::string::npos) text += "halos; ";
  while (std::getline(parts, part, '|')) {
    std::istringstream words(part);
    std::string kind, name, names;
    words >> kind;
    while (words >> name) names += (names.empty() ? "" : " ") + name;
    text +=
        kind == "whole" ? names + " is made whole; " : "a split " + names + " leaves terms (" + kind + "); ";
  }
  return text.empty() ? "local" : text.substr(0, text.size() - 2);
}

std::string method(const OpDef& op) {
  const Rule* rule = rule_of(op);
  const std::string by_rule = rule == nullptr ? "" : along_split_dims(rule->text.text());
  if (std::holds_alternative<Alias>(op.runs)) return "nothing moves";
  if (std::holds_alternative<Communicating>(op.runs))
    return by_rule.empty() || by_rule == "local" ? "ranks of a split dim talk" : by_rule + "; or ranks talk";
  if (std::holds_alternative<Lower>(op.runs))
    return by_rule.empty() ? "several steps: boxes are exchanged" : "several steps; " + by_rule;
  return by_rule.empty() ? "where the op places it" : by_rule;
}

std::string table() {
  std::map<std::string, const OpDef*> ops;
  for (const auto* op : registered_ops())
    if (elementwise_row(*op) == nullptr) ops[op->name] = op;
  std::ostringstream text;
  text
      << "Structured ops and what they do on split dims, from their records (src/mesh/rule.hpp explains the\n"
         "sentences). Elementwise ops are local: [their table](elementwise/TABLE.md).\n\n"
         "| op | dims | on a split dim | gradient | vmap |\n| --- | --- | --- | --- | --- |\n";
  for (const auto& [name, op] : ops) {
    std::string dims = rule_of(*op) == nullptr ? "its own choice" : "`" + rule_of(*op)->text.text() + "`";
    for (std::size_t at = 0; (at = dims.find('|', at)) != std::string::npos; at += 2) dims.insert(at, "\\");
    text << "| " << name << " | " << dims << " | " << method(*op) << " | " << (op->vjp ? "yes" : "no")
         << " | " << (op->batch ? "yes" : "no") << " |\n";
  }
  return text.str();
}

std::map<std::string, std::string> rows_of(const std::string& text) {
  std::map<std::string, std::string> rows;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line))
    if (line.starts_with("| ")) rows[line.substr(2, line.find(' ', 2) - 2)] = line;
  return rows;
}

// Checks every op in the table; a new op is added when the table is regenerated.
TEST(Ops, do_what_the_table_of_the_documentation_says) {
  const auto path = tests_folder().parent_path() / "src/ops/TABLE.md";
  if (std::getenv("WRITE_TABLE") != nullptr && process_index() == 0) std::ofstream(path) << table();
  std::ostringstream written;
  written << std::ifstream(path).rdbuf();
  const auto found = rows_of(written.str()), rows = rows_of(table());
  EXPECT_GT(found.size(), 60u);
  for (const auto& [op, row] : found)
    EXPECT_EQ(row, rows.contains(op) ? rows.at(op) : "")
        << "WRITE_TABLE=1 build/tests/catalogue_test writes it anew";
}

}  // namespace
}  // namespace tessera::test
