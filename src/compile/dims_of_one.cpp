// Elementwise ops whose result is read with more or fewer dims of 1, as gradients and maps of maps leave
// them.
//
//   before:  y = tanh(x) f32[64,24]                      z = bitcast(y) f32[64,1,24]     r = multiply(z, w)
//   after:   z = bitcast(x) f32[64,1,24]                 y = tanh(z) f32[64,1,24]        r = multiply(y, w)
//
// The chain does not end at y, which is not stored.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compile/passes.hpp"
#include "graph/elementwise_row.hpp"
#include "ops/reduce/reduction.hpp"

namespace tessera {
namespace {

using DimAxes = std::vector<std::vector<int>>;

// A barrier stays where it is: its bitcast has further inputs, after which it is computed.
bool changes_dims(const Instruction& i) { return i.is<Bitcast>() && i.inputs.size() == 1; }

bool computes_elements(const Instruction& i) {
  const auto* row = i.is<KernelCall>() ? elementwise_row(*i.op) : nullptr;
  return row != nullptr && !row->is_broadcast;
}

// The dim of `from` that each dim of `to` is; -1: one that is added. nullopt if they differ by more.
std::optional<std::vector<int>> dims_between(const Shape& from, const Shape& to) {
  std::vector<int> source(static_cast<std::size_t>(to.ndim()), -1);
  int next = 0;
  const auto skip_ones = [&] {
    while (next < from.ndim() && from[next] == 1) ++next;
  };
  for (int d = 0; d < to.ndim(); ++d) {
    if (to[d] == 1) continue;
    skip_ones();
    if (next == from.ndim() || from[next] != to[d]) return std::nullopt;
    source[static_cast<std::size_t>(d)] = next++;
  }
  skip_ones();
  if (next < from.ndim()) return std::nullopt;
  return source;
}

// The value with its dims moved there; nullopt if that is not the same bytes on every rank.
std::optional<ProgramValue> moved(const ProgramValue& value, const std::vector<int>& source) {
  const int ndim = value.type.shape.ndim();
  const DimAxes axes = value.layout.dim_axes(ndim);
  for (int d = 0; d < ndim; ++d) {
    const bool stays = std::find(source.begin(), source.end(), d) != source.end();
    if (!stays && (value.type.shape[d] != 1 || !axes[static_cast<std::size_t>(d)].empty()))
      return std::nullopt;
  }
  if (value.region || !same_layout(Sharding::from_dim_axes(value.layout.mesh(), axes), value.layout, ndim))
    return std::nullopt;
  ProgramValue result = value;
  std::vector<std::int64_t> extents;
  DimAxes spread;
  for (const int d : source) {
    extents.push_back(d < 0 ? 1 : value.type.shape[d]);
    spread.push_back(d < 0 ? std::vector<int>() : axes[static_cast<std::size_t>(d)]);
  }
  result.type.shape = Shape(extents);
  result.layout = Sharding::from_dim_axes(value.layout.mesh(), spread);
  return result;
}

class Moving {
 public:
  explicit Moving(Program program) : program_(std::move(program)), all_(std::move(program_.instructions)) {
    for (int n = 0; n < static_cast<int>(all_.size()); ++n) {
      if (changes_dims(all_[n])) all_[n].inputs = {bitcast_from(all_[n].inputs[0])};
      note(n);
    }
    for (const int v : program_.outputs) readers_[v].push_back(-1);
  }

  Program run() {
    std::vector<int> order;  // last first
    for (int n = static_cast<int>(all_.size()); n-- > 0;) {
      if (is_skipped(n)) continue;
      order.push_back(n);
      if (is_read_moved(n)) compute_moved(n, order);
    }
    program_.instructions.clear();
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      if (is_replaced_.contains(*n)) continue;
      for (int& v : all_[*n].inputs)
        if (const auto same = same_.find(v); same != same_.end()) v = same->second;
      program_.instructions.push_back(std::move(all_[*n]));
    }
    return std::move(program_);
  }

 private:
  void note(int n) {
    for (const int v : all_[n].inputs) readers_[v].push_back(n);
    for (const int v : all_[n].outputs) producer_[v] = n;
  }

  // The operand of a bitcast; other values stay.
  int bitcast_from(int v) const {
    const auto found = producer_.find(v);
    return found != producer_.end() && changes_dims(all_[found->second]) ? all_[found->second].inputs[0] : v;
  }

