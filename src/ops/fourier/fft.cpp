// The Fourier transform of split arrays: types, stages, gradient and batching.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/session.hpp"
#include "comm/mpi/communicator.hpp"
#include "mesh/reshard.hpp"
#include "ops/build.hpp"
#include "ops/fourier/fft_op.hpp"
#include "ops/fourier/line.hpp"
#include "ops/fourier/on_host.hpp"
#include "ops/fourier/ordered.hpp"
#include "ops/fourier/stages.hpp"
#include "ops/functions.hpp"
#include "program/builder.hpp"

namespace tessera {
namespace {

using kernels::FftKind;
using kernels::FftPlanning;
using kernels::FftSign;

// ---- the local transform of unsplit dims ----

struct LocalFftParams {
  FftKind kind;
  FftSign sign;
  std::vector<int> dims;
  double scale;
  FftPlanning planning;
  template <class V> void fields(V&& visit) const {
    visit("kind", kind), visit("sign", sign), visit("dims", dims), visit("scale", scale),
        visit("planning", planning);
  }
};

void local_kernel(const KernelArgs& args) {
  const auto& p = args.params.as<LocalFftParams>();
  const Tile &in = args.in[0], &out = args.out[0];
  kernels::fft_dense(complex_dtype(in.dtype), p.kind, p.sign, p.dims, in.shape(), out.shape(), in.data,
                     out.data, p.scale, p.planning);
}
const OpDef fft_local_op{
    .name = "fft_local",
    .runs = Kernel{local_kernel},
    .flops =
        [](std::span<const Type> in, std::span<const Type> out, const Params& params) {
          const auto& p = params.as<LocalFftParams>();
          return fft_flops(p.kind, p.dims, in[0].shape, out[0].shape);
        },
    .works_in_place = true,
};

// ---- layouts ----

std::optional<Sharding> target_of(const FftParams& p, const Sharding& from) {
  if (p.out_sharding == fft::OutSharding::transposed) return std::nullopt;
  return p.out_sharding == fft::OutSharding::given ? *p.given : from;
}

// Plans are cached: each is needed at least twice, to record the op and to lower it, and the search takes
// time for several split dims.
const FftStages& stages_of(const ParamsPtr& owner, const FftParams& p, const Type& in, const Sharding& from,
                           const std::vector<int>& fixed) {
  struct Known {
    std::string text;
    Type in;
    Sharding from;
    Mesh mesh;
    std::vector<int> fixed;
    FftStages stages;
  };
  struct Stages {
    std::vector<Known> known;
    std::size_t next = 0;
  };
  auto& [known, next] = state<Stages>();
  const std::string text = owner ? owner->text() : make_params(p)->text();
  for (const auto& k : known)
    if (k.text == text && k.in == in && k.from == from && k.mesh == from.mesh() && k.fixed == fixed)
      return k.stages;
  Known entry{text, in, from, from.mesh(), fixed, plan_stages(p, in, from, target_of(p, from), fixed)};
  constexpr std::size_t most_known = 256;
  if (known.size() < most_known) {
    known.reserve(most_known);
    known.push_back(std::move(entry));
    return known.back().stages;
  }
  next = (next + 1) % most_known;
  known[next] = std::move(entry);
  return known[next].stages;
}

Placement place_fft(const PlacementArgs& args) {
  const auto& p = args.params.as<FftParams>();
  const Sharding from = args.shardings[0] ? *args.shardings[0]
                        : args.wanted     ? *args.wanted
                        : p.given         ? *p.given
                                          : Sharding::replicated(args.mesh);
  if (const auto to = target_of(p, from)) return {{from}, {*to}, {}, ReduceKind::sum};
  return {{from}, {stages_of(nullptr, p, args.in[0], from, args.fixed_axes).out}, {}, ReduceKind::sum};
}

// Lowers all stages to one instruction for ranks that share memory. It moves the same elements as the
// exchanges between the stages.
int lower_on_host(ProgramBuilder& builder, const FftParams& p, const FftStages& plan, int v,
                  const Sharding& to) {
  const Type in = builder.value(v).type;
  OnHostParams params{p.kind, p.sign, p.kind == FftKind::c2c ? -1 : p.dims.back(), p.scale, {}, 0};
  std::vector<CommunicationCost> costs;
  std::vector<int> done;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    params.stages.emplace_back(plan.stages[s].layout, plan.stages[s].dims);
    done.insert(done.end(), plan.stages[s].dims.begin(), plan.stages[s].dims.end());
    const Type between = type_after(p, in, done);
    const Sharding& next = s + 1 < plan.stages.size() ? plan.stages[s + 1].layout : to;
    for (const auto& step : plan_reshard(plan.stages[s].layout, next, between.shape, between.dtype).steps)
      costs.push_back({step_name(step.kind), step.axes, step.bytes, 1});
  }
  const Type out = type_after(p, in, p.dims);
  params.flops = fft_flops(p.kind, p.dims, in.shape, out.shape) / to.mesh().size();
  return builder.communicate(fft_on_host_op, make_params(std::move(params)), {v}, {out}, {to},
                             std::move(costs))[0];
}

// The planning mode: `alike` if several ranks hold the same block. Along each mesh axis a value is split, or
// private to the rank (in a mapped function), or replicated.
FftPlanning planning_of(const ProgramValue& value, const Sharding& layout, const RegionPtr& region,
                        std::uint64_t varying) {
  if (value.everywhere) return FftPlanning::alike;
  const Mesh mesh = layout.mesh();
  std::vector<bool> differs(static_cast<std::size_t>(mesh.ndim()));
  for (const auto& axes : layout.dim_axes(value.type.shape.ndim()))
    for (const int axis : axes) differs[axis] = true;
  for (const int axis : manual_axes_of(region))
    if (!region->check_varying || (varying >> axis & 1) != 0) differs[axis] = true;
  for (int axis = 0; axis < mesh.ndim(); ++axis)
    if (!differs[axis] && mesh.axis_sizes()[axis] > 1) return FftPlanning::alike;
  return FftPlanning::measured;
}

// Lowers the stages to instructions. The last one applies the scale.
std::vector<int> lower(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const auto& p = node.params->as<FftParams>();
  static const std::vector<int> none;
  const auto& region = node.region;
  const Sharding from = builder.value(in[0]).layout;
  const Type in_type = builder.value(in[0]).type;
  const FftStages plan =
      stages_of(node.params, p, {in_type.shape, in_type.dtype}, from, region ? region->manual_axes : none);
  const Sharding to = target_of(p, from).value_or(plan.out);
  if ((!region || region->manual_axes.empty()) && runs_on_host(plan, to, in_type))
    return {lower_on_host(builder, p, plan, builder.reshard(in[0], plan.stages[0].layout), to)};
  int v = in[0];
  std::vector<int> done;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto& stage = plan.stages[s];
    v = builder.reshard(v, stage.layout);
    const auto planning = planning_of(builder.value(v), stage.layout, region, node.outputs[0].varying);
    done.insert(done.end(), stage.dims.begin(), stage.dims.end());
    const Type out = type_after(p, in_type, done);
    const bool halves = p.kind != FftKind::c2c &&
                        std::find(stage.dims.begin(), stage.dims.end(), p.dims.back()) != stage.dims.end();
    const double scale = s + 1 == plan.stages.size() ? p.scale : 1;
    if (stage.across) {
      LineParams line = line_params(p, stage.dims[0]);
      line.scale = scale;
      line.flops = fft_flops(line.kind, stage.dims, builder.value(v).type.shape, out.shape) /
                   stage.layout.mesh().size();
      line.planning = planning;
      const auto cost =
          line_cost(line, builder.value(v).type, stage.layout, region ? region->manual_axes : none);
      v = builder.communicate(fft_line_op, make_params(line), {v}, {out}, {stage.layout},
                              cost.communication)[0];
    } else {
      const LocalFftParams local{halves ? p.kind : FftKind::c2c, p.sign, stage.dims, scale, planning};
      v = builder.kernel(fft_local_op, make_params(local), {v}, {out}, {stage.layout})[0];
    }
  }
  return {builder.reshard(v, to)};
}

