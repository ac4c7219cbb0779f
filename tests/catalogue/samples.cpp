#include "catalogue/samples.hpp"

#include <tessera/ops.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

#include "ops/elementwise/define.hpp"

namespace tessera::test {
namespace {

std::vector<Row>& known_rows() {
  static std::vector<Row> all;
  return all;
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// "c5,3:0.5..2": a letter for the dtype (float64 without), extents, the range of values.
OperandSample operand_from(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  static const std::map<char, std::pair<Dtype, std::pair<double, double>>> kinds{{'c', {complex128, {-2, 2}}},
                                                                                 {'i', {int32, {0, 9}}},
                                                                                 {'u', {uint32, {0, 9}}},
                                                                                 {'v', {uint8, {0, 255}}},
                                                                                 {'b', {bool_, {0, 1}}}};
  OperandSample operand;
  if (const auto kind = kinds.find(text.empty() ? ' ' : text[0]); kind != kinds.end()) {
    operand.dtype = kind->second.first;
    std::tie(operand.low, operand.high) = kind->second.second;
    text.erase(0, 1);
  }
  const auto colon = text.find(':');
  std::vector<std::int64_t> extents;
  for (const auto& extent : parts_of(text.substr(0, colon), ',')) extents.push_back(std::stoll(extent));
  operand.shape = Shape(extents);
  if (colon != text.npos) {
    const auto dots = text.find("..", colon);
    operand.low = std::stod(text.substr(colon + 1, dots - colon - 1));
    operand.high = std::stod(text.substr(dots + 2));
  }
  return operand;
}

// @n, @x, @u and @z of values.tsv, all (7, 5).
Array operand_named(char name) {
  const Array n = reshape(arange(35) * 11 % 17 - 8, {7, 5});
  const Array u = reshape(astype(arange(35) * 13 % 37, float64) / 4.0, {7, 5});
  if (name == 'n') return n;
  if (name == 'x') return astype(n, float64);
  if (name == 'u') return u;
  return where((n % 5 == 3) | (arange(5) == 4), astype(NAN, float64), u);
}

Sample sample_of(const Row& row) {
  Sample sample{row.name, {}, row.call, Smooth::twice, row.laws, row.file};
  for (std::size_t at = 0; (at = sample.name.find_first_of(":.", at)) != sample.name.npos;)
    sample.name.replace(at, sample.name[at] == ':' ? 2 : 1, "_");
  if (std::string(row.operands) != "-")
    for (auto operand : parts_of(row.operands, ';')) {
      const auto named = operand.find('@');
      if (named != operand.npos) sample.named += operand[named + 1];
      sample.operands.push_back(named == operand.npos ? operand_from(operand) : OperandSample{{7, 5}});
    }
  if (sample.has("no") || sample.has("values")) sample.smooth = Smooth::no;
  if (sample.has("once")) sample.smooth = Smooth::once;
  return sample;
}

// ---- elementwise ops: the trials of their records ----
// Shapes that broadcast: one operand to the other's shape, and both to a third.
std::vector<std::vector<Shape>> shapes_of(int arity) {
  if (arity == 1) return {{{5, 3}}};
  if (arity == 2) return {{{5, 3}, {3}}, {{5, 1}, {2, 1, 3}}};
  return {{{5, 3}, {3}, {5, 1}}};
}

Smooth smoothness(const ElementwiseOp& op, Dtype dtype) {
  if (op.def.vjp.why() != nullptr || !is_inexact(dtype)) return Smooth::no;
  return op.trials.twice_differentiable ? Smooth::twice : Smooth::once;
}

void add_trials(std::vector<Sample>& all, const ElementwiseOp& op, const std::function<Out(In)>& call,
                const std::string& file) {
  for (const auto& trial : op.trials.calls) {
    const std::string name = op.def.name + (is_complex(trial.dtype) ? "_complex" : "");
    if (trial.of_logarithm) {
      const auto of_logarithm = [call](In x) { return call({log(x[0])}); };
      all.push_back({name, {{{5, 3}, -1, 1, int32}}, of_logarithm, Smooth::no, "", file});
      continue;
    }
    const auto shapes = shapes_of(op.row.kernel->arity());
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      Sample sample{name + (s == 0 ? "" : "_other_way"), {}, call, smoothness(op, trial.dtype), "", file};
      for (std::size_t i = 0; i < shapes[s].size(); ++i) {
        const bool is_condition = static_cast<int>(i) < op.row.dtype_input;
        const auto [low, high] = is_condition ? Trial::Range{0, 1} : trial.operands[i];
        sample.operands.push_back({shapes[s][i], low, high, is_condition ? bool_ : trial.dtype});
      }
      all.push_back(std::move(sample));
    }
  }
}

}  // namespace

bool know_rows(std::span<const Row> rows) {
  known_rows().insert(known_rows().end(), rows.begin(), rows.end());
  return true;
}

const std::vector<Row>& rows() {
  static const auto sorted = [] {
    auto all = known_rows();
    std::sort(all.begin(), all.end(), [](const Row& a, const Row& b) {
      return std::tuple(std::string(a.file), a.line) < std::tuple(std::string(b.file), b.line);
    });
    return all;
  }();
  return sorted;
}

std::vector<Sample> samples_without(const std::string& word) {
  std::vector<Sample> found;
  for (const auto& sample : samples())
    if (!sample.has("values") && !sample.has(word)) found.push_back(sample);
  return found;
}

const std::vector<Sample>& samples() {
  static const auto all = [] {
    std::vector<Sample> found;
    std::map<std::string, const Row*> of_records;
    for (const auto& row : rows()) {
      if (row.operands[0] == '*')
        of_records[row.operands[1] == '\0' ? row.name : row.operands + 1] = &row;
      else
        found.push_back(sample_of(row));
    }
    for (const ElementwiseOp* op : elementwise_ops()) {
      const auto row = of_records.find(op->def.name);
      if (row != of_records.end())
        add_trials(found, *op, row->second->call, row->second->file);
      else if (std::none_of(found.begin(), found.end(),
                            [&](const Sample& s) { return s.name == op->def.name; }))
        add_trials(
            found, *op, [op](In x) { return Out{(*op)(std::vector<Operand>(x.begin(), x.end()))}; },
            "samples.cpp");
    }
    return found;
  }();
  return all;
}

const std::map<std::string, std::string>& ops_tested_elsewhere() {
  static const std::map<std::string, std::string> ops{
      {"fft_turn", "between the steps of a long FFT that io::compute plans: tests/stream"},
      {"alias", "what transformations put around their arguments: tests/transforms"},
      {"custom_vjp", "tests/transforms"},
      {"barrier", "what checkpoint puts before a second computation: tests/transforms"},
      {"checkpoint_name", "the name of a value that a policy of checkpoint keeps: tests/transforms"},
      {"while_loop", "needs values that are not known: tests/control"},
      {"cond", "needs a predicate that is not known: tests/control"},
      {"psum_groups", "tests/ops/collective"},
      {"read_file", "an array in a file, which io::open gives: tests/stream"},
      {"read_file_at", "elements of a vector in a file, which io::compute reads: tests/stream"},
      {"count_digits", "a round of a selection from a vector in a file: tests/stream"},
      {"interp", "of known values: tests/ops/numeric"},
      {"effect", "what prints and calls back inside a trace: tests/debug"},
      {"host_call",
       "a function of the program, called in the middle of one: tests/python/test_jax_internals.py"},
      {"reorder", "the same devices in another order, for pmap: tests/ops/collective"},
      {"pmax_groups", "tests/ops/collective"},
      {"pmin_groups", "tests/ops/collective"},
      {"random_poisson_rounds", "drawn again until all samples are accepted, inside poisson"},
      {"random_binomial_rounds", "the same inside binomial"},
      {"random_integers", "its bounds are operands of randint: tests/random"},
  };
  return ops;
}

Out operands_of(const Sample& sample, unsigned seed) {
  if (sample.named.empty()) return values_of(sample.operands, seed);
  Out operands;
  for (const char name : sample.named) operands.push_back(operand_named(name));
  return operands;
}

}  // namespace tessera::test
