// Draws by rejection: gamma, poisson, binomial.
//
// Elements are independent except for one number: poisson and binomial draw rounds until every element of the
// array has accepted, and the number of rounds affects every value. Therefore there are two ops: one counts
// the rounds (each rank those of its block; an all-reduce of 4 bytes finds the maximum), the other draws.
#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/rng/rng.hpp"

namespace tessera::rng {
namespace {

struct RejectionParams {
  Dtype dtype;
  Threefry mode;
  int space = 0;  // for gamma
  template <class V> void fields(V&& visit) const {
    visit("dtype", dtype);
    visit("mode", mode);
    visit("space", space);
  }
};

// Inputs: keys (b, 2), parameters (b, shape), for poisson and binomial rounds (b).

const Rule poisson_rounds_rule("B.. w, B.. S.. -> B.. | max S | whole w"),
    binomial_rounds_rule("B.. w, B.. S.., B.. S.. -> B.. | max S | whole w");

// The rule's placement, with one exception: without committed inputs the count would be computed on every
// rank for the complete array, so its largest dim is split over the whole mesh.
Placement place_count(const Rule& rule, const PlacementArgs& args) {
  const bool is_committed =
      std::any_of(args.shardings.begin(), args.shardings.end(), [](const auto& s) { return s.has_value(); });
  PlacementArgs forward = args;
  forward.wanted = std::nullopt;
  const Shape& shape = args.in[1].shape;
  const int leading = args.in[0].shape.ndim() - 1;
  if (is_committed || shape.ndim() == leading) return place_by(rule, forward);
  int largest = leading;
  for (int d = leading; d < shape.ndim(); ++d)
    if (shape[d] > shape[largest]) largest = d;
  std::vector<std::vector<int>> dims(shape.size());
  for (int a = 0; a < args.mesh.ndim(); ++a)
    if (std::find(args.fixed_axes.begin(), args.fixed_axes.end(), a) == args.fixed_axes.end())
      dims[largest].push_back(a);
  std::vector<std::optional<Sharding>> shardings(args.in.size());
  for (std::size_t i = 1; i < shardings.size(); ++i) shardings[i] = Sharding::from_dim_axes(args.mesh, dims);
  forward.shardings = shardings;
  return place_by(rule, forward);
}

std::vector<Type> like_parameters(std::span<const Type> in, const Params& params) {
  return {{in[1].shape, params.as<RejectionParams>().dtype}};
}
std::vector<Type> one_per_key(std::span<const Type> in, const Params&) {
  return {{leading_dims(in[0].shape), int32}};
}

// The draw of a kernel, whose parameter tile determines the box.
template <class F> void with_draw(const KernelArgs& a, F&& use) {
  const Box box = box_of_one_key(a.in[1], a.in[0]);
  const Shape global = shape_of_one_key(a.in[1], a.in[0]);
  use(kernels::DrawBlock{keys_of(a.in[0]), box, global, a.params.as<RejectionParams>().mode});
}

constexpr const char* no_gradient =
    "rejection sampling has no derivative by its parameters; stop_gradient them";

const OpDef gamma_op{
    .name = "random_gamma",
    .infer = like_parameters,
    .sharding = Rule("B.. w, B.. S.. -> B.. S.. | whole w"),
    .runs = Kernel{[](const KernelArgs& a) {
      with_draw(a, [&](const kernels::DrawBlock& d) {
        kernels::draw_gamma(d, a.out[0].dtype,
                            static_cast<kernels::GammaSpace>(a.params.as<RejectionParams>().space),
                            a.in[1].data, a.out[0].data);
      });
    }},
    .vjp = NoRule{no_gradient},
    .batch = batch_leading,
    .same_bits = SameBits::always,
};
const OpDef poisson_rounds_op{
    .name = "random_poisson_rounds",
    .infer = one_per_key,
    .sharding =
        PlacementRule{[](const PlacementArgs& args) { return place_count(poisson_rounds_rule, args); },
                      &poisson_rounds_rule},
    .runs = Kernel{[](const KernelArgs& a) {
      with_draw(a, [&](const kernels::DrawBlock& d) {
        kernels::count_rounds_poisson(d, a.in[1].as<const float>(), a.out[0].as<std::int32_t>());
      });
    }},
    .vjp = no_cotangents,
    .batch = batch_leading,
    .same_bits = SameBits::always,
};
const OpDef poisson_op{
    .name = "random_poisson",
    .infer = like_parameters,
    .sharding = Rule("B.. w, B.. S.., B.. -> B.. S.. | whole w"),
    .runs = Kernel{[](const KernelArgs& a) {
      with_draw(a, [&](const kernels::DrawBlock& d) {
        kernels::draw_poisson(d, a.in[1].as<const float>(), a.in[2].as<const std::int32_t>(), a.out[0].dtype,
                              a.out[0].data);
      });
    }},
    .vjp = no_cotangents,  // integers
    .batch = batch_leading,
    .same_bits = SameBits::always,
};
const OpDef binomial_rounds_op{
    .name = "random_binomial_rounds",
    .infer = one_per_key,
    .sharding =
        PlacementRule{[](const PlacementArgs& args) { return place_count(binomial_rounds_rule, args); },
                      &binomial_rounds_rule},
    .runs = Kernel{[](const KernelArgs& a) {
      with_draw(a, [&](const kernels::DrawBlock& d) {
        kernels::count_rounds_binomial(d, a.in[1].dtype, a.in[1].data, a.in[2].data,
                                       a.out[0].as<std::int32_t>());
      });
    }},
    .vjp = no_cotangents,
    .batch = batch_leading,
    .same_bits = SameBits::always,
};
const OpDef binomial_op{
    .name = "random_binomial",
    .infer = like_parameters,
    .sharding = Rule("B.. w, B.. S.., B.. S.., B.. -> B.. S.. | whole w"),
    .runs = Kernel{[](const KernelArgs& a) {
      with_draw(a, [&](const kernels::DrawBlock& d) {
        kernels::draw_binomial(d, a.out[0].dtype, a.in[1].data, a.in[2].data,
                               a.in[3].as<const std::int32_t>(), a.out[0].data);
      });
    }},
    .vjp = NoRule{no_gradient},
    .batch = batch_leading,
    .same_bits = SameBits::always,
};
const Registered registered_gamma(gamma_op), registered_poisson_rounds(poisson_rounds_op),
    registered_poisson(poisson_op), registered_binomial_rounds(binomial_rounds_op),
    registered_binomial(binomial_op);

}  // namespace

Array gamma(const Array& key, const Array& alpha, kernels::GammaSpace space, Threefry mode) {
  return record(gamma_op, make_params(RejectionParams{alpha.dtype(), mode, static_cast<int>(space)}),
                {key, alpha});
}
Array poisson(const Array& key, const Array& lambda, Dtype dtype, Threefry mode) {
  const Array rounds = record(poisson_rounds_op, make_params(RejectionParams{int32, mode}), {key, lambda});
  return record(poisson_op, make_params(RejectionParams{dtype, mode}), {key, lambda, rounds});
}
Array binomial(const Array& key, const Array& count, const Array& p, Threefry mode) {
  const Array rounds = record(binomial_rounds_op, make_params(RejectionParams{int32, mode}), {key, count, p});
  return record(binomial_op, make_params(RejectionParams{p.dtype(), mode}), {key, count, p, rounds});
}

}  // namespace tessera::rng