// ---- gradient ----

// The cotangent gets the operand's layout.
void place_like(FftParams& p, const Array& operand) {
  p.out_sharding = fft::OutSharding::keep;
  if (!output_of(operand).sharding) return;
  p.out_sharding = fft::OutSharding::given;
  p.given = output_of(operand).sharding;
}

// 1 for elements of a halved dim of n points that represent only themselves, 2 for those that also represent
// their conjugate.
Array halved_weights(std::int64_t n, Dtype dtype) {
  const Array k = arange(n / 2 + 1);
  const Array alone = (k == 0) | (k * 2 == Array(n));
  return astype(where(alone, 1, 2), dtype);
}

Cotangents vjp(const VjpArgs& v) {
  auto p = v.node.params->as<FftParams>();
  const Array& operand = v.in[0];
  place_like(p, operand);
  const auto halved = static_cast<std::size_t>(p.dims.back());
  if (p.kind == FftKind::c2c) return {record_fft(v.cotangents[0], p)};  // the DFT matrix is symmetric
  if (p.kind == FftKind::r2c) {
    // rfft = the first half of fft of the operand as complex numbers: pad, transform, take the real part.
    p.kind = FftKind::c2c;
    auto extents = v.cotangents[0].shape();
    extents[halved] = operand.shape()[halved];
    return {real(record_fft(record_fft_resize(v.cotangents[0], extents), p))};
  }
  // irfft(X)[j] = Re sum_k w_k X[k] exp(+-2 pi i j k / n): the cotangent is w times the conjugate of the
  // forward half.
  const auto n = p.length;
  p.kind = FftKind::r2c;
  p.sign = FftSign::forward;
  p.length = 0;
  const Array half = conj(record_fft(v.cotangents[0], p));
  std::vector<std::int64_t> along(operand.shape().size(), 1);
  along[halved] = n / 2 + 1;
  const Array weighted = half * reshape(halved_weights(n, real_dtype(half.dtype())), Shape(along));
  return {v.node.params->as<FftParams>().sign == FftSign::backward ? weighted : conj(weighted)};
}

