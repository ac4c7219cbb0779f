#include "ops/fourier/stages.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>

#include "mesh/reshard.hpp"
#include "ops/fourier/line.hpp"
#include "types/box.hpp"

namespace tessera {
namespace {

using kernels::FftKind;

constexpr double butterfly_seconds = 0.4e-9;  // per element and log2 of the points: only ratios matter
constexpr std::int64_t small_block_bytes =
    65536;                          // bytes of a small array that one rank may hold, however unbalanced
constexpr std::int64_t unfair = 4;  // the growth allowed for the largest block otherwise

// Among equal costs the nearest dim wins: P('x', 'y', None) -> P('x', None, 'y') -> P(None, 'x', 'y'), and an
// inverse takes the same path back.
constexpr double tie_seconds = 1e-9;

struct State {
  DimAxes layout;
  unsigned done = 0;  // bit i: dims[i] is transformed
  friend auto operator<=>(const State&, const State&) = default;
};
struct Step {  // the transition that reached a state
  int before = -1;
  FftStage stage;
};

class Search {
 public:
  Search(const FftParams& p, const Type& in, const Sharding& from, const std::optional<Sharding>& to,
         const std::vector<int>& fixed)
      : p_(p),
        in_(in),
        from_(from),
        to_(to),
        fixed_(fixed),
        mesh_(from.mesh()),
        ndim_(in.shape.ndim()),
        all_((1u << p.dims.size()) - 1) {}

  FftStages run() {
    const State start{from_.dim_axes(ndim_), 0};
    push(start, 0, {-1, {from_, {}}});
    double best = -1;
    int best_node = -1;
    while (!queue_.empty()) {
      const auto [negative_cost, minus_node] = queue_.top();
      queue_.pop();
      const double cost = -negative_cost;
      const int node = -minus_node;
      if (settled_[node]) continue;
      settled_[node] = true;
      if (best >= 0 && cost >= best) break;
      const State state = states_[node];
      if (state.done == all_) {
        const double total = cost + seconds_to_target(state);
        if (best < 0 || total < best) best = total, best_node = node;
        continue;
      }
      expand(node, state, cost);
    }
    if (best_node < 0) throw InternalError("fft: no way to transform the dims of " + to_string(in_));
    return path_to(best_node);
  }

 private:
  bool is_done(unsigned done, std::size_t i) const { return (done >> i & 1u) != 0; }
  std::size_t last() const { return p_.dims.size() - 1; }
  bool is_whole(const DimAxes& layout, std::size_t i) const { return layout[p_.dims[i]].empty(); }

  std::vector<int> dims_in(unsigned set) const {
    std::vector<int> dims;
    for (std::size_t i = 0; i < p_.dims.size(); ++i)
      if (is_done(set, i)) dims.push_back(p_.dims[i]);
    return dims;
  }
  Type type_at(unsigned done) const { return type_after(p_, in_, dims_in(done)); }
  Sharding sharding(const DimAxes& layout) const { return Sharding::from_dim_axes(mesh_, layout); }

  // The halved dim must be transformed first towards complex numbers (r2c), and last on the way back (c2r).
  bool may_transform(unsigned done, unsigned set) const {
    const unsigned halved = 1u << last();
    if (p_.kind == FftKind::r2c) return ((done | set) & halved) != 0;
    if (p_.kind == FftKind::c2r) return (set & halved) == 0 || (done | set) == all_;
    return true;
  }

  // All dims that can be transformed in a layout without communication.
  unsigned ready(const State& state) const {
    unsigned set = 0;
    for (std::size_t i = 0; i < p_.dims.size(); ++i)
      if (!is_done(state.done, i) && is_whole(state.layout, i)) set |= 1u << i;
    if (p_.kind == FftKind::c2r && !may_transform(state.done, set)) set &= ~(1u << last());
    return may_transform(state.done, set) ? set : 0;
  }

  std::int64_t block_bytes(const DimAxes& layout, const Type& type) const {
    return sharding(layout).shard_shape(type.shape).elements() *
           static_cast<std::int64_t>(itemsize(type.dtype));
  }
  double compute_seconds(const DimAxes& layout, unsigned done, unsigned set) const {
    double log_points = 0;
    for (const int d : dims_in(set))
      log_points += std::log2(static_cast<double>(std::max<std::int64_t>(2, in_.shape[d])));
    return butterfly_seconds * log_points *
           static_cast<double>(sharding(layout).shard_shape(type_at(done).shape).elements());
  }

  double seconds_to_target(const State& state) const {
    if (!to_) return 0;
    const Type type = type_at(state.done);
    return seconds(plan_reshard(sharding(state.layout), *to_, type.shape, type.dtype, fixed_));
  }

  void push(const State& state, double cost, Step step) {
    const auto [found, is_new] = numbers_.emplace(state, static_cast<int>(states_.size()));
    if (is_new) {
      states_.push_back(state);
      costs_.push_back(cost);
      steps_.push_back(std::move(step));
      settled_.push_back(false);
    } else {
      const auto n = static_cast<std::size_t>(found->second);
      if (settled_[n] || costs_[n] <= cost) return;
      costs_[n] = cost;
      steps_[n] = std::move(step);
    }
    queue_.emplace(-cost, -found->second);  // equal costs: the layout found first
  }

