// Logistic regression by Newton's method: the samples are split over the ranks, gradient and Hessian come
// from grad and hessian, and each step sends only one small sum over the ranks.
//
//   tessera run -n 4 example_logistic
//
// Each sample is in one of three groups, so the best weights are known: the log-odds of each group.
#include <cmath>

#include "example.hpp"

using namespace tessera;

namespace {

constexpr int samples = 3000, groups = 3;
constexpr double share_of_ones[groups] = {0.1, 0.5, 0.8};

// Sample i is in group i % 3, and a known fraction of each group has the label 1: 1000 samples each.
Array membership() {
  return astype(equal(expand_dims(arange(samples) % groups, 1), arange(groups)), float64);
}
Array labels() {
  const Array number_in_group = floor(astype(arange(samples), float64) / groups);  // 0 ... 999
  const Array ones =
      matmul(membership(), array({share_of_ones[0], share_of_ones[1], share_of_ones[2]})) * 1000;
  return astype(number_in_group < round(ones), float64);
}

Array loss(const Array& weights, const Array& x, const Array& y) {
  const Array z = matmul(x, weights);
  return mean(log1p(exp(z)) - y * z);
}

Array newton_step(const Array& weights, const Array& x, const Array& y) {
  const auto of_weights = [&](const Array& w) { return loss(w, x, y); };
  return weights - linalg::solve(hessian(of_weights)(weights), grad(of_weights)(weights));
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const Mesh mesh = example::all_devices();
    const Array x = device_put(membership(), mesh, P("x", None)), y = device_put(labels(), mesh, P("x"));
    Array weights = device_put(zeros({groups}, float64), mesh, P());
    const auto step = jit(newton_step);
    std::vector<Array> losses;
    for (int i = 0; i < 12; ++i) {
      losses.push_back(loss(weights, x, y));
      weights = step(weights, x, y);
    }
    example::picture("loss, step by step", stack(losses));
    debug::print("weights {}", to_string(weights));
    const auto log_odds = [](double p) { return std::log(p / (1 - p)); };
    const Array exact =
        array({log_odds(share_of_ones[0]), log_odds(share_of_ones[1]), log_odds(share_of_ones[2])});
    example::expect_close("logistic regression", weights, exact, 1e-10);
  });
}
