// Arrays over eight devices with PositionalSharding: layouts of values, computation that follows them,
// explicit disagreement, constraints, and a network whose parallelism consists only of its parameters'
// layouts.
//
//   tessera run -n 8 distributed_arrays_2022 [--small] [--n 8192] [--width 1024] [--batch 1024] [--steps 30]
#include "tutorial/distributed.hpp"

using namespace tutorial;

namespace {

// ---- 1. A first look ----
void first_look(const Array& x, const PositionalSharding& sharding) {
  step("1", "an array that nobody placed");
  say("x: " + description(x));
  picture("x is uncommitted: it would be computed on every device, replicated over all of them", x);
  check(!x.is_committed(), "x is uncommitted");

  step("2", "x over 4 x 2 devices");
  const Array y = device_put(x, sharding.reshape(4, 2));
  picture("y", y);

  step("3", "sin follows y");
  const Array z = sin(y);
  picture("z = sin(y)", z);
  check(z.sharding() == y.sharding(), "sin keeps the layout");

  step("4", "how long sin takes on one device");
  const Array single = device_put(x, devices()[0]);
  timed("sin(x) on one device", [&] { return sin(single); });
  step("5", "and on eight");
  timed("sin(y) on eight devices", [&] { return sin(y); });
  check(item<bool>(allclose(device_put(sin(single), y.sharding()), z)), "both give the same");
}

// ---- 2. PositionalSharding: an array of sets of devices ----
void positions(const Array& x, const PositionalSharding& sharding) {
  step("6", "x over 8 x 1 devices");
  const Array rows = device_put(x, sharding.reshape(8, 1));
  picture("x", rows);
  check(rows.sharding() == NamedSharding(make_mesh({8}, {"a"}), P("a", None)), "it is cut into rows");

  step("7", "a sharding prints as an array of sets of devices");
  say(text_of(sharding));
  step("8", "reshape(8, 1)");
  say(text_of(sharding.reshape(8, 1)));
  step("9", "reshape(4, 2)");
  say(text_of(sharding.reshape(4, 2)));
  check(sharding.reshape(4, 2).shape() == Shape({4, 2}), "it has the shape 4 x 2");

  step("10", "x by sharding.reshape(4, 2)");
  picture("y", device_put(x, sharding.reshape(4, 2)));
  step("11", "x by sharding.reshape(1, 8)");
  say(text_of(sharding.reshape(1, 8)));
  picture("y", device_put(x, sharding.reshape(1, 8)));
}

void replication(const Array& x, const PositionalSharding& grid) {
  step("12", "replicate(0): the union of the sets along axis 0");
  say(text_of(grid.replicate(0, true)));
  const Array columns = device_put(x, grid.replicate(0, true));
  picture("two column blocks, each on four devices", columns);
  const auto first = columns.sharding().shard_shape(x.shape());
  check(first == Shape({x.shape()[0], x.shape()[1] / 2}), "a block has all rows and half of the columns");

  step("13", "shapes of both unions");
  say(text_of(grid.replicate(0).shape()) + "\n" + text_of(grid.replicate(1).shape()));
  check(grid.replicate(0).shape() == Shape({1, 2}) && grid.replicate(1).shape() == Shape({4, 1}),
        "the axis is kept with size 1");

  step("14", "replicate(1)");
  picture("four row blocks, each on two devices", device_put(x, grid.replicate(1)));
}

// ---- 3. NamedSharding ----
void named(const Array& x) {
  step("15", "the same with names");
  const Mesh mesh(create_device_mesh({4, 2}), {"a", "b"});
  say(debug::mesh_picture(mesh));
  picture("NamedSharding(mesh, P(\"a\", \"b\"))", device_put(x, NamedSharding(mesh, P("a", "b"))));

  six_specs("16", mesh, x);
}

// ---- 4. Computation follows data ----
void computation(const Array& start, const PositionalSharding& grid) {
  computation_follows(17, device_put(start, grid), grid.replicate(1), grid.replicate(0));
}

void disagreement(const Array& x) {
  const auto all = devices();
  const PositionalSharding first(std::vector<Device>(all.begin(), all.begin() + 4)),
      second(std::vector<Device>(all.begin() + 4, all.end()));
  std::vector<Device> permuted;
  for (const std::size_t i : {0, 1, 2, 3, 6, 7, 4, 5}) permuted.push_back(all[i]);
  disagreements("21", x, {first.reshape(2, 2), second.reshape(2, 2)},
                {PositionalSharding(all).reshape(4, 2), PositionalSharding(permuted).reshape(4, 2)});
}

// ---- 5. Constraints inside jit ----
void constraints(const Array& start, const PositionalSharding& sharding) {
  const Array x = device_put(start, sharding.reshape(4, 2));
  step("22", "an intermediate value constrained to reshape(2, 4)");
  const auto turned = jit([&](Array v) { return with_sharding_constraint(v + 1, sharding.reshape(2, 4)); });
  picture("before", x);
  const Array y = turned(x);
  picture("after", y);
  check(y.sharding() == Sharding(sharding.reshape(2, 4)), "the result lies as constrained");

  step("23", "constrained to replicate()");
  const auto replicated = jit([&](Array v) { return with_sharding_constraint(v + 1, sharding.replicate()); });
  picture("before", x);
  const Array z = replicated(x);
  picture("after", z);
  check(z.is_fully_replicated(), "every device has all of it");
}

// ---- 6. A network ----
void data_parallel(Training& training, const PositionalSharding& rows) {
  step("24", "8-way data parallel: the batch by rows, parameters everywhere");
  training.batch = device_put(training.batch, rows);
  training.params = device_put(training.params, rows.replicate());
  say("loss: " + text_of(training.loss_now()));
  step("25", "gradient descent");
  training.descend();
  step("26", "how long a gradient takes on eight devices");
  training.time_gradient("on eight devices");
  step("27", "and on one");
  training.time_gradient_on_one_device();
}

void two_ways(Training& training, const PositionalSharding& grid) {
  step("28", "4-way data and 2-way model parallel: the batch");
  training.batch = device_put(training.batch, grid.replicate(1));
  picture("inputs", training.batch.first);
  picture("targets", training.batch.second);

  step("29", "the parameters: W2 by columns, W3 by rows, the others everywhere");
  auto& params = training.params;
  params[0] = device_put(params[0], grid.replicate());
  params[1] = device_put(params[1], grid.replicate(0));
  params[2] = {device_put(params[2].first, grid.replicate(0).T()),
               device_put(params[2].second, grid.replicate())};
  params[3] = device_put(params[3], grid.replicate());
  picture("W2", params[1].first);
  picture("W3", params[2].first);

  step("30", "the loss there");
  say("loss: " + text_of(training.loss_now()));
  const Sharding w2 = params[1].first.sharding(), w3 = params[2].first.sharding();
  step("31", "gradient descent");
  training.descend();
  step("32", "W2 and W3 behind it");
  picture("W2", params[1].first);
  picture("W3", params[2].first);
  check(params[1].first.sharding() == w2 && params[2].first.sharding() == w3,
        "the weights lie where they were put");
  step("33", "how long a gradient takes now");
  training.time_gradient("over 4 x 2 devices");
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  CLI::App app("Distributed arrays with PositionalSharding", "distributed_arrays_2022");
  sizes.add_to(app);
  return main_of(app, argc, argv, [&] {
    sizes.settle();
    const Array x = random::normal(random::key(0), {sizes.n, sizes.n});
    const PositionalSharding sharding(create_device_mesh({8}));
    first_look(x, sharding);
    positions(x, sharding);
    replication(x, sharding.reshape(4, 2));
    named(x);
    computation(x, sharding.reshape(4, 2));
    disagreement(x);
    constraints(x, sharding);
    Training training(sizes);
    data_parallel(training, PositionalSharding(devices()).reshape(8, 1));
    two_ways(training, PositionalSharding(devices()).reshape(4, 2));
  });
}
