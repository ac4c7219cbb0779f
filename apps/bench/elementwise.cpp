// Elementwise work is bound by memory (chains) or by arithmetic (sin).
#include <cstring>

#include "bench.hpp"

namespace {

using namespace tessera;

Array chain_of_8(const Array& x) { return abs((((x + 1) * 0.5f - 2) * x + 3) * 0.25f - x); }

void rows() {
  if (bench::wanted("chain_of_8_f32_64Mi")) {
    const std::int64_t n = std::int64_t{64} << 20;
    const Array x = device_put(ones({n}), bench::split(P("x")));
    eval(x);
    const auto mine = static_cast<std::size_t>(local<float>(x).size());
    std::vector<float> from(mine, 1.f), to(mine);
    bench::compare(
        "chain_of_8_f32_64Mi", [&] { eval(chain_of_8(x)); },
        {{"memcpy", [&] { std::memcpy(to.data(), from.data(), mine * sizeof(float)); }, 0.8}}, 7);
  }
  if (bench::wanted("sin_f32_8192x8192") && bench::ranks() > 1) {
    const Array x =
        device_put(reshape(astype(arange(8192 * 8192), float32), {8192, 8192}) * 1e-4f, bench::split(P("x")));
    const Array alone = device_put(x, bench::on_one());
    eval(x), eval(alone);
    bench::compare(
        "sin_f32_8192x8192", [&] { eval(sin(x)); },
        {{"one rank", [&] { eval(sin(alone)); }, bench::ranks() == 2 ? 1.8 : 0}}, 7);
  }
  if (bench::wanted("one_op_on_4_floats") && bench::ranks() == 1) {
    const Array x = device_put(ones({4}), bench::split(P("x")));
    eval(x);
    constexpr int calls = 1000;
    const auto ours = [&] {
      for (int i = 0; i < calls; ++i) eval(x + 1);
    };
    bench::compare("one_op_on_4_floats_x1000", ours, {{"budget of 20 us a call", {}, 1, 20e-6 * calls}});
  }
}

const bench::Group group(rows);

}  // namespace
