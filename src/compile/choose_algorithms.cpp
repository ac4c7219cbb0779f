// Lets kernels work piece by piece on operands in their original layout, instead of moving the operands first
// or repeating the work on several ranks, if the kernel's plan says that it is better.
//
//   b' = all-gather b                        c = dot.panels a b
//   c  = dot a b'                     =>
//
// Partitioning moves a half before it is widened; here it is widened in place first, and the pieces are
// fetched as float32.
#include <algorithm>
#include <map>

#include "compile/passes.hpp"
#include "graph/elementwise_row.hpp"
#include "program/algorithms.hpp"

namespace tessera {
namespace {

class Piecewise {
 public:
  explicit Piecewise(Program program) : out_(std::move(program)), maker_(out_.values.size(), nobody) {
    for (std::size_t n = 0; n < out_.instructions.size(); ++n)
      for (const int v : out_.instructions[n].outputs) maker_[v] = n;
    find_other_readers();
  }

  Program run() {
    for (std::size_t n = 0; n < out_.instructions.size(); ++n)
      if (const auto* kernel = out_.instructions[n].as<KernelCall>())
        if (const auto ask = pieces_of(*out_.instructions[n].op)) replace(n, *kernel, ask);
    for (auto& instruction : out_.instructions)
      if (const auto* scatter = instruction.as<ReduceScatter>()) join(instruction, *scatter);
    insert_made();
    drop_unread();
    return std::move(out_);
  }

 private:
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

  bool widens_half(const Instruction& i) const {
    const auto* row = i.is<KernelCall>() ? elementwise_row(*i.op) : nullptr;
    return row != nullptr && row->kernel == nullptr && !row->is_broadcast &&
           is_half(out_.values[i.inputs[0]].type.dtype) && out_.values[i.outputs[0]].type.dtype == float32;
  }

  // Marks values with a reader that cannot work by pieces: they are moved anyway.
  void find_other_readers() {
    read_whole_.assign(out_.values.size(), false);
    for (const auto& i : out_.instructions)
      if (!i.is<Move>() && !widens_half(i) && !(i.is<KernelCall>() && pieces_of(*i.op) != nullptr))
        for (const int v : i.inputs) read_whole_[v] = true;
    for (const int v : out_.outputs) read_whole_[v] = true;
    for (auto i = out_.instructions.rbegin(); i != out_.instructions.rend(); ++i)
      if (widens_half(*i) && read_whole_[i->outputs[0]]) read_whole_[i->inputs[0]] = true;
  }

  // The value before its moves; for a half that was widened after its move, the half.
  int origin(int v) const { return moved_from(is_widened(v) ? out_.instructions[maker_[v]].inputs[0] : v); }
  bool is_widened(int v) const {
    return !read_whole_[v] && maker_[v] != nobody && widens_half(out_.instructions[maker_[v]]);
  }
  int moved_from(int v) const {
    while (!read_whole_[v] && maker_[v] != nobody && out_.instructions[maker_[v]].is<Move>())
      v = out_.instructions[maker_[v]].inputs[0];
    return v;
  }

  // Widens the half in its original layout, before instruction n.
  int widened_there(int half, std::size_t cast, std::size_t n) {
    const auto [there, is_new] = widened_.try_emplace(half, static_cast<int>(out_.values.size()));
    if (!is_new) return there->second;
    Instruction made = out_.instructions[cast];
    ProgramValue value = out_.values[made.outputs[0]];
    value.layout = out_.values[half].layout;
    made.inputs = {half}, made.outputs = {there->second};
    out_.values.push_back(std::move(value));
    maker_.push_back(nobody), read_whole_.push_back(false);
    made_.emplace_back(n, std::move(made));
    return there->second;
  }
  void insert_made() {
    for (auto made = made_.rbegin(); made != made_.rend(); ++made)
      out_.instructions.insert(out_.instructions.begin() + static_cast<std::ptrdiff_t>(made->first),
                               std::move(made->second));
  }

  void replace(std::size_t n, const KernelCall& kernel, ChooseAlgorithm ask) {
    Instruction& instruction = out_.instructions[n];
    std::vector<Type> in;
    std::vector<Sharding> layouts, needed;
    std::vector<int> origins;
    const auto& result = out_.values[instruction.outputs[0]];
    MeshAxes used = result.partial_axes;
    for (const int v : instruction.inputs) {
      const auto& value = out_.values[v];
      origins.push_back(origin(v));
      in.push_back(value.type);
      needed.push_back(value.layout);
      layouts.push_back(out_.values[origins.back()].layout);
      used.insert(used.end(), value.partial_axes.begin(), value.partial_axes.end());
    }
    auto answer = answer_of({ask, std::move(in), result.type, std::move(layouts), std::move(needed),
                             result.layout, std::move(used), manual_axes_of(result.region), kernel.params});
    if (!answer.candidates.empty())
      out_.choices.push_back({instruction.op->name + " at " + site(instruction.where), answer.candidates});
    if (answer.op == nullptr) return;
    instruction.op = answer.op;
    for (std::size_t i = 0; i < origins.size(); ++i) {
      const int given = instruction.inputs[i];
      if (is_widened(given)) origins[i] = widened_there(origins[i], maker_[given], n);
    }
    instruction.inputs = std::move(origins);
    instruction.bytes = 0;
    for (const auto& cost : answer.costs) instruction.bytes += cost.bytes;
    instruction.what =
        CommunicatingCall{std::move(answer.params), std::move(answer.costs), answer.temporary_bytes};
  }

