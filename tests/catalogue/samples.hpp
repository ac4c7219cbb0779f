// The catalogue of functions: rows of the tables beside this file, and the samples on which the laws are
// tested.
#pragma once
#include <tessera/array.hpp>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/operands.hpp"

namespace tessera::test {

using In = const std::vector<Array>&;
using Out = std::vector<Array>;

// A line of a table, as rows.py writes it (README.md says what the cells hold).
struct Row {
  const char* name;
  const char* operands;
  const char* laws;
  Out (*call)(In);
  void (*refused)();  // raises an error that cites the line; null where no call is refused
  const char* file;
  int line;
};
inline std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }
// Adds the rows of a table.
bool know_rows(std::span<const Row> rows);
// All rows, by table and line.
const std::vector<Row>& rows();

enum class Smooth { no, once, twice };  // the derivatives that finite differences can check

struct Sample {
  std::string name;  // "linalg_solve_complex": a word, and unique
  std::vector<OperandSample> operands;
  std::function<Out(In)> call;
  Smooth smooth = Smooth::twice;  // in its float64 and complex128 operands
  std::string laws = {};          // words of the row: "half:no"
  std::string file = {};          // the table that calls the function: "linalg.tsv"
  std::string named = {};         // letters of the named operands: "nu"

  bool has(const std::string& word) const { return (" " + laws + " ").find(" " + word + " ") != laws.npos; }
};
// One sample for each list of operands of a row; rows of elementwise ops use those of the op's record.
const std::vector<Sample>& samples();
// The samples on which a law is tested: all except those with the word "values" (only values are tested) or
// with this word ("half:no") in `laws`.
std::vector<Sample> samples_without(const std::string& word);
inline std::ostream& operator<<(std::ostream& out, const Sample& sample) { return out << sample.name; }

// Ops that no row can call by itself, and where they are tested instead.
const std::map<std::string, std::string>& ops_tested_elsewhere();

// Values of the operands, the same on every rank, uncommitted.
Out operands_of(const Sample&, unsigned seed);

}  // namespace tessera::test
