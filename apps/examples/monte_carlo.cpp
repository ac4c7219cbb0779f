// Pi from random points: each rank draws its own part of the same points, for any number of ranks, and one
// number per rank is summed.
//
//   tessera run -n 4 example_monte_carlo
//
// The estimate is within five standard deviations of pi, and the count is the same on any number of ranks.
#include <cmath>
#include <numbers>

#include "example.hpp"

using namespace tessera;

namespace {

constexpr int points = 1 << 20, batches = 64;

// The number of points of each batch inside the quarter circle.
Array counts(const Mesh& mesh) {
  const Array xy = device_put(random::uniform(random::key(2024), {batches, points / batches, 2}, float64),
                              mesh, P("x", None, None));
  return sum(astype(sum(square(xy), 2) < 1, int64), 1);
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const Array inside = counts(example::all_devices());
    const Array so_far =
        cumsum(astype(inside, float64)) / (astype(arange(batches) + 1, float64) * (points / batches));
    example::picture("estimate, batch by batch", 4 * so_far);
    const double estimate = 4.0 * static_cast<double>(item<std::int64_t>(sum(inside))) / points;
    const double quarter = std::numbers::pi / 4, deviation = 4 * std::sqrt(quarter * (1 - quarter) / points);
    debug::print("pi is about {}", estimate);
    example::expect_close("pi", array({estimate}), array({std::numbers::pi}), 5 * deviation);
    const Array on_one = counts(make_mesh({1}, {"x"}, {devices()[0]}));
    const auto here = to_vector<std::int64_t>(inside), there = to_vector<std::int64_t>(on_one);
    if (here != there) throw std::runtime_error("the counts depend on the number of ranks");
  });
}
