// Arrays over eight devices with named axes: placement by P, computation that follows it, explicit
// disagreement, constraints inside jit, a network trained data parallel and then data x tensor parallel, and
// random numbers that never communicate.
//
//   mpirun -n 8 seed_002 [--n 1024] [--width 256] [--batch 256] [--steps 30]
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
void show(const std::string& what, const Array& x) { say(what + "\n" + debug::visualize_array_sharding(x)); }

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

void placement(const Array& x, const Mesh& mesh) {
  for (const P& spec :
       {P("a", "b"), P("b", "a"), P("a", None), P(None, "b"), P(None, "a"), P(axes("a", "b"), None)})
    show(text_of(spec) + ":", device_put(x, mesh, spec));
}

void computation(const Array& start, const Mesh& mesh) {
  const Array x = device_put(start, mesh, P("a", "b"));
  show("input sharding:", x);
  show("output sharding of sin:", sin(x));
  const Array y = device_put(x, mesh, P("a", None)), z = device_put(x, mesh, P(None, "b"));
  const Array w = dot(y, z);
  show("lhs sharding:", y);
  show("rhs sharding:", z);
  show("out sharding of dot:", w);
  const Array single = device_put(x, devices()[0]);
  const double off = item<double>(max(abs(device_put(dot(single, single), w.sharding()) - w)));
  say("largest difference from one device's product: " + text_of(off));
  const double sin_one = seconds([&] { return sin(single); }), sin_eight = seconds([&] { return sin(x); });
  const double dot_one = seconds([&] { return dot(single, single); }),
               dot_eight = seconds([&] { return dot(y, z); });
  say("sin on one device " + text_of(sin_one * 1e3) + " ms, on eight " + text_of(sin_eight * 1e3) + " ms");
  say("dot on one device " + text_of(dot_one * 1e3) + " ms, on eight " + text_of(dot_eight * 1e3) + " ms");
  show("a copy keeps the layout:", copy(w));
}

void disagreement(const Array& x) {
  const auto all = devices();
  const std::vector<Device> first(all.begin(), all.begin() + 4), second(all.begin() + 4, all.end());
  std::vector<Device> permuted;
  for (const int i : {0, 1, 2, 3, 6, 7, 4, 5}) permuted.push_back(all[i]);
  const auto over = [](const std::vector<Device>& list) { return NamedSharding(Mesh(list, {"x"}), P("x")); };
  for (const auto& [a, b] : {std::pair(over(first), over(second)), std::pair(over(all), over(permuted))}) {
    try {
      device_put(x, a) + device_put(x, b);
    } catch (const ShardingError& error) {
      say(std::string("ShardingError: ") + error.what());
    }
  }
  const Array y = device_put(x, over(all));
  eval(y + ones_like(y), y + reshape(arange(y.size()), y.shape()));
  say("uncommitted operands: no error");
}

void constraints(const Array& start, const Mesh& mesh) {
  const Array x = device_put(start, mesh, P("a", "b"));
  const auto turned =
      jit([&](Array x) { return with_sharding_constraint(x + 1, NamedSharding(mesh, P("b", "a"))); });
  const auto replicated =
      jit([&](Array x) { return with_sharding_constraint(x + 1, NamedSharding(mesh, P())); });
  show("constrained to P('b', 'a') inside jit:", turned(x));
  show("constrained to P():", replicated(x));
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

void train(const std::vector<int>& sizes, int batch_size, int steps) {
  const auto loss_jit = jit(loss);
  const auto gradient = jit(grad(loss));
  const auto descend = [&](Params params, const Batch& batch) {
    for (int i = 0; i < steps; ++i)
      params = tree_map([](const Array& p, const Array& g) { return p - 1e-5f * g; }, params,
                        gradient(params, batch));
    return params;
  };
  auto [params, batch] = init_model(random::key(0), sizes, batch_size);
  const Mesh line = make_mesh({8}, {"batch"});
  batch = device_put(batch, NamedSharding(line, P("batch")));
  params = device_put(params, NamedSharding(line, P()));
  say("8-way data parallel: loss " + text_of(item<float>(loss_jit(params, batch))));
  params = descend(params, batch);
  say("after " + std::to_string(steps) + " steps " + text_of(item<float>(loss_jit(params, batch))));

  const Mesh grid = make_mesh({4, 2}, {"batch", "model"});
  const auto replicated = NamedSharding(grid, P());
  batch = device_put(batch, NamedSharding(grid, P("batch", None)));
  params[0] = device_put(params[0], replicated);
  params[1] = {device_put(params[1].first, grid, P(None, "model")),
               device_put(params[1].second, grid, P("model"))};
  params[2] = {device_put(params[2].first, grid, P("model", None)), device_put(params[2].second, replicated)};
  params[3] = device_put(params[3], replicated);
  show("W2:", params[1].first);
  show("W3:", params[2].first);
  say("4-way batch, 2-way model parallel: loss " + text_of(item<float>(loss_jit(params, batch))));
  params = descend(params, batch);
  say("after " + std::to_string(steps) + " more steps " + text_of(item<float>(loss_jit(params, batch))));
  show("W2 stays where it was put:", params[1].first);
  say("what one gradient moves:\n" + text_of(explain(grad(loss), params, batch)));
}

void random_numbers() {
  const auto f = jit([](const random::Key& key, Array x) { return x + random::uniform(key, x.shape()); });
  const auto key = random::key(42);
  const Array x = device_put(arange(24), NamedSharding(make_mesh({8}, {"x"}), P("x")));
  show("f(key, x):", f(key, x));
  say(std::string("Communicating? ") +
      (f.lower(key, x).compile().as_text().find("collective-permute") != std::string::npos ? "True"
                                                                                           : "False"));
  say("Partitionable:");
  print(f(key, x));
  const random::ThreefryScope old(random::Threefry::original);
  const auto g = jit([](const random::Key& key, Array x) { return x + random::uniform(key, x.shape()); });
  say(std::string("Stable (the old mode), communicating? ") +
      (g.lower(key, x).compile().as_text().find("collective-permute") != std::string::npos ? "True"
                                                                                           : "False"));
  print(g(key, x));
}

}  // namespace

int main(int argc, char** argv) {
  int n = 1024, width = 256, steps = 30, batch = 256;
  CLI::App app("Sharded arrays with named axes, on eight devices");
  app.add_option("--n", n, "rows and columns of the array");
  app.add_option("--width", width, "of the network's hidden layers");
  app.add_option("--batch", batch, "rows of the batch");
  app.add_option("--steps", steps, "of gradient descent, twice");
  CLI11_PARSE(app, argc, argv);
  return run(argc, argv, [&] {
    if (device_count() != 8)
      throw ArgumentError("seed_002 shows eight devices, the job has " + std::to_string(device_count()) +
                          "; start it with mpirun --oversubscribe -n 8");
    const Mesh mesh = make_mesh({4, 2}, {"a", "b"});
    const Array x = random::normal(random::key(0), {n, n});
    placement(x, mesh);
    computation(x, mesh);
    disagreement(x);
    constraints(x, mesh);
    train({784, width, width, width, 10}, batch, steps);
    random_numbers();
  });
}
