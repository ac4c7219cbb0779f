#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "compile/passes.hpp"
#include "graph/elementwise_row.hpp"
#include "ops/reduce/reduction.hpp"

namespace tessera {
namespace {

// The most arrays that a chain reads at a time, each a stream of memory. Scalars stay in the cache.
constexpr std::ptrdiff_t max_chain_arrays = 24;
// The most pieces of a view, which a chain searches linearly for every piece that it reads.
constexpr std::size_t max_pieces_of_view = 8;
// The largest size of a view's sources relative to the view, since it keeps them alive until the chain runs.
constexpr std::int64_t max_elements_per_element_read = 4;

// The most ops that a chain computes again instead of reading their stored results.
constexpr std::size_t max_repeated = 16;

// Whether the op takes less time than its result takes to be stored and read.
bool is_cheap(const OpDef& op) {
  static const std::set<std::string_view> names = {"abs",           "add",       "equal",      "greater",
                                                   "greater_equal", "less",      "less_equal", "multiply",
                                                   "negative",      "not_equal", "subtract"};
  return names.contains(op.name);
}

bool is_elementwise(const Instruction& i) { return i.is<KernelCall>() && elementwise_row(*i.op) != nullptr; }

struct Uses {
  std::vector<int> producer;                // instruction that defines a value; -1 for inputs
  std::vector<std::vector<int>> consumers;  // instructions that read it
  std::vector<bool> is_output;
};

Uses uses_of(const Program& program) {
  Uses uses{std::vector<int>(program.values.size(), -1), std::vector<std::vector<int>>(program.values.size()),
            std::vector<bool>(program.values.size())};
  for (std::size_t n = 0; n < program.instructions.size(); ++n) {
    for (const int v : program.instructions[n].outputs) uses.producer[v] = static_cast<int>(n);
    for (const int v : program.instructions[n].inputs) uses.consumers[v].push_back(static_cast<int>(n));
  }
  for (const int v : program.outputs) uses.is_output[v] = true;
  return uses;
}

// The instructions whose results affect an output.
std::vector<bool> live_instructions(const Program& program) {
  std::vector<bool> wanted(program.values.size()), live(program.instructions.size());
  for (const int v : program.outputs) wanted[v] = true;
  for (std::size_t n = program.instructions.size(); n-- > 0;) {
    const auto& instruction = program.instructions[n];
    bool needed = instruction.op != nullptr && instruction.op->is_value_dependent;
    for (const int v : instruction.outputs) needed |= wanted[v];
    live[n] = needed;
    if (!needed) continue;
    for (const int v : instruction.inputs) wanted[v] = true;
  }
  return live;
}

bool same_block_shapes(const ProgramValue& a, const ProgramValue& b) {
  return a.type.shape == b.type.shape && same_layout(a.layout, b.layout, a.type.shape.ndim()) &&
         a.region == b.region;
}

class Fuser {
 public:
  explicit Fuser(Program program)
      : program_(std::move(program)),
        uses_(uses_of(program_)),
        live_(live_instructions(program_)),
        owner_(program_.instructions.size(), -1) {}

  Program run() {
    for (std::size_t n = program_.instructions.size(); n-- > 0;)
      if (live_[n] && owner_[n] < 0 && is_elementwise(program_.instructions[n]) &&
          !is_broadcast(*program_.instructions[n].op)) {
        if (is_repeated_everywhere(static_cast<int>(n)))
          live_[n] = false;
        else
          grow(static_cast<int>(n));
      }
    for (std::size_t n = 0; n < program_.instructions.size(); ++n)
      if (live_[n]) end_in_reduction(static_cast<int>(n));
    for (std::size_t n = 0; n < program_.instructions.size(); ++n)
      if (live_[n] && owner_[n] == static_cast<int>(n)) follow_kernel(static_cast<int>(n));
    std::vector<Instruction> out;
    for (std::size_t n = 0; n < program_.instructions.size(); ++n) {
      if (!live_[n]) continue;
      const int owner = owner_[n];
      if (owner >= 0 && reduced_chains_.contains(owner)) continue;    // runs as part of its reduction
      if (followed_kernels_.contains(static_cast<int>(n))) continue;  // runs as part of its epilogue
      if (const auto reduction = reductions_.find(static_cast<int>(n)); reduction != reductions_.end()) {
        out.push_back(reduced_chain(static_cast<int>(n), reduction->second));
        continue;
      }
      if (epilogues_.contains(owner)) {
        if (owner == static_cast<int>(n)) out.push_back(with_epilogue(owner));
      } else if (owner < 0 || (members_[owner].size() == 1 && !views_.contains(owner)))
        out.push_back(program_.instructions[n]);
      else if (owner == static_cast<int>(n))
        out.push_back(chain_of(owner));
    }
    program_.instructions = std::move(out);
    return std::move(program_);
  }

