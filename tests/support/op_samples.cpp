#include "support/op_samples.hpp"
#include "ops/elementwise/define.hpp"

#include <tessera/collectives.hpp>
#include <tessera/control/lax.hpp>
#include <tessera/fft.hpp>
#include <tessera/grad.hpp>
#include <tessera/linalg.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops.hpp>
#include <tessera/ops/numpy.hpp>
#include <tessera/random.hpp>

#include <algorithm>
#include <numeric>

namespace tessera::test {
namespace {

using In = const std::vector<Array>&;
using Out = std::vector<Array>;

class Table {
 public:
  std::vector<OpSample> rows;

  void add(std::string name, std::vector<OperandSample> operands, std::function<Out(In)> call,
           Smooth smooth = Smooth::twice, double tolerance = 1e-6) {
    rows.push_back({std::move(name), std::move(operands), std::move(call), smooth, tolerance});
  }
};

// Shapes that broadcast: of each operand dims that others repeat, and both ways.
std::vector<std::vector<Shape>> shapes_of(int arity) {
  if (arity == 1) return {{{5, 3}}};
  if (arity == 2) return {{{5, 3}, {3}}, {{5, 1}, {2, 1, 3}}};
  return {{{5, 3}, {3}, {5, 1}}};
}

Smooth smoothness(const ElementwiseOp& op, Dtype dtype) {
  if (op.def.vjp.why() != nullptr || !is_inexact(dtype)) return Smooth::no;
  return op.trials.twice_differentiable ? Smooth::twice : Smooth::once;
}

void add_trial(Table& t, const ElementwiseOp& op, const Trial& trial, const std::vector<Shape>& shapes,
               const std::string& name) {
  std::vector<OperandSample> operands;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const bool is_condition = static_cast<int>(i) < op.row.dtype_input;
    const auto [low, high] = is_condition ? Trial::Range{0, 1} : trial.operands[i];
    operands.push_back({shapes[i], low, high, is_condition ? bool_ : trial.dtype});
  }
  const auto call = [&op](In x) -> Out { return {op(std::vector<Operand>(x.begin(), x.end()))}; };
  t.add(name, std::move(operands), call, smoothness(op, trial.dtype));
}

void add_row(Table& t, const ElementwiseOp& op) {
  for (const auto& trial : op.trials.calls) {
    const std::string name = op.def.name + (is_complex(trial.dtype) ? "_complex" : "");
    if (trial.of_logarithm) {
      t.add(
          name, {{{5, 3}, -1, 1, int32}}, [&op](In x) -> Out { return {op({log(x[0])})}; }, Smooth::no);
      continue;
    }
    const auto shapes = shapes_of(op.row.kernel->arity());
    for (std::size_t i = 0; i < shapes.size(); ++i)
      add_trial(t, op, trial, shapes[i], name + (i == 0 ? "" : "_other_way"));
  }
}

// The rows of the elementwise ops, and what their functions do beside.
void elementwise(Table& t) {
  for (const ElementwiseOp* op : elementwise_ops()) add_row(t, *op);
  const std::pair<const char*, Array (*)(const Operand&, const Operand&)> mixed[] = {
      {"add", add}, {"subtract", subtract}, {"multiply", multiply}, {"divide", divide}, {"power", power}};
  for (const auto& [name, f] : mixed)
    t.add(std::string(name) + "_complex_and_real", {{{4, 3}, 0.5, 1.5, complex128}, {{4, 1}, 0.5, 1.5}},
          [f = f](In x) -> Out { return {f(x[0], x[1])}; });
  t.add("power_to_a_number", {{{5, 3}, -2, 2}}, [](In x) -> Out { return {power(x[0], 3.0)}; });
  t.add("astype_real_to_complex", {{{5, 3}}}, [](In x) -> Out { return {astype(x[0], complex128)}; });
  t.add(
      "astype_to_float32_and_back", {{{5, 3}, -2, 2}},
      [](In x) -> Out { return {astype(astype(x[0], float32), float64)}; }, Smooth::no);
}

// Of two operands, differentiable in one.
void special(Table& t) {
  t.add("zeta_by_q", {{{5, 3}, 0.6, 3}}, [](In x) -> Out { return {zeta(2.5, x[0])}; });
  t.add("polygamma_by_x", {{{5, 3}, 0.6, 3}}, [](In x) -> Out { return {polygamma(2, x[0])}; });
  t.add("ldexp_by_x", {{{5, 3}}}, [](In x) -> Out { return {ldexp(x[0], 3), frexp(x[0]).first}; });
}

void windows(Table& t) {
  t.add("reduce_window", {{{7, 5}, 0.5, 2}}, [](In x) -> Out {
    return {reduce_window(x[0], "sum", {3, 2}, {.strides = {2, 1}, .padding = {{1, 1}, {0, 1}}}),
            reduce_window(x[0], "max", {2, 5}), reduce_window(x[0], "prod", {3, 1})};
  });
  t.add("conv_transpose", {{{2, 4, 5}}, {{4, 3, 3}}}, [](In x) -> Out {
    return {conv_transpose(x[0], x[1], {.strides = {2}, .padding = {{1, 0}}})};
  });
  t.add("shifted", {{{7, 5}}}, [](In x) -> Out {
    return {shifted(x[0], 2, 0), shifted(x[0], -1, 1, Boundary::reflect), shifted(x[0], 2, 0, Boundary::edge),
            shifted(x[0], -3, 0, Boundary::constant, 1.5), shifted(x[0], 2, 1, Boundary::symmetric)};
  });
}

void statistics(Table& t) {
  t.add("quantile", {{{7, 5}}}, [](In x) -> Out {
    return {quantile(x[0], array({0.1, 0.6}), 0), nanquantile(x[0], 0.3, {0, 1}, "hazen")};
  });
  t.add(
      "interp", {{{6}, -1, 5}},
      [](In x) -> Out {
        return {interp(x[0], array({0.0, 1.0, 3.0, 4.0}), array({2.0, -1.0, 0.5, 3.0}))};
      },
      Smooth::once);
  t.add("cov", {{{4, 7}}}, [](In x) -> Out { return {cov(x[0]), corrcoef(x[0])}; });
  t.add("gradient_convolve", {{{7}}, {{3}}}, [](In x) -> Out {
    return {gradient(x[0], 0), convolve(x[0], x[1]), correlate(x[0], x[1], "same"), trapezoid(x[0])};
  });
}

void reductions(Table& t) {
  t.add("sum", {{{5, 3}}}, [](In x) -> Out { return {sum(x[0]), sum(x[0], 0), sum(x[0], {-1}, true)}; });
  t.add("sum_complex", {{{5, 3}, -2, 2, complex128}}, [](In x) -> Out { return {sum(x[0], 0)}; });
  t.add("mean", {{{2, 5, 3}}}, [](In x) -> Out { return {mean(x[0], {0, 2})}; });
  t.add("prod", {{{5, 3}, 0.5, 2}}, [](In x) -> Out { return {prod(x[0], 0), prod(x[0])}; });
  t.add("max", {{{5, 3}}}, [](In x) -> Out { return {max(x[0], 0), max(x[0])}; });
  t.add("min", {{{5, 3}}}, [](In x) -> Out { return {min(x[0], 1, true), min(x[0])}; });
  t.add("var_std", {{{7, 3}}}, [](In x) -> Out { return {var(x[0], 0), std(x[0], 0)}; });
  t.add("logsumexp", {{{5, 3}}}, [](In x) -> Out { return {logsumexp(x[0], 0), logsumexp(x[0])}; });
  t.add("softmax", {{{5, 3}}}, [](In x) -> Out { return {softmax(x[0], 0), log_softmax(x[0])}; });
  t.add(
      "any_all", {{{5, 3}, 0, 1, bool_}},
      [](In x) -> Out {
        return {any(x[0], 0), all(x[0], 1), count_nonzero(x[0])};
      },
      Smooth::no);
}

void shapes(Table& t) {
  t.add("reshape", {{{6, 5}}}, [](In x) -> Out {
    return {reshape(x[0], {3, 10}), reshape(x[0], {2, 3, 5}), reshape(x[0], {-1})};
  });
  t.add("transpose", {{{2, 5, 3}}}, [](In x) -> Out {
    return {transpose(x[0]), transpose(x[0], {1, 0, 2}), swapaxes(x[0], 1, 2), moveaxis(x[0], 2, 0)};
  });
  t.add("squeeze_expand_dims", {{{5, 1, 3}}}, [](In x) -> Out {
    return {squeeze(x[0]), expand_dims(x[0], 2)};
  });
  t.add("broadcast_to", {{{5, 1}}}, [](In x) -> Out { return {broadcast_to(x[0], {2, 5, 3})}; });
  t.add("concatenate", {{{5, 3}}, {{2, 3}}, {{5, 3}}}, [](In x) -> Out {
    return {concatenate({x[0], x[1]}, 0), concatenate({x[0], x[2]}, 1), stack({x[0], x[2]}, 1)};
  });
  t.add("split", {{{6, 3}}}, [](In x) -> Out { return split(x[0], 3); });
  t.add("flip_roll", {{{5, 3}}}, [](In x) -> Out {
    return {flip(x[0]), flip(x[0], 1), roll(x[0], 2, 0), roll(x[0], -1, 1)};
  });
  t.add("pad", {{{5, 3}}}, [](In x) -> Out { return {pad(x[0], {{1, 2}, {0, 1}}, 3.0)}; });
  t.add("tile_repeat", {{{5, 3}}}, [](In x) -> Out {
    return {tile(x[0], {2, 1}), repeat(x[0], 3, 0), repeat(x[0], 2, 1)};
  });
  t.add("triangles", {{{5, 4}}}, [](In x) -> Out {
    return {tril(x[0], 1), triu(x[0]), diagonal(x[0]), diagonal(x[0], 1)};
  });
  t.add(
      "alias_stop_gradient", {{{5, 3}}}, [](In x) -> Out { return {stop_gradient(x[0])}; }, Smooth::no);
  t.add("device_put", {{{5, 3}}}, [](In x) -> Out {
    const Mesh mesh = make_mesh({device_count()}, {"there"});
    return {device_put(x[0], NamedSharding(mesh, P(None, "there")))};
  });
}

void indexing(Table& t) {
  t.add("compress", {{{7, 3}}}, [](In x) -> Out {
    const Array mask = arange(7) % 3 != 1;
    return {compress(mask, x[0], 0, {.size = 5}), compress(mask, x[0], 0, {.size = 3}),
            compress(mask, x[0], 0, {.size = 9, .fill_value = 2})};
  });
  t.add("dynamic_slices", {{{7, 5}}, {{3, 2}}}, [](In x) -> Out {
    return {dynamic_slice(x[0], {arange(9)(3), Array(1)}, {3, 2}),
            dynamic_update_slice(x[0], x[1], {arange(9)(2), Array(-4)})};
  });
  t.add(
      "bitcast", {{{5, 3}}, {{4, 2}, -9, 9, int32}},
      [](In x) -> Out {
        return {bitcast_convert_type(x[0], int64), bitcast_convert_type(x[0], int32),
                bitcast_convert_type(x[1], int64)};
      },
      Smooth::no);
  t.add("slice", {{{7, 5}}}, [](In x) -> Out {
    return {x[0](slice(1, 6, 2)), x[0](slice(), slice(None, None, -1)), x[0](3),
            x[0](ellipsis, newaxis, slice(1, 3))};
  });
  t.add("gather", {{{7, 5}}, {{3, 2}, 0, 6, int32}}, [](In x) -> Out {
    return {x[0](x[1]), take(x[0], x[1], 0)};
  });
  t.add("gather_of_two", {{{7, 5}}, {{3, 2}, 0, 6, int32}, {{2}, 0, 4, int32}},
        [](In x) -> Out { return {x[0](x[1], x[2])}; });
  t.add("set_slice", {{{7, 5}}, {{3, 5}}}, [](In x) -> Out { return {x[0].at(slice(1, 6, 2)).set(x[1])}; });
  t.add("add_slice", {{{7, 5}}, {{5}}}, [](In x) -> Out { return {x[0].at(slice(2, 5)).add(x[1])}; });
  t.add("set_gathered", {{{7, 5}}, {{5}}}, [](In x) -> Out { return {x[0].at(array({1, 4, 6})).set(x[1])}; });
  t.add("add_gathered", {{{7, 5}}, {{4}, 0, 6, int32}, {{4, 5}}},
        [](In x) -> Out { return {x[0].at(x[1]).add(x[2])}; });
  t.add("multiply_gathered", {{{7, 5}}, {{2, 5}}}, [](In x) -> Out {
    return {x[0].at(array({1, 4})).multiply(x[1])};
  });
}

void sorting(Table& t) {
  t.add("sort", {{{7, 5}}}, [](In x) -> Out { return {sort(x[0]), sort(x[0], 0)}; });
  t.add(
      "argsort", {{{7, 5}}},
      [](In x) -> Out {
        return {argsort(x[0]), argsort(x[0], 0)};
      },
      Smooth::no);
  t.add(
      "argmax_argmin", {{{7, 5}}},
      [](In x) -> Out {
        return {argmax(x[0]), argmax(x[0], 0), argmin(x[0], 1, true)};
      },
      Smooth::no);
  t.add("top_k", {{{4, 9}}}, [](In x) -> Out {
    const auto [values, indices] = top_k(x[0], 3);
    return {values, indices};
  });
  t.add(
      "searchsorted", {{{5}}, {{3, 2}}}, [](In x) -> Out { return {searchsorted(sort(x[0]), x[1])}; },
      Smooth::no);
  t.add("cumsum", {{{7, 5}}}, [](In x) -> Out { return {cumsum(x[0], 0), cumsum(x[0], 1)}; });
  t.add("cumprod", {{{5, 3}, 0.5, 2}}, [](In x) -> Out { return {cumprod(x[0], 0), cumprod(x[0], 1)}; });
  t.add("cumulative_extrema", {{{5, 3}}}, [](In x) -> Out {
    return {cummax(x[0], 0), cummax(x[0], 1, true), cummin(x[0], 1), cummin(x[0], 0, true)};
  });
  t.add("cumlogsumexp", {{{5, 3}}}, [](In x) -> Out {
    return {cumlogsumexp(x[0], 0), cumlogsumexp(x[0], 1, true)};
  });
  t.add("cumsum_initial", {{{5, 3}}}, [](In x) -> Out {
    return {cumsum(x[0], 0, {.include_initial = true}), cumsum(x[0])};
  });
  t.add("pad_modes", {{{5, 3}}}, [](In x) -> Out {
    return {pad(x[0], {{2, 7}, {0, 1}}, "reflect"), pad(x[0], {{2, 1}}, "edge"), pad(x[0], {{3, 4}}, "wrap")};
  });
  t.add("repeat_counts", {{{3, 4}}}, [](In x) -> Out {
    return {repeat(x[0], std::vector<std::int64_t>{2, 0, 3}, 0)};
  });
  t.add("take_along_axis", {{{7, 5}}, {{3, 5}, 0, 6, int32}},
        [](In x) -> Out { return {take_along_axis(x[0], x[1], 0)}; });
}

void contractions(Table& t) {
  t.add("outer", {{{5, 3}}, {{3}}}, [](In x) -> Out { return {outer(x[0], x[1])}; });
  t.add("inner", {{{5, 3}}, {{4, 3}}}, [](In x) -> Out { return {inner(x[0], x[1])}; });
  t.add("matmul", {{{5, 3}}, {{3, 4}}}, [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("matmul_batched", {{{2, 5, 3}}, {{3, 4}}}, [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("matmul_broadcast", {{{2, 1, 5, 3}}, {{3, 3, 4}}}, [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("matmul_complex", {{{5, 3}, -1, 1, complex128}, {{3, 4}, -1, 1, complex128}},
        [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("matmul_complex_and_real", {{{5, 3}, -1, 1, complex128}, {{3, 4}}},
        [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("dot_vdot", {{{5}}, {{5}}}, [](In x) -> Out { return {dot(x[0], x[1]), vdot(x[0], x[1])}; });
  t.add("vdot_complex", {{{5}, -1, 1, complex128}, {{5}, -1, 1, complex128}},
        [](In x) -> Out { return {vdot(x[0], x[1])}; });
  t.add("tensordot", {{{4, 3, 2}}, {{3, 2, 5}}}, [](In x) -> Out {
    return {tensordot(x[0], x[1]),
            tensordot(x[0], x[1], std::pair{std::vector<int>{2, 1}, std::vector<int>{1, 0}})};
  });
  t.add("einsum", {{{2, 4, 3}}, {{2, 3, 5}}}, [](In x) -> Out {
    return {einsum("bij,bjk->kbi", x[0], x[1]), einsum("bij,bjk->ik", x[0], x[1])};
  });
  t.add("trace", {{{5, 4}}}, [](In x) -> Out { return {trace(x[0])}; });
}

void convolutions(Table& t) {
  t.add("conv_1d", {{{2, 3, 9}}, {{4, 3, 3}}}, [](In x) -> Out {
    return {conv(x[0], x[1]), conv(x[0], x[1], {.strides = {2}, .padding = {{1, 2}}})};
  });
  t.add("conv_2d", {{{2, 4, 7, 6}}, {{6, 2, 3, 2}}}, [](In x) -> Out {
    return {
        conv(x[0], x[1], {.strides = {1, 2}, .padding = {{1, 1}, {0, 1}}, .dilation = {2, 1}, .groups = 2})};
  });
}

// Well conditioned, and as symmetric as the op reads it.
Array regular(const Array& x) { return x + 4 * astype(eye(x.shape()[x.shape().size() - 1]), x.dtype()); }
Array hermitian(const Array& x) { return x + conj(swapaxes(x, -1, -2)); }
Array positive(const Array& x) {
  return matmul(x, conj(swapaxes(x, -1, -2))) + astype(eye(x.shape()[x.shape().size() - 1]), x.dtype());
}

void linear_algebra(Table& t) {
  using namespace linalg;
  for (const Dtype dtype : {float64, complex128}) {
    const std::string suffix = is_complex(dtype) ? "_complex" : "";
    const auto of = [dtype](Shape shape) { return OperandSample{std::move(shape), -1, 1, dtype}; };
    t.add("solve" + suffix, {of({5, 5}), of({5, 2})},
          [](In x) -> Out { return {solve(regular(x[0]), x[1])}; });
    t.add("lu" + suffix, {of({4, 4})}, [](In x) -> Out {
      const auto [p, l, u] = lu(regular(x[0]));
      return {l, u};
    });
    t.add("lu_solve" + suffix, {of({4, 4}), of({4, 2})},
          [](In x) -> Out { return {lu_solve(lu_factor(regular(x[0])), x[1])}; });
    t.add("cholesky" + suffix, {of({4, 4})}, [](In x) -> Out { return {cholesky(positive(x[0]))}; });
    t.add("cholesky_solve" + suffix, {of({4, 4}), of({4, 2})},
          [](In x) -> Out { return {cholesky_solve(cholesky(positive(x[0])), x[1])}; });
    t.add("triangular_solve" + suffix, {of({4, 4}), of({4, 2})}, [](In x) -> Out {
      return {triangular_solve(regular(x[0]), x[1]),
              triangular_solve(regular(x[0]), x[1], {.lower = true, .transpose = true}),
              triangular_solve(x[0], x[1], {.lower = true, .unit_diagonal = true})};
    });
    t.add("qr" + suffix, {of({5, 3})}, [](In x) -> Out {
      const auto [q, r] = qr(x[0]);
      return {q, r};
    });
    // The phases of singular and eigenvectors are the algorithm's choice: only what does not depend on them
    // is differentiated.
    t.add("svd" + suffix, {of({4, 3})}, [](In x) -> Out {
      const auto [u, s, vh] = svd(x[0], {.full_matrices = false});
      return {s, abs(u), real(matmul(u * s, vh))};
    });
    t.add("eigh" + suffix, {of({4, 4})}, [](In x) -> Out {
      const auto [w, v] = eigh(hermitian(x[0]));
      return {w, abs(v)};
    });
    t.add("eigvalsh_svdvals" + suffix, {of({4, 4}), of({3, 4})}, [](In x) -> Out {
      return {eigvalsh(hermitian(x[0])), svdvals(x[1])};
    });
    t.add("inv_det" + suffix, {of({2, 3, 3})}, [](In x) -> Out {
      return {inv(regular(x[0])), det(regular(x[0]))};
    });
  }
  t.add("slogdet_norm_lstsq", {{{5, 5}}, {{7, 3}}, {{7}}}, [](In x) -> Out {
    return {slogdet(regular(x[0])).logabsdet, norm(x[0]), lstsq(x[1], x[2]), matrix_power(x[0], 3),
            expm(x[0])};
  });
}

// Over all ranks, on equal blocks: as many rows and columns of a 24 x 12 matrix as divide.
void collectives(Table& t) {
  const auto row = [&](const char* name, Array (*f)(const Array&), PartitionSpec out,
                       Smooth smooth = Smooth::twice) {
    t.add(
        name, {{{24, 12}}},
        [f, out](In x) -> Out {
          const int n = device_count(), rows = 24 / n * n, columns = 12 / n * n;
          const auto mesh = make_mesh({n}, {"d"}, x[0].sharding().mesh().devices());
          return {shard_map(f, mesh, P("d"), out)(x[0](slice(0, rows), slice(0, columns)))};
        },
        smooth);
  };
  row(
      "psum", [](const Array& x) { return psum(x * x, "d"); }, P());
  row(
      "pmean", [](const Array& x) { return x * pmean(x, "d"); }, P("d"));
  row(
      "pmax", [](const Array& x) { return pmax(x, "d"); }, P(), Smooth::no);
  row(
      "pmin", [](const Array& x) { return pmin(x, "d"); }, P(), Smooth::no);
  row(
      "all_gather", [](const Array& x) { return x * sum(all_gather(sin(x), "d", {.tiled = true}), 0); },
      P("d"));
  row(
      "psum_scatter",
      [](const Array& x) { return psum_scatter(sin(x), "d", {.scatter_dimension = 1, .tiled = true}); },
      P(None, "d"));
  row(
      "all_to_all", [](const Array& x) { return all_to_all(sin(x), "d", 1, 0, {.tiled = true}); },
      P(None, "d"));
  row(
      "ppermute",
      [](const Array& x) {
        std::vector<std::pair<int, int>> ring;
        for (int r = 0; r < device_count(); ++r) ring.emplace_back(r, (r + 1) % device_count());
        return x * ppermute(x, "d", ring);
      },
      P("d"));
  row(
      "pbroadcast", [](const Array& x) { return x * pbroadcast(x, "d", device_count() - 1); }, P("d"));
}

void fourier(Table& t) {
  const auto c = [](Shape shape) { return OperandSample{std::move(shape), -1, 1, complex128}; };
  t.add("fft", {c({6, 5})}, [](In x) -> Out {
    return {fft::fft(x[0]), fft::ifft(x[0], {.axes = {0}}), fft::fft2(x[0])};
  });
  t.add("fft_resized", {c({4, 5})}, [](In x) -> Out { return {fft::fft(x[0], 7), fft::fft(x[0], 3)}; });
  t.add("rfft", {{{4, 7}}}, [](In x) -> Out {
    return {fft::rfft(x[0]), fft::rfftn(x[0], {.norm = "ortho"})};
  });
  t.add("irfft", {c({4, 5})}, [](In x) -> Out { return {fft::irfft(x[0]), fft::irfft(x[0], 9)}; });
  t.add("hfft", {c({3, 5})}, [](In x) -> Out { return {fft::hfft(x[0])}; });
  t.add("ihfft", {{{3, 6}}}, [](In x) -> Out { return {fft::ihfft(x[0])}; });
}

void creation(Table& t) {
  t.add(
      "creation", {},
      [](In) -> Out {
        return {zeros({5, 3}),           ones({4}, int32), full({5, 3}, 2.5, float64), eye(5),
                eye(4, 6, 1, complex64), arange(7),        linspace(0, 1, 5)};
      },
      Smooth::no);
  t.add(
      "random", {},
      [](In) -> Out {
        const auto key = random::key(7);
        return {random::bits(key, {5, 3}), random::uniform(key, {5, 3}), random::normal(key, {5, 3}, float64),
                random::randint(key, {7}, 0, 100)};
      },
      Smooth::no);
  t.add(
      "random_from_parameters", {{{5}, 0.5, 9}},
      [](In x) -> Out {
        const auto key = random::key(3);
        return {random::gamma(key, stop_gradient(x[0])), random::poisson(key, x[0]),
                random::binomial(key, 20, x[0] / 10)};
      },
      Smooth::no);
  t.add(
      "keys", {{{2}, 0, 1000, uint32}},
      [](In x) -> Out {
        const auto key = random::wrap_key_data(x[0]);
        return {random::split(key, 3)[1].data, random::fold_in(key, 3).data,
                random::split_batch(key, {2, 2}).data, random::uniform(key, {5})};
      },
      Smooth::no);
}

double value_at(const OperandSample& operand, std::int64_t rank, std::int64_t n, std::mt19937& random) {
  const double jitter = 0.25 + 0.5 * static_cast<double>(random() >> 8) / (1 << 24);
  const double at = (static_cast<double>(rank) + jitter) / static_cast<double>(n);
  if (is_inexact(operand.dtype)) return operand.low + at * (operand.high - operand.low);
  return operand.low + static_cast<double>(random() % static_cast<unsigned>(operand.high - operand.low + 1));
}

}  // namespace

const std::vector<OpSample>& op_samples() {
  static const auto rows = [] {
    Table t;
    elementwise(t), reductions(t), special(t), windows(t), statistics(t), shapes(t), indexing(t), sorting(t),
        contractions(t), convolutions(t), linear_algebra(t), collectives(t), fourier(t), creation(t);
    return std::move(t.rows);
  }();
  return rows;
}

const std::map<std::string, std::string>& ops_tested_elsewhere() {
  static const std::map<std::string, std::string> ops{
      {"alias", "what transformations put around their arguments: tests/transforms"},
      {"custom_vjp", "tests/transforms"},
      {"barrier", "what checkpoint puts before a second computation: tests/transforms"},
      {"scan", "needs a trace: tests/control"},
      {"while_loop", "needs a trace: tests/control"},
      {"cond", "needs a trace: tests/control"},
      {"psum_groups", "tests/ops/collective"},
      {"effect", "what prints and calls back inside a trace: tests/debug"},
      {"reorder", "the same devices in another order, for pmap: tests/ops/collective"},
      {"pmax_groups", "tests/ops/collective"},
      {"pmin_groups", "tests/ops/collective"},
      {"random_poisson_rounds", "drawn again until all samples are accepted, inside poisson"},
      {"random_binomial_rounds", "the same inside binomial"},
      {"eig", "its vectors have no derivative: tests/linalg"},
      {"eigvals", "complex results of real operands: tests/linalg"},
      {"schur", "not unique: tests/linalg"},
      {"pivoted_columns", "inside qr_pivoted: tests/linalg"},
      {"sparse_dot", "needs a sparse matrix: tests/sparse"},
      {"sparse_dot_transposed", "needs a sparse matrix: tests/sparse"},
      {"sparse_sample", "needs a sparse matrix: tests/sparse"},
      {"sparse_incomplete_lu", "needs a sparse matrix: tests/sparse"},
      {"sparse_solve_lu", "needs a sparse matrix: tests/sparse"},
      {"random_integers", "its bounds are operands of randint: tests/random"},
  };
  return ops;
}

std::vector<Array> operands_of(const OpSample& sample, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Array> operands;
  for (const auto& operand : sample.operands) {
    const auto n = operand.shape.elements();
    const auto part = [&] {
      std::vector<std::int64_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<double> values;
      for (const auto rank : order) values.push_back(value_at(operand, rank, n, random));
      return values;
    };
    const auto re = part();
    if (is_complex(operand.dtype)) {
      const auto im = part();
      std::vector<std::complex<double>> values;
      for (std::size_t i = 0; i < re.size(); ++i) values.emplace_back(re[i], im[i]);
      operands.push_back(array(values, operand.shape));
    } else {
      operands.push_back(astype(array(re, operand.shape), operand.dtype));
    }
  }
  return operands;
}

Array random_like(const Array& x, std::mt19937& random) {
  const auto part = [&] {
    std::vector<double> values;
    for (std::int64_t i = 0; i < x.size(); ++i)
      values.push_back(static_cast<double>(random() >> 8) / (1 << 23) - 1);
    return array(values, x.shape());
  };
  return is_complex(x.dtype()) ? astype(make_complex(part(), part()), x.dtype()) : astype(part(), x.dtype());
}

}  // namespace tessera::test
