// Parallel evaluation: one function, many devices. vmap applies a function to a whole batch on one device;
// pmap applies it to one example per device. The function is unchanged.
//
//   tessera run -n 8 parallel_evaluation [--svg fit.svg]
#include <cmath>
#include <utility>

#include "tutorial/scatter.hpp"
#include "tutorial/support.hpp"

using namespace tutorial;

namespace {

// ---- 1. Devices ----
void list_devices(const std::string& number, const std::string& title) {
  step(number, title);
  for (const Device& device : devices())
    say(text_of(device) + " of process " + std::to_string(device.process_index));
  for (const Device& device : devices()) say_of_this_machine(text_of(device) + " on " + device.host);
  check(device_count() == process_count(), "every process is one device");
}

// ---- 2. A function of one example ----
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

struct Examples {
  Array w, xs, ws;
};

Examples examples() {
  step("2", "a convolution of one example");
  const Array x = arange(5), w = array({2.f, 3.f, 4.f});
  show("convolve(x, w)", convolve(x, w));
  check(close(convolve(x, w), array({11.f, 20.f, 29.f}), 0), "it is [11 20 29]");

  step("3", "as many examples as devices");
  const int n = device_count();
  const Array xs = reshape(arange(5 * n), {n, 5});
  show("xs", xs);
  step("4", "a copy of w for each");
  const Array ws = stack(std::vector<Array>(static_cast<std::size_t>(n), w));
  show("ws", ws);
  return {w, xs, ws};
}

// Row i of the result: 11, 20, 29, with 45 added per row.
Array expected_rows() {
  return expand_dims(arange(8.0f), 1) * 45.0 + expand_dims(array({11.f, 20.f, 29.f}), 0);
}

void maps(const Examples& e) {
  step("5", "vmap: all examples at once, the same on every device");
  const Array batched = vmap(convolve)(e.xs, e.ws);
  show("vmap(convolve)(xs, ws)", batched);
  check(close(batched, expected_rows(), 0), "row i starts with 11 + 45 i");

  step("6", "pmap: example i on device i");
  const Array y = pmap(convolve)(e.xs, e.ws);
  show("pmap(convolve)(xs, ws)", y);
  check(close(y, batched, 0), "the values are vmap's");
  picture("and there the rows stay", y);
  check(y.devices().size() == 8, "the result is spread over 8 devices");

  step("7", "what lies on the devices already does not move");
  eval(y, e.xs);
  const Array xd = pmap([](const Array& x) { return x; })(e.xs);
  eval(xd);
  const debug::CommStats stats;
  const Array twice = block_until_ready(pmap(convolve)(xd, y));
  const auto bytes = stats.bytes();
  show("pmap(convolve)(xs, pmap(convolve)(xs, ws))", twice);
  check(bytes == 0, "the inner results never left their devices");
  check(item<float>(twice(1, 0)) == 1188.0f, "row 1 starts with 1188");

  step("8", "in_axes: w is the same for all");
  const Array shared = pmap(convolve, {.in_axes = {0, None}})(e.xs, e.w);
  show("pmap(convolve, {.in_axes = {0, None}})(xs, w)", shared);
  check(close(shared, batched, 0), "the values are the same as with a copy of w for each");
}

// ---- 3. Collectives by axis name ----
void normalized(const Examples& e) {
  step("9", "psum inside pmap: each column is divided by its sum over the devices");
  const Array mapped = pmap(normalized_convolution, {.axis_name = "p"})(e.xs, e.ws);
  show("pmap(normalized_convolution, {.axis_name = \"p\"})(xs, ws)", mapped);
  check(close(sum(mapped, 0), ones({3}), 1e-6), "each column sums to 1");

  step("10", "psum inside vmap: the same function, without devices");
  const Array batched = vmap(normalized_convolution, {.axis_name = "p"})(e.xs, e.ws);
  show("vmap(normalized_convolution, {.axis_name = \"p\"})(xs, ws)", batched);
  check(close(mapped, batched, 1e-6), "both give the same");

  step("11", "without a map nobody knows the axis \"p\"");
  show_error<AxisNameError>("AxisNameError", "the call without a map is an AxisNameError",
                            [&] { normalized_convolution(e.xs(0), e.w); });
}

// ---- 4. Nesting: each collective names the map that it means ----
std::pair<Array, Array> both_parts(const Array& v) { return {v / psum(v, "i"), v / psum(v, "j")}; }

void check_parts(const std::string& nesting, const Array& over_i, const Array& over_j, const Array& x) {
  show("sums over i of x / psum(x, \"i\")", sum(over_i, 0));
  show("sums over j of x / psum(x, \"j\")", sum(over_j, 1));
  check(close(over_i, x / sum(x, 0, true), 1e-6) && close(over_j, x / sum(x, 1, true), 1e-6),
        nesting + ": each psum sums over the axis that it names");
}

void nested_maps() {
  const Array x = reshape(arange(24.0f), {8, 3}) + 1;
  step("12", "vmap(pmap(f, \"i\"), \"j\"): i is the devices, j the batch on each");
  const auto [vp_i, vp_j] =
      vmap(pmap(both_parts, {.axis_name = "i"}), {.in_axes = 1, .out_axes = 1, .axis_name = "j"})(x);
  check_parts("vmap(pmap)", vp_i, vp_j, x);

  step("13", "pmap(vmap(f, \"j\"), \"i\"): the same the other way round");
  const auto [pv_i, pv_j] = pmap(vmap(both_parts, {.axis_name = "j"}), {.axis_name = "i"})(x);
  check_parts("pmap(vmap)", pv_i, pv_j, x);

  step("14", "pmap(pmap(f, \"j\"), \"i\"): 2 x 4 devices");
  const Array grid = reshape(arange(8.0f), {2, 4}) + 1;
  const auto [pp_i, pp_j] = pmap(pmap(both_parts, {.axis_name = "j"}), {.axis_name = "i"})(grid);
  picture("2 x 4 numbers, one per device", pp_i);
  check_parts("pmap(pmap)", pp_i, pp_j, grid);
  check(pp_i.devices().size() == 8, "the inner map takes four devices in each of the outer map's two");
}

// ---- 5. Data-parallel regression ----
struct Params {
  Array weight, bias;
};

Params init(const random::Key& key) {
  const auto keys = random::split(key);
  return {random::normal(keys[0]), random::normal(keys[1])};
}

Array loss_fn(const Params& params, const Array& xs, const Array& ys) {
  const Array pred = params.weight * xs + params.bias;
  return mean(square(pred - ys));
}

constexpr double learning_rate = 0.005;

// One step on one device's share of the batch. Gradients are averaged over the devices; parameters start
// equal and so stay equal.
std::pair<Params, Array> update(const Params& params, const Array& xs, const Array& ys) {
  auto [loss, grads] = value_and_grad(loss_fn)(params, xs, ys);
  grads = pmean(grads, "num_devices");
  loss = pmean(loss, "num_devices");
  return {tree_map([](const Array& p, const Array& g) { return p - g * learning_rate; }, params, grads),
          loss};
}

struct Points {
  std::vector<double> xs, ys;
};

// y = 2 x - 1 + noise, as numbers in this process, not yet on any device.
Points data() {
  const Array x = random::normal(random::key(0), {128, 1});
  const Array y = x * 2.0 - 1.0 + random::normal(random::key(1), {128, 1}) * 0.5;
  return {to_vector<double>(x), to_vector<double>(y)};
}

// Splits the first axis over the devices: example 16 i + k on device i.
Array split(const std::vector<double>& values) {
  const std::int64_t n = device_count();
  const Array whole = astype(array(values, {static_cast<std::int64_t>(values.size()), 1}), float32);
  return reshape(whole, {n, whole.shape()[0] / n, 1});
}

Params train(Params params, const Array& x_split, const Array& y_split, int steps) {
  const auto parallel_update = pmap(update, {.axis_name = "num_devices"});
  float first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    Array loss;
    std::tie(params, loss) = parallel_update(params, x_split, y_split);
    if (i == 0) {
      say("after the first update, weight is " + description(params.weight));
      say("after the first update, loss is " + description(loss));
      say("after the first update, x_split is " + description(x_split));
      check(params.weight.is_committed() && loss.is_committed() && !x_split.is_committed(),
            "parameters and loss lie on the devices now, the data still wherever it is used");
    }
    if (i % 100 != 0) continue;
    last = item<float>(loss(0));  // replicated on every device; reads the first
    if (i == 0) first = last;
    char text[64];
    std::snprintf(text, sizeof text, "Step %3d, loss: %.3f", i, static_cast<double>(last));
    say(text);
    record_values({static_cast<double>(last)});
  }
  check(last < first, "the loss went down");
  check(close(params.weight, full({8}, item<float>(params.weight(0))), 0),
        "all devices hold the same weight");
  return params;
}