 private:
  // Adds producers to the chain as long as all their readers are inside, so that no value in the middle of a
  // chain has to be stored.
  void grow(int root) {
    const auto& result = value(program_.instructions[root].outputs[0]);
    std::set<int> inside{root};
    std::set<int> operands(program_.instructions[root].inputs.begin(),
                           program_.instructions[root].inputs.end());
    bool grew = true;
    while (grew) {
      grew = false;
      for (const int v : operands) {
        const int p = uses_.producer[v];
        if (p < 0 || !live_[p] || owner_[p] >= 0 || uses_.is_output[v]) continue;
        const auto& producer = program_.instructions[p];
        if (!is_elementwise(producer) || !same_block_shapes(value(v), result)) continue;
        if (!is_read_inside_only(v, inside)) continue;
        auto after = operands;
        after.erase(v);
        after.insert(producer.inputs.begin(), producer.inputs.end());
        if (arrays_among(after) > max_chain_arrays) continue;
        inside.insert(p);
        operands = std::move(after);
        grew = true;
        break;
      }
    }
    for (const int n : inside) owner_[n] = root;
    auto members = inside;
    repeat_cheap_operands(root, operands, members);
    members_[root] = {members.begin(), members.end()};
    find_views(root, operands, inside);
  }

  // Computes operands again which one cheap op makes of what the chain reads anyway: masks, absolute values,
  // products with numbers, which a gradient reads as the forward pass does. If all readers compute it, the
  // result is not stored.
  void repeat_cheap_operands(int root, std::set<int>& operands, std::set<int>& members) {
    std::size_t repeated = 0;
    for (bool grew = true; grew && repeated < max_repeated;) {
      grew = false;
      for (const int v : operands) {
        if (!can_be_repeated(v, root, operands, members)) continue;
        const int p = uses_.producer[v];
        operands.erase(v);
        for (const int read : program_.instructions[p].inputs) {
          if (!members.contains(uses_.producer[read])) operands.insert(read);
          uses_.consumers[read].push_back(root);
        }
        members.insert(p);
        repeated_by_[p].insert(root);
        ++repeated;
        grew = true;
        break;
      }
    }
  }

  bool can_be_repeated(int v, int root, const std::set<int>& operands, const std::set<int>& members) const {
    const int p = uses_.producer[v];
    if (p < 0 || !live_[p] || owner_[p] >= 0 || uses_.is_output[v]) return false;
    const auto& producer = program_.instructions[p];
    if (!is_elementwise(producer) || !is_cheap(*producer.op) ||
        !same_block_shapes(value(v), value(program_.instructions[root].outputs[0])))
      return false;
    int added = 0;
    for (const int read : producer.inputs) {
      if (value(read).type.shape.ndim() == 0 || operands.contains(read) ||
          members.contains(uses_.producer[read]))
        continue;
      const bool is_kept = uses_.producer[read] < 0;  // an argument, which lives as long as the program
      if (!is_kept || ++added > 1 || itemsize(value(read).type.dtype) > itemsize(value(v).type.dtype))
        return false;
    }
    return true;
  }

  // Whether every chain that reads the result computes it itself.
  bool is_repeated_everywhere(int n) const {
    const auto by = repeated_by_.find(n);
    const int v = program_.instructions[n].outputs[0];
    if (by == repeated_by_.end() || uses_.is_output[v]) return false;
    const auto& readers = uses_.consumers[v];
    return std::all_of(readers.begin(), readers.end(),
                       [&](int r) { return !live_[r] || by->second.contains(owner_[r]); });
  }

