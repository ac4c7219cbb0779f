// Arrays over eight devices with named axes: layouts of values, computation that follows them, explicit
// disagreement, constraints, a network, and random numbers that never communicate.
//
//   tessera run -n 8 distributed_arrays_2024 [--small] [--n 8192] [--width 1024] [--batch 1024] [--steps 30]
#include "tutorial/distributed.hpp"

using namespace tutorial;

namespace {

// ---- 1. A quick example ----
void quick_example(const Array& x) {
  step("1", "x over a 4 x 2 mesh");
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  const Array y = device_put(x, NamedSharding(mesh, P("x", "y")));
  picture("y", y);

  step("2", "sin follows y");
  const Array z = sin(y);
  picture("z = sin(y)", z);
  check(z.sharding() == y.sharding(), "sin keeps the layout");

  step("3", "how long sin takes on one device");
  const Array single = device_put(x, devices()[0]);
  timed("sin(x) on one device", [&] { return sin(single); });
  step("4", "and on eight");
  timed("sin(y) on eight devices", [&] { return sin(y); });
  check(item<bool>(allclose(device_put(sin(single), y.sharding()), z)), "both give the same");
}

// ---- 2. Shardings ----
void shardings(const Array& x) {
  step("5", "an array that nobody placed");
  say("x: " + description(x));
  picture("x is uncommitted: it would be computed on every device, replicated over all of them", x);
  check(!x.is_committed(), "x is uncommitted");

  step("6", "placed by NamedSharding");
  const Mesh default_mesh = make_mesh({4, 2}, {"a", "b"});
  say(debug::mesh_picture(default_mesh));
  picture("P(\"a\", \"b\")", device_put(x, NamedSharding(default_mesh, P("a", "b"))));

  six_specs("7", default_mesh, x);
}

// ---- 3. Computation follows data ----
void computation(const Array& start, const Mesh& mesh) {
  computation_follows(8, device_put(start, NamedSharding(mesh, P("a", "b"))),
                      NamedSharding(mesh, P("a", None)), NamedSharding(mesh, P(None, "b")));
}

void disagreement(const Array& x) {
  const auto all = devices();
  const auto over = [](const std::vector<Device>& list) { return NamedSharding(Mesh(list, {"x"}), P("x")); };
  std::vector<Device> permuted;
  for (const std::size_t i : {0, 1, 2, 3, 6, 7, 4, 5}) permuted.push_back(all[i]);
  disagreements("12", x,
                {over(std::vector<Device>(all.begin(), all.begin() + 4)),
                 over(std::vector<Device>(all.begin() + 4, all.end()))},
                {over(all), over(permuted)});
}

// ---- 4. Constraints inside jit ----
void constraints(const Array& start) {
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  const Array x = device_put(start, NamedSharding(mesh, P("x", "y")));
  step("13", "an intermediate value constrained to P(\"y\", \"x\")");
  const auto turned =
      jit([&](Array v) { return with_sharding_constraint(v + 1, NamedSharding(mesh, P("y", "x"))); });
  picture("before", x);
  const Array y = turned(x);
  picture("after", y);
  check(y.sharding() == NamedSharding(mesh, P("y", "x")), "the result lies as constrained");

  step("14", "constrained to P()");
  const auto replicated =
      jit([&](Array v) { return with_sharding_constraint(v + 1, NamedSharding(mesh, P())); });
  picture("before", x);
  const Array z = replicated(x);
  picture("after", z);
  check(z.is_fully_replicated(), "every device has all of it");
}

// ---- 5. A network ----
void data_parallel(Training& training) {
  step("15", "8-way data parallel: the batch by rows, parameters everywhere");
  const Mesh mesh = make_mesh({8}, {"batch"});
  training.batch = device_put(training.batch, NamedSharding(mesh, P("batch")));
  training.params = device_put(training.params, NamedSharding(mesh, P()));
  say("loss: " + text_of(training.loss_now()));
  step("16", "gradient descent");
  training.descend();
  step("17", "how long a gradient takes on eight devices");
  training.time_gradient("on eight devices");
  step("18", "and on one");
  training.time_gradient_on_one_device();
}

void place_params(Layers& params, const Mesh& mesh) {
  const Sharding everywhere = NamedSharding(mesh, P());
  params[0] = device_put(params[0], everywhere);
  params[1] = {device_put(params[1].first, mesh, P(None, "model")),
               device_put(params[1].second, mesh, P("model"))};
  params[2] = {device_put(params[2].first, mesh, P("model", None)), device_put(params[2].second, everywhere)};
  params[3] = device_put(params[3], everywhere);
}

void two_ways(Training& training) {
  step("19", "4-way data and 2-way model parallel: the batch");
  const Mesh mesh = make_mesh({4, 2}, {"batch", "model"});
  training.batch = device_put(training.batch, NamedSharding(mesh, P("batch", None)));
  picture("inputs", training.batch.first);
  picture("targets", training.batch.second);

  step("20", "the parameters: W2 by columns, W3 by rows, the others everywhere");
  auto& params = training.params;
  place_params(params, mesh);
  picture("W2", params[1].first);
  picture("W3", params[2].first);

  step("21", "the loss there");
  say("loss: " + text_of(training.loss_now()));
  step("22", "gradient descent");
  training.descend();
  step("23", "W2 and W3 behind it");
  picture("W2", params[1].first);
  picture("W3", params[2].first);
  check(params[1].first.sharding() == NamedSharding(mesh, P(None, "model")) &&
            params[2].first.sharding() == NamedSharding(mesh, P("model", None)),
        "the weights lie where they were put");
  step("24", "how long a gradient takes now");
  training.time_gradient("over 4 x 2 devices");
  const auto plan = explain(grad(loss), training.params, training.batch);
  // Both devices of a "model" pair hold layer 1. If it is large, each computes half of its output and of its
  // gradient, and they exchange the halves.
  const Shape layer = params[0].first.shape();
  const std::int64_t rows = (training.batch.first.shape()[0] + 3) / 4,
                     halves = 4 * (rows * layer[1] + layer.elements()) / 2;
  check(plan.bytes("all-gather") <= halves,
        "it gathers no weight that is split: gradients are summed where they are needed");
}

// ---- 6. Random numbers ----
Array add_random(const random::Key& key, const Array& x) { return x + random::uniform(key, x.shape()); }

// A separate function for each mode: a compiled program keeps the mode in which it was compiled.
std::vector<float> draw(const std::string& number, const random::Key& key, const Array& x) {
  const auto f = jit(add_random);
  const auto compiled = f.lower(key, x).compile();
  step(number + "a", "where the numbers lie");
  const Array y = f(key, x);
  picture("f(key, x)", y);
  step(number + "b", "is there communication in the compiled text?");
  const bool communicates = names(compiled.as_text(), "collective-permute");
  say(std::string("Communicating? ") + (communicates ? "True" : "False"));
  record("collective", communicates ? "true" : "false");
  check(compiled.explanation().calls() == 0, "no collective of any kind is planned");
  return to_vector<float>(y);
}

void random_numbers() {
  const auto key = random::key(42);
  const Array x = device_put(arange(24), NamedSharding(make_mesh({8}, {"x"}), P("x")));
  step("25", "random numbers added to an array over 8 devices, in the original mode");
  std::vector<float> stable;
  {
    const random::ThreefryScope scope(random::Threefry::original);
    stable = draw("25", key, x);
  }
  say("Each rank computes the counters of its own block, in this mode too: element i of n pairs its counter\n"
      "with that of i +- n / 2, which is known without asking the rank that holds it.");
  step("26", "the partitionable mode, which is the default");
  const std::vector<float> partitionable = draw("26", key, x);

  step("27", "the values of both modes differ");
  show("Stable", array(stable));
  show("Partitionable", array(partitionable));
  check(stable != partitionable, "another mode gives other numbers for the same key");
  bool in_place = true;
  for (std::size_t i = 0; i < stable.size(); ++i)
    for (const float value : {stable[i], partitionable[i]})
      in_place = in_place && value >= static_cast<float>(i) && value <= static_cast<float>(i) + 1;
  check(in_place, "all of them are between 0 and 1 above x");
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  CLI::App app("Distributed arrays with named axes", "distributed_arrays_2024");
  sizes.add_to(app);
  return main_of(app, argc, argv, [&] {
    sizes.settle();
    const Array x = random::normal(random::key(0), {sizes.n, sizes.n});
    const Mesh mesh = make_mesh({4, 2}, {"a", "b"});
    quick_example(x);
    shardings(x);
    computation(x, mesh);
    disagreement(x);
    constraints(x);
    Training training(sizes);
    data_parallel(training);
    two_ways(training);
    random_numbers();
  });
}
