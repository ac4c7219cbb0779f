// Optimizes branches and loops as values of a program: merges a loop into another one that computes the same
// values, and drops results that are never read.
//
//   grad of a loop:   %3 = scan(%1, %2)                    the forward pass
//                     %4, %5 = scan(%1, %2)                the same, and %5 kept for the backward pass
//                     %6 = scan(%7, %5), last step first   the backward pass
//   merged:           %4, %5 = scan(%1, %2), and %4 replaces %3
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "compile/passes.hpp"

namespace tessera {
namespace {

std::size_t at(int v) { return static_cast<std::size_t>(v); }
bool contains(const std::vector<int>& values, int v) {
  return std::find(values.begin(), values.end(), v) != values.end();
}

// Value numbers for the bodies of loops: two values have the same number if they come from the same op, with
// equal params, on values of equal numbers.
class ValueNumbers {
 public:
  // The number of each result of the body.
  std::vector<int> of_results(const Instruction& instruction, const Loop& loop) {
    std::vector<int> numbers;
    const int stacks = stacks_of(instruction);
    for (int i = 0; i < static_cast<int>(instruction.inputs.size()); ++i) {
      const bool is_carried = i < loop.carried, is_stack = !is_carried && i < loop.carried + stacks;
      numbers.push_back(is_carried
                            ? of_operand(Role::carried, i)
                            : of_operand(is_stack ? Role::entry : Role::captured, instruction.inputs[at(i)]));
    }
    for (const auto& expression : loop.expressions) numbers.push_back(of_expression(expression, numbers));
    std::vector<int> results;
    for (const int r : loop.results) results.push_back(numbers[at(r)]);
    return results;
  }

 private:
  enum class Role { carried, entry, captured };
  struct Known {
    const Loop::Expression* expression;
    std::vector<int> reads;  // numbers
    int number;
  };

  static int stacks_of(const Instruction& instruction) {
    const auto* counted = instruction.control()->as<CountedLoop>();
    return counted == nullptr ? 0 : counted->stacks;
  }

  // Carried values are identified by their index, other operands by the program's value.
  int of_operand(Role role, int which) {
    const auto [operand, is_new] = operands_.try_emplace({role, which}, next_);
    next_ += is_new;
    return operand->second;
  }

  int of_expression(const Loop::Expression& e, const std::vector<int>& numbers) {
    std::vector<int> reads;
    for (const int r : e.reads) reads.push_back(numbers[at(r)]);
    const auto hash = mix_range(mix(mix(field_hash(e.op->name), e.params->hash()), at(e.output)), reads);
    for (auto [known, end] = expressions_.equal_range(hash); known != end; ++known)
      if (is_same(known->second, e, reads)) return known->second.number;
    expressions_.emplace(hash, Known{&e, std::move(reads), next_});
    return next_++;
  }

  static bool is_same(const Known& known, const Loop::Expression& e, const std::vector<int>& reads) {
    return known.expression->op == e.op && known.expression->output == e.output && known.reads == reads &&
           same_params(known.expression->params, e.params);
  }

