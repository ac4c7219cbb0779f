#include "mesh/reshard.hpp"

#include <tessera/error.hpp>

#include <algorithm>

#include "base/rates.hpp"
#include "mesh/route.hpp"

namespace tessera {
namespace {

bool lists(const MeshAxes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }
bool lists(const DimAxes& dims, int axis) {
  return std::any_of(dims.begin(), dims.end(), [&](const MeshAxes& axes) { return lists(axes, axis); });
}
bool starts_with(const MeshAxes& axes, const MeshAxes& prefix) {
  return prefix.size() <= axes.size() && std::equal(prefix.begin(), prefix.end(), axes.begin());
}
MeshAxes after(const MeshAxes& axes, std::size_t prefix) {
  return {axes.begin() + static_cast<std::ptrdiff_t>(prefix), axes.end()};
}

class Resharder {
 public:
  Resharder(const Sharding& from, const Sharding& to, const Shape& shape, Dtype dtype,
            const MeshAxes& fixed_axes)
      : from_(from),
        to_(to),
        shape_(shape),
        item_bytes_(static_cast<std::int64_t>(itemsize(dtype))),
        fixed_axes_(fixed_axes) {}

  ReshardPlan plan() {
    common_ = on_common_mesh({from_, to_});
    const ReshardPlan exchange = direct();
    if (exchange.bytes == 0 || common_.empty()) return exchange;
    const int ndim = shape_.ndim();
    const DimAxes have = common_[0].dim_axes(ndim), want = common_[1].dim_axes(ndim);
    if (const auto named = one_collective(have, want)) {
      ReshardPlan plan = exchange;
      plan.steps[0].kind = named->kind;
      plan.steps[0].dim = named->dim;
      plan.steps[0].split_dim = named->split_dim;
      return plan;
    }
    const auto chain = this->chain(have, want);
    if (!chain) return exchange;
    const double chain_s = seconds(*chain), exchange_s = seconds(exchange);
    // At equal cost a slice and one named collective is clearer than an exchange; two collectives copy more.
    const bool one_talks = std::count_if(chain->steps.begin(), chain->steps.end(),
                                         [](const ReshardStep& s) { return s.messages > 0; }) == 1;
    return chain_s < exchange_s || (chain_s == exchange_s && one_talks) ? *chain : exchange;
  }

 private:
  const Mesh& mesh() const { return common_[0].identity()->mesh; }
  std::int64_t parts(const MeshAxes& axes) const { return devices_along(mesh(), axes); }

  // Whether every block of `coarse` parts of dim a is a union of blocks of `coarse * finer` parts.
  //   n = 10 over 2: [0:5] [5:10]    over 2 * 2: [0:3] [3:6] [6:9] [9:10]    no: [3:6] is part of both
  bool nests(std::size_t dim, const MeshAxes& coarse_axes, const MeshAxes& finer_axes) const {
    const std::int64_t n = shape_[dim], coarse = parts(coarse_axes), finer = parts(finer_axes);
    const std::int64_t block = block_size(n, coarse);
    return block >= n || block_size(n, coarse * finer) * finer == block;
  }

  Survey survey(const Sharding& a, const Sharding& b) const {
    if (!common_.empty()) return survey_reshard(*a.identity(), *b.identity(), shape_);
    const std::vector<Sharding> from = {a};
    const std::vector<Shape> shapes = {shape_};
    return survey_exchange(identity_remap(shape_), from, shapes, b, shape_, fixed_axes_);
  }

  ReshardStep step(StepKind kind, const DimAxes& a, const DimAxes& b, int dim = -1,
                   int split_dim = -1) const {
    return {kind,
            Sharding::from_dim_axes(mesh(), a),
            Sharding::from_dim_axes(mesh(), b),
            changed_axes(a, b),
            dim,
            split_dim,
            0,
            0};
  }
  ReshardStep counted(ReshardStep step) const {
    const Survey facts = survey(step.from, step.to);
    step.bytes = facts.elements * item_bytes_;
    step.messages = facts.peers;
    return step;
  }

  ReshardPlan direct() const {
    const Survey facts = common_.empty() ? survey(from_, to_) : survey(common_[0], common_[1]);
    if (facts.in_place) return {};
    const StepKind kind = facts.elements == 0 ? StepKind::all_slice : StepKind::exchange;
    ReshardStep only{kind, from_, to_, {}, -1, -1, facts.elements * item_bytes_, facts.peers};
    if (!common_.empty()) {
      only.from = common_[0];
      const DimAxes have = common_[0].dim_axes(shape_.ndim()), want = common_[1].dim_axes(shape_.ndim());
      only.axes = changed_axes(have, want);
      if (kind == StepKind::all_slice) only.dim = first_difference(have, want);
    }
    return finish({std::move(only)});
  }