  // A question that a kernel was asked.
  struct Question {
    ChooseAlgorithm ask;
    std::vector<Type> in;
    Type out;
    std::vector<Sharding> layouts, needed;
    Sharding out_layout;
    MeshAxes used, fixed;
    ParamsPtr params;
    bool is(const Question& other) const {
      return ask == other.ask && in == other.in && out == other.out && layouts == other.layouts &&
             needed == other.needed && out_layout == other.out_layout && used == other.used &&
             fixed == other.fixed && (params == other.params || params->equals(*other.params));
    }
  };
  // The layers of a network ask alike: the last answers are kept.
  ChosenAlgorithm answer_of(Question question) {
    constexpr std::size_t most_kept = 8;
    for (const auto& [earlier, answer] : answers_)
      if (earlier.is(question)) return answer;
    auto answer = question.ask({question.in, question.out, question.layouts, question.needed,
                                question.out_layout, question.used, *question.params, question.fixed});
    if (answers_.size() == most_kept) answers_.erase(answers_.begin());
    answers_.emplace_back(std::move(question), answer);
    return answer;
  }

  // Joins a product with the reduce-scatter that alone reads its terms, so that each rank computes its block
  // of the sum.
  void join(Instruction& instruction, const ReduceScatter& scatter) {
    const int terms = instruction.inputs[0];
    if (maker_[terms] == nobody || readers_of(terms) != 1) return;
    const Instruction& maker = out_.instructions[maker_[terms]];
    const auto* kernel = maker.as<KernelCall>();
    const auto ask = kernel == nullptr ? nullptr : pieces_of(*maker.op);
    if (ask == nullptr || maker.outputs.size() != 1) return;
    std::vector<Type> in;
    std::vector<Sharding> layouts;
    for (const int v : maker.inputs)
      in.push_back(out_.values[v].type), layouts.push_back(out_.values[v].layout);
    const auto& value = out_.values[terms];
    auto answer =
        ask({in, value.type, layouts, layouts, value.layout, scatter.axes, *kernel->params,
             manual_axes_of(value.region), &out_.values[instruction.outputs[0]].layout, scatter.dim});
    if (!answer.candidates.empty())
      out_.choices.push_back({maker.op->name + " at " + site(maker.where), answer.candidates});
    if (answer.op == nullptr) return;
    std::vector<int> inputs = maker.inputs;
    instruction.op = answer.op;
    instruction.inputs = std::move(inputs);
    instruction.what =
        CommunicatingCall{std::move(answer.params), std::move(answer.costs), answer.temporary_bytes};
  }
  std::int64_t readers_of(int v) const {
    std::int64_t readers = std::count(out_.outputs.begin(), out_.outputs.end(), v);
    for (const auto& i : out_.instructions) readers += std::count(i.inputs.begin(), i.inputs.end(), v);
    return readers;
  }

  // Drops moves and kernels that have been replaced.
  void drop_unread() {
    std::vector<bool> is_read(out_.values.size());
    for (const int v : out_.outputs) is_read[v] = true;
    std::vector<Instruction> kept;
    for (auto i = out_.instructions.rbegin(); i != out_.instructions.rend(); ++i) {
      const bool may_go =
          i->is<Move>() || widens_half(*i) || (i->is<KernelCall>() && pieces_of(*i->op) != nullptr);
      if (may_go && !is_read[i->outputs[0]]) continue;
      for (const int v : i->inputs) is_read[v] = true;
      kept.push_back(std::move(*i));
    }
    std::reverse(kept.begin(), kept.end());
    out_.instructions = std::move(kept);
  }

  Program out_;
  std::vector<std::size_t> maker_;  // instruction that defines a value
  std::vector<bool> read_whole_;
  std::vector<std::pair<Question, ChosenAlgorithm>> answers_;
  std::map<int, int> widened_;                             // half -> its float32 form, created in made_
  std::vector<std::pair<std::size_t, Instruction>> made_;  // each with the instruction that it precedes
};

}  // namespace

Program choose_algorithms(Program program) {
  return Piecewise(on_parts(std::move(program), choose_algorithms)).run();
}

}  // namespace tessera
