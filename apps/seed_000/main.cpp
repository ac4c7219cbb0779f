// Parallel evaluation: one program, many devices.
//
//   tessera run -n 8 seed_000         (or mpirun -n 8 seed_000; any number of ranks does)
//
// vmap applies a function to a whole batch on one device; pmap applies it to one example per device. The
// functions stay as they are.
#include <tessera/tessera.hpp>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

using namespace tessera;

namespace {

void say(const std::string& text) {
  if (is_main_process()) std::printf("\n%s\n", text.c_str());
}

// ---- 1. A function of one example ----
Array convolve(const Array& x, const Array& w) {
  std::vector<Array> output;
  for (std::int64_t i = 1; i < x.shape()[0] - 1; ++i) output.push_back(dot(x(slice(i - 1, i + 2)), w));
  return stack(output);
}

// The same, divided by the sum over all examples: `p` is the name of the mapped axis.
Array normalized_convolution(const Array& x, const Array& w) {
  const Array output = convolve(x, w);
  return output / psum(output, "p");
}

void convolutions() {
  const Array x = arange(5), w = array({2.f, 3.f, 4.f});
  say("convolve(x, w)");
  print(convolve(x, w));

  const int n = device_count();
  const Array xs = reshape(arange(5 * n), {n, 5}), ws = stack(std::vector<Array>(n, w));
  say("xs, one row per device");
  print(xs);
  say("vmap(convolve)(xs, ws): all rows at once");
  print(vmap(convolve)(xs, ws));
  say("pmap(convolve)(xs, ws): row i on device i");
  const Array y = pmap(convolve)(xs, ws);
  print(y);
  say("... and there it stays:");
  if (is_main_process())
    std::printf("%s\n", debug::visualize_array_sharding(y, {.use_color = false}).c_str());
  say("pmap(convolve)(xs, pmap(convolve)(xs, ws)): the inner results never leave their devices");
  print(pmap(convolve)(xs, pmap(convolve)(xs, ws)));
  say("pmap(convolve, {.in_axes = {0, None}})(xs, w): w is the same for all");
  print(pmap(convolve, {.in_axes = {0, None}})(xs, w));

  say("pmap(normalized_convolution, {.axis_name = \"p\"})(xs, ws): each column sums to 1");
  print(pmap(normalized_convolution, {.axis_name = "p"})(xs, ws));
  say("vmap(normalized_convolution, {.axis_name = \"p\"})(xs, ws): the same without devices");
  print(vmap(normalized_convolution, {.axis_name = "p"})(xs, ws));
}

// ---- 2. Nesting: each collective names the map that it means ----
void nested_maps() {
  const int n = device_count();
  const Array x = reshape(arange(static_cast<float>(n * 3)), {n, 3}) + 1;
  const auto f = [](const Array& v) { return std::pair{v / psum(v, "i"), v / psum(v, "j")}; };
  const auto [over_devices, over_batch] =
      vmap(pmap(f, {.axis_name = "i"}), {.in_axes = 1, .out_axes = 1, .axis_name = "j"})(x);
  say("vmap(pmap(f, \"i\"), \"j\")(x): x / psum(x, \"i\") sums to 1 over the devices (columns)");
  print(sum(over_devices, 0));
  say("... and x / psum(x, \"j\") over the batch (rows)");
  print(sum(over_batch, 1));
}

// ---- 3. Data-parallel regression ----
struct Params {
  Array weight, bias;
};

Array loss_fn(const Params& params, const Array& xs, const Array& ys) {
  const Array pred = params.weight * xs + params.bias;
  return mean(square(pred - ys));
}

constexpr double learning_rate = 0.005;

// One step on one device's share of the batch. Gradients are averaged over the devices; parameters start
// alike and so stay alike.
std::pair<Params, Array> update(const Params& params, const Array& xs, const Array& ys) {
  auto [loss, grads] = value_and_grad(loss_fn)(params, xs, ys);
  grads = pmean(grads, "num_devices");
  loss = pmean(loss, "num_devices");
  return {tree_map([](const Array& p, const Array& g) { return p - g * learning_rate; }, params, grads),
          loss};
}

void regression() {
  const int n = device_count();
  const std::int64_t per_device = 128 / n;
  const Shape shape{n, per_device, 1};  // the batch, split over the devices
  const Array xs = random::normal(random::key(0), shape);
  const Array ys = xs * 2.0 - 1.0 + random::normal(random::key(1), shape) * 0.5;  // y = 2 x - 1 + noise

  const auto keys = random::split(random::key(123));
  const Params initial{random::normal(keys[0]), random::normal(keys[1])};
  Params params =
      tree_map([n](const Array& p) { return broadcast_to(p, {n}); }, initial);  // a copy per device

  const auto parallel_update = jit(pmap(update, {.axis_name = "num_devices"}));
  say("1000 steps of gradient descent on y = 2 x - 1 + noise");
  Array loss;
  for (int step = 0; step < 1000; ++step) {
    std::tie(params, loss) = parallel_update(params, xs, ys);
    if (step % 100 == 0) {
      const float first = item<float>(loss(0));  // every device has a copy; look at the first
      if (is_main_process()) std::printf("Step %3d, loss: %.3f\n", step, first);
    }
  }
  const float weight = item<float>(params.weight(0)), bias = item<float>(params.bias(0));
  if (is_main_process()) std::printf("found y = %.3f x %+.3f\n", weight, bias);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    convolutions();
    nested_maps();
    regression();
  });
}
