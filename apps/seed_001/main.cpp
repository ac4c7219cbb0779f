// Arrays over eight devices with PositionalSharding: placement, computation that follows it, explicit
// disagreement, and a network whose parallelism is nothing but where its parameters lie.
//
//   mpirun -n 8 seed_001 [--n 1024] [--width 256] [--steps 30]
#include <tessera/tessera.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <iostream>

using namespace tessera;

namespace {

void say(const std::string& text) {
  if (is_main_process()) std::cout << text << std::endl;
}
template <class T> std::string text_of(const T& x) {
  std::ostringstream text;
  text << x;
  return text.str();
}
void show(const char* what, const Array& x) {
  say(std::string(what) + "\n" + debug::visualize_array_sharding(x));
}

// Median seconds of five evaluations.
template <class F> double seconds(F f) {
  std::vector<double> times;
  for (int i = 0; i < 6; ++i) {
    const auto start = std::chrono::steady_clock::now();
    block_until_ready(f());
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin() + 1, times.end());  // the first call plans
  return times[3];
}

using Layer = std::pair<Array, Array>;
using Params = std::vector<Layer>;
using Batch = std::pair<Array, Array>;

Array predict(const Params& params, Array inputs) {
  Array outputs;
  for (const auto& [w, b] : params) {
    outputs = dot(inputs, w) + b;
    inputs = maximum(outputs, 0);
  }
  return outputs;
}
Array loss(const Params& params, const Batch& batch) {
  return mean(sum(square(predict(params, batch.first) - batch.second), -1));
}

std::pair<Params, Batch> init_model(const random::Key& key, const std::vector<int>& sizes, int batch_size) {
  const auto keys = random::split(key, static_cast<int>(sizes.size()));
  Params params;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const auto pair = random::split(keys[i + 1], 2);
    params.emplace_back(
        random::normal(pair[0], {sizes[i], sizes[i + 1]}) / std::sqrt(static_cast<float>(sizes[i])),
        random::normal(pair[1], {sizes[i + 1]}));
  }
  const auto data = random::split(keys[0], 3);
  return {std::move(params),
          {random::normal(data[1], {batch_size, sizes.front()}),
           random::normal(data[2], {batch_size, sizes.back()})}};
}

Params step(const Params& params, const Params& gradient, float rate) {
  return tree_map([rate](const Array& p, const Array& g) { return p - rate * g; }, params, gradient);
}

void placement(const Array& start, const PositionalSharding& sharding) {
  show("x on one device:", start);
  say(text_of(sharding));
  say(text_of(sharding.reshape(8, 1)));
  say(text_of(sharding.reshape(4, 2)));
  show("x over sharding.reshape(4, 2):", device_put(start, sharding.reshape(4, 2)));
  show("x over sharding.reshape(1, 8):", device_put(start, sharding.reshape(1, 8)));
  const auto grid = sharding.reshape(4, 2);
  say(text_of(grid.replicate(0, true)) + " of shape " + text_of(grid.replicate(0).shape()) + ", " +
      text_of(grid.replicate(1).shape()));
  show("replicate(0): two shards, each on four devices", device_put(start, grid.replicate(0)));
  show("replicate(1): four shards, each on two devices", device_put(start, grid.replicate(1)));
}

void computation(const Array& start, const PositionalSharding& sharding) {
  const Array x = device_put(start, sharding.reshape(4, 2));
  show("sin(x) follows x:", sin(x));
  const Array y = device_put(x, sharding.reshape(4, 2).replicate(1)),
              z = device_put(x, sharding.reshape(4, 2).replicate(0));
  const Array w = dot(y, z);
  show("rows times columns, without communication:", w);
  show("a copy keeps the layout:", copy(w));
  const Array single = device_put(x, devices()[0]);
  const Array difference = max(abs(device_put(dot(single, single), w.sharding()) - w));
  const double off = item<double>(difference);
  say("largest difference from one device's product: " + text_of(off));
  const double one = seconds([&] { return dot(single, single); }), eight = seconds([&] { return dot(y, z); });
  say("dot on one device " + text_of(one * 1e3) + " ms, on eight " + text_of(eight * 1e3) + " ms");
}

