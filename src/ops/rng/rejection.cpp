// Draws by rejection: gamma, poisson, binomial.
//
// Elements are independent but for one number: poisson and binomial draw rounds until the whole array is
// accepted, and how many rounds that took is part of every value. So they are two ops: one counts the rounds
// (each rank those of its block; the largest is agreed, 4 bytes), the other draws.
#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/rng/rng.hpp"

namespace tessera::rng {
namespace {

struct RejectionParams {
  Dtype dtype;
  CounterMode mode;
  int space = 0;  // of gamma
  template <class V> void fields(V&& visit) const {
    visit("dtype", dtype);
    visit("mode", mode);
    visit("space", space);
  }
};

// Inputs: keys (b, 2), parameters (b, shape), perhaps rounds (b). The result has the dims of the parameters,
// or (b) when it is the count.
FactorRule factors(std::span<const Type> in, std::span<const Type> out, const Params&) {
  FactorRule rule;
  const int leading = in[0].shape.ndim() - 1, all = in[1].shape.ndim();
  const bool counts = out[0].shape.ndim() == leading && all > leading;
  for (int d = 0; d < all; ++d)
    rule.factors.push_back({in[1].shape[d], counts && d >= leading ? FactorKind::reduce : FactorKind::pass});
  rule.factors.push_back({2, FactorKind::whole});
  rule.reduce_kind = "max";
  const auto dims = [](int n) {
    std::vector<DimFactors> result;
    for (int d = 0; d < n; ++d) result.push_back({d});
    return result;
  };
  for (const auto& type : in) rule.inputs.push_back(dims(&type == &in[0] ? leading : type.shape.ndim()));
  rule.inputs[0].push_back({all});
  rule.outputs.push_back(dims(out[0].shape.ndim()));
  return rule;
}

// As factors say, but nobody asks for a split of a count: without committed inputs it would be made of the
// whole array on every rank. The largest dim is split over the whole mesh instead.
Placement place_count(const PlaceArgs& args) {
  std::vector<Shape> in_shapes, out_shapes;
  std::vector<Dtype> in_dtypes, out_dtypes;
  for (const auto& t : args.in) in_shapes.push_back(t.shape), in_dtypes.push_back(t.dtype);
  for (const auto& t : args.out) out_shapes.push_back(t.shape), out_dtypes.push_back(t.dtype);
  const FactorRule rule = factors(args.in, args.out, args.params);
  Placement result;
  result.reduce_kind = rule.reduce_kind;
  const bool is_committed =
      std::any_of(args.shardings.begin(), args.shardings.end(), [](const auto& s) { return s.has_value(); });
  if (is_committed) {
    auto found =
        propagate_forward(rule, args.shardings, in_shapes, in_dtypes, out_shapes, out_dtypes, args.mesh);
    result.inputs = std::move(found.inputs);
    result.outputs = std::move(found.outputs);
    result.partial_axes = std::move(found.partial_axes);
    return result;
  }
  FactorAxes axes(rule.factors.size());
  const auto leading = in_shapes[0].size() - 1;
  std::size_t largest = leading;
  for (std::size_t d = leading; d < in_shapes[1].size(); ++d)
    if (in_shapes[1][d] > in_shapes[1][largest]) largest = d;
  if (in_shapes[1].size() > leading)
    for (int a = 0; a < args.mesh.ndim(); ++a)
      if (std::find(args.fixed_axes.begin(), args.fixed_axes.end(), a) == args.fixed_axes.end())
        axes[largest].push_back(a);
  for (int i = 0; i < static_cast<int>(args.in.size()); ++i)
    result.inputs.push_back(sharding_of(rule, axes, args.mesh, i, false));
  result.outputs.push_back(sharding_of(rule, axes, args.mesh, 0, true));
  if (in_shapes[1].size() > leading) result.partial_axes = axes[largest];
  return result;
}

std::vector<Type> like_parameters(std::span<const Type> in, const Params& params) {
  return {{in[1].shape, params.as<RejectionParams>().dtype}};
}
std::vector<Type> one_per_key(std::span<const Type> in, const Params&) {
  return {{leading_dims(in[0].shape), int32}};
}

// The draw of a kernel whose parameter tile tells the box.
template <class F> void with_draw(const KernelArgs& a, F&& use) {
  const Box box = box_of_one_key(a.in[1], a.in[0]);
  const Shape global = shape_of_one_key(a.in[1], a.in[0]);
  use(kernels::Draw{keys_of(a.in[0]), box, global, a.params.as<RejectionParams>().mode});
}

constexpr const char* no_gradient =
    "rejection sampling has no derivative by its parameters; stop_gradient them";

const OpDef gamma_op{
    .name = "random_gamma",
    .infer = like_parameters,
    .factors = factors,
    .kernel =
        [](const KernelArgs& a) {
          with_draw(a, [&](const kernels::Draw& d) {
            kernels::draw_gamma(d, a.out[0].dtype,
                                static_cast<kernels::GammaSpace>(a.params.as<RejectionParams>().space),
                                a.in[1].data, a.out[0].data);
          });
        },
    .no_vjp = no_gradient,
    .batch = batch_leading,
};
const OpDef poisson_rounds_op{
    .name = "random_poisson_rounds",
    .infer = one_per_key,
    .factors = factors,
    .kernel =
        [](const KernelArgs& a) {
          with_draw(a, [&](const kernels::Draw& d) {
            kernels::count_rounds_poisson(d, a.in[1].as<const float>(), a.out[0].as<std::int32_t>());
          });
        },
    .vjp = no_cotangents,
    .batch = batch_leading,
    .place = place_count,
};
const OpDef poisson_op{
    .name = "random_poisson",
    .infer = like_parameters,
    .factors = factors,
    .kernel =
        [](const KernelArgs& a) {
          with_draw(a, [&](const kernels::Draw& d) {
            kernels::draw_poisson(d, a.in[1].as<const float>(), a.in[2].as<const std::int32_t>(),
                                  a.out[0].dtype, a.out[0].data);
          });
        },
    .vjp = no_cotangents,  // integers
    .batch = batch_leading,
};
const OpDef binomial_rounds_op{
    .name = "random_binomial_rounds",
    .infer = one_per_key,
    .factors = factors,
    .kernel =
        [](const KernelArgs& a) {
          with_draw(a, [&](const kernels::Draw& d) {
            kernels::count_rounds_binomial(d, a.in[1].dtype, a.in[1].data, a.in[2].data,
                                           a.out[0].as<std::int32_t>());
          });
        },
    .vjp = no_cotangents,
    .batch = batch_leading,
    .place = place_count,
};
const OpDef binomial_op{
    .name = "random_binomial",
    .infer = like_parameters,
    .factors = factors,
    .kernel =
        [](const KernelArgs& a) {
          with_draw(a, [&](const kernels::Draw& d) {
            kernels::draw_binomial(d, a.out[0].dtype, a.in[1].data, a.in[2].data,
                                   a.in[3].as<const std::int32_t>(), a.out[0].data);
          });
        },
    .no_vjp = no_gradient,
    .batch = batch_leading,
};
const Registered registered_gamma(gamma_op), registered_poisson_rounds(poisson_rounds_op),
    registered_poisson(poisson_op), registered_binomial_rounds(binomial_rounds_op),
    registered_binomial(binomial_op);

}  // namespace

Array gamma(const Array& key, const Array& alpha, kernels::GammaSpace space, CounterMode mode,
            std::source_location where) {
  return record(gamma_op, make_params(RejectionParams{alpha.dtype(), mode, static_cast<int>(space)}),
                {key, alpha}, where);
}
Array poisson(const Array& key, const Array& lambda, Dtype dtype, CounterMode mode,
              std::source_location where) {
  const Array rounds =
      record(poisson_rounds_op, make_params(RejectionParams{int32, mode}), {key, lambda}, where);
  return record(poisson_op, make_params(RejectionParams{dtype, mode}), {key, lambda, rounds}, where);
}
Array binomial(const Array& key, const Array& count, const Array& p, CounterMode mode,
               std::source_location where) {
  const Array rounds =
      record(binomial_rounds_op, make_params(RejectionParams{int32, mode}), {key, count, p}, where);
  return record(binomial_op, make_params(RejectionParams{p.dtype(), mode}), {key, count, p, rounds}, where);
}

}  // namespace tessera::rng