  MeshAxes changed_axes(const DimAxes& a, const DimAxes& b) const {
    MeshAxes axes;
    for (std::size_t d = 0; d < a.size(); ++d) {
      const std::size_t kept = common_prefix(a[d], b[d]);
      for (const MeshAxes& rest : {after(a[d], kept), after(b[d], kept)})
        for (int axis : rest)
          if (!lists(axes, axis)) axes.push_back(axis);
    }
    std::sort(axes.begin(), axes.end());
    return axes;
  }

  static std::size_t common_prefix(const MeshAxes& a, const MeshAxes& b) {
    return static_cast<std::size_t>(
        std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
                      b.begin())
            .first -
        a.begin());
  }

  struct Collective {
    StepKind kind;
    int dim = -1, split_dim = -1;
  };
  // The reshard as a single collective, if one exists that does exactly this.
  std::optional<Collective> one_collective(const DimAxes& have, const DimAxes& want) const {
    MeshAxes leaving_dims, entering_dims;
    bool same_parts = true, all_nest = true;
    for (std::size_t d = 0; d < have.size(); ++d) {
      const std::size_t kept = common_prefix(have[d], want[d]);
      const MeshAxes prefix(have[d].begin(), have[d].begin() + static_cast<std::ptrdiff_t>(kept)),
          leaving = after(have[d], kept), entering = after(want[d], kept);
      if (!leaving.empty()) leaving_dims.push_back(static_cast<int>(d));
      if (!entering.empty()) entering_dims.push_back(static_cast<int>(d));
      same_parts = same_parts && parts(have[d]) == parts(want[d]);
      all_nest = all_nest && nests(d, prefix, leaving) && nests(d, prefix, entering);
    }
    if (leaving_dims.empty() && entering_dims.empty()) return std::nullopt;
    if (same_parts) return Collective{StepKind::collective_permute};
    if (!all_nest) return std::nullopt;
    if (leaving_dims.empty()) return Collective{StepKind::all_slice, entering_dims[0]};
    if (leaving_dims.size() > 1) return std::nullopt;
    const auto whole = static_cast<std::size_t>(leaving_dims[0]);
    if (entering_dims.empty()) return Collective{StepKind::all_gather, leaving_dims[0]};
    if (entering_dims.size() > 1 || entering_dims[0] == leaving_dims[0]) return std::nullopt;
    const auto split = static_cast<std::size_t>(entering_dims[0]);
    MeshAxes leaving = after(have[whole], want[whole].size()),
             entering = after(want[split], have[split].size());
    std::sort(leaving.begin(), leaving.end());
    std::sort(entering.begin(), entering.end());
    if (leaving != entering) return std::nullopt;
    return Collective{StepKind::all_to_all, leaving_dims[0], entering_dims[0]};
  }

  // slice  ->  permute or all-to-alls  ->  gather: splits first, so that the middle steps move as little as
  // possible, and gathers last.
  //   P(('x', 'y'), None, None)   slice  ->  P(('x', 'y'), None, 'z')   all-to-all  ->  P('x', 'y', 'z')
  //                               gather ->  P(None, 'y', 'z')
  // nullopt if some step would not be exact on these extents, or if the axes fit nowhere.
  std::optional<ReshardPlan> chain(const DimAxes& have, const DimAxes& want) const {
    DimAxes sliced = have, ungathered = want;
    append_axes(sliced, want);
    append_axes(ungathered, sliced);
    std::vector<ReshardStep> steps;
    if (sliced != have) {
      for (std::size_t d = 0; d < have.size(); ++d)
        if (!nests(d, have[d], after(sliced[d], have[d].size()))) return std::nullopt;
      steps.push_back(step(StepKind::all_slice, have, sliced, first_difference(have, sliced)));
    }
    if (!add_middle(steps, sliced, ungathered)) return std::nullopt;
    DimAxes current = ungathered;
    for (std::size_t d = 0; d < want.size(); ++d) {
      if (current[d] == want[d]) continue;
      const MeshAxes gathered = after(current[d], want[d].size());
      if (!nests(d, want[d], gathered)) return std::nullopt;
      DimAxes next = current;
      next[d] = want[d];
      steps.push_back(counted(step(StepKind::all_gather, current, next, static_cast<int>(d))));
      current = std::move(next);
    }
    return finish(std::move(steps));
  }

  static int first_difference(const DimAxes& a, const DimAxes& b) {
    for (std::size_t d = 0; d < a.size(); ++d)
      if (a[d] != b[d]) return static_cast<int>(d);
    return -1;
  }

