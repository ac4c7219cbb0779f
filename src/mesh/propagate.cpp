#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/rates.hpp"
#include "base/session.hpp"
#include "mesh/factors.hpp"
#include "mesh/reshard.hpp"
#include "mesh/sharding_impl.hpp"

namespace tessera {
namespace {

constexpr int nowhere = -1;
constexpr std::size_t most_combinations = 256;

class Propagator {
 public:
  Propagator(const FactorRule& rule, std::span<const std::optional<Sharding>> inputs,
             std::span<const Shape> in_shapes, std::span<const Dtype> in_dtypes,
             std::span<const Shape> out_shapes, std::span<const Dtype> out_dtypes, const Mesh& mesh)
      : rule_(rule),
        inputs_(inputs),
        in_shapes_(in_shapes),
        in_dtypes_(in_dtypes),
        out_shapes_(out_shapes),
        out_dtypes_(out_dtypes),
        mesh_(mesh) {}

  Propagation run() {
    if (auto kept = all_the_same()) return std::move(*kept);
    project();
    if (auto merged = agreement()) return assemble(*merged);
    return assemble(cheapest_once());
  }

 private:
  // --- no input moves -------------------------------------------------------------------------------------

  // Elementwise ops whose operands have one shape and one sharding, the most common case.
  std::optional<Propagation> all_the_same() const {
    if (rule_.outputs.size() != 1 || inputs_.empty()) return std::nullopt;
    const std::optional<Sharding>* first = nullptr;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (rule_.inputs[i] != rule_.outputs[0]) return std::nullopt;
      if (!inputs_[i]) continue;
      if (first == nullptr)
        first = &inputs_[i];
      else if (!(**first == *inputs_[i]))
        return std::nullopt;
    }
    if (first == nullptr || !((*first)->identity()->mesh == mesh_)) return std::nullopt;
    for (const auto& factor : rule_.factors)
      if (factor.kind != FactorKind::pass) return std::nullopt;
    const auto& dims = rule_.outputs[0];
    if (static_cast<std::size_t>((*first)->identity()->split_dims()) > dims.size()) return std::nullopt;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d].size() != 1 && (*first)->identity()->parts_of(d) != 1) return std::nullopt;
    Propagation kept{factors_of(rule_, **first, 0, true),
                     std::vector<Sharding>(inputs_.size(), **first),
                     {**first},
                     {},
                     0};
    return kept;
  }

  void project() {
    projections_.resize(inputs_.size());
    complete_.assign(inputs_.size(), true);
    on_mesh_.assign(inputs_.size(), true);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      projections_[i].resize(rule_.factors.size());
      if (!inputs_[i]) continue;
      const Sharding* on_mesh = &*inputs_[i];
      std::vector<Sharding> rewritten;
      if (!(on_mesh->identity()->mesh == mesh_)) {
        rewritten = on_common_mesh({Sharding::replicated(mesh_), *on_mesh});
        complete_[i] = on_mesh_[i] = false;
        if (rewritten.empty() || !(rewritten[1].identity()->mesh == mesh_)) continue;
        on_mesh = &rewritten[1];
      }
      projections_[i] = factors_of(rule_, *on_mesh, static_cast<int>(i), false);
      std::size_t taken = 0;
      for (const auto& axes : projections_[i]) taken += axes.size();
      complete_[i] = taken == on_mesh->identity()->digits.size();
    }
  }

  // The union of the inputs' assignments, if they agree on every factor that they split and use no axis
  // twice: then each input is at most split further, which moves nothing. A reduced factor may be split only
  // if every input that has it splits it; otherwise its cost must be weighed.
  std::optional<FactorAxes> agreement() const {
    FactorAxes merged(rule_.factors.size());
    std::vector<int> factor_of_axis(mesh_.ndim(), nowhere);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!complete_[i]) return std::nullopt;
      for (std::size_t f = 0; f < merged.size(); ++f) {
        const auto& axes = projections_[i][f];
        if (axes.empty()) continue;
        if (merged[f].empty()) merged[f] = axes;
        if (merged[f] != axes) return std::nullopt;
        for (int axis : axes) {
          int& taken = factor_of_axis[axis];
          if (taken != nowhere && taken != static_cast<int>(f)) return std::nullopt;
          taken = static_cast<int>(f);
        }
      }
    }
    for (std::size_t f = 0; f < merged.size(); ++f) {
      if (merged[f].empty() || rule_.factors[f].kind != FactorKind::reduce) continue;
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (inputs_[i] && has_factor(i, static_cast<int>(f)) && projections_[i][f].empty())
          return std::nullopt;
    }
    if (!is_allowed(rule_, merged, mesh_)) return std::nullopt;
    return merged;
  }

  bool has_factor(std::size_t input, int factor) const {
    for (const auto& dim : rule_.inputs[input])
      if (std::find(dim.begin(), dim.end(), factor) != dim.end()) return true;
    return false;
  }

  // --- some input moves -----------------------------------------------------------------------------------

  // The candidates of each mesh axis: the factors that some input splits by it, in operand order, or none.
  std::vector<std::vector<int>> choices() const {
    std::vector<std::vector<int>> of_axis(mesh_.ndim());
    for (const auto& projection : projections_)
      for (std::size_t f = 0; f < projection.size(); ++f)
        for (int axis : projection[f]) {
          auto& list = of_axis[axis];
          if (std::find(list.begin(), list.end(), static_cast<int>(f)) == list.end())
            list.push_back(static_cast<int>(f));
        }
    for (auto& list : of_axis) list.push_back(nowhere);
    return of_axis;
  }

  // Orders the axes of each factor as the input `leader` has them, and the remaining ones as the first input
  // that has them.
  FactorAxes ordered(const std::vector<int>& factor_of_axis, std::size_t leader) const {
    FactorAxes axes(rule_.factors.size());
    const auto take = [&](const FactorAxes& projection) {
      for (std::size_t f = 0; f < projection.size(); ++f)
        for (int axis : projection[f])
          if (factor_of_axis[axis] == static_cast<int>(f) &&
              std::find(axes[f].begin(), axes[f].end(), axis) == axes[f].end())
            axes[f].push_back(axis);
    };
    take(projections_[leader]);
    for (const auto& projection : projections_) take(projection);
    return axes;
  }

  // Collects inputs that split one factor by several axes, since their orders may differ: each order is
  // tried.
  void find_leaders() {
    leaders_ = {0};
    for (std::size_t i = 1; i < projections_.size(); ++i)
      if (std::any_of(projections_[i].begin(), projections_[i].end(),
                      [](const auto& axes) { return axes.size() > 1; }))
        leaders_.push_back(i);
  }

  struct Cost {
    std::int64_t bytes = 0;
    std::int64_t arithmetic = 0;  // arithmetic of one rank, in bytes that could move in that time
    std::int64_t copies = 0;      // copies of the result's blocks of a contraction, in bytes over all ranks
    std::vector<std::int64_t> of_input;
    std::int64_t total() const { return bytes + arithmetic + copies; }
    friend bool operator<(const Cost& a, const Cost& b) {
      return a.total() != b.total() ? a.total() < b.total() : a.of_input < b.of_input;
    }
  };

  // cheapest(), cached, since programs repeat the same question in every step of a loop.
  FactorAxes cheapest_once() {
    constexpr std::size_t most_kept = 1024;
    auto& answers = state<Answers>().known;
    const std::size_t hash = question_hash();
    const auto [begin, end] = answers.equal_range(hash);
    for (auto known = begin; known != end; ++known)
      if (known->second.asked_by(*this)) {
        best_cost_.bytes = known->second.bytes;
        has_best_ = true;
        return known->second.axes;
      }
    FactorAxes axes = cheapest();
    if (answers.size() >= most_kept) answers.clear();
    answers.emplace(hash, Answered{rule_,
                                   {inputs_.begin(), inputs_.end()},
                                   {in_dtypes_.begin(), in_dtypes_.end()},
                                   {out_dtypes_.begin(), out_dtypes_.end()},
                                   mesh_,
                                   axes,
                                   best_cost_.bytes});
    return axes;
  }

  struct Answered {
    FactorRule rule;
    std::vector<std::optional<Sharding>> inputs;
    std::vector<Dtype> in_dtypes, out_dtypes;
    Mesh mesh;
    FactorAxes axes;
    std::int64_t bytes;

    bool asked_by(const Propagator& question) const {
      return rule.factors == question.rule_.factors && rule.inputs == question.rule_.inputs &&
             rule.outputs == question.rule_.outputs &&
             std::equal(inputs.begin(), inputs.end(), question.inputs_.begin(), question.inputs_.end()) &&
             std::equal(in_dtypes.begin(), in_dtypes.end(), question.in_dtypes_.begin(),
                        question.in_dtypes_.end()) &&
             std::equal(out_dtypes.begin(), out_dtypes.end(), question.out_dtypes_.begin(),
                        question.out_dtypes_.end()) &&
             mesh == question.mesh_;
    }
  };

  struct Answers {
    std::unordered_multimap<std::size_t, Answered> known;
  };

  std::size_t question_hash() const {
    std::uint64_t hash = mesh_.hash();
    for (const auto& input : inputs_) hash = mix(hash, input ? input->hash() : 1);
    for (const auto& factor : rule_.factors)
      hash = mix(hash, static_cast<std::uint64_t>(factor.size) * 3 + static_cast<std::uint64_t>(factor.kind));
    for (const auto& operand : rule_.inputs)
      for (const auto& dim : operand) hash = mix_range(hash, dim);
    return hash;
  }

  FactorAxes cheapest() {
    const auto choices = this->choices();
    find_leaders();
    known_costs_.resize(inputs_.size());
    std::size_t combinations = 1;
    for (const auto& list : choices)
      combinations = std::min(combinations * list.size(), most_combinations + 1);
    std::vector<int> chosen(choices.size(), nowhere);
    if (combinations <= most_combinations)
      try_all(choices, chosen);
    else
      try_axis_by_axis(choices, chosen);
    return std::move(best_);
  }

  void try_all(const std::vector<std::vector<int>>& choices, std::vector<int>& chosen) {
    std::vector<std::size_t> at(choices.size(), 0);
    for (;;) {
      for (std::size_t a = 0; a < choices.size(); ++a) chosen[a] = choices[a][at[a]];
      consider(chosen);
      std::size_t a = choices.size();
      while (a > 0 && ++at[a - 1] == choices[a - 1].size()) at[--a] = 0;
      if (a == 0) return;
    }
  }

  // Decides one axis at a time, largest first; undecided axes stay where the first input that has them puts
  // them.
  void try_axis_by_axis(const std::vector<std::vector<int>>& choices, std::vector<int>& chosen) {
    std::vector<std::size_t> order(choices.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return mesh_.axis_sizes()[a] > mesh_.axis_sizes()[b];
    });
    consider(chosen);  // nothing split: always allowed
    for (std::size_t a = 0; a < choices.size(); ++a) chosen[a] = choices[a][0];
    for (std::size_t a : order) {
      std::optional<Cost> best_here;
      int best_choice = nowhere;
      for (int choice : choices[a]) {
        chosen[a] = choice;
        const auto cost = consider(chosen);
        if (cost && (!best_here || *cost < *best_here)) best_here = cost, best_choice = choice;
      }
      chosen[a] = best_choice;
    }
  }

  std::optional<Cost> consider(const std::vector<int>& factor_of_axis) {
    std::optional<Cost> cheapest_here;
    for (std::size_t leader : leaders_) {
      FactorAxes axes = ordered(factor_of_axis, leader);
      if (!is_allowed(rule_, axes, mesh_)) continue;
      Cost cost = this->cost(axes);
      if (!has_best_ || cost < best_cost_) best_ = axes, best_cost_ = cost, has_best_ = true;
      if (!cheapest_here || cost < *cheapest_here) cheapest_here = std::move(cost);
    }
    return cheapest_here;
  }

  std::int64_t move_bytes(std::size_t i, const Sharding& target) {
    for (const auto& [sharding, bytes] : known_costs_[i])
      if (sharding == target) return bytes;
    const std::int64_t bytes = plan_reshard(*inputs_[i], target, in_shapes_[i], in_dtypes_[i]).bytes;
    known_costs_[i].emplace_back(target, bytes);
    return bytes;
  }

  std::int64_t reduce_bytes(const FactorAxes& axes) const {
    std::int64_t parts = 1, bytes = 0;
    for (std::size_t f = 0; f < axes.size(); ++f)
      if (rule_.factors[f].kind == FactorKind::reduce) parts *= devices_along(mesh_, axes[f]);
    if (parts == 1) return 0;
    for (std::size_t o = 0; o < rule_.outputs.size(); ++o) {
      const Sharding output = sharding_of(rule_, axes, mesh_, static_cast<int>(o), true);
      bytes += output.shard_shape(out_shapes_[o]).elements() *
               static_cast<std::int64_t>(itemsize(out_dtypes_[o])) * 2 * (parts - 1) / parts;
    }
    return bytes;
  }

  bool contracts(std::size_t f) const {
    int readers = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) readers += has_factor(i, static_cast<int>(f));
    return rule_.factors[f].kind == FactorKind::reduce && readers > 1;
  }
  bool is_contraction() const {
    for (std::size_t f = 0; f < rule_.factors.size(); ++f)
      if (contracts(f)) return true;
    return false;
  }

  // The arithmetic of one rank, which may outweigh bytes in contractions: gathering an operand and repeating
  // the neighbours' computation is no cheaper than adding up a share of the sum.
  std::int64_t arithmetic(const FactorAxes& axes) const {
    if (!is_contraction()) return 0;
    double terms = 1;
    for (std::size_t f = 0; f < axes.size(); ++f)
      terms *=
          static_cast<double>(rule_.factors[f].size) / static_cast<double>(devices_along(mesh_, axes[f]));
    return static_cast<std::int64_t>(std::min(1e17, 2 * terms / rates().flops_per_moved_byte()));
  }

  // The cost of a result that is held several times: an axis that is summed over cannot split the result, so
  // each rank holds more than its share. Rows times rows on a grid of 8 x 8:
  //
  //   rows split by both axes      the result's blocks are n^2 / 64, each held once
  //   inner dim split by one       fewer bytes move, but blocks are n^2 / 8, each held 8 times
  std::int64_t copies(const FactorAxes& axes) const {
    if (!is_contraction()) return 0;
    double ranks = 1, bytes = 0;
    for (int a = 0; a < mesh_.ndim(); ++a)
      if (is_used(a)) ranks *= static_cast<double>(mesh_.axis_sizes()[a]);
    for (std::size_t o = 0; o < rule_.outputs.size(); ++o) {
      double parts = 1;
      for (const auto& dim : rule_.outputs[o])
        for (const int f : dim) parts *= static_cast<double>(devices_along(mesh_, axes[f]));
      const double whole =
          static_cast<double>(out_shapes_[o].elements()) * static_cast<double>(itemsize(out_dtypes_[o]));
      bytes += whole / parts * (ranks / parts);
    }
    return static_cast<std::int64_t>(std::min(1e17, bytes));
  }
  bool is_used(int axis) const {
    for (const auto& projection : projections_)
      for (const auto& axes : projection)
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return true;
    return false;
  }

  Cost cost(const FactorAxes& axes) {
    Cost cost{reduce_bytes(axes), arithmetic(axes), copies(axes),
              std::vector<std::int64_t>(inputs_.size(), 0)};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i]) continue;
      cost.of_input[i] = move_bytes(i, layout(axes, static_cast<int>(i), false));
      cost.bytes += cost.of_input[i];
    }
    return cost;
  }

  // --- result ---------------------------------------------------------------------------------------------

  // Returns an input's own Sharding if it has the same layout, which keeps the user's spelling and costs
  // nothing.
  Sharding layout(const FactorAxes& axes, int operand, bool is_output) const {
    const auto& dims = (is_output ? rule_.outputs : rule_.inputs)[operand];
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i] && on_mesh_[i] && has_axes(*inputs_[i]->identity(), dims, axes)) return *inputs_[i];
    return sharding_of(rule_, axes, mesh_, operand, is_output);
  }
  static bool has_axes(const Sharding::Impl& impl, const std::vector<DimFactors>& dims,
                       const FactorAxes& axes) {
    if (impl.spec.dims().size() > dims.size()) return false;
    std::size_t next = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      for (int f : dims[d])
        for (int axis : axes[f])
          if (next >= impl.digits.size() || impl.digits[next++].axis != axis) return false;
      const int end = d + 1 < impl.first.size() ? impl.first[d + 1] : static_cast<int>(impl.digits.size());
      if (static_cast<int>(next) != end) return false;
    }
    return true;
  }

  Propagation assemble(FactorAxes axes) const {
    Propagation result;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      result.inputs.push_back(layout(axes, static_cast<int>(i), false));
    for (std::size_t o = 0; o < rule_.outputs.size(); ++o)
      result.outputs.push_back(layout(axes, static_cast<int>(o), true));
    for (std::size_t f = 0; f < axes.size(); ++f)
      if (rule_.factors[f].kind == FactorKind::reduce)
        result.partial_axes.insert(result.partial_axes.end(), axes[f].begin(), axes[f].end());
    std::sort(result.partial_axes.begin(), result.partial_axes.end());
    result.bytes = has_best_ ? best_cost_.bytes : reduce_bytes(axes);
    result.factor_axes = std::move(axes);
    return result;
  }

  const FactorRule& rule_;
  std::span<const std::optional<Sharding>> inputs_;
  std::span<const Shape> in_shapes_;
  std::span<const Dtype> in_dtypes_;
  std::span<const Shape> out_shapes_;
  std::span<const Dtype> out_dtypes_;
  const Mesh& mesh_;

  std::vector<FactorAxes> projections_;  // the factors that each input splits
  std::vector<bool> complete_;           // whether the projection covers all axes of the input's sharding
  std::vector<bool> on_mesh_;            // the input's sharding is on this very mesh
  std::vector<std::size_t> leaders_;
  std::vector<std::vector<std::pair<Sharding, std::int64_t>>> known_costs_;
  FactorAxes best_;
  Cost best_cost_;
  bool has_best_ = false;
};

}  // namespace

Propagation propagate_forward(const FactorRule& rule, std::span<const std::optional<Sharding>> inputs,
                              std::span<const Shape> in_shapes, std::span<const Dtype> in_dtypes,
                              std::span<const Shape> out_shapes, std::span<const Dtype> out_dtypes,
                              const Mesh& mesh) {
  return Propagator(rule, inputs, in_shapes, in_dtypes, out_shapes, out_dtypes, mesh).run();
}

}  // namespace tessera