  std::map<std::pair<Role, int>, int> operands_;
  std::unordered_multimap<std::uint64_t, Known> expressions_;
  int next_ = 0;
};

bool lie_alike(const Program& program, int a, int b) {
  const auto &va = program.values[at(a)], &vb = program.values[at(b)];
  return va.type == vb.type && va.layout == vb.layout && va.region == vb.region;
}

// Whether the loops take the same steps in the same order; `a` may carry fewer values.
bool step_alike(const Control& a, const Control& b) {
  if (a.kind.index() != b.kind.index() || a.loop() == nullptr || a.loop()->carried > b.loop()->carried ||
      a.loop()->results.empty() || b.loop()->results.empty())
    return false;
  const auto *ca = a.as<CountedLoop>(), *cb = b.as<CountedLoop>();
  return ca == nullptr || (ca->length == cb->length && ca->reverse == cb->reverse);
}

// For each output of `a` the output of `b` that has its value; nullopt unless every output has one.
std::optional<std::vector<int>> covered_by(const Program& program, const Instruction& a,
                                           const Instruction& b) {
  if (!step_alike(*a.control(), *b.control())) return std::nullopt;
  const Loop &la = *a.control()->loop(), &lb = *b.control()->loop();
  ValueNumbers numbers;
  auto of_a = numbers.of_results(a, la), of_b = numbers.of_results(b, lb);
  if (a.control()->as<UntilLoop>() != nullptr) {  // result 0 is the condition
    if (of_a[0] != of_b[0]) return std::nullopt;
    of_a.erase(of_a.begin());
    of_b.erase(of_b.begin());
  }
  std::vector<int> found;
  for (std::size_t k = 0; k < at(la.carried); ++k) {
    if (a.inputs[k] != b.inputs[k] || of_a[k] != of_b[k]) return std::nullopt;
    found.push_back(b.outputs[k]);
  }
  for (std::size_t k = at(la.carried); k < of_a.size(); ++k) {
    const auto other = std::find(of_b.begin() + lb.carried, of_b.end(), of_a[k]);
    if (other == of_b.end()) return std::nullopt;
    found.push_back(b.outputs[other - of_b.begin()]);
  }
  for (std::size_t k = 0; k < found.size(); ++k)
    if (!lie_alike(program, a.outputs[k], found[k])) return std::nullopt;
  return found;
}

// The instructions in (first, last) that `last` needs; nullopt when it needs `first` itself.
std::optional<std::vector<bool>> needed_between(const Program& program, std::size_t first, std::size_t last) {
  std::vector<int> wanted = program.instructions[last].inputs;
  std::vector<bool> needed(program.instructions.size());
  for (std::size_t n = last; n-- > first;) {
    const auto& i = program.instructions[n];
    if (!std::any_of(i.outputs.begin(), i.outputs.end(), [&](int v) { return contains(wanted, v); }))
      continue;
    if (n == first) return std::nullopt;
    needed[n] = true;
    wanted.insert(wanted.end(), i.inputs.begin(), i.inputs.end());
  }
  return needed;
}

// Moves instruction `last`, and the instructions that it needs, to the position of `first`, whose outputs
// become `results`.
void put_in_place_of(Program& program, std::size_t first, std::size_t last, const std::vector<bool>& needed,
                     const std::vector<int>& results) {
  const auto replaced = program.instructions[first].outputs;
  std::vector<Instruction> order;
  const auto take = [&](std::size_t n) { order.push_back(std::move(program.instructions[n])); };
  for (std::size_t n = 0; n < first; ++n) take(n);
  for (std::size_t n = first + 1; n < last; ++n)
    if (needed[n]) take(n);
  take(last);
  const auto from = order.size();
  for (std::size_t n = first + 1; n < program.instructions.size(); ++n)
    if (n != last && !needed[n]) take(n);
  const auto rename = [&](int& v) {
    const auto found = std::find(replaced.begin(), replaced.end(), v);
    if (found != replaced.end()) v = results[found - replaced.begin()];
  };
  for (std::size_t n = from; n < order.size(); ++n)
    for (int& v : order[n].inputs) rename(v);
  for (int& v : program.outputs) rename(v);
  program.instructions = std::move(order);
}

void merge_equal(Program& program) {
  for (std::size_t n = 0; n < program.instructions.size(); ++n) {
    if (!program.instructions[n].is<ControlFlow>()) continue;
    for (std::size_t m = n + 1; m < program.instructions.size(); ++m) {
      const auto &a = program.instructions[n], &b = program.instructions[m];
      if (!b.is<ControlFlow>()) continue;
      const auto results = covered_by(program, a, b);
      if (!results) continue;
      const auto needed = needed_between(program, n, m);
      if (!needed) continue;
      put_in_place_of(program, n, m, *needed, *results);
      --n;  // repeat: a later loop may cover the instruction that is now at n
      break;
    }
  }
}

// The operands that each result of a part depends on.
std::vector<std::vector<bool>> operands_of_results(const Program& part) {
  std::vector<std::vector<bool>> from(part.values.size(), std::vector<bool>(part.inputs.size()));
  for (std::size_t i = 0; i < part.inputs.size(); ++i) from[at(part.inputs[i])][i] = true;
  for (const auto& instruction : part.instructions)
    for (const int out : instruction.outputs)
      for (const int in : instruction.inputs)
        for (std::size_t i = 0; i < part.inputs.size(); ++i)
          if (from[at(in)][i]) from[at(out)][i] = true;
  std::vector<std::vector<bool>> results;
  for (const int v : part.outputs) results.push_back(from[at(v)]);
  return results;
}

template <class T> void keep_only(std::vector<T>& items, const std::vector<bool>& kept) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (kept[i]) {
      if (next != i) items[next] = std::move(items[i]);
      ++next;
    }
  items.resize(next);
}

int count_in(const std::vector<bool>& kept, int first, int past) {
  return static_cast<int>(std::count(kept.begin() + first, kept.begin() + past, true));
}

// The operands that the parts need for the results that are read. A carried value that the next step reads
// must be computed in this one, so it counts as read.
std::vector<bool> needed_operands(const Control& inside, std::size_t operands, std::size_t carried,
                                  std::vector<bool>& read) {
  std::vector<bool> needed(operands);
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t p = 0; p < inside.parts.size(); ++p) {
      const auto from = operands_of_results(inside.parts[p]);
      const bool is_condition = inside.as<UntilLoop>() != nullptr && p == 0;
      for (std::size_t r = 0; r < from.size(); ++r)
        for (std::size_t i = 0; i < from[r].size(); ++i)
          if (from[r][i] && (is_condition || read[r])) needed[i] = true;
    }
    for (std::size_t k = 0; k < carried; ++k)
      if (needed[k] != read[k]) grew = needed[k] = read[k] = true;
  }
  return needed;
}