  void expand(int node, const State& state, double cost) {
    if (const unsigned set = ready(state)) {
      push({state.layout, state.done | set}, cost + compute_seconds(state.layout, state.done, set),
           {node, {sharding(state.layout), dims_in(set)}});
      return;  // a step without an exchange is never postponed
    }
    for (std::size_t i = 0; i < p_.dims.size(); ++i) {
      if (is_done(state.done, i) || is_whole(state.layout, i) || !may_transform(state.done, 1u << i))
        continue;
      const LineCost line =
          line_cost(line_params(p_, p_.dims[i]), type_at(state.done), sharding(state.layout), fixed_);
      push({state.layout, state.done | 1u << i},
           cost + line.seconds + compute_seconds(state.layout, state.done, 1u << i),
           {node, {sharding(state.layout), {p_.dims[i]}, true}});
    }
    for (unsigned emptied = 1; emptied <= all_; ++emptied) {
      bool fits = (emptied & state.done) == 0;
      for (std::size_t i = 0; i < p_.dims.size(); ++i)
        fits = fits && (!is_done(emptied, i) || !is_whole(state.layout, i));
      if (fits) move_axes(node, state, cost, dims_in(emptied));
    }
  }

  // All ways to append the axes of the emptied dims to other dims.
  void move_axes(int node, const State& state, double cost, const std::vector<int>& emptied) {
    std::vector<int> moving, sources, targets;
    DimAxes rest = state.layout;
    for (const int d : emptied) {
      auto& axes = rest[d];
      moving.insert(moving.end(), axes.begin(), axes.end());
      sources.insert(sources.end(), axes.size(), d);
      axes.clear();
    }
    for (int d = 0; d < ndim_; ++d)
      if (std::find(emptied.begin(), emptied.end(), d) == emptied.end()) targets.push_back(d);
    if (targets.empty()) return;
    const Type type = type_at(state.done);
    const auto limit = std::max(small_block_bytes, unfair * block_bytes(state.layout, type));
    std::vector<std::size_t> choice(moving.size(), 0);
    while (true) {
      DimAxes layout = rest;
      int distance = 0;
      for (std::size_t i = 0; i < moving.size(); ++i) {
        layout[targets[choice[i]]].push_back(moving[i]);
        distance += std::abs(targets[choice[i]] - sources[i]);
      }
      const State next{std::move(layout), state.done};
      if (ready(next) != 0 && block_bytes(next.layout, type) <= limit) {
        const auto plan =
            plan_reshard(sharding(state.layout), sharding(next.layout), type.shape, type.dtype, fixed_);
        push(next, cost + seconds(plan) + distance * tie_seconds, {node, {sharding(next.layout), {}}});
      }
      std::size_t i = 0;
      while (i < choice.size() && ++choice[i] == targets.size()) choice[i++] = 0;
      if (i == choice.size()) break;
    }
  }

  FftStages path_to(int node) const {
    FftStages result{{}, sharding(states_[node].layout)};
    for (int n = node; n >= 0; n = steps_[n].before)
      if (!steps_[n].stage.dims.empty()) result.stages.push_back(steps_[n].stage);
    std::reverse(result.stages.begin(), result.stages.end());
    return result;
  }

  const FftParams& p_;
  const Type& in_;
  const Sharding& from_;
  const std::optional<Sharding>& to_;
  const std::vector<int>& fixed_;
  Mesh mesh_;
  int ndim_;
  unsigned all_;
  std::map<State, int> numbers_;
  std::vector<State> states_;
  std::vector<double> costs_;
  std::vector<Step> steps_;
  std::vector<bool> settled_;
  std::priority_queue<std::pair<double, int>> queue_;
};

}  // namespace

Type type_after(const FftParams& p, const Type& in, const std::vector<int>& done) {
  Type type = in;
  if (p.kind == FftKind::c2c || std::find(done.begin(), done.end(), p.dims.back()) == done.end()) return type;
  const auto halved = static_cast<std::size_t>(p.dims.back());
  if (p.kind == FftKind::r2c) {
    type.shape[halved] = type.shape[halved] / 2 + 1;
    type.dtype = complex_dtype(in.dtype);
  } else {
    type.shape[halved] = p.length;
    type.dtype = real_dtype(in.dtype);
  }
  return type;
}
std::vector<Type> infer_fft(std::span<const Type> in, const Params& params) {
  const auto& p = params.as<FftParams>();
  return {type_after(p, {in[0].shape, in[0].dtype}, p.dims)};
}

FftStages plan_stages(const FftParams& p, const Type& in, const Sharding& from,
                      const std::optional<Sharding>& to, const std::vector<int>& fixed_axes) {
  return Search(p, in, from, to, fixed_axes).run();
}

}  // namespace tessera
