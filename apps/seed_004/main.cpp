// Shardings, batched solvers and matrix products over a mesh of 8 devices: the exercises, solved.
//
//   tessera run -n 8 seed_004
#include <tessera/tessera.hpp>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

using namespace tessera;

namespace {

void say(const std::string& text) {
  if (is_main_process()) std::printf("\n%s\n", text.c_str());
}
void picture(const Array& x) {
  const auto text = debug::visualize_array_sharding(x, {.use_color = false});
  if (is_main_process()) std::printf("%s\n", text.c_str());
}
// Collective: reads whether all elements agree.
bool allclose(const Array& a, const Array& b, double tolerance) {
  return item<bool>(all(abs(a - b) <= tolerance + abs(b) * tolerance));
}
void claim(bool holds, const std::string& what) {
  if (!holds) throw ArgumentError("seed_004: it does not hold that " + what);
  if (is_main_process()) std::printf("  holds: %s\n", what.c_str());
}

Array matrix(int seed) { return random::normal(random::key(seed), {16, 16}); }

// ---- 1. Find the mesh and the spec ----
void pictures() {
  const Array a = matrix(0);
  const Mesh row = make_mesh({8}, {"x"});
  say("columns over 8 devices: P(None, \"x\")");
  picture(device_put(a, row, P(None, "x")));

  const Mesh grid = make_mesh({2, 4}, {"x", "y"});
  say("2 x 4 blocks: P(\"x\", \"y\") over (2, 4)");
  picture(device_put(a, grid, P("x", "y")));
  say("... transposed: P(\"y\", \"x\")");
  picture(device_put(a, grid, P("y", "x")));

  const Mesh even(NdDevices{{0, 2}, {4, 6}}, {"x", "y"});
  say("every second device, 2 x 2: P(\"x\", \"y\")");
  picture(device_put(a, even, P("x", "y")));

  const Mesh mysterious(NdDevices{{0, 2}, {4, 6}, {1, 3}, {5, 7}}, {"x", "y"});
  say("even devices above odd ones: P(\"x\", \"y\") over (4, 2)");
  picture(device_put(a, mysterious, P("x", "y")));
}

// ---- 2. One linear system per device ----
void solvers() {
  std::vector<Array> matrices, sides;
  for (int i = 0; i < 8; ++i) {
    matrices.push_back(matrix(i));
    sides.push_back(random::normal(random::key(i + 8), {16}));
  }
  const Mesh mesh = make_mesh({8}, {"x"});
  const Array a = device_put(stack(matrices), mesh, P("x")), b = device_put(stack(sides), mesh, P("x"));
  const auto batch_solvers =
      shard_map([](const Array& a, const Array& b) { return expand_dims(linalg::solve(a(0), b(0)), 0); },
                mesh, P("x"), P("x"));
  eval(a, b);
  const debug::CommStats stats;
  const Array x = block_until_ready(batch_solvers(a, b));
  const auto bytes = stats.bytes();
  say("8 systems A x = b, one per device");
  picture(x);
  claim(bytes == 0, "solving them moves no byte");
  claim(allclose(squeeze(matmul(a, expand_dims(x, 2)), 2), b, 1e-4), "A x is b");
}

// ---- 3.1 Products that need no communication, written by hand ----
void products(const Mesh& mesh) {
  const Array a = matrix(0), b = matrix(1);
  const Array a_rows = device_put(a, mesh, P("x")), b_columns = device_put(b, mesh, P(None, "y"));
  const Array a_whole = device_put(a, mesh, P()), b_whole = device_put(b, mesh, P());
  const auto multiply_blocks = [](const Array& a, const Array& b) { return matmul(a, b); };

  const auto row_col = shard_map(multiply_blocks, mesh, {P("x"), P(None, "y")}, P("x", "y"));
  const auto row_replicated = shard_map(multiply_blocks, mesh, {P("x"), P()}, P("x"));
  const auto replicated_col = shard_map(multiply_blocks, mesh, {P(), P(None, "y")}, P(None, "y"));

  say("rows times columns, rows times the whole, the whole times columns");
  picture(row_col(a_rows, b_columns));
  claim(allclose(row_col(a_rows, b_columns), matmul(a_rows, b_columns), 1e-5) &&
            row_col(a_rows, b_columns).sharding() == matmul(a_rows, b_columns).sharding(),
        "rows times columns has the values and the sharding of matmul");
  claim(allclose(row_replicated(a_rows, b_whole), matmul(a_rows, b_whole), 1e-5) &&
            row_replicated(a_rows, b_whole).sharding() == matmul(a_rows, b_whole).sharding(),
        "rows times the whole too");
  claim(allclose(replicated_col(a_whole, b_columns), matmul(a_whole, b_columns), 1e-5) &&
            replicated_col(a_whole, b_columns).sharding() == matmul(a_whole, b_columns).sharding(),
        "the whole times columns too");
}

// ---- 3.2 Products whose terms lie on different devices ----
void block_products(const Mesh& mesh) {
  const Array a = device_put(matrix(0), mesh, P("x", "y"));
  const Array b_rows = device_put(matrix(1), mesh, P("y")),
              b_columns = device_put(matrix(1), mesh, P(None, "y")),
              b_whole = device_put(matrix(1), mesh, P());

  // a is split where it is summed over, and so is b: every device has a term of its block row.
  const auto times_rows = shard_map([](const Array& a, const Array& b) { return psum(matmul(a, b), "y"); },
                                    mesh, {P("x", "y"), P("y")}, P("x"));
  say("blocks times rows: one sum over y");
  picture(times_rows(a, b_rows));
  claim(allclose(times_rows(a, b_rows), matmul(a, b_rows), 1e-5) &&
            times_rows(a, b_rows).sharding() == matmul(a, b_rows).sharding(),
        "blocks times rows has the values and the sharding of matmul");

  // b is split over its columns: a's block row is put together first.
  const auto times_columns =
      shard_map([](const Array& a,
                   const Array& b) { return matmul(all_gather(a, "y", {.axis = 1, .tiled = true}), b); },
                mesh, {P("x", "y"), P(None, "y")}, P("x", "y"));
  claim(allclose(times_columns(a, b_columns), matmul(a, b_columns), 1e-5),
        "blocks times columns: one gather over y");

  // b is whole on every device: each takes the rows that its block of a meets.
  const auto times_whole = shard_map(
      [](const Array& a, const Array& b) {
        const auto rows = b.shape()[0] / axis_size("y");
        return psum(matmul(a, take(b, arange(static_cast<int>(rows)) + axis_index("y") * rows, 0)), "y");
      },
      mesh, {P("x", "y"), P()}, P("x"));
  claim(allclose(times_whole(a, b_whole), matmul(a, b_whole), 1e-5),
        "blocks times the whole: one sum over y");
}

// ---- 3.3 Four matrices with one collective ----
//   A P("x", None) . B P(None, "y")  ->  P("x", "y")    nothing moves
//                  . C P("y", None)  ->  P("x", None)   terms over y: the one sum
//                  . D P(None, "y")  ->  P("x", "y")    nothing moves
void chain(const Mesh& mesh) {
  const Array a = matrix(0), b = matrix(1), c = matrix(2), d = matrix(3);
  const Array a_rows = device_put(a, mesh, P("x")), b_columns = device_put(b, mesh, P(None, "y")),
              c_rows = device_put(c, mesh, P("y")), d_columns = device_put(d, mesh, P(None, "y"));
  eval(a_rows, b_columns, c_rows, d_columns);
  const auto product = [](const Array& a, const Array& b, const Array& c, const Array& d) {
    return matmul(matmul(matmul(a, b), c), d);
  };
  say("A B C D with A by rows, B by columns, C by rows, D by columns");
  const auto plan = explain(product, a_rows, b_columns, c_rows, d_columns);
  if (is_main_process()) std::cout << plan << "\n";
  const debug::CommStats stats;
  const Array abcd = block_until_ready(product(a_rows, b_columns, c_rows, d_columns));
  claim(stats.calls() == 1, "four matrices need one collective");
  claim(allclose(abcd, product(a, b, c, d), 1e-4), "the product is right");
  const Array b_whole = device_put(b, mesh, P()), c_whole = device_put(c, mesh, P()),
              d_whole = device_put(d, mesh, P());
  eval(b_whole, c_whole, d_whole);
  const debug::CommStats none;
  block_until_ready(product(a_rows, b_whole, c_whole, d_whole));
  claim(none.calls() == 0, "in an iteration x <- x B that keeps B whole on every device, rows never move");
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (device_count() != 8)
      throw ArgumentError("seed_004 takes 8 devices, not " + std::to_string(device_count()) +
                          ": tessera run -n 8 seed_004");
    pictures();
    solvers();
    const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
    products(mesh);
    block_products(mesh);
    chain(mesh);
  });
}