// Drops the results that are never read, and then the operands that are no longer needed.
void drop_unread(Instruction& instruction, std::vector<bool> read) {
  Control inside = *instruction.control();
  Loop* const loop = inside.loop();
  const std::size_t first = loop == nullptr ? 1 : 0;  // operand 0 is the predicate of a branch
  auto needed = needed_operands(inside, instruction.inputs.size() - first,
                                loop == nullptr ? 0 : at(loop->carried), read);
  for (std::size_t p = 0; p < inside.parts.size(); ++p) {
    keep_only(inside.parts[p].inputs, needed);
    if (inside.as<UntilLoop>() == nullptr || p == 1) keep_only(inside.parts[p].outputs, read);
  }
  if (auto* counted = inside.as<CountedLoop>()) {
    const auto first = needed.begin() + counted->carried;
    keep_only(counted->walks, {first, first + counted->stacks});
    counted->stacks = count_in(needed, counted->carried, counted->carried + counted->stacks);
  }
  if (loop != nullptr) {
    loop->carried = count_in(needed, 0, loop->carried);
    loop->expressions.clear();  // no longer valid after the change
    loop->results.clear();
  }
  needed.insert(needed.begin(), first, true);
  keep_only(instruction.inputs, needed);
  keep_only(instruction.outputs, read);
  instruction.set_control(std::move(inside));
}

// Keeps only instructions whose results affect an output.
void drop_dead(Program& program) {
  std::vector<bool> wanted(program.values.size()), live(program.instructions.size());
  for (const int v : program.outputs) wanted[at(v)] = true;
  for (std::size_t n = program.instructions.size(); n-- > 0;) {
    auto& instruction = program.instructions[n];
    std::vector<bool> read;
    for (const int v : instruction.outputs) read.push_back(wanted[at(v)]);
    live[n] = std::count(read.begin(), read.end(), true) > 0 ||
              (instruction.op != nullptr && instruction.op->is_value_dependent);
    if (!live[n]) continue;
    if (instruction.is<ControlFlow>()) drop_unread(instruction, std::move(read));
    for (const int v : instruction.inputs) wanted[at(v)] = true;
  }
  keep_only(program.instructions, live);
}

bool has_control(const Program& program) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [](const Instruction& i) { return i.is<ControlFlow>(); });
}

Program merge_and_drop(Program program) {
  merge_equal(program);
  drop_dead(program);
  return on_parts(std::move(program), merge_and_drop);
}

}  // namespace

Program on_parts(Program program, Program (*pass)(Program)) {
  for (auto& instruction : program.instructions) {
    if (!instruction.is<ControlFlow>()) continue;
    Control inside = *instruction.control();
    for (auto& part : inside.parts) part = pass(std::move(part));
    instruction.set_control(std::move(inside));
  }
  return program;
}

Program merge_loops(Program program) {
  return has_control(program) ? merge_and_drop(std::move(program)) : program;
}

}  // namespace tessera
