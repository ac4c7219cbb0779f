// Branches and loops as values of a program: merged where one computes what another computes, and freed of
// what nobody reads.
//
//   grad of a loop:   %3 = scan(%1, %2)                    before: the forward pass
//                     %4, %5 = scan(%1, %2)                the same, which keeps what the backward pass
//                       needs (%5)
//                     %6 = scan(%7, %5), last step first   the backward pass
//   merged:           %4, %5 = scan(%1, %2), with %4 in the place of %3
#include <algorithm>
#include <optional>

#include "compile/passes.hpp"

namespace tessera {
namespace {

std::size_t at(int v) { return static_cast<std::size_t>(v); }
bool contains(const std::vector<int>& values, int v) {
  return std::find(values.begin(), values.end(), v) != values.end();
}

// What a loop computes, told apart by value: operand i of the body is its number as a carried value, else
// the program's value.
std::vector<std::uint64_t> keys_of_results(const Instruction& loop) {
  const Control& inside = *loop.control;
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < loop.inputs.size(); ++i) {
    const bool is_carried = i < at(inside.carried),
               is_stack = !is_carried && i < at(inside.carried + inside.stacks);
    keys.push_back(mix(is_carried ? 1
                       : is_stack ? 2
                                  : 3,
                       is_carried ? i : static_cast<std::uint64_t>(loop.inputs[i])));
  }
  for (const auto& expression : inside.expressions) {
    std::uint64_t key = expression.op;
    for (const int r : expression.reads) key = mix(key, keys[at(r)]);
    keys.push_back(key);
  }
  std::vector<std::uint64_t> results;
  for (const int r : inside.results) results.push_back(keys[at(r)]);
  return results;
}

bool same_place(const Program& program, int a, int b) {
  const auto &va = program.values[at(a)], &vb = program.values[at(b)];
  return va.type == vb.type && va.layout == vb.layout && va.region == vb.region;
}

// Per output of `a` the output of `b` that has its value; nullopt unless there is one for each.
std::optional<std::vector<int>> covered_by(const Program& program, const Instruction& a,
                                           const Instruction& b) {
  const Control &ca = *a.control, &cb = *b.control;
  if (ca.kind != cb.kind || ca.kind == ControlKind::branch || ca.length != cb.length ||
      ca.reverse != cb.reverse || ca.carried > cb.carried || ca.results.empty() || cb.results.empty())
    return std::nullopt;
  auto of_a = keys_of_results(a), of_b = keys_of_results(b);
  if (ca.kind == ControlKind::until) {  // the condition comes first
    if (of_a[0] != of_b[0]) return std::nullopt;
    of_a.erase(of_a.begin());
    of_b.erase(of_b.begin());
  }
  std::vector<int> found;
  for (std::size_t k = 0; k < at(ca.carried); ++k) {
    if (a.inputs[k] != b.inputs[k] || of_a[k] != of_b[k]) return std::nullopt;
    found.push_back(b.outputs[k]);
  }
  for (std::size_t k = at(ca.carried); k < of_a.size(); ++k) {
    const auto other = std::find(of_b.begin() + cb.carried, of_b.end(), of_a[k]);
    if (other == of_b.end()) return std::nullopt;
    found.push_back(b.outputs[other - of_b.begin()]);
  }
  for (std::size_t k = 0; k < found.size(); ++k)
    if (!same_place(program, a.outputs[k], found[k])) return std::nullopt;
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

// Instruction `last`, and what it needs, moved to where `first` stands, whose outputs become `results`.
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
    if (!program.instructions[n].control) continue;
    for (std::size_t m = n + 1; m < program.instructions.size(); ++m) {
      const auto &a = program.instructions[n], &b = program.instructions[m];
      if (!b.control) continue;
      const auto results = covered_by(program, a, b);
      if (!results) continue;
      const auto needed = needed_between(program, n, m);
      if (!needed) continue;
      put_in_place_of(program, n, m, *needed, *results);
      --n;  // what stands there now may be covered by a later one, or have moved down
      break;
    }
  }
}

// Which operands each result of a part is computed from.
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

// The instruction without the results, and then without the operands, that nobody needs.
void drop_unread(Instruction& instruction, std::vector<bool> read) {
  Control inside = *instruction.control;
  const auto carried = at(inside.carried);
  std::vector<bool> operand(instruction.inputs.size());
  const auto first =
      inside.kind == ControlKind::branch ? std::size_t{1} : std::size_t{0};  // behind the predicate
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t p = 0; p < inside.parts.size(); ++p) {
      const auto from = operands_of_results(inside.parts[p]);
      const bool is_condition = inside.kind == ControlKind::until && p == 0;
      for (std::size_t r = 0; r < from.size(); ++r)
        for (std::size_t i = 0; i < from[r].size(); ++i)
          if (from[r][i] && (is_condition || read[r])) operand[first + i] = true;
    }
    for (std::size_t k = 0; k < carried;
         ++k)  // a carried value that is read in the next step has to be made in this one
      if (operand[k] != read[k]) grew = operand[k] = read[k] = true;
  }
  if (first == 1) operand[0] = true;
  for (std::size_t p = 0; p < inside.parts.size(); ++p) {
    keep_only(inside.parts[p].inputs, {operand.begin() + static_cast<std::ptrdiff_t>(first), operand.end()});
    if (inside.kind != ControlKind::until || p == 1) keep_only(inside.parts[p].outputs, read);
  }
  inside.expressions.clear();  // no longer true of what is left
  inside.results.clear();
  const int stacks_end = inside.carried + inside.stacks;
  inside.stacks = count_in(operand, inside.carried, stacks_end);
  inside.carried = count_in(operand, 0, inside.carried);
  keep_only(instruction.inputs, operand);
  keep_only(instruction.outputs, read);
  instruction.control = std::make_shared<const Control>(std::move(inside));
}

// What reaches an output, and nothing else.
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
    if (instruction.control) drop_unread(instruction, std::move(read));
    for (const int v : instruction.inputs) wanted[at(v)] = true;
  }
  keep_only(program.instructions, live);
}

bool has_control(const Program& program) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [](const Instruction& i) { return i.control != nullptr; });
}

Program merge_and_drop(const Program& program) {
  Program out = program;
  merge_equal(out);
  drop_dead(out);
  return on_parts(out, merge_and_drop);
}

}  // namespace

Program on_parts(const Program& program, Program (*pass)(const Program&)) {
  Program out = program;
  for (auto& instruction : out.instructions) {
    if (!instruction.control) continue;
    Control inside = *instruction.control;
    for (auto& part : inside.parts) part = pass(part);
    instruction.control = std::make_shared<const Control>(std::move(inside));
  }
  return out;
}

Program merge_loops(const Program& program) {
  return has_control(program) ? merge_and_drop(program) : program;
}

}  // namespace tessera
