// A network of any size on random data: the loss curve, which is the same on every mesh, and the time of a
// step.
#include "programs.hpp"

#include <tessera/nn.hpp>
#include <tessera/optim.hpp>
#include <tessera/tessera.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

namespace train {
namespace {

using namespace tessera;

Array squared_error(const nn::Mlp& network, const Array& x, const Array& targets) {
  return mean(sum(nn::squared_error(nn::apply(network, x), targets), 1));
}

// Median seconds of the slowest rank.
double seconds_of(const std::function<void()>& work, int repetitions) {
  work();
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    multihost::sync_global_devices("train");
    const auto start = std::chrono::steady_clock::now();
    work();
    multihost::sync_global_devices("train");
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double products_flops(const MlpOptions& options) {
  double flops = 0;
  for (std::size_t i = 0; i + 1 < options.sizes.size(); ++i)
    flops += 2.0 * options.batch * static_cast<double>(options.sizes[i] * options.sizes[i + 1]);
  return flops;
}

}  // namespace

int train_mlp(const MlpOptions& options) {
  const Mesh mesh = training_mesh(options.mesh);
  const auto keys = random::split(random::key(0), 3);
  nn::Mlp network = nn::split_in_pairs(nn::mlp(keys[0], options.sizes), mesh, "model");
  const Array x =
      device_put(random::normal(keys[1], {options.batch, options.sizes.front()}), mesh, P("data"));
  const Array y = device_put(random::normal(keys[2], {options.batch, options.sizes.back()}), mesh, P("data"));
  const optim::Sgd sgd{.rate = 1e-3};
  const auto step = jit(optim::train_step(sgd, squared_error));
  auto state = sgd.start(network);
  if (is_main_process() && !options.json) std::printf("step  loss\n");
  Array loss;
  for (int i = 0; i < options.steps; ++i) {
    std::tie(network, state, loss) = step(network, state, x, y);
    const double value = item<double>(loss);
    if (is_main_process() && !options.json) std::printf("%4d  %.6f\n", i, value);
  }

  const auto forward = jit(squared_error);
  const auto backward = jit(value_and_grad(squared_error));
  const double forward_s = seconds_of([&] { eval(forward(network, x, y)); }, 7);
  const double gradient_s = seconds_of([&] { eval(backward(network, x, y)); }, 7);
  const double step_s = seconds_of([&] { eval(step(network, state, x, y)); }, 7);
  const auto plan = explain(value_and_grad(squared_error), network, x, y);
  const double gflops =
      3 * products_flops(options) / gradient_s / 1e9;  // the backward pass has two products per product
  if (!is_main_process()) return 0;
  if (options.json)
    std::printf(
        "{\"ranks\": %d, \"forward_s\": %.6f, \"value_and_grad_s\": %.6f, \"step_s\": %.6f, \"gflops\": "
        "%.2f, \"all_reduces\": %lld, "
        "\"bytes\": %lld}\n",
        device_count(), forward_s, gradient_s, step_s, gflops,
        static_cast<long long>(plan.calls("all-reduce")), static_cast<long long>(plan.bytes()));
  else
    std::printf(
        "forward %.2f ms, value and gradient %.2f ms (%.2f x), step %.2f ms; about %.1f Gflop/s\n%lld "
        "collectives, %lld bytes per rank and "
        "gradient\n",
        forward_s * 1e3, gradient_s * 1e3, gradient_s / forward_s, step_s * 1e3, gflops,
        static_cast<long long>(plan.calls()), static_cast<long long>(plan.bytes()));
  return 0;
}

}  // namespace train
