// Computes equal instructions once.
#include <unordered_map>
#include <utility>

#include "compile/passes.hpp"

namespace tessera {
namespace {

// The params that determine the result together with op, inputs and layouts; nullptr for kinds of
// instructions that are not shared.
const Params* shared_params(const Instruction& i) {
  static const ParamsPtr none = no_params();
  return std::visit(overloaded{[](const KernelCall& k) -> const Params* { return k.params.get(); },
                               [](const Bitcast&) -> const Params* { return none.get(); },
                               [](const auto&) -> const Params* { return nullptr; }},
                    i.what);
}

bool can_share(const Instruction& i) { return shared_params(i) != nullptr && !i.op->is_value_dependent; }

// A hash that is the same for equal instructions.
std::uint64_t hash_of(const Program& program, const Instruction& i) {
  std::uint64_t hash = mix(field_hash(i.op->name), shared_params(i)->hash());
  hash = mix_range(mix(hash, i.what.index()), i.inputs);
  for (const int v : i.outputs) {
    const auto& value = program.values[v];
    hash = mix(mix(hash, field_hash(value.type.shape)), value.layout.hash());
  }
  return hash;
}

bool same_result(const ProgramValue& a, const ProgramValue& b) {
  return a.type == b.type && a.layout == b.layout;
}

// Compares by value, since two instructions with one hash may differ.
bool are_equal(const Program& program, const Instruction& a, const Instruction& b) {
  return a.op == b.op && a.what.index() == b.what.index() && a.inputs == b.inputs &&
         shared_params(a)->equals(*shared_params(b)) &&
         std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                    [&](int v, int w) { return same_result(program.values[v], program.values[w]); });
}

class Sharing {
 public:
  explicit Sharing(Program program) : out_(std::move(program)), replaced_(out_.values.size()) {
    for (std::size_t v = 0; v < replaced_.size(); ++v) replaced_[v] = static_cast<int>(v);
  }

  Program run() {
    std::vector<Instruction> given;
    std::swap(given, out_.instructions);
    for (auto& instruction : given) add(std::move(instruction));
    for (int& v : out_.outputs) v = replaced_[v];
    return std::move(out_);
  }

 private:
  void add(Instruction instruction) {
    for (int& v : instruction.inputs) v = replaced_[v];
    if (can_share(instruction)) {
      const auto hash = hash_of(out_, instruction);
      if (const auto* earlier = find(hash, instruction)) {
        for (std::size_t i = 0; i < instruction.outputs.size(); ++i)
          replaced_[instruction.outputs[i]] = earlier->outputs[i];
        return;
      }
      seen_.emplace(hash, out_.instructions.size());
    }
    out_.instructions.push_back(std::move(instruction));
  }

  const Instruction* find(std::uint64_t hash, const Instruction& instruction) const {
    for (auto [at, end] = seen_.equal_range(hash); at != end; ++at)
      if (are_equal(out_, out_.instructions[at->second], instruction)) return &out_.instructions[at->second];
    return nullptr;
  }

  Program out_;
  std::vector<int> replaced_;                                 // value -> the equal value that replaces it
  std::unordered_multimap<std::uint64_t, std::size_t> seen_;  // hash -> instruction of out_
};

}  // namespace

Program share_common(Program program) { return Sharing(on_parts(std::move(program), share_common)).run(); }

}  // namespace tessera