  std::ptrdiff_t arrays_among(const std::set<int>& operands) const {
    return std::count_if(operands.begin(), operands.end(),
                         [&](int v) { return value(v).type.shape.ndim() > 0; });
  }

  // Shifts, slices, pads and concatenations that only this chain reads, directly or through other local ones:
  // the chain reads their sources in place instead of a copy.
  void find_views(int root, std::set<int> candidates, std::set<int> readers) {
    const auto& result = value(program_.instructions[root].outputs[0]);
    const auto operands = candidates;
    if (result.type.shape.ndim() == 0) return;
    for (bool grew = true; grew;) {
      grew = false;
      for (const int v : candidates) {
        if (!is_view(v, readers) || (operands.contains(v) && !same_block_shapes(value(v), result))) continue;
        const int p = uses_.producer[v];
        views_[root].push_back(v);
        program_.instructions[p].as<RemapMove>()->leaves_own = true;
        candidates.erase(v);
        if (program_.instructions[p].bytes == 0) {
          readers.insert(p);
          candidates.insert(program_.instructions[p].inputs.begin(), program_.instructions[p].inputs.end());
        }
        grew = true;
        break;
      }
    }
  }

  bool is_view(int v, const std::set<int>& readers) const {
    const int p = uses_.producer[v];
    if (p < 0 || uses_.is_output[v]) return false;
    const auto& producer = program_.instructions[p];
    const auto* remap = producer.as<RemapMove>();
    if (remap == nullptr || remap->leaves_own || remap->map->pieces.size() > max_pieces_of_view) return false;
    std::int64_t elements = 0;
    for (const int source : producer.inputs) elements += value(source).type.shape.elements();
    return elements / max_elements_per_element_read <= value(v).type.shape.elements() &&
           is_read_inside_only(v, readers);
  }

  bool is_read_inside_only(int v, const std::set<int>& inside) const {
    const auto& readers = uses_.consumers[v];
    return std::all_of(readers.begin(), readers.end(),
                       [&](int r) { return inside.contains(r) || !live_[r]; });
  }

  // Ends a chain in a reduction that is the only reader of its result, so that the result is never stored.
  void end_in_reduction(int n) {
    const auto& instruction = program_.instructions[n];
    const auto* kernel = instruction.as<KernelCall>();
    if (kernel == nullptr || instruction.inputs.empty()) return;
    const int v = instruction.inputs[0];
    if (!reduction_of(*instruction.op, *kernel->params, value(v).type.shape)) return;
    const int p = uses_.producer[v];
    if (p < 0 || owner_[p] != p || uses_.is_output[v]) return;
    const auto& readers = uses_.consumers[v];
    if (std::any_of(readers.begin(), readers.end(), [&](int r) { return r != n && live_[r]; })) return;
    reductions_[n] = p;
    reduced_chains_.insert(p);
  }

  Instruction reduced_chain(int n, int root) const {
    const auto& reduce = program_.instructions[n];
    Instruction fused = chain_of(root);
    const int v = reduce.inputs[0];
    const auto reduction = *reduction_of(*reduce.op, *reduce.as<KernelCall>()->params, value(v).type.shape);
    fused.as<FusedChain>()->reduction = {v, reduction.dims, reduction.kind, reduction.tree};
    fused.outputs = reduce.outputs;
    fused.op = reduce.op;
    fused.where = reduce.where;
    return fused;
  }

  // Attaches the chain as an epilogue to a kernel that produces its result in parts, if the chain is the only
  // reader: it then works on parts that are still in the cache. If several kernels qualify, the last one is
  // chosen.
  void follow_kernel(int root) {
    if (reduced_chains_.contains(root) || views_.contains(root)) return;
    const auto& members = members_[root];
    std::set<int> inside(members.begin(), members.end());
    std::erase_if(inside, [&](int n) { return owner_[n] != root; });  // others run at their own place, too
    const auto& result = value(program_.instructions[root].outputs[0]);
    int last = -1;
    for (const int n : members)
      for (const int v : program_.instructions[n].inputs) {
        const int p = uses_.producer[v];
        if (p < 0 || inside.contains(p) || uses_.is_output[v] || !hands_on_parts(program_.instructions[p]))
          continue;
        if (value(v).type.dtype == result.type.dtype && same_block_shapes(value(v), result) &&
            is_read_inside_only(v, inside))
          last = std::max(last, p);
      }
    if (last < 0) return;
    epilogues_[root] = last;
    followed_kernels_.insert(last);
  }
  static bool hands_on_parts(const Instruction& i) {
    return (i.is<KernelCall>() || i.is<CommunicatingCall>()) && i.op->columns_of_parts != nullptr;
  }

