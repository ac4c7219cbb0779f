// Every line is transformed by the same FFTW plan: for one line of its length in aligned memory, estimated
// without wisdom. Plans for many lines at once depend on their number, and so do the last bits of their
// results.
#include "ops/fourier/ordered.hpp"

#include <algorithm>
#include <complex>

#include "kernels/fourier/fft_plans.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "mesh/reshard.hpp"
#include "ops/build.hpp"
#include "ops/fourier/stages.hpp"
#include "ops/functions.hpp"
#include "program/builder.hpp"

namespace tessera {
namespace {

using kernels::FftKind;

// Items of a line, `step` apart, to or from memory of its own.
template <class T> void take_line(const T* from, std::int64_t step, std::int64_t n, T* line) {
  for (std::int64_t i = 0; i < n; ++i) line[i] = from[i * step];
}
template <class T, class R> void put_line(const T* line, std::int64_t n, R scale, T* to, std::int64_t step) {
  if (scale == R(1))
    for (std::int64_t i = 0; i < n; ++i) to[i * step] = line[i];
  else
    for (std::int64_t i = 0; i < n; ++i) to[i * step] = line[i] * scale;
}

template <class In, class Out, class R> void transform_lines(const KernelArgs& a) {
  const auto& p = a.params.as<FftParams>();
  const Tile &in = a.in[0], &out = a.out[0];
  const auto from = kernels::axis_view(in.shape(), p.dims[0]),
             to = kernels::axis_view(out.shape(), p.dims[0]);
  const std::int64_t points = p.kind == FftKind::c2r ? to.extent : from.extent;
  const kernels::FftJob job{p.kind, p.sign, {{points, 1, 1}}, {}, kernels::FftPlanning::alike};
  kernels::share(from.outer * from.inner, 1 + 65536 / std::max<std::int64_t>(points, 1),
                 [&](std::int64_t begin, std::int64_t end) {
                   Buffer source = Buffer::allocate(static_cast<std::size_t>(from.extent) * sizeof(In) + 64),
                          result = Buffer::allocate(static_cast<std::size_t>(to.extent) * sizeof(Out) + 64);
                   In* const line = reinterpret_cast<In*>(source.data());
                   Out* const made = reinterpret_cast<Out*>(result.data());
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t o = i / from.inner, column = i % from.inner;
                     take_line(in.as<In>() + o * from.extent * from.inner + column, from.inner, from.extent,
                               line);
                     kernels::run_fft_plan(complex_dtype(in.dtype), job, line, made, 1);
                     put_line(made, to.extent, static_cast<R>(p.scale),
                              out.as<Out>() + o * to.extent * to.inner + column, to.inner);
                   }
                 });
}

template <class R> void transform(const KernelArgs& a) {
  using C = std::complex<R>;
  switch (a.params.as<FftParams>().kind) {
    case FftKind::c2c: return transform_lines<C, C, R>(a);
    case FftKind::r2c: return transform_lines<R, C, R>(a);
    case FftKind::c2r: return transform_lines<C, R, R>(a);
  }
}

void kernel(const KernelArgs& a) {
  if (a.out[0].elements() == 0) return;
  if (complex_dtype(a.in[0].dtype) == complex64)
    transform<float>(a);
  else
    transform<double>(a);
}

// The operand's layout for ordered transforms: lines are unsplit, and the axes that split them move to the
// longest other dim that has an index for each rank, or are dropped if there is none.
DimAxes with_whole_lines(DimAxes dims, const Shape& shape, int dim, const Mesh& mesh) {
  const MeshAxes axes = std::exchange(dims[dim], {});
  if (axes.empty()) return dims;
  int widest = -1;
  std::int64_t most = 0;
  for (int d = 0; d < shape.ndim(); ++d) {
    const auto each = shape[d] / (devices_along(mesh, dims[d]) * devices_along(mesh, axes));
    if (d != dim && each > most) most = each, widest = d;
  }
  if (widest >= 0) dims[widest].insert(dims[widest].end(), axes.begin(), axes.end());
  return dims;
}

Placement place(const PlacementArgs& args) {
  const int dim = args.params.as<FftParams>().dims[0];
  const Sharding from = args.shardings[0] ? *args.shardings[0]
                        : args.wanted     ? *args.wanted
                                          : Sharding::replicated(args.mesh);
  const auto whole = Sharding::from_dim_axes(
      from.mesh(),
      with_whole_lines(from.dim_axes(args.in[0].shape.ndim()), args.in[0].shape, dim, from.mesh()));
  return {{whole}, {from}, {}, ReduceKind::sum};
}

std::vector<int> lower(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const Sharding layout = builder.value(in[0]).layout;
  return {builder.reshard(builder.kernel(*node.op, node.params, {in[0]}, {node.outputs[0].type}, {layout})[0],
                          builder.placement().outputs[0])};
}

const OpDef line_op{
    .name = "fft_in_order",
    .infer = infer_fft,
    .sharding = PlacementRule{place},
    .runs = Lower{.write = lower, .kernel = kernel},
    .vjp = [](const VjpArgs& v) -> Cotangents { return fft_cotangent(v); },
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = args.node.params->as<FftParams>();
      ++p.dims[0];
      return {{record(*args.node.op, make_params(std::move(p)), {batch_first(args.in[0], args.dims[0])})},
              {0}};
    },
    .flops =
        [](std::span<const Type> in, std::span<const Type> out, const Params& params) {
          const auto& p = params.as<FftParams>();
          return fft_flops(p.kind, p.dims, in[0].shape, out[0].shape);
        },
    .same_bits = SameBits::made_for_it,
};

}  // namespace

Array ordered_fft(const Array& x, const FftParams& p) {
  // The halved dim is real on one side: r2c begins with it, c2r ends with it.
  auto order = p.dims;
  if (p.kind == FftKind::r2c) std::rotate(order.begin(), order.end() - 1, order.end());
  Array result = x;
  for (std::size_t i = 0; i < order.size(); ++i) {
    FftParams one = p;
    const bool is_halved = p.kind != FftKind::c2c && order[i] == p.dims.back();
    one.kind = is_halved ? p.kind : FftKind::c2c;
    one.dims = {order[i]};
    one.length = is_halved ? p.length : 0;
    one.scale = i + 1 == order.size() ? p.scale : 1;
    one.out_sharding = fft::OutSharding::keep;
    one.given.reset();
    result = record(line_op, make_params(std::move(one)), {result});
  }
  return p.out_sharding == fft::OutSharding::given ? device_put(result, *p.given) : result;
}

}  // namespace tessera
