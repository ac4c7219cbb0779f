// Steps shared by the two tutorials about distributed arrays: products compared with those of one device,
// disagreements, and the network that is parallel only through its parameters' layouts.
#pragma once
#include <cmath>
#include <utility>

#include "tutorial/support.hpp"

namespace tutorial {

/// Sizes set by command line options.
struct Sizes {
  int n = 8192;      ///< rows and columns of the array
  int width = 1024;  ///< width of the hidden layers (--full: 8192)
  int batch = 1024;  ///< rows of the batch (--full: 8192)
  int steps = 30;    ///< steps of gradient descent, which runs twice
  bool small = false, full = false;
  void add_to(CLI::App& app) {
    app.add_option("--n", n, "rows and columns of the array")->check(CLI::Range(8, 1 << 16));
    app.add_option("--width", width, "of the network's hidden layers")->check(CLI::Range(8, 1 << 16));
    app.add_option("--batch", batch, "rows of the batch")->check(CLI::Range(8, 1 << 20));
    app.add_option("--steps", steps, "of gradient descent, twice")->check(CLI::Range(1, 10000));
    auto* less = app.add_flag("--small", small, "--n 256 --width 64 --batch 64 --steps 5");
    app.add_flag("--full", full, "the original's network: --width 8192 --batch 8192")->excludes(less);
  }
  void settle() {
    if (full) width = batch = 8192;
    if (small) n = 256, width = 64, batch = 64, steps = 5;
  }
};

/// Compares the product with one device's, and the times of both. y z is the product over eight devices.
inline void compare_with_one_device(const Array& x, const Array& y, const Array& z) {
  const Array single = device_put(x, devices()[0]);
  picture("x on one device", single);
  const Array w = dot(y, z);
  // Sums of n products of normal numbers, in float32: the order of the terms changes the fourth digit after
  // the point, so elements near zero need an absolute tolerance.
  const Array same = allclose(device_put(dot(single, single), w.sharding()), w, 1e-5, 1e-3);
  check(item<bool>(same), "the product of one device and the product of eight are allclose");
  timed("dot on one device", [&] { return dot(single, single); });
  timed("dot on eight devices", [&] { return dot(y, z); });
}

/// x under six specs; `mesh_sharding` is the helper that supplies the mesh.
inline void six_specs(const std::string& number, const Mesh& mesh, const Array& x) {
  step(number, "a helper that fills in the mesh; six specs");
  const auto mesh_sharding = [&](const P& spec, const Mesh* other = nullptr) {
    return NamedSharding(other == nullptr ? mesh : *other, spec);
  };
  int i = 0;
  for (const P& spec :
       {P("a", "b"), P("b", "a"), P("a", None), P(None, "b"), P(None, "a"), P(axes("a", "b"), None)}) {
    step(number + "." + std::to_string(++i), text_of(spec));
    const Array y = device_put(x, mesh_sharding(spec));
    picture("y", y);
    check(y.sharding() == mesh_sharding(spec), "y lies as the spec says");
  }
}

/// sin of x, the product of x as row blocks and as column blocks, the same on one device, a copy: four steps.
inline void computation_follows(int first_step, const Array& x, const Sharding& rows,
                                const Sharding& columns) {
  step(std::to_string(first_step), "sin, input and output");
  picture("input sharding", x);
  picture("output sharding", sin(x));
  check(sin(x).sharding() == x.sharding(), "they are the same");

  step(std::to_string(first_step + 1), "dot of row blocks and column blocks");
  const Array y = device_put(x, rows), z = device_put(x, columns);
  picture("lhs sharding", y);
  picture("rhs sharding", z);
  eval(y, z);
  const debug::CommStats stats;
  const Array w = block_until_ready(dot(y, z));
  const auto bytes = stats.bytes();
  picture("out sharding", w);
  check(bytes == 0, "the product moves no byte");
  check(w.sharding() == x.sharding(), "it is cut as rows by columns");

  step(std::to_string(first_step + 2), "one device and eight: values and times");
  compare_with_one_device(x, y, z);

  step(std::to_string(first_step + 3), "a copy");
  const Array w_copy = copy(w);
  picture("copy(w)", w_copy);
  check(w_copy.sharding() == w.sharding(), "it lies as w does");
}

/// Two errors, and operands that cannot disagree. `halves` and `orders` are pairs of shardings of x.
inline void disagreements(const std::string& number, const Array& x,
                          const std::pair<Sharding, Sharding>& halves,
                          const std::pair<Sharding, Sharding>& orders) {
  step(number + "a", "operands on different devices");
  show_error<ShardingError>("ShardingError", "arrays on devices 0-3 and 4-7 cannot be added",
                            [&] { return device_put(x, halves.first) + device_put(x, halves.second); });
  step(number + "b", "operands on the same devices in another order");
  show_error<ShardingError>("ShardingError", "arrays over devices in two orders cannot be added",
                            [&] { return device_put(x, orders.first) + device_put(x, orders.second); });
  step(number + "c", "uncommitted operands go where the others are");
  const Array y = device_put(x, orders.first);
  const Array a = y + ones_like(y), b = y + reshape(arange(y.size()), y.shape());
  eval(a, b);
  say("no error!");
  check(a.sharding() == y.sharding() && b.sharding() == y.sharding(), "both sums lie as y does");
}

// ---- A network ----
using Layer = std::pair<Array, Array>;
using Layers = std::vector<Layer>;
using Batch = std::pair<Array, Array>;

inline Array predict(const Layers& params, Array inputs) {
  Array outputs;
  for (const auto& [w, b] : params) {
    outputs = dot(inputs, w) + b;
    inputs = maximum(outputs, 0);
  }
  return outputs;
}

inline Array loss(const Layers& params, const Batch& batch) {
  return mean(sum(square(predict(params, batch.first) - batch.second), -1));
}

/// Random layers, inputs and targets; uncommitted.
inline std::pair<Layers, Batch> init_model(const random::Key& key, const std::vector<int>& sizes, int rows) {
  const auto keys = random::split(key, static_cast<int>(sizes.size()));
  Layers params;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const auto pair = random::split(keys[i + 1], 2);
    params.emplace_back(
        random::normal(pair[0], {sizes[i], sizes[i + 1]}) / std::sqrt(static_cast<float>(sizes[i])),
        random::normal(pair[1], {sizes[i + 1]}));
  }
  const auto data = random::split(keys[0], 3);
  return {std::move(params),
          {random::normal(data[1], {rows, sizes.front()}), random::normal(data[2], {rows, sizes.back()})}};
}

