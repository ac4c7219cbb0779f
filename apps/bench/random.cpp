// Rates of random numbers, and their scaling over ranks.
#include <tessera/random.hpp>

#include "bench.hpp"

namespace {

using namespace tessera;

// `draw` makes n elements; goals: n / per_second on one rank, half of one rank's time on two.
template <class Draw>
void rate_row(const std::string& name, std::int64_t n, double per_second, const char* budget, Draw draw) {
  if (!bench::wanted(name)) return;
  const random::Key key = random::key(0);
  const Sharding all = bench::split(P("x"));
  const auto ours = [&] { eval(device_put(draw(key, n), all)); };
  if (bench::ranks() == 1)
    return bench::compare(name, ours, {{budget, {}, 1, static_cast<double>(n) / per_second}}, 7);
  const Sharding one = bench::on_one();
  bench::compare(name, ours,
                 {{"one rank", [&] { eval(device_put(draw(key, n), one)); }, bench::ranks() == 2 ? 1.9 : 0}},
                 7);
}

void rows() {
  constexpr std::int64_t n = std::int64_t{64} << 20;
  rate_row("random_bits_u32_64Mi", n, 0.25e9, "1 GB/s",
           [](const random::Key& key, std::int64_t n) { return random::bits(key, {n}); });
  rate_row("random_uniform_f32_64Mi", n, 0.25e9, "0.25 G/s",
           [](const random::Key& key, std::int64_t n) { return random::uniform(key, {n}); });
  rate_row("random_normal_f32_64Mi", n, 0.12e9, "0.12 G/s",
           [](const random::Key& key, std::int64_t n) { return random::normal(key, {n}); });
}

const bench::Group group(rows);

}  // namespace
