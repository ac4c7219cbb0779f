// Costs of jit: a call of a compiled plan, planning itself, one pass for a chain, and products overlapping
// reductions.
#include <tessera/jit.hpp>

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "bench.hpp"
#include "raw_mpi.hpp"

namespace {

using namespace tessera;

constexpr int calls = 1000;
bench::Work repeat(const bench::Work& call) {
  return [call] {
    for (int i = 0; i < calls; ++i) call();
  };
}

// Ten ops on (4, 4); with x split by rows, the column sums are the one all-reduce.
Array ten_ops(const Array& x, const Array& w) {
  const Array h = matmul(x, w) + 1;
  const Array t = tanh(h) * 0.5f;
  const Array centred = t - sum(t, 0);
  return transpose(abs(centred) + x * w);
}

void cached_call_rows() {
  if (!bench::wanted("jit_call_of_10_ops_x1000")) return;
  const Array w = device_put(full({4, 4}, 0.25f), bench::split(P()));
  const Array x = device_put(full({4, 4}, 0.5f), bench::split(P("x", None)));
  eval(x, w);
  const auto f = jit(ten_ops);
  const auto ours = repeat([&] { eval(f(x, w)); });
  if (bench::ranks() == 1)
    return bench::compare("jit_call_of_10_ops_x1000", ours,
                          {{"budget of 10 us a call", {}, 1, 10e-6 * calls}});
  float mine[4] = {}, all[4];
  bench::compare("jit_call_of_10_ops_x1000", ours,
                 {{"MPI_Allreduce + 5 us a call", repeat([&] { bench::raw::all_reduce(mine, all, 4); }),
                   bench::ranks() == 2 ? 1.0 : 0, 0, 5e-6 * calls},
                  {"budget of 40 us a call", {}, bench::ranks() == 8 ? 1.0 : 0, 40e-6 * calls}});
}

// The same without the sums, so that nothing is sent.
void local_call_row() {
  const std::string name = "jit_call_of_10_local_ops_x1000";
  if (!bench::wanted(name)) return;
  const Array w = device_put(full({4, 4}, 0.25f), bench::split(P()));
  const Array x = device_put(full({4 * bench::ranks(), 4}, 0.5f), bench::split(P("x", None)));
  eval(x, w);
  const auto f = jit([](const Array& x, const Array& w) {
    const Array h = matmul(x, w) + 1;                             // 2
    return matmul(abs(tanh(h) * 0.5f - h) + x * 3, w) * 2.f + h;  // 10
  });
  bench::compare(name, repeat([&] { eval(f(x, w)); }), {{"budget of 15 us a call", {}, 1, 15e-6 * calls}});
}

// 100 layers of ten ops, planned on an abstract mesh of 4,096 ranks.
void planning_row() {
  if (!bench::wanted("jit_plans_1000_ops") || bench::ranks() > 1) return;
  const Mesh mesh = abstract_mesh({64, 64}, {"x", "y"});
  const Array x = device_put(zeros({8192, 8192}), mesh, P("x", "y")),
              w = device_put(zeros({8192, 8192}), mesh, P("y", None));
  const auto layers = [](Array x, const Array& w) {
    for (int layer = 0; layer < 100; ++layer) {
      const Array h = matmul(x, w) + 1;                    // 2 ops
      const Array centred = h - mean(h, 0);                // 3: sum, division, difference
      x = maximum(centred, 0) * 0.5f + tanh(centred) * x;  // 5
    }
    return x;
  };
  bench::compare(
      "jit_plans_1000_ops", [&] { (void)jit(layers).lower(x, w).compile().as_text().size(); },
      {{"budget of 1 s", {}, 1, 1.0}}, 5);
}

Array chain_of_16(const Array& x) {
  const Array a = ((x + 1) * 0.5f - 2) * x;               // 4
  const Array b = abs(a + 3) * 0.25f - x;                 // 8
  const Array c = minimum(maximum(b, -1) * 1.5f, 2) + a;  // 12
  return (c * x - b) * 0.125f + 7;                        // 16
}
inline __attribute__((always_inline)) void chain_loop(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float a = ((x[i] + 1) * 0.5f - 2) * x[i];
    const float b = std::abs(a + 3) * 0.25f - x[i];
    const float at_least = b > -1 ? b : -1, raised = at_least * 1.5f, c = (raised < 2 ? raised : 2) + a;
    y[i] = (c * x[i] - b) * 0.125f + 7;
  }
}
__attribute__((target("avx512f"))) void chain_by_avx512(const float* x, float* y, std::int64_t n) {
  chain_loop(x, y, n);
}
__attribute__((target("avx2,fma"))) void chain_by_avx2(const float* x, float* y, std::int64_t n) {
  chain_loop(x, y, n);
}
// Uses the vector instructions that tessera may use.
void chain_by_hand(const float* x, float* y, std::int64_t n) {
  static const auto targets = hwy::SupportedTargets();  // the query takes longer than a short loop
  if ((targets & HWY_AVX3) != 0)
    chain_by_avx512(x, y, n);
  else if ((targets & HWY_AVX2) != 0)
    chain_by_avx2(x, y, n);
  else
    chain_loop(x, y, n);
}

void chain_row(const std::string& size, std::int64_t n) {
  if (!bench::wanted("chain_of_16_f32_" + size) || bench::ranks() > 1) return;
  const Array x = device_put(full({n}, 0.75f), bench::on_one());
  eval(x);
  std::vector<float> from(n, 0.75f), to(from.size());
  const auto f = jit(chain_of_16);
  const int passes = static_cast<int>(std::max<std::int64_t>(1, (std::int64_t{16} << 20) / n));
  bench::compare("chain_of_16_f32_" + size,
                 [&] {
                   for (int i = 0; i < passes; ++i) eval(f(x));
                 },
                 {{"a loop by hand",
                   [&] {
                     for (int i = 0; i < passes; ++i) chain_by_hand(from.data(), to.data(), n);
                   },
                   1 / 1.3}});
}

// A product of a rank's own data and an all-reduce of something else, overlapped, compared with both in
// sequence. If every core computes, nothing can be gained, so a goal is set only if a core is spare.
void overlap_row() {
  if (!bench::wanted("product_beside_all_reduce") || bench::ranks() < 2) return;
  constexpr std::int64_t n = 1024;
  const Array a = device_put(full({n * bench::ranks(), n}, 0.5f), bench::split(P("x", None))),
              b = device_put(full({n, n}, 0.5f), bench::split(P()));
  const Array terms = device_put(full({bench::ranks(), n * 8, n}, 1.f), bench::split(P("x")));
  eval(a, b, terms);
  const auto product = jit([](Array a, Array b) { return matmul(a, b); });
  const auto reduction = jit([](Array terms) { return sum(terms, 0); });
  const auto both = jit([](Array a, Array b, Array terms) { return std::pair(sum(terms, 0), matmul(a, b)); });
  const bool spare = std::thread::hardware_concurrency() > static_cast<unsigned>(bench::ranks());
  bench::compare("product_beside_all_reduce", [&] { eval(both(a, b, terms)); },
                 {{"one after the other",
                   [&] {
                     eval(product(a, b));
                     eval(reduction(terms));
                   },
                   spare ? 1 / 0.75 : 0}});
}

void rows() {
  cached_call_rows();
  local_call_row();
  planning_row();
  chain_row("256Ki", std::int64_t{256} << 10);
  chain_row("16Mi", std::int64_t{16} << 20);
  overlap_row();
}

const bench::Group group(rows);

}  // namespace
