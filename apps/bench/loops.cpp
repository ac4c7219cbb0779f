// Costs of loops: 10,000 steps as one instruction, compared with the same loop in C++ with raw MPI; and
// planning them.
#include <tessera/control.hpp>
#include <tessera/grad.hpp>
#include <tessera/jit.hpp>

#include <vector>

#include "bench.hpp"
#include "raw_mpi.hpp"

namespace {

using namespace tessera;

constexpr int steps = 10000;
constexpr std::int64_t elements = 1 << 14;

// v <- 0.999 v + 0.001 sum(v) over all ranks.
Array relaxed(const Array& x) {
  return fori_loop(
      0, steps, [](const Array&, const Array& v) { return v * 0.999f + 0.001f * sum(v); }, x);
}

void running_row() {
  if (!bench::wanted("fori_10000_steps")) return;
  const Array x = device_put(ones({elements}), bench::split(P("x")));
  eval(x);
  const auto f = jit(relaxed);
  std::vector<float> own((elements + bench::ranks() - 1) / bench::ranks(), 1.0f);
  bench::compare(
      "fori_10000_steps", [&] { eval(f(x)); },
      {{"C++ loop, MPI_Allreduce",
        [&] {
          for (int step = 0; step < steps; ++step) {
            float mine = 0, all = 0;
            for (const float v : own) mine += v;
            bench::raw::all_reduce(&mine, &all, 1);
            for (float& v : own) v = v * 0.999f + 0.001f * all;
          }
        }}},
      5);
}

void planning_row() {
  if (!bench::wanted("jit_plans_fori_10000_steps")) return;
  const Array x = device_put(ones({elements}), bench::split(P("x")));
  bench::compare(
      "jit_plans_fori_10000_steps", [&] { (void)jit(relaxed).lower(x).compile().as_text().size(); },
      {{"budget of 1 s", {}, 1, 1.0}}, 5);
  const auto by_number = [](const Array& v0) {
    return fori_loop(
        0, steps,
        [](int i, const Array& v) { return v * 0.999f + 0.001f / static_cast<float>(i + 1) * sum(v); }, v0);
  };
  bench::compare(
      "jit_plans_fori_10000_numbers", [&] { (void)jit(by_number).lower(x).compile().as_text().size(); },
      {{"budget of 1 s", {}, 1, 1.0}}, 5);
  const auto loss = [](const Array& v) { return sum(relaxed(v)); };
  bench::compare(
      "jit_plans_grad_of_fori_10000", [&] { (void)jit(grad(loss)).lower(x).compile().as_text().size(); },
      {{"budget of 1 s", {}, 1, 1.0}}, 5);
}

const bench::Group group([] {
  running_row();
  planning_row();
});

}  // namespace