void disagreement(const Array& start) {
  const auto all = devices();
  const PositionalSharding first(std::vector<Device>(all.begin(), all.begin() + 4)),
      second(std::vector<Device>(all.begin() + 4, all.end()));
  try {
    device_put(start, first.reshape(2, 2)) + device_put(start, second.reshape(2, 2));
  } catch (const ShardingError& error) {
    say(std::string("ShardingError: ") + error.what());
  }
  std::vector<Device> permuted;
  for (const int i : {0, 1, 2, 3, 6, 7, 4, 5}) permuted.push_back(all[i]);
  try {
    device_put(start, PositionalSharding(all).reshape(4, 2)) +
        device_put(start, PositionalSharding(permuted).reshape(4, 2));
  } catch (const ShardingError& error) {
    say(std::string("ShardingError: ") + error.what());
  }
  const Array y = device_put(start, PositionalSharding(all).reshape(4, 2));
  eval(y + ones_like(y), y + reshape(arange(y.size()), y.shape()));
  say("uncommitted operands: no error");
}

void constraints(const Array& start, const PositionalSharding& sharding) {
  const Array x = device_put(start, sharding.reshape(4, 2));
  const auto turned = jit([&](Array x) { return with_sharding_constraint(x + 1, sharding.reshape(2, 4)); });
  const auto replicated = jit([&](Array x) { return with_sharding_constraint(x + 1, sharding.replicate()); });
  show("constrained to reshape(2, 4) inside jit:", turned(x));
  show("constrained to replicate():", replicated(x));
}

void train(const std::vector<int>& sizes, int batch_size, int steps) {
  const auto loss_jit = jit(loss);
  const auto gradient = jit(grad(loss));
  auto [params, batch] = init_model(random::key(0), sizes, batch_size);
  const auto rows = PositionalSharding(devices()).reshape(8, 1);
  batch = device_put(batch, rows);
  params = device_put(params, rows.replicate());
  say("data parallel, loss before " + text_of(item<float>(loss_jit(params, batch))));
  for (int i = 0; i < steps; ++i) params = step(params, gradient(params, batch), 1e-5f);
  say("after " + std::to_string(steps) + " steps " + text_of(item<float>(loss_jit(params, batch))));
  const double eight = seconds([&] { return gradient(params, batch)[0].first; });
  const auto batch_single = device_put(batch, devices()[0]);
  const auto params_single = device_put(params, devices()[0]);
  const double one = seconds([&] { return gradient(params_single, batch_single)[0].first; });
  say("gradient on eight devices " + text_of(eight * 1e3) + " ms, on one " + text_of(one * 1e3) + " ms");

  const auto grid = rows.reshape(4, 2);
  batch = device_put(batch, grid.replicate(1));
  params[0] = device_put(params[0], grid.replicate());
  params[1] = device_put(params[1], grid.replicate(0));
  params[2] = {device_put(params[2].first, grid.replicate(0).T()),
               device_put(params[2].second, grid.replicate())};
  params[3] = device_put(params[3], grid.replicate());
  show("W2:", params[1].first);
  show("W3:", params[2].first);
  say("data x tensor parallel, loss " + text_of(item<float>(loss_jit(params, batch))));
  for (int i = 0; i < steps; ++i) params = step(params, gradient(params, batch), 1e-5f);
  say("after " + std::to_string(steps) + " more steps " + text_of(item<float>(loss_jit(params, batch))));
  show("W2 stays where it was put:", params[1].first);
  show("W3:", params[2].first);
}

}  // namespace

int main(int argc, char** argv) {
  int n = 1024, width = 256, steps = 30, batch = 256;
  CLI::App app("Sharded arrays with PositionalSharding, on eight devices");
  app.add_option("--n", n, "rows and columns of the array");
  app.add_option("--width", width, "of the network's hidden layers");
  app.add_option("--batch", batch, "rows of the batch");
  app.add_option("--steps", steps, "of gradient descent, twice");
  CLI11_PARSE(app, argc, argv);
  return run(argc, argv, [&] {
    if (device_count() != 8)
      throw ArgumentError("seed_001 shows eight devices, the job has " + std::to_string(device_count()) +
                          "; start it with mpirun --oversubscribe -n 8");
    const Array x = random::normal(random::key(0), {n, n});
    const PositionalSharding sharding(create_device_mesh({8}));
    placement(x, sharding);
    computation(x, sharding);
    disagreement(x);
    constraints(x, sharding);
    train({784, width, width, width, 10}, batch, steps);
  });
}