Batched batch(const BatchArgs& args) {
  auto p = args.node.params->as<FftParams>();
  for (int& d : p.dims) ++d;
  if (p.given) {
    auto dims = p.given->dim_axes(args.node.outputs[0].type.shape.ndim());
    dims.insert(dims.begin(), std::vector<int>{});
    p.given = Sharding::from_dim_axes(p.given->mesh(), dims);
  }
  return {{record(*args.node.op, make_params(std::move(p)), {batch_first(args.in[0], args.dims[0])})}, {0}};
}

const OpDef fft_op{
    .name = "fft",
    .infer = infer_fft,
    .sharding = PlacementRule{place_fft},
    .runs = Lower{lower},
    .vjp = vjp,
    .batch = batch,
    .parts = Parts::beside_lines,
    .flops =
        [](std::span<const Type> in, std::span<const Type> out, const Params& params) {
          const auto& p = params.as<FftParams>();
          return fft_flops(p.kind, p.dims, in[0].shape, out[0].shape);
        },
    .commit = [](const Params& params) -> std::optional<Mesh> {
      const auto& given = params.as<FftParams>().given;
      return given ? std::optional<Mesh>(given->mesh()) : std::nullopt;
    },
    .instead = [](const OpDef&, const ParamsPtr& params, const std::vector<Array>& in) -> std::vector<Array> {
      return {ordered_fft(in[0], params->as<FftParams>())};
    },
};
const Registered registered_fft(fft_op);

}  // namespace

Cotangents fft_cotangent(const VjpArgs& v) { return vjp(v); }

double fft_flops(FftKind kind, const std::vector<int>& dims, const Shape& in, const Shape& out) {
  double log_points = 0;
  for (const int d : dims)
    log_points += std::log2(static_cast<double>(std::max<std::int64_t>({in[d], out[d], 1})));
  const auto points = static_cast<double>(std::max(in.elements(), out.elements()));
  return 5 * points * log_points / (kind == FftKind::c2c ? 1 : 2);
}

Array record_fft(const Array& x, FftParams p) {
  kernels::keep_fft_wisdom(comm::world().rank() == 0);
  return record(fft_op, make_params(std::move(p)), {x});
}

}  // namespace tessera