  // A bitcast that no one reads, since its reader reads its operand.
  bool is_skipped(int n) {
    if (!changes_dims(all_[n]) || !readers_[all_[n].outputs[0]].empty()) return false;
    std::erase(readers_[all_[n].inputs[0]], n);
    return true;
  }

  // Whether nothing but ops that could be in one chain with it reads the result, all by dims of one kind.
  bool is_read_moved(int n) {
    if (!computes_elements(all_[n]) || readers_[all_[n].outputs[0]].empty()) return false;
    const auto& bitcasts = readers_[all_[n].outputs[0]];
    for (const int b : bitcasts) {
      if (b < 0 || !changes_dims(all_[b])) return false;
      const int v = all_[b].outputs[0];
      if (!same_place(value(v), value(all_[bitcasts[0]].outputs[0]))) return false;
      for (const int reader : readers_[v])
        if (reader < 0 || !(computes_elements(all_[reader]) || is_reduction(all_[reader]))) return false;
    }
    return true;
  }

  bool is_reduction(const Instruction& i) const {
    const auto* kernel = i.as<KernelCall>();
    return kernel != nullptr && !i.inputs.empty() &&
           reduction_of(*i.op, *kernel->params, value(i.inputs[0]).type.shape);
  }

  static bool same_place(const ProgramValue& a, const ProgramValue& b) {
    return a.type.shape == b.type.shape && same_layout(a.layout, b.layout, a.type.shape.ndim());
  }

  // Replaces the bitcasts of the result by bitcasts of the operands.
  void compute_moved(int n, std::vector<int>& order) {
    const int result = all_[n].outputs[0];
    const auto bitcasts = readers_[result];
    const int seen = all_[bitcasts[0]].outputs[0];
    const auto source = dims_between(value(result).type.shape, value(seen).type.shape);
    if (!source) return;
    const auto shown = moved(value(result), *source);
    if (!shown || !same_place(*shown, value(seen))) return;
    std::map<int, ProgramValue> operands;
    for (const int v : all_[n].inputs) {
      if (value(v).type.shape.ndim() == 0) continue;
      auto operand = value(v).type.shape.ndim() == value(result).type.shape.ndim() ? moved(value(v), *source)
                                                                                   : std::nullopt;
      if (!operand || is_joined_by_a_chain(v)) return;
      operands.emplace(v, std::move(*operand));
    }
    for (const int b : bitcasts) {
      is_replaced_.insert(b);
      const int other = all_[b].outputs[0];
      if (other == seen) continue;
      same_[other] = seen;
      readers_[seen].insert(readers_[seen].end(), readers_[other].begin(), readers_[other].end());
    }
    all_[n].outputs[0] = seen;
    producer_[seen] = n;
    for (auto& [v, operand] : operands) order.push_back(add_bitcast(n, v, std::move(operand), bitcasts[0]));
  }

  // Whether its producer is best followed by the chain itself: a product, or a shift that is read in place.
  bool is_joined_by_a_chain(int v) const {
    const auto found = producer_.find(v);
    if (found == producer_.end()) return false;
    const auto& producer = all_[found->second];
    return producer.is<RemapMove>() || (producer.op != nullptr && producer.op->columns_of_parts != nullptr);
  }

  int add_bitcast(int reader, int v, ProgramValue operand, int like) {
    const int n = static_cast<int>(all_.size()), result = static_cast<int>(program_.values.size());
    program_.values.push_back(std::move(operand));
    Instruction bitcast = all_[like];
    bitcast.inputs = {bitcast_from(v)};
    bitcast.outputs = {result};
    std::erase(readers_[v], reader);
    std::replace(all_[reader].inputs.begin(), all_[reader].inputs.end(), v, result);
    all_.push_back(std::move(bitcast));
    note(n);
    readers_[result].push_back(reader);
    return n;
  }

  const ProgramValue& value(int v) const { return program_.values[v]; }

  Program program_;
  std::vector<Instruction> all_;             // those of the program, then those that are added
  std::map<int, std::vector<int>> readers_;  // value -> instructions; -1: the program's caller
  std::map<int, int> producer_;
  std::map<int, int> same_;    // result of a bitcast -> the one that is read instead
  std::set<int> is_replaced_;  // bitcasts whose result an op computes now
};

}  // namespace

Program move_dims_of_one(Program program) {
  return Moving(on_parts(std::move(program), move_dims_of_one)).run();
}

}  // namespace tessera
