#include "kernels/elementwise/float_chain.hpp"

#include <algorithm>
#include <cstring>

#include "base/thresholds.hpp"

namespace tessera::kernels {
namespace {

// Steps [first, last) of a program that form one chain.
struct Range {
  const FusedProgram& program;
  std::span<const ChainInput> inputs;
  std::span<const StripOp> ops;  // of all steps
  std::span<const int>
      last_use;  // per register: the last step that reads it, one past the last for an output
  int first, last;
  bool streams;

  bool is_whole_program() const { return first == 0 && last == steps(); }
  int register_of(int step) const { return static_cast<int>(inputs.size()) + step; }
  int step_of(int r) const { return r - static_cast<int>(inputs.size()); }
  bool is_number(int r) const { return step_of(r) < 0 && inputs[r].is_number; }
  Dtype dtype() const { return program.steps[first].out; }
  bool is_read_after(int r, int step) const { return last_use[r] > step; }
  std::vector<int> prefetched() const {
    std::vector<int> found;
    if (last - first == 1) return found;  // one operation reads as fast as the hardware fetches
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i)
      if (inputs[i].prefetched_by >= first && inputs[i].prefetched_by < last) found.push_back(i);
    return found;
  }
  // Whether step s reads r as both operands.
  bool is_read_twice_by(int s, int r) const {
    const auto& step = program.steps[s];
    return step.n_in > 1 && step.in[0] == r && step.in[1] == r;
  }
  int steps() const { return static_cast<int>(program.steps.size()); }
};

// Writes the chain as instructions on one accumulator; values that more than the next instruction reads are
// stored.
class StripWriter {
 public:
  StripWriter(const Range& range, FloatChain& chain) : range_(range), chain_(chain) {}

  void write() {
    for (const int i : chain_.prefetched) emit(StripOp::prefetch, i);
    for (int s = range_.first; s < range_.last; ++s) {
      const auto& step = range_.program.steps[s];
      const StripOp op = range_.ops[s];
      const int a = step.in[0], b = step.in[1];
      if (is_unary(op)) {
        bring(a);
        emit(op, -1);
      } else if (b == accumulator_ && a != b) {
        emit(op, a, true);
      } else {
        bring(a);
        emit(op, b);
      }
      accumulator_ = range_.register_of(s);
      const bool next_takes_it = s + 1 < range_.last && !range_.is_read_twice_by(s + 1, accumulator_);
      if (range_.is_read_after(accumulator_, next_takes_it ? s + 1 : s)) emit(StripOp::store, accumulator_);
    }
    emit(StripOp::end, -1);
  }

 private:
  void bring(int r) {
    if (r != accumulator_) emit(StripOp::load, r);
  }
  void emit(StripOp op, int r, bool reversed = false) {
    const auto operand = r >= 0 && range_.is_number(r) ? StripOperand::scalar : StripOperand::memory;
    chain_.strips.push_back({strip_function(chain_.dtype, op, operand, reversed), nullptr});
    chain_.registers.push_back(r);
  }

  const Range& range_;
  FloatChain& chain_;
  int accumulator_ = -1;
};

// Whether a value is neither 0 nor NaN.
bool is_plain(const std::byte* element, Dtype dtype) {
  const auto value_of = [element](auto value) {
    std::memcpy(&value, element, sizeof(value));
    return static_cast<double>(value);
  };
  const double value = dtype == float64 ? value_of(double{}) : value_of(float{});
  return value < 0 || value > 0;
}

// Writes the chain as a recipe for machine code; only values that are read outside the chain are stored.
class RecipeWriter {
 public:
  RecipeWriter(const Range& range, FloatChain& chain) : range_(range), chain_(chain) {}

  ChainRecipe write() {
    ChainRecipe recipe{chain_.dtype, {}, 0, 0, {}, range_.streams && range_.is_whole_program()};
    for (int s = range_.first; s < range_.last; ++s) {
      const auto& step = range_.program.steps[s];
      ChainStep written{range_.ops[s], operand(step.in[0]), {}, -1, false};
      if (!is_unary(written.op)) {
        written.b = operand(step.in[1]);
        written.is_plain = has_plain_number(step.in[0], step.in[1]);
      }
      const int r = range_.register_of(s);
      if (range_.is_read_after(r, range_.last - 1)) written.stored_to = index_in(chain_.arrays, r);
      recipe.steps.push_back(written);
    }
    for (const int i : chain_.prefetched) recipe.prefetched.push_back(index_in(chain_.arrays, i));
    recipe.arrays = static_cast<int>(chain_.arrays.size());
    recipe.numbers = static_cast<int>(chain_.numbers.size());
    return recipe;
  }

