// The tutorials (apps/tutorial) run on any number of ranks, with the numbers printed in their notebooks.
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <cmath>

namespace {

using namespace tessera;

void expect_close(const Array& got, const std::vector<double>& wanted, double tolerance,
                  const std::string& what) {
  const auto values = to_vector<double>(got);
  ASSERT_EQ(values.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], wanted[i], tolerance * (1 + std::abs(wanted[i]))) << what << " element " << i;
}

Array convolve(const Array& x, const Array& w) {
  std::vector<Array> output;
  for (std::int64_t i = 1; i < x.shape()[0] - 1; ++i) output.push_back(dot(x(slice(i - 1, i + 2)), w));
  return stack(output);
}

TEST(ParallelEvaluation, convolve_on_every_device_gives_the_notebooks_numbers) {
  const int n = device_count();
  const Array w = array({2.f, 3.f, 4.f}), xs = reshape(arange(5 * n), {n, 5}), ws = broadcast_to(w, {n, 3});
  std::vector<double> once, twice, sums(3, 0.0), normalized;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < 3; ++j) once.push_back(11 + 45 * i + 9 * j), sums[j] += once.back();
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < 3; ++j) {
      double total = 0;
      for (int k = 0; k < 3; ++k) total += (5 * i + j + k) * once[3 * i + k];
      twice.push_back(total);
      normalized.push_back(once[3 * i + j] / sums[j]);
    }
  const auto mapped = pmap(convolve);
  expect_close(mapped(xs, ws), once, 0, "pmap");
  expect_close(vmap(convolve)(xs, ws), once, 0, "vmap");
  expect_close(pmap(convolve, {.in_axes = {0, None}})(xs, w), once, 0, "w for all");
  expect_close(mapped(xs, mapped(xs, ws)), twice, 0, "twice");
  if (n >= 2) {
    EXPECT_EQ(twice[3], 1188) << "the notebook's second row begins with 1188";
  }
  const auto normalize = [](const Array& x, const Array& w) {
    const Array y = convolve(x, w);
    return y / psum(y, "p");
  };
  expect_close(pmap(normalize, {.axis_name = "p"})(xs, ws), normalized, 1e-6, "normalized");
  expect_close(vmap(normalize, {.axis_name = "p"})(xs, ws), normalized, 1e-6, "normalized by vmap");
  if (n == 8) {
    EXPECT_NEAR(normalized[0], 0.00816024, 1e-8);
  }
}

struct Params {
  Array weight, bias;
};

TEST(ParallelEvaluation, data_parallel_regression_is_the_regression_of_the_whole_batch) {
  const int n = device_count();
  const auto loss_fn = [](const Params& p, const Array& x, const Array& y) {
    return mean(square(p.weight * x + p.bias - y));
  };
  const auto step = [&](const Params& p, const Array& x, const Array& y) {
    auto [loss, grads] = value_and_grad(loss_fn)(p, x, y);
    return std::pair{
        tree_map([](const Array& p, const Array& g) { return p - pmean(g, "num_devices") * 0.005; }, p,
                 grads),
        pmean(loss, "num_devices")};
  };
  const Array xs = random::normal(random::key(0), {n, 16, 1});
  const Array ys = xs * 2.0 - 1.0 + random::normal(random::key(1), {n, 16, 1}) * 0.5;
  Params parallel{zeros({n}), ones({n})}, whole{zeros({}), ones({})};
  const auto update = jit(pmap(step, {.axis_name = "num_devices"}));
  double first = 0, last = 0;
  for (int i = 0; i < 50; ++i) {
    auto [next, loss] = update(parallel, xs, ys);
    auto [whole_loss, grads] = value_and_grad(loss_fn)(whole, xs, ys);
    whole = tree_map([](const Array& p, const Array& g) { return p - g * 0.005; }, whole, grads);
    parallel = next;
    if (i % 10 != 9 && i != 0) continue;
    last = item<double>(whole_loss);
    if (i == 0) first = last;
    expect_close(loss, std::vector<double>(n, last), 1e-5, "loss of step " + std::to_string(i));
    expect_close(parallel.weight, std::vector<double>(n, item<double>(whole.weight)), 1e-5, "weight");
  }
  EXPECT_LT(last, first);
}

TEST(Parallelism, products_and_normalisation) {
  const int n = device_count();
  const Array x = pmap([](const Array&) { return ones({32, 32}); })(arange(n));
  expect_close(pmap([](const Array& a, const Array& b) { return matmul(a, b); })(x, x),
               std::vector<double>(static_cast<std::size_t>(n) * 32 * 32, 32.0), 0, "products");
  std::vector<double> wanted;
  for (int i = 0; i < n; ++i) wanted.push_back(i / (n * (n - 1) / 2.0));
  const Array y = pmap([](const Array& x) { return x / psum(x, "p"); }, {.axis_name = "p"})(arange(n));
  if (n > 1) expect_close(y, wanted, 1e-6, "normalize");
  expect_close(pmap([](const Array& x) { return psum(x, "i"); }, {.axis_name = "i"})(ones({n})),
               std::vector<double>(n, n), 0, "psum of ones");
}