  // Appends to `layout` the axes that only `like` uses: to the same dim if the dim's axes agree so far, else
  // to a dim where the number of parts still fits.
  void append_axes(DimAxes& layout, const DimAxes& like) const {
    for (std::size_t d = 0; d < layout.size(); ++d)
      while (starts_with(like[d], layout[d]) && layout[d].size() < like[d].size() &&
             !lists(layout, like[d][layout[d].size()]))
        layout[d].push_back(like[d][layout[d].size()]);
    for (const auto& axes : like)
      for (int axis : axes) {
        if (lists(layout, axis)) continue;
        for (std::size_t d = 0; d < layout.size(); ++d)
          if (parts(like[d]) % (parts(layout[d]) * parts({axis})) == 0) {
            layout[d].push_back(axis);
            break;
          }
      }
  }

  bool add_middle(std::vector<ReshardStep>& steps, const DimAxes& start, const DimAxes& goal) const {
    if (start == goal) return true;
    if (const auto only = one_collective(start, goal)) {
      steps.push_back(counted(step(only->kind, start, goal, only->dim, only->split_dim)));
      return true;
    }
    DimAxes current = start;
    while (current != goal) {
      auto next = after_all_to_all(current, goal);
      const auto collective = next ? one_collective(current, *next) : std::nullopt;
      if (!collective) {
        steps.push_back(counted(step(StepKind::exchange, current, goal)));
        return current != start;  // a chain around one general exchange is no better than the direct one
      }
      steps.push_back(
          counted(step(collective->kind, current, *next, collective->dim, collective->split_dim)));
      current = std::move(*next);
    }
    return true;
  }

  // Moves the last axes of one dim to the end of another, in the order that the goal has.
  static std::optional<DimAxes> after_all_to_all(const DimAxes& current, const DimAxes& goal) {
    for (std::size_t target = 0; target < goal.size(); ++target) {
      if (!starts_with(goal[target], current[target]) || goal[target].size() == current[target].size())
        continue;
      for (std::size_t source = 0; source < current.size(); ++source) {
        if (source == target) continue;
        const std::size_t kept = common_prefix(current[source], goal[source]);
        std::size_t count = 0;  // number of the target's missing axes that are the source's last ones
        for (std::size_t n = 1;
             current[target].size() + n <= goal[target].size() && n <= current[source].size() - kept; ++n) {
          const MeshAxes moving = {
              goal[target].begin() + static_cast<std::ptrdiff_t>(current[target].size()),
              goal[target].begin() + static_cast<std::ptrdiff_t>(current[target].size() + n)};
          const MeshAxes last = after(current[source], current[source].size() - n);
          if (std::is_permutation(moving.begin(), moving.end(), last.begin(), last.end())) count = n;
        }
        if (count == 0) continue;
        DimAxes next = current;
        next[source].resize(next[source].size() - count);
        const std::size_t had = next[target].size();
        for (std::size_t i = 0; i < count; ++i) next[target].push_back(goal[target][had + i]);
        return next;
      }
    }
    return std::nullopt;
  }

  ReshardPlan finish(std::vector<ReshardStep> steps) const {
    ReshardPlan plan{std::move(steps), 0};
    if (!plan.steps.empty()) plan.steps.back().to = to_;  // the sharding as the caller wrote it
    for (const auto& step : plan.steps) plan.bytes += step.bytes;
    return plan;
  }

  const Sharding &from_, &to_;
  const Shape& shape_;
  std::int64_t item_bytes_;
  const MeshAxes& fixed_axes_;
  std::vector<Sharding> common_;  // both layouts on one mesh, if one can express both
};

}  // namespace

const char* step_name(StepKind kind) {
  switch (kind) {
    case StepKind::all_slice: return "all-slice";
    case StepKind::collective_permute: return "collective-permute";
    case StepKind::all_to_all: return "all-to-all";
    case StepKind::all_gather: return "all-gather";
    case StepKind::exchange: return "all-to-all";
  }
  return "?";
}

double seconds(const ReshardPlan& plan) {
  const Link& link = rates().inside;
  double total = 0;
  for (const auto& step : plan.steps)
    total += static_cast<double>(step.messages) * link.latency_s +
             static_cast<double>(step.bytes) / link.bytes_per_s;
  return total;
}

ReshardPlan plan_reshard(const Sharding& from, const Sharding& to, const Shape& shape, Dtype dtype,
                         const MeshAxes& fixed_axes) {
  if (from == to) return {};
  return Resharder(from, to, shape, dtype, fixed_axes).plan();
}

}  // namespace tessera
