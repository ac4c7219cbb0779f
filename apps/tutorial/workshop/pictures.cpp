// Devices, the first pictures, and exercises 1 and 2.
#include "steps.hpp"

namespace workshop {

namespace {

// The device that holds an element.
int owner(const Array& x, std::int64_t row, std::int64_t column) {
  for (const auto& [device, index] : x.sharding().devices_indices_map(x.shape()))
    if (index[0].start <= row && row < index[0].stop && index[1].start <= column && column < index[1].stop)
      return device.id;
  return -1;
}

void first_pictures(const Array& a) {
  step("1", "the devices");
  for (const Device& device : devices()) say(text_of(device));
  check(device_count() == 8, "there are eight");

  step("2", "a mesh, a spec, a sharding");
  const Mesh mesh = make_mesh({8}, {"x"});
  const Sharding sharding = NamedSharding(mesh, P("x"));
  say(text_of(mesh) + "\n" + text_of(sharding.spec()));

  step("3", "rows over eight devices");
  const Array rows = with_sharding_constraint(a, sharding);
  picture("P(\"x\")", rows);
  check(owner(rows, 15, 0) == 7, "the last row is on device 7");

  step("4", "rows over half of the devices");
  const auto all = devices();
  const Mesh half = make_mesh({4}, {"x"}, std::vector<Device>(all.begin(), all.begin() + 4));
  const Array a_2 = with_sharding_constraint(a, NamedSharding(half, P("x")));
  picture("P(\"x\") over devices 0 to 3", a_2);
  check(a_2.devices().size() == 4, "four devices hold it");
}

void exercise_1(const Array& a) {
  step("5", "exercise 1.1: columns");
  const Array b = with_sharding_constraint(a, NamedSharding(make_mesh({8}, {"x"}), P(None, "x")));
  picture("P(None, \"x\")", b);
  check(owner(b, 0, 15) == 7, "the last column is on device 7");

  step("6", "exercise 1.2: blocks, and the mesh transposed");
  const Mesh grid = make_mesh({2, 4}, {"x", "y"});
  picture("P(\"x\", \"y\") over 2 x 4", with_sharding_constraint(a, NamedSharding(grid, P("x", "y"))));
  const Array d = with_sharding_constraint(a, NamedSharding(grid, P("y", "x")));
  picture("P(\"y\", \"x\")", d);
  check(owner(d, 15, 0) == 3 && owner(d, 0, 15) == 4, "devices count downwards");

  step("7", "exercise 1.3: every second device");
  const Mesh even(NdDevices{{0, 2}, {4, 6}}, {"x", "y"});
  const Array e = with_sharding_constraint(a, NamedSharding(even, P("x", "y")));
  picture("P(\"x\", \"y\") over 2 x 2 devices", e);
  check(owner(e, 0, 15) == 2 && owner(e, 15, 0) == 4, "device 2 is at the right, device 4 below");

  step("8", "exercise 1.4: the mysterious mesh, even devices above odd ones");
  const Mesh mysterious(NdDevices{{0, 2}, {4, 6}, {1, 3}, {5, 7}}, {"x", "y"});
  const Array f = with_sharding_constraint(a, NamedSharding(mysterious, P("x", "y")));
  picture("P(\"x\", \"y\") over 4 x 2 devices", f);
  check(owner(f, 15, 0) == 5 && owner(f, 15, 15) == 7, "the last row of blocks is on devices 5 and 7");
}

}  // namespace

void pictures() {
  const Array a = matrix(0);
  first_pictures(a);
  exercise_1(a);
}

void batches() {
  step("9", "exercise 2: eight systems A x = b, one per device");
  std::vector<Array> matrices, sides;
  for (int i = 0; i < 8; ++i) {
    matrices.push_back(matrix(i));
    sides.push_back(random::normal(random::key(i + 8), {16}));
  }
  const Mesh mesh = make_mesh({8}, {"x"});
  const Sharding sharding = NamedSharding(mesh, P("x"));
  const Array as = with_sharding_constraint(stack(matrices), sharding),
              bs = with_sharding_constraint(stack(sides), sharding);
  const auto batch_solvers =
      shard_map([](const Array& a, const Array& b) { return expand_dims(linalg::solve(a(0), b(0)), 0); },
                mesh, P("x"), P("x"));
  eval(as, bs);
  const debug::CommStats stats;
  const Array x = block_until_ready(batch_solvers(as, bs));
  const auto bytes = stats.bytes();
  picture("the solutions", x);
  check(bytes == 0, "solving them moves no byte");

  const Array x_s = array(multihost::process_allgather(x, true));
  bool right = true;
  for (int i = 0; i < 8; ++i)
    right = right && close(dot(matrices[static_cast<std::size_t>(i)], x_s(i)),
                           sides[static_cast<std::size_t>(i)], 1e-4);
  check(right, "gathered to every process, each A x is its b");
}

}  // namespace workshop
