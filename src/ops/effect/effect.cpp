#include "ops/effect/effect.hpp"

#include <algorithm>

#include "base/session.hpp"
#include "graph/hooks.hpp"
#include "ops/build.hpp"
#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

struct EffectParams {
  EffectPtr effect;
  std::vector<std::int64_t> batch;             // sizes of the leading mapped dims, the outermost first
  std::vector<std::vector<bool>> has_batch{};  // per batch dim, per value
  template <class V> void fields(V&& visit) const {
    visit("effect", effect);
    visit("batch", batch);
    visit("has_batch", has_batch);
  }
};
const EffectParams& params_of(const Params& params) { return params.as<EffectParams>(); }

// Effects read replicated values; ranks along manual axes keep their own.
Placement place_effect(const PlacementArgs& args) {
  Placement placement;
  for (const auto& type : args.in)
    placement.inputs.push_back(Sharding::from_dim_axes(args.mesh, DimAxes(type.shape.size())));
  placement.outputs = {Sharding::from_dim_axes(args.mesh, {})};
  return placement;
}

// Whether this rank runs the effect: the first of the ranks that hold the same values does.
bool acts_here(const CommunicationArgs& args) {
  const int position = args.mesh.position(args.me);
  int rest = position;
  const auto& sizes = args.mesh.axis_sizes();
  for (int axis = static_cast<int>(sizes.size()) - 1; axis >= 0; --axis) {
    const bool is_manual = std::binary_search(args.fixed_axes.begin(), args.fixed_axes.end(), axis);
    if (!is_manual && rest % sizes[axis] != 0) return false;
    rest /= sizes[axis];
  }
  return true;
}

// Runs the effect once per example; values without the mapped dim are the same for all of them.
void happen(const EffectParams& p, std::vector<EffectValue> values, std::size_t level, int rank) {
  if (level == p.batch.size()) return p.effect->happen(values, rank);
  const auto whole = values;
  for (std::int64_t i = 0; i < p.batch[level]; ++i) {
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (!p.has_batch[level][v]) continue;
      values[v].shape = Shape(std::vector<std::int64_t>(whole[v].shape.begin() + 1, whole[v].shape.end()));
      values[v].data = whole[v].data +
                       i * values[v].shape.elements() * static_cast<std::int64_t>(itemsize(values[v].dtype));
    }
    happen(p, values, level + 1, rank);
  }
}

void run_effect(const CommunicationArgs& args) {
  std::fill_n(args.local.out[0].data, itemsize(int32), std::byte{0});
  if (!acts_here(args)) return;
  std::vector<EffectValue> values;
  for (const Tile& tile : args.local.in.subspan(1)) values.push_back({tile.data, tile.shape(), tile.dtype});
  happen(params_of(args.local.params), std::move(values), 0, args.fixed_axes.empty() ? -1 : args.me);
}

// The batch dim is moved to the front; the token has none, so effects run in the order of the examples.
Batched batch_effect(const BatchArgs& args) {
  auto p = params_of(*args.node.params);
  // A loop or branch that differs by example has a token per example; all are equal.
  std::vector<Array> in{args.dims[0] == not_batched ? args.in[0] : max(args.in[0])};
  std::vector<bool> has_batch;
  for (std::size_t i = 1; i < args.in.size(); ++i) {
    has_batch.push_back(args.dims[i] != not_batched);
    in.push_back(has_batch.back() ? moveaxis(args.in[i], args.dims[i], 0) : args.in[i]);
  }
  p.batch.insert(p.batch.begin(), args.size);
  p.has_batch.insert(p.has_batch.begin(), std::move(has_batch));
  return {{record(*args.node.op, make_params(std::move(p)), std::move(in))}, {not_batched}};
}

const OpDef effect_op{
    .name = "effect",
    .halves = moves_halves,
    .infer = [](std::span<const Type>, const Params&) -> std::vector<Type> {
      return {{Shape{}, int32}};
    },
    .sharding = PlacementRule{place_effect},
    .runs = Communicating{.together = run_effect,
                          .cost = [](const PlacementArgs&,
                                     const Placement&) -> std::vector<CommunicationCost> { return {}; }},
    .vjp = [](const VjpArgs& v) -> Cotangents { return Cotangents(v.in.size()); },
    .batch = batch_effect,
    .varying = [](std::span<const std::uint64_t>, const Params&) -> std::uint64_t { return 0; },
    .is_value_dependent = true,
};
const Registered registered(effect_op);

struct Scope {
  Array token;
  bool has_effects = false;
};
struct Scopes {
  std::vector<Scope> open;
};
Scopes& scopes() { return state<Scopes>(); }
Array first_token() { return make_scalar(ScalarValue{0, 0, true}, int32, false); }

}  // namespace

EffectScope::EffectScope(Array before) : depth_(scopes().open.size()) {
  scopes().open.push_back({std::move(before)});
}
EffectScope::~EffectScope() { scopes().open.resize(depth_); }
bool EffectScope::has_effects() const { return scopes().open[depth_].has_effects; }
Array EffectScope::token() const {
  const auto& token = scopes().open[depth_].token;
  return token.node() ? token : first_token();
}

bool effects_wait() { return !scopes().open.empty(); }
Array effect_token() {
  return effects_wait() && scopes().open.back().token.node() ? scopes().open.back().token : first_token();
}
void set_effect_token(Array token) {
  if (effects_wait()) scopes().open.back() = {std::move(token), true};
}
void hand_on_effects(const Array& token) {
  if (effects_wait())
    set_effect_token(token);
  else if (!token.node()->has_placeholder)
    compute_pending({token});
}
void record_effect(EffectPtr effect, const std::vector<Array>& values) {
  std::vector<Array> in{effect_token()};
  in.insert(in.end(), values.begin(), values.end());
  set_effect_token(record(effect_op, make_params(EffectParams{std::move(effect), {}, {}}), std::move(in)));
}

}  // namespace tessera