// The least squares line.
std::pair<double, double> best_line(const Points& p) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const double n = static_cast<double>(p.xs.size());
  for (std::size_t i = 0; i < p.xs.size(); ++i)
    x += p.xs[i], y += p.ys[i], xx += p.xs[i] * p.xs[i], xy += p.xs[i] * p.ys[i];
  const double weight = (n * xy - x * y) / (n * xx - x * x);
  return {weight, (y - weight * x) / n};
}

void regression(const std::string& svg) {
  step("15", "parameters: one of each, then a copy per device");
  const Params initial = init(random::key(123));
  say("weight " + text_of(item<float>(initial.weight)) + ", bias " + text_of(item<float>(initial.bias)));
  const Params replicated = tree_map([](const Array& p) { return broadcast_to(p, {8}); }, initial);
  say("replicated weight: " + description(replicated.weight));

  step("16", "the data, split over the devices");
  const Points points = data();
  const Array x_split = split(points.xs), y_split = split(points.ys);
  say("x_split: " + description(x_split));

  step("17", "1000 updates");
  const Params trained = train(replicated, x_split, y_split, 1000);

  step("18", "the parameters of device 0, and their line");
  const double weight = item<float>(trained.weight(0)), bias = item<float>(trained.bias(0));
  const auto [best_weight, best_bias] = best_line(points);
  record_values({weight, bias});
  say("found y = " + text_of(weight) + " x + " + text_of(bias));
  check(std::abs(weight - best_weight) < 1e-3 && std::abs(bias - best_bias) < 1e-3,
        "it is the least squares line of all 128 points");
  if (svg.empty()) return;
  const bool written = !is_main_process() || write_scatter(svg, points.xs, points.ys, weight, bias);
  say_of_this_machine("points and line: " + svg);
  if (!written) throw IoError(svg + " cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  std::string svg;
  bool small = false;
  CLI::App app("One function, many devices: vmap, pmap, collectives, regression", "parallel_evaluation");
  app.add_option("--svg", svg, "file for the points and the fitted line");
  app.add_flag("--small", small, "changes nothing: this tutorial is small");
  return main_of(app, argc, argv, [&] {
    list_devices("1", "the devices");
    const Examples e = examples();
    maps(e);
    normalized(e);
    nested_maps();
    regression(svg);
    list_devices("19", "hosts: which process runs where");
  });
}