 private:
  ChainOperand operand(int r) {
    using Kind = ChainOperand::Kind;
    const auto index = [](int i) { return static_cast<std::uint8_t>(i); };
    if (const int s = range_.step_of(r); s >= range_.first) return {Kind::result, index(s - range_.first)};
    if (range_.is_number(r)) return {Kind::number, index(index_in(chain_.numbers, r))};
    return {Kind::memory, index(index_in(chain_.arrays, r))};
  }
  static int index_in(std::vector<int>& list, int r) {
    const auto found = std::find(list.begin(), list.end(), r);
    const auto index = static_cast<int>(found - list.begin());
    if (found == list.end()) list.push_back(r);
    return index;
  }
  bool has_plain_number(int a, int b) const {
    if (range_.is_number(a) == range_.is_number(b)) return false;
    const std::byte* value = range_.inputs[range_.is_number(a) ? a : b].value;
    return value != nullptr && is_plain(value, chain_.dtype);
  }

  const Range& range_;
  FloatChain& chain_;
};

constexpr int most_steps_of_code = 128;
// Code of one step keeps a number in a register and can bypass the cache. The step's function starts sooner.
constexpr std::int64_t single_step_from_elements = 1 << 16;

FloatChain chain_of(const Range& range, std::int64_t elements) {
  FloatChain chain{range.first, range.last, range.dtype(), range.prefetched(), nullptr, {}, {}, {}, {}, {}};
  if (range.last - range.first <= most_steps_of_code)
    chain.code = chain_code(RecipeWriter(range, chain).write(), elements);
  if (chain.code)
    chain.table = ChainNumbers(chain.dtype, static_cast<int>(chain.numbers.size()));
  else
    StripWriter(range, chain).write();
  return chain;
}

}  // namespace

std::vector<FloatChain> find_chains(const FusedProgram& program, std::span<const ChainInput> inputs,
                                    std::int64_t elements, bool streams) {
  std::vector<FloatChain> chains;
  const auto steps = static_cast<int>(program.steps.size());
  std::vector<StripOp> ops;
  std::vector<int> last_use(inputs.size() + program.steps.size(), -1);
  for (int s = 0; s < steps; ++s) {
    const auto& step = program.steps[s];
    ops.push_back(strip_op_of(step.fn, step.out));
    for (int k = 0; k < step.n_in; ++k) last_use[step.in[k]] = s;
  }
  for (const int r : program.outputs) last_use[r] = steps;
  const auto dtype_if_known = [&](int s) { return ops[s] != StripOp::none ? program.steps[s].out : bool_; };
  for (int first = 0; first < steps;) {
    const Dtype dtype = dtype_if_known(first);
    int last = first + 1;
    while (last < steps && dtype_if_known(last) == dtype) ++last;
    const bool is_worthwhile =
        last - first > 1 || (steps == 1 && elements >= threshold(single_step_from_elements));
    if (dtype != bool_ && is_worthwhile)
      chains.push_back(chain_of({program, inputs, ops, last_use, first, last, streams}, elements));
    first = last;
  }
  return chains;
}

bool is_one_loop(const FusedProgram& program, std::span<const FloatChain> chains) {
  return chains.size() == 1 && chains[0].code && chains[0].first == 0 &&
         chains[0].last == static_cast<int>(program.steps.size());
}

void FloatChain::run(std::span<std::byte* const> at, std::int64_t n, std::size_t ahead) {
  const std::int64_t groups = n / group();
  if (!code) {
    for (std::size_t i = 0; i < strips.size(); ++i)
      if (registers[i] >= 0) strips[i].address = at[registers[i]];
    for (std::size_t i = 0; i < prefetched.size(); ++i) strips[i].address += ahead;
    return run_strips(strips.data(), groups);
  }
  const std::byte* addresses[ChainCode::most_arrays];
  std::size_t next = 0;
  for (const int r : arrays) addresses[next++] = at[r];
  for (const int i : prefetched) addresses[next++] = at[i] + ahead;
  for (std::size_t i = 0; i < numbers.size(); ++i) table.set(static_cast<int>(i), at[numbers[i]]);
  if (groups > 0) code->run(addresses, table, groups * group() * static_cast<std::int64_t>(itemsize(dtype)));
}

}  // namespace tessera::kernels