// All ranks as two axes.
Mesh grid() {
  const int p = device_count();
  const int y = p % 2 == 0 ? 2 : 1;
  return make_mesh({p / y, y}, {"x", "y"});
}
Array matrix(int seed, std::int64_t n = 16) { return random::normal(random::key(seed), {n, n}); }

TEST(Workshop, batched_solvers_stay_on_their_devices) {
  const int n = device_count();
  const Mesh mesh = make_mesh({n}, {"x"});
  const Array a = device_put(random::normal(random::key(0), {n, 16, 16}), mesh, P("x")),
              b = device_put(random::normal(random::key(1), {n, 16}), mesh, P("x"));
  eval(a, b);
  const auto solve =
      shard_map([](const Array& a, const Array& b) { return expand_dims(linalg::solve(a(0), b(0)), 0); },
                mesh, P("x"), P("x"));
  const debug::CommStats stats;
  const Array x = block_until_ready(solve(a, b));
  EXPECT_EQ(stats.bytes(), 0);
  EXPECT_EQ(x.sharding(), NamedSharding(mesh, P("x")));
  expect_close(squeeze(matmul(a, expand_dims(x, 2)), 2), to_vector<double>(b), 1e-3, "A x");
}

TEST(Workshop, hand_written_products_are_matmul) {
  const Mesh mesh = grid();
  struct Case {
    const char* name;
    P a, b, out;
    std::function<Array(const Array&, const Array&)> body;
  };
  const auto product = [](const Array& a, const Array& b) { return matmul(a, b); };
  const std::vector<Case> cases = {
      {"rows times columns", P("x"), P(None, "y"), P("x", "y"), product},
      {"rows times the whole", P("x"), P(), P("x"), product},
      {"the whole times columns", P(), P(None, "y"), P(None, "y"), product},
      {"blocks times rows", P("x", "y"), P("y"), P("x"),
       [](const Array& a, const Array& b) { return psum(matmul(a, b), "y"); }},
      {"blocks times columns", P("x", "y"), P(None, "y"), P("x", "y"),
       [](const Array& a, const Array& b) {
         return matmul(all_gather(a, "y", {.axis = 1, .tiled = true}), b);
       }},
  };
  const std::int64_t n = 8 * device_count();
  for (const auto& c : cases) {
    const Array a = device_put(matrix(0, n), mesh, c.a), b = device_put(matrix(1, n), mesh, c.b);
    const Array by_hand = shard_map(c.body, mesh, {c.a, c.b}, c.out)(a, b);
    expect_close(by_hand, to_vector<double>(matmul(matrix(0, n), matrix(1, n))), 1e-4, c.name);
    if (c.b != P(None, "y") || c.a != P("x", "y")) {
      EXPECT_EQ(by_hand.sharding(), matmul(a, b).sharding()) << c.name;
    }
  }
}

TEST(Workshop, four_matrices_with_one_collective) {
  const Mesh mesh = grid();
  const Array a = device_put(matrix(0), mesh, P("x")), b = device_put(matrix(1), mesh, P(None, "y")),
              c = device_put(matrix(2), mesh, P("y")), d = device_put(matrix(3), mesh, P(None, "y"));
  eval(a, b, c, d);
  const debug::CommStats stats;
  const Array product = block_until_ready(matmul(matmul(matmul(a, b), c), d));
  EXPECT_EQ(stats.calls(), mesh.axis_size("y") > 1 ? 1 : 0);
  expect_close(product, to_vector<double>(matmul(matmul(matmul(matrix(0), matrix(1)), matrix(2)), matrix(3))),
               1e-3, "chain");
  const Array whole = multihost::process_allgather(product, true).size() == 256 ? product : Array();
  EXPECT_TRUE(whole.node() != nullptr);
}

TEST(Workshop, five_pictures) {
  if (device_count() != 8) return;
  const auto owner = [](const Sharding& s, std::int64_t row, std::int64_t column) {
    for (const auto& [device, index] : s.devices_indices_map({16, 16}))
      if (index[0].start <= row && row < index[0].stop && index[1].start <= column && column < index[1].stop)
        return device.id;
    return -1;
  };
  const Mesh line = make_mesh({8}, {"x"}), mesh = make_mesh({2, 4}, {"x", "y"}),
             even(NdDevices{{0, 2}, {4, 6}}, {"x", "y"}),
             mysterious(NdDevices{{0, 2}, {4, 6}, {1, 3}, {5, 7}}, {"x", "y"});
  EXPECT_EQ(owner(NamedSharding(line, P(None, "x")), 0, 15), 7);
  EXPECT_EQ(owner(NamedSharding(mesh, P("x", "y")), 15, 0), 4);
  EXPECT_EQ(owner(NamedSharding(mesh, P("y", "x")), 15, 0), 3);
  EXPECT_EQ(owner(NamedSharding(even, P("x", "y")), 15, 0), 4);
  EXPECT_EQ(owner(NamedSharding(mysterious, P("x", "y")), 15, 0), 5);
}

}  // namespace