/// Times training steps under a layout of batch and parameters.
class Training {
 public:
  explicit Training(const Sizes& sizes) : sizes_(sizes) {
    std::tie(params, batch) =
        init_model(random::key(0), {784, sizes.width, sizes.width, sizes.width, 10}, sizes.batch);
  }
  float loss_now() {
    const float now = item<float>(loss_(params, batch));
    record_values({static_cast<double>(now)});
    return now;
  }
  /// Gradient descent; prints the resulting loss, which must be smaller.
  void descend() {
    const float before = loss_now();
    for (int i = 0; i < sizes_.steps; ++i)
      params = tree_map([](const Array& p, const Array& g) { return p - 1e-5f * g; }, params,
                        gradient_(params, batch));
    const float after = loss_now();
    say("loss after " + std::to_string(sizes_.steps) + " steps: " + text_of(after));
    check(after < before, "the loss went down");
  }
  double time_gradient(const std::string& where) {
    return timed("a gradient " + where, [&] { return gradient_(params, batch)[0].first; });
  }
  /// The same on one device; restores this layout afterwards.
  double time_gradient_on_one_device() {
    const Training here = *this;
    batch = device_put(batch, devices()[0]);
    params = device_put(params, devices()[0]);
    const double time_ms = time_gradient("on one device");
    *this = here;
    return time_ms;
  }
  std::string plan() const { return text_of(explain(grad(loss), params, batch)); }

  Layers params;
  Batch batch;

 private:
  Sizes sizes_;
  Jitted<decltype(&loss)> loss_ = jit(&loss);
  Jitted<decltype(grad(&loss))> gradient_ = jit(grad(&loss));
};

}  // namespace tutorial
