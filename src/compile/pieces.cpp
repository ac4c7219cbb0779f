// Kernels whose operands are moved first, or that several ranks run alike: those that can work piece by piece
// on operands as they lie do so where they say that it is better.
//
//   b' = all-gather b                        c = dot.panels a b
//   c  = dot a b'                     =>
#include <algorithm>

#include "compile/passes.hpp"
#include "program/pieces.hpp"

namespace tessera {
namespace {

class Piecewise {
 public:
  explicit Piecewise(const Program& program) : out_(program), maker_(program.values.size(), nobody) {
    for (std::size_t n = 0; n < out_.instructions.size(); ++n)
      for (const int v : out_.instructions[n].outputs) maker_[v] = n;
    find_other_readers();
  }

  Program run() {
    for (auto& instruction : out_.instructions)
      if (const auto* kernel = instruction.as<KernelCall>())
        if (const auto ask = pieces_of(*instruction.op)) replace(instruction, *kernel, ask);
    for (auto& instruction : out_.instructions)
      if (const auto* scatter = instruction.as<ReduceScatter>()) join(instruction, *scatter);
    drop_unread();
    return std::move(out_);
  }

 private:
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

  // Values that somebody reads who cannot work by pieces: those are moved anyhow.
  void find_other_readers() {
    read_whole_.assign(out_.values.size(), false);
    for (const auto& i : out_.instructions)
      if (!i.is<Move>() && !(i.is<KernelCall>() && pieces_of(*i.op) != nullptr))
        for (const int v : i.inputs) read_whole_[v] = true;
    for (const int v : out_.outputs) read_whole_[v] = true;
  }

  // Before it was moved.
  int origin(int v) const {
    while (!read_whole_[v] && maker_[v] != nobody && out_.instructions[maker_[v]].is<Move>())
      v = out_.instructions[maker_[v]].inputs[0];
    return v;
  }

  void replace(Instruction& instruction, const KernelCall& kernel, PiecesFunction ask) {
    std::vector<Type> in;
    std::vector<Sharding> lie, needed;
    std::vector<int> origins;
    const auto& result = out_.values[instruction.outputs[0]];
    MeshAxes used = result.partial_axes;
    for (const int v : instruction.inputs) {
      const auto& value = out_.values[v];
      origins.push_back(origin(v));
      in.push_back(value.type);
      needed.push_back(value.layout);
      lie.push_back(out_.values[origins.back()].layout);
      used.insert(used.end(), value.partial_axes.begin(), value.partial_axes.end());
    }
    auto answer = ask(
        {in, result.type, lie, needed, result.layout, used, *kernel.params, manual_axes_of(result.region)});
    if (!answer.candidates.empty())
      out_.choices.push_back({instruction.op->name + " at " + site(instruction.where), answer.candidates});
    if (answer.op == nullptr) return;
    instruction.op = answer.op;
    instruction.inputs = std::move(origins);
    instruction.bytes = 0;
    for (const auto& cost : answer.costs) instruction.bytes += cost.bytes;
    instruction.what = TalkCall{std::move(answer.params), std::move(answer.costs), answer.temporary_bytes};
  }

  // A sum of which each rank keeps a block, of terms that nobody else reads.
  void join(Instruction& instruction, const ReduceScatter& scatter) {
    const int terms = instruction.inputs[0];
    if (maker_[terms] == nobody || readers_of(terms) != 1) return;
    const Instruction& maker = out_.instructions[maker_[terms]];
    const auto* kernel = maker.as<KernelCall>();
    const auto ask = kernel == nullptr ? nullptr : pieces_of(*maker.op);
    if (ask == nullptr || maker.outputs.size() != 1) return;
    std::vector<Type> in;
    std::vector<Sharding> lie;
    for (const int v : maker.inputs) in.push_back(out_.values[v].type), lie.push_back(out_.values[v].layout);
    const auto& value = out_.values[terms];
    auto answer =
        ask({in, value.type, lie, lie, value.layout, scatter.axes, *kernel->params,
             manual_axes_of(value.region), &out_.values[instruction.outputs[0]].layout, scatter.dim});
    if (!answer.candidates.empty())
      out_.choices.push_back({maker.op->name + " at " + site(maker.where), answer.candidates});
    if (answer.op == nullptr) return;
    std::vector<int> inputs = maker.inputs;
    instruction.op = answer.op;
    instruction.inputs = std::move(inputs);
    instruction.what = TalkCall{std::move(answer.params), std::move(answer.costs), answer.temporary_bytes};
  }
  std::int64_t readers_of(int v) const {
    std::int64_t readers = std::count(out_.outputs.begin(), out_.outputs.end(), v);
    for (const auto& i : out_.instructions) readers += std::count(i.inputs.begin(), i.inputs.end(), v);
    return readers;
  }

  // Moves and kernels that were taken over.
  void drop_unread() {
    std::vector<bool> is_read(out_.values.size());
    for (const int v : out_.outputs) is_read[v] = true;
    std::vector<Instruction> kept;
    for (auto i = out_.instructions.rbegin(); i != out_.instructions.rend(); ++i) {
      const bool may_go = i->is<Move>() || (i->is<KernelCall>() && pieces_of(*i->op) != nullptr);
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
};

}  // namespace

Program work_by_pieces(const Program& program) { return Piecewise(on_parts(program, work_by_pieces)).run(); }

}  // namespace tessera
