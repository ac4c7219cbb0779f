// bits, uniform, normal and integers: one fused kernel each. All other distributions are composed of these by
// elementwise ops.
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/rng/rng.hpp"

namespace tessera::rng {
namespace {

struct DrawParams {
  Shape shape;
  Dtype dtype;
  Threefry mode;
  double minval = 0, maxval = 1;  // range of uniform, and of the uniform that a normal is computed from
  std::int64_t least = 0;         // for integers
  std::uint64_t span = 0;
  Slab slab = {};
  template <class V> void fields(V&& visit) const {
    visit("shape", shape);
    visit("dtype", dtype);
    visit("mode", mode);
    visit("minval", minval);
    visit("maxval", maxval);
    visit("least", least);
    visit("span", span);
    visit("slab", std::pair(slab.i, slab.n));
  }
};

std::vector<Type> infer(std::span<const Type> in, const Params& params) {
  const auto& p = params.as<DrawParams>();
  return {{join(leading_dims(in[0].shape), p.shape), p.dtype}};
}

template <class F> void draw(const KernelArgs& a, F&& write) {
  Box box = box_of_one_key(a.out[0], a.in[0]);
  Shape global = shape_of_one_key(a.out[0], a.in[0]);
  const auto& p = a.params.as<DrawParams>();
  if (p.slab.n > 0) {
    box.insert(box.begin(), Range{p.slab.i, p.slab.i + 1});
    global = join(Shape{p.slab.n}, global);
  }
  write(kernels::DrawBlock{keys_of(a.in[0]), box, global, p.mode}, p);
}

OpDef drawing_op(const char* name, void (*kernel)(const KernelArgs&)) {
  return {
      .name = name,
      .infer = infer,
      .sharding = Rule("B.. w -> B.. S.. | whole w"),
      .runs = Kernel{kernel},
      .vjp = no_cotangents,
      .batch = batch_keys,
  };
}

const OpDef bits_op = drawing_op("random_bits", [](const KernelArgs& a) {
  draw(a, [&](const kernels::DrawBlock& d, const DrawParams& p) {
    kernels::draw_bits(d, p.dtype, a.out[0].data);
  });
});
const OpDef uniform_op = drawing_op("random_uniform", [](const KernelArgs& a) {
  draw(a, [&](const kernels::DrawBlock& d, const DrawParams& p) {
    kernels::draw_uniform(d, p.dtype, p.minval, p.maxval, a.out[0].data);
  });
});
const OpDef normal_op = drawing_op("random_normal", [](const KernelArgs& a) {
  draw(a, [&](const kernels::DrawBlock& d, const DrawParams& p) {
    kernels::draw_normal(d, p.dtype, p.minval, p.maxval, a.out[0].data);
  });
});
const OpDef integers_op = drawing_op("random_integers", [](const KernelArgs& a) {
  draw(a, [&](const kernels::DrawBlock& d, const DrawParams& p) {
    kernels::draw_integers(d, p.dtype, p.least, p.span, a.out[0].data);
  });
});
const Registered registered_bits(bits_op), registered_uniform(uniform_op), registered_normal(normal_op),
    registered_integers(integers_op);

}  // namespace

Array bits(const Array& key, Shape shape, Dtype dtype, Threefry mode) {
  return record(bits_op, make_params(DrawParams{.shape = std::move(shape), .dtype = dtype, .mode = mode}),
                {key});
}
Array uniform(const Array& key, Shape shape, Dtype dtype, double minval, double maxval, Threefry mode,
              Slab slab) {
  return record(uniform_op,
                make_params(DrawParams{.shape = std::move(shape),
                                       .dtype = dtype,
                                       .mode = mode,
                                       .minval = minval,
                                       .maxval = maxval,
                                       .slab = slab}),
                {key});
}
Array normal(const Array& key, Shape shape, Dtype dtype, double minval, double maxval, Threefry mode) {
  return record(
      normal_op,
      make_params(DrawParams{
          .shape = std::move(shape), .dtype = dtype, .mode = mode, .minval = minval, .maxval = maxval}),
      {key});
}
Array integers(const Array& key, Shape shape, Dtype dtype, std::int64_t minval, std::uint64_t span,
               Threefry mode) {
  return record(integers_op,
                make_params(DrawParams{
                    .shape = std::move(shape), .dtype = dtype, .mode = mode, .least = minval, .span = span}),
                {key});
}

}  // namespace tessera::rng