  Instruction with_epilogue(int root) const {
    Instruction kernel = program_.instructions[epilogues_.at(root)];
    Instruction chain = chain_of(root);
    const auto at = std::find(chain.inputs.begin(), chain.inputs.end(), kernel.outputs[0]);
    auto epilogue = std::make_shared<const Epilogue>(
        Epilogue{std::move(*chain.as<FusedChain>()), static_cast<std::size_t>(at - chain.inputs.begin()),
                 kernel.inputs.size()});
    chain.inputs.erase(at);
    kernel.inputs.insert(kernel.inputs.end(), chain.inputs.begin(), chain.inputs.end());
    kernel.outputs = chain.outputs;
    if (auto* call = kernel.as<KernelCall>())
      call->epilogue = std::move(epilogue);
    else
      kernel.as<CommunicatingCall>()->epilogue = std::move(epilogue);
    return kernel;
  }

  Instruction chain_of(int root) const {
    const auto& last = program_.instructions[root];
    Instruction fused{.what = {}, .op = last.op, .where = last.where, .outputs = last.outputs};
    FusedChain chain;
    const auto& members = members_.at(root);
    std::map<int, int> register_of;  // value -> register
    const std::set<int> inside(members.begin(), members.end());
    for (const int n : members)
      for (const int v : program_.instructions[n].inputs) {
        const int p = uses_.producer[v];
        if (inside.contains(p) || register_of.contains(v)) continue;
        register_of[v] = static_cast<int>(fused.inputs.size());
        fused.inputs.push_back(v);
      }
    for (const int n : members) {
      const auto& member = program_.instructions[n];
      if (is_broadcast(*member.op)) {  // reads its operand through strides of 0
        register_of[member.outputs[0]] = register_of.at(member.inputs[0]);
        continue;
      }
      FusedChain::Step step{
          member.op, member.as<KernelCall>()->params, {}, value(member.outputs[0]).type.dtype};
      for (const int v : member.inputs) step.in.push_back(register_of.at(v));
      register_of[member.outputs[0]] = static_cast<int>(fused.inputs.size() + chain.steps.size());
      chain.steps.push_back(std::move(step));
    }
    add_views(root, chain, fused);
    fused.what = std::move(chain);
    return fused;
  }

  void add_views(int root, FusedChain& chain, Instruction& fused) const {
    const auto views = views_.find(root);
    if (views == views_.end()) return;
    const std::set<int> operands(fused.inputs.begin(), fused.inputs.end());
    std::set<int> sources;
    for (const int v : views->second) {
      const auto& producer = program_.instructions[uses_.producer[v]];
      const auto& remap = *producer.as<RemapMove>();
      chain.views.insert(chain.views.begin(), {v, remap.map, remap.fill, producer.inputs});
      if (!operands.contains(v)) sources.insert(v);
      for (const int source : producer.inputs)
        if (!operands.contains(source)) sources.insert(source);
    }
    fused.inputs.insert(fused.inputs.end(), sources.begin(), sources.end());
    chain.sources = sources.size();
  }

  const ProgramValue& value(int v) const { return program_.values[v]; }

  Program program_;
  Uses uses_;
  std::vector<bool> live_;
  std::vector<int> owner_;                    // instruction -> root of its chain
  std::map<int, std::vector<int>> members_;   // root -> instructions, with those that it repeats
  std::map<int, std::set<int>> repeated_by_;  // instruction -> roots of the chains that compute it again
  std::map<int, std::vector<int>> views_;     // root of a chain -> values that it reads through views
  std::map<int, int> reductions_;             // reduction -> root of the chain that ends in it
  std::set<int> reduced_chains_;
  std::map<int, int> epilogues_;  // root of a chain -> the kernel whose epilogue it becomes
  std::set<int> followed_kernels_;
};

}  // namespace

Program fuse(Program program) { return Fuser(on_parts(std::move(program), fuse)).run(); }

}  // namespace tessera
