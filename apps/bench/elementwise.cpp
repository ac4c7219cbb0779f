// Elementwise work, which is limited by memory (chains) or by arithmetic (sin).
#include <malloc.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>

#include "bench.hpp"
#include "types/buffer.hpp"

namespace {

using namespace tessera;

Array chain_of_8(const Array& x) { return abs((((x + 1) * 0.5f - 2) * x + 3) * 0.25f - x); }

// tanh(2x + 1) x - exp(-x^2) + |x| / 2: arithmetic limits it, not memory.
void transcendental_row() {
  const std::string name = "tanh_exp_chain_f32_8192x8192";
  if (!bench::wanted(name)) return;
  const Array x =
      device_put(reshape(astype(arange(8192 * 8192), float32), {8192, 8192}) * 1e-7f, bench::split(P("x")));
  eval(x);
  const auto mine = local<float>(x);
  std::vector<float> to(mine.size());
  const auto by_hand = [&] {
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = std::tanh(2 * mine[i] + 1) * mine[i] - std::exp(-mine[i] * mine[i]) + std::abs(mine[i]) / 2;
  };
  bench::compare(name, [&] { eval(tanh(x * 2 + 1) * x - exp(-square(x)) + abs(x) * 0.5f); },
                 {{"a loop over the C library's", by_hand, 0}}, 5, {0, 32, 8.0 * 8192 * 8192});
}

// Evaluation in fresh memory: the system provides it page by page, as for the loop.
void first_evaluation_row() {
  const std::string name = "first_eval_f32_300MB";
  if (!bench::wanted(name)) return;
  constexpr std::int64_t n = 75000000;
  const Array x = device_put(ones({n}), bench::split(P("x")));
  eval(x);
  const auto mine = local<float>(x);
  const auto return_memory = [] { release_pooled_memory(), malloc_trim(0); };
  const auto on_fresh_pages = [&] {
    const std::size_t bytes = mine.size() * sizeof(float);
    void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    auto* const to = static_cast<float*>(pages);
    for (std::size_t i = 0; i < mine.size(); ++i) to[i] = mine[i] * 2 + 1;
    munmap(pages, bytes);
  };
  bench::compare(name, [&] { eval(x * 2 + 1); }, {{"a loop into fresh pages", on_fresh_pages, 1}},
                 bench::Repeat{5, return_memory}, {0, 32, 8.0 * n});
}

void rows() {
  first_evaluation_row();
  if (bench::wanted("chain_of_8_f32_64Mi")) {
    const std::int64_t n = std::int64_t{64} << 20;
    const Array x = device_put(ones({n}), bench::split(P("x")));
    eval(x);
    const auto mine = static_cast<std::size_t>(local<float>(x).size());
    std::vector<float> from(mine, 1.f), to(mine);
    bench::compare(
        "chain_of_8_f32_64Mi", [&] { eval(chain_of_8(x)); },
        {{"memcpy", [&] { std::memcpy(to.data(), from.data(), mine * sizeof(float)); }, 0.8, 0, 0, {}, true}},
        7);
  }
  if (bench::wanted("sin_f32_8192x8192") && bench::ranks() > 1) {
    const Array x =
        device_put(reshape(astype(arange(8192 * 8192), float32), {8192, 8192}) * 1e-4f, bench::split(P("x")));
    const Array alone = device_put(x, bench::on_one());
    eval(x), eval(alone);
    bench::compare("sin_f32_8192x8192", [&] { eval(sin(x)); },
                   {{"one rank", [&] { eval(sin(alone)); }, bench::ranks() == 2 ? 1.8 : 0}}, 7,
                   {0, 32, 8.0 * 8192 * 8192});
  }
  transcendental_row();
  for (const int n : {4, 16}) {
    const std::string name = "one_op_on_" + std::to_string(n) + "_floats";
    if (!bench::wanted(name) || bench::ranks() > 1) continue;
    const Array x = device_put(ones({n}), bench::split(P("x")));
    eval(x);
    constexpr int calls = 1000;
    const auto ours = [&] {
      for (int i = 0; i < calls; ++i) eval(x + 1);
    };
    bench::compare(name + "_x1000", ours, {{"budget of 20 us a call", {}, 1, 20e-6 * calls}});
  }
}

const bench::Group group(rows);

}  // namespace
