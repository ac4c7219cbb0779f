// Products by every algorithm, on pairs of layouts over all ranks, compared with the product on one rank.
// Values are small integers: sums are exact in any order.
#include <tessera/debug.hpp>
#include <tessera/grad.hpp>
#include <tessera/jit.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops/products.hpp>

#include <cstring>
#include <functional>

#include "base/settings.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/host/direct_read.hpp"
#include "comm/host/hosts.hpp"
#include "comm/watch/traffic.hpp"
#include "kernels/dense/packed_product.hpp"
#include "support/layouts.hpp"
#include "support/traffic.hpp"
#include "types/buffer.hpp"

namespace tessera::test {
namespace {

constexpr ProductAlgorithm algorithms[] = {ProductAlgorithm::whole, ProductAlgorithm::inner_panels,
                                           ProductAlgorithm::row_panels, ProductAlgorithm::column_panels,
                                           ProductAlgorithm::inner_shared};

// The algorithm with the smallest possible pieces.
MatmulOptions by(ProductAlgorithm algorithm) { return {algorithm, 1}; }

Array integers(const Shape& shape, Dtype dtype, int seed) {
  return make(shape, dtype, [&](const Position& at) {
    return static_cast<double>((flat(at, shape) * 5 + flat(at, shape) / 7 + seed) % 7) - 3;
  });
}

std::vector<P> layouts() {
  return {P(axes("x", "y"), None),
          P(None, axes("x", "y")),
          P("x", "y"),
          P(),
          P("y", "x"),
          P("y", None),
          P(None, "x")};
}

std::string name_of(ProductAlgorithm algorithm) { return std::to_string(static_cast<int>(algorithm)); }

struct Case {
  Shape a, b;
  Dtype dtype;
};

// Tests all pairs of layouts, or a sample of them.
void expect_all_alike(const Case& c, unsigned one_in, unsigned seed) {
  const Array a = integers(c.a, c.dtype, 1), b = integers(c.b, c.dtype, 2);
  const auto expected = to_vector<double>(astype(matmul(a, b), float64));
  std::mt19937 random(seed);
  for (const P& of_a : layouts())
    for (const P& of_b : layouts())
      for (const auto algorithm : algorithms) {
        if (random() % one_in != 0) continue;
        const Array product = matmul(device_put(a, grid(), of_a), device_put(b, grid(), of_b), by(algorithm));
        ASSERT_EQ(to_vector<double>(astype(product, float64)), expected)
            << printed(of_a) << " . " << printed(of_b) << ", algorithm " << name_of(algorithm) << "\n"
            << program_of(product);
      }
}

TEST(Product, every_algorithm_gives_the_same_on_any_layouts) {
  expect_all_alike({{193, 257}, {257, 131}, float64}, 3, 1);
}
TEST(Product, the_same_where_ranks_send_messages) {
  const SettingScope messages("TESSERA_COLLECTIVES", "mpi");
  expect_all_alike({{193, 257}, {257, 131}, float32}, 4, 2);
}
TEST(Product, the_same_where_messages_travel_in_pieces) {
  const SettingScope messages("TESSERA_COLLECTIVES", "mpi");
  const SettingScope limit("TESSERA_MESSAGE_LIMIT", "1000");
  expect_all_alike({{67, 131}, {131, 71}, float32}, 12, 3);
}
TEST(Product, integers_and_booleans_too) {
  expect_all_alike({{70, 139}, {139, 73}, int32}, 12, 4);
  expect_all_alike({{70, 139}, {139, 73}, bool_}, 12, 5);
}
TEST(Product, complex_numbers_too) { expect_all_alike({{70, 139}, {139, 73}, complex64}, 12, 6); }
TEST(Product, tiny_and_empty_operands) {
  for (const Case& c : std::vector<Case>{{{1, 1}, {1, 1}, float64},
                                         {{3, 5}, {5, 2}, float64},
                                         {{5, 0}, {0, 7}, float64},
                                         {{0, 5}, {5, 3}, float64},
                                         {{4, 300}, {300, 0}, float64},
                                         {{1, 1000}, {1000, 1}, float32}})
    expect_all_alike(c, 12, 7);
}

TEST(Product, batches_and_matrices_split_over_different_axes) {
  const Shape sa{6, 70, 139}, sb{6, 139, 66};
  const Array a = integers(sa, float64, 1), b = integers(sb, float64, 2);
  const auto expected = to_vector<double>(matmul(a, b));
  const std::vector<P> specs = {P("x", "y", None), P("x", None, "y"), P("y", None, None), P(None, "x", "y"),
                                P()};
  for (const P& of_a : specs)
    for (const P& of_b : specs)
      for (const auto algorithm : algorithms) {
        const Array product = matmul(device_put(a, grid(), of_a), device_put(b, grid(), of_b), by(algorithm));
        ASSERT_EQ(to_vector<double>(product), expected)
            << printed(of_a) << " . " << printed(of_b) << ", algorithm " << name_of(algorithm);
      }
}

TEST(Product, dims_in_any_order_and_several_of_them) {
  std::mt19937 random(8);
  const Shape sa{7, 40, 9, 33}, sb{33, 11, 40, 5};
  const Array a = integers(sa, float64, 1), b = integers(sb, float64, 2);
  const auto contracted = std::pair<std::vector<int>, std::vector<int>>{{1, 3}, {2, 0}};
  const auto expected = to_vector<double>(tensordot(a, b, contracted));
  for (int round = 0; round < 24; ++round) {
    const Mesh mesh = random_mesh(random);
    const auto of_a = random_sharding(random, mesh, 4), of_b = random_sharding(random, mesh, 4);
    const MatmulScope scope(by(algorithms[round % std::size(algorithms)]));
    ASSERT_EQ(to_vector<double>(tensordot(device_put(a, of_a), device_put(b, of_b), contracted)), expected)
        << text_of(of_a) << " . " << text_of(of_b) << ", algorithm "
        << name_of(algorithms[round % std::size(algorithms)]);
  }
}

TEST(Product, transposed_operands_are_read_where_they_lie) {
  const Array a = integers({257, 193}, float64, 1), b = integers({131, 257}, float64, 2);
  const auto expected = to_vector<double>(matmul(a.T(), b.T()));
  for (const P& of_a : layouts())
    for (const auto algorithm : algorithms) {
      const Array product =
          matmul(device_put(a, grid(), of_a).T(), device_put(b, grid(), P("x", "y")).T(), by(algorithm));
      ASSERT_EQ(to_vector<double>(product), expected)
          << printed(of_a) << ", algorithm " << name_of(algorithm);
    }
}

TEST(Product, sums_of_which_ranks_keep_blocks_grow_along_a_ring) {
  const int ranks = static_cast<int>(devices().size());
  const Mesh line = make_mesh({ranks}, {"x"});
  struct Kept {
    Shape a, b;
    P of_a, of_b, of_c;
  };
  const std::vector<Kept> cases = {
      {{193, 257}, {257, 131}, P(None, "x"), P("x", None), P("x", None)},
      {{193, 257}, {257, 131}, P(None, "x"), P("x", None), P(None, "x")},
      {{5, 70, 139}, {5, 139, 66}, P(None, None, "x"), P(None, "x", None), P(None, "x", None)},
      {{24, 20, 139}, {24, 139, 6}, P(None, None, "x"), P(None, "x", None), P("x", None, None)},
      {{3, 257}, {257, 2}, P(None, "x"), P("x", None), P("x", None)},
      {{193, 1}, {1, 131}, P(None, "x"), P("x", None), P("x", None)}};
  for (const auto& c : cases)
    for (const Dtype dtype : {float64, int32}) {
      const Array a = integers(c.a, dtype, 1), b = integers(c.b, dtype, 2);
      const auto expected = to_vector<double>(astype(matmul(a, b), float64));
      const Array terms =
          matmul(device_put(a, line, c.of_a), device_put(b, line, c.of_b), {.memory_limit_bytes = 1});
      const Array kept = device_put(terms, line, c.of_c);
      EXPECT_EQ(to_vector<double>(astype(kept, float64)), expected) << printed(c.of_c) << "\n"
                                                                    << program_of(kept);
    }
}

TEST(Product, ranks_that_hold_the_same_share_the_work) {
  const std::int64_t n = 512;
  const Array a = integers({n, n}, float32, 1), b = integers({n, n}, float32, 2);
  const auto expected = to_vector<float>(matmul(a, b));
  const Mesh line = make_mesh({static_cast<int>(devices().size())}, {"x"});
  for (const char* collectives : {"auto", "mpi"}) {
    const SettingScope scope("TESSERA_COLLECTIVES", collectives);
    const Array product = matmul(device_put(a, line, P()), device_put(b, line, P()));
    EXPECT_EQ(to_vector<float>(product), expected);
    EXPECT_EQ(product.sharding(), NamedSharding(line, P()));
  }
}

// Meshes with an axis over which operands are split, and idle axes.
std::vector<Mesh> meshes_with_idle_axes() {
  const int n = static_cast<int>(devices().size());
  std::vector<Mesh> meshes{make_mesh({1, n, 1}, {"x", "y", "z"})};
  for (const int rows : {2, 3})
    if (n % rows == 0 && n > rows) meshes.push_back(make_mesh({rows, n / rows, 1}, {"x", "y", "z"}));
  if (n == 8) meshes.push_back(make_mesh({2, 2, 2}, {"x", "y", "z"}));
  return meshes;
}

// Compares every rank's copy of a replicated result.
bool is_alike_on_all_ranks(const Array& array) {
  const auto mine = local<float>(array);
  std::vector<float> first(mine.begin(), mine.end());
  const auto bytes = static_cast<std::int64_t>(mine.size_bytes());
  comm::broadcast(comm::world(), first.data(), bytes, 0);
  return most_of_any_rank(std::memcmp(first.data(), mine.data(), mine.size_bytes()) != 0) == 0;
}

void expect_shared(const Case& c, const MatmulOptions& options) {
  const Array a = integers(c.a, c.dtype, 1), b = integers(c.b, c.dtype, 2);
  const auto expected = to_vector<double>(astype(matmul(a, b), float64));
  for (const Mesh& mesh : meshes_with_idle_axes())
    for (const P& of_a : {P(), P("x", None), P(None, "x")})
      for (const P& of_b : {P(), P(None, "x"), P("x", None), P("y", None)}) {
        const Array product = matmul(device_put(a, mesh, of_a), device_put(b, mesh, of_b), options);
        ASSERT_EQ(to_vector<double>(astype(product, float64)), expected)
            << mesh << printed(of_a) << " . " << printed(of_b) << "\n"
            << program_of(product);
      }
}

TEST(Product, idle_axes_share_the_inner_dimension) {
  for (const Dtype dtype : {float32, float64, int32, bool_, complex128, bfloat16})
    expect_shared({{13, 101}, {101, 11}, dtype}, {.algorithm = ProductAlgorithm::inner_shared});
}
TEST(Product, idle_axes_share_the_inner_dimension_in_pieces) {
  for (const char* collectives : {"auto", "own", "mpi"}) {
    const SettingScope scope("TESSERA_COLLECTIVES", collectives);
    expect_shared({{13, 1009}, {1009, 11}, float64}, by(ProductAlgorithm::inner_shared));
  }
}
TEST(Product, more_ranks_than_the_inner_dimension_has_indices) {
  for (const std::int64_t k : {0, 1, 2, 3, 5, 7})
    for (const Dtype dtype : {float64, bool_}) {
      expect_shared({{3, k}, {k, 2}, dtype}, by(ProductAlgorithm::inner_shared));
      expect_shared({{1, k}, {k, 1}, dtype}, by(ProductAlgorithm::inner_shared));
      expect_shared({{0, k}, {k, 2}, dtype}, by(ProductAlgorithm::inner_shared));
    }
}
// A result larger than the bound of one addition step.
TEST(Product, terms_of_a_large_result_are_added_in_parts) {
  expect_shared({{701, 37}, {37, 503}, float64}, by(ProductAlgorithm::inner_shared));
}

// The second device_put reuses the cached plan of the first, although their meshes differ.
TEST(Product, operands_that_lie_alike_on_two_meshes_are_shared_on_both) {
  const int ranks = static_cast<int>(devices().size());
  if (ranks == 1) GTEST_SKIP() << "nothing to share";
  const Array a = integers({3, 400'000}, float64, 1), b = integers({400'000, 5}, float64, 2);
  for (const Mesh& mesh : {make_mesh({1, ranks}, {"x", "y"}), make_mesh({ranks}, {"x"})}) {
    const Array x = device_put(a, mesh, P()), y = device_put(b, mesh, P());
    eval(x, y);
    const debug::CommStats stats;
    eval(matmul(x, y));
    EXPECT_EQ(stats.bytes("all-reduce"), 2 * (ranks - 1) * 15 * 8 / ranks) << mesh;
  }
}

TEST(Product, shared_terms_have_the_same_bits_on_all_ranks) {
  const Mesh line = make_mesh({static_cast<int>(devices().size())}, {"x"});
  const std::int64_t k = 100'003;
  const Array a = sin(astype(arange(4 * k), float32)).reshape({4, k}),
              b = cos(astype(arange(4 * k), float32)).reshape({k, 4});
  const Array product = matmul(device_put(a, line, P()), device_put(b, line, P()));
  EXPECT_TRUE(is_alike_on_all_ranks(product));
  const auto expected = to_vector<float>(matmul(a, b)), got = to_vector<float>(product);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-5 * static_cast<double>(k));
}

TEST(Product, a_small_result_of_long_operands_is_shared_and_counted_as_predicted) {
  const int ranks = static_cast<int>(devices().size());
  if (ranks == 1) GTEST_SKIP() << "nothing to share";
  const Mesh line = make_mesh({ranks}, {"x"});
  const Array a = device_put(integers({4, 1'000'000}, float64, 1), line, P()),
              b = device_put(integers({1'000'000, 4}, float64, 2), line, P());
  eval(a, b);
  const auto f = [](const Array& p, const Array& q) { return matmul(p, q); };
  const auto predicted = explain(f, a, b);
  EXPECT_EQ(predicted.calls("all-reduce"), 1) << predicted;
  const debug::CommStats stats;
  eval(f(a, b));
  EXPECT_EQ(stats.bytes(), predicted.bytes()) << predicted;
  EXPECT_EQ(stats.bytes("all-reduce"), 2 * (ranks - 1) * 16 * 8 / ranks);
}

TEST(Product, panels_and_terms_of_a_shared_inner_dimension_carry_what_was_predicted) {
  const SettingScope messages("TESSERA_COLLECTIVES", "mpi");
  const Array a = integers({192, 384}, float64, 1), b = integers({384, 192}, float64, 2);
  const auto f = [](const Array& p, const Array& q) {
    return matmul(p, q, by(ProductAlgorithm::inner_shared));
  };
  int shared = 0;
  for (const Mesh& mesh : meshes_with_idle_axes())
    for (const P& of_a : {P(), P("x", None), P("x", "y")})
      for (const P& of_b : {P(), P(None, "x"), P("x", None), P("x", "y")}) {
        const Array x = device_put(a, mesh, of_a), y = device_put(b, mesh, of_b);
        eval(x, y);
        const auto predicted = explain(f, x, y);
        if (predicted.calls() != predicted.calls("panels") + predicted.calls("all-reduce")) continue;
        shared += predicted.calls("all-reduce") > 0;
        const debug::CommStats stats;
        EXPECT_EQ(message_bytes_of([&] { eval(f(x, y)); }), predicted.bytes("panels"))
            << mesh << printed(of_a) << " . " << printed(of_b) << "\n"
            << predicted;
        EXPECT_EQ(stats.bytes("panels"), predicted.bytes("panels"));
        EXPECT_EQ(stats.bytes("all-reduce"), predicted.bytes("all-reduce"));
      }
  EXPECT_TRUE(shared > 0 || devices().size() == 1);
}

TEST(Product, gradients_are_the_same_by_panels) {
  const Array a = integers({193, 257}, float64, 1), b = integers({257, 131}, float64, 2),
              weight = integers({193, 131}, float64, 3);
  const auto loss = [&](const Array& x, const Array& y) { return sum(matmul(x, y) * weight); };
  const auto expected = to_vector<double>(matmul(weight, b.T()));
  for (const auto algorithm : algorithms) {
    const MatmulScope scope(by(algorithm));
    const Array x = device_put(a, grid(), P("x", "y")), y = device_put(b, grid(), P("x", "y"));
    EXPECT_EQ(to_vector<double>(grad(loss)(x, y)), expected) << name_of(algorithm);
    EXPECT_EQ(to_vector<double>(jit(grad(loss))(x, y)), expected) << name_of(algorithm);
  }
}

TEST(Product, batched_by_vmap_is_the_same_by_panels) {
  const Array a = integers({3, 70, 139}, float64, 1), b = integers({139, 66}, float64, 2);
  const auto expected = to_vector<double>(matmul(a, b));
  for (const auto algorithm : algorithms) {
    const MatmulScope scope(by(algorithm));
    const auto f = vmap([&](const Array& x) { return matmul(x, device_put(b, grid(), P("x", "y"))); });
    EXPECT_EQ(to_vector<double>(f(device_put(a, grid(), P(None, "x", "y")))), expected) << name_of(algorithm);
  }
}

// Panels on one host are read directly, and nothing else is; between hosts they are sent: the bytes read and
// received must equal explain's prediction.
TEST(Product, what_is_read_is_what_was_predicted) {
  const auto arrived = [] { return comm::bytes_read_directly() + comm::bytes_from_other_hosts(); };
  const int ranks = static_cast<int>(devices().size());
  const Array a = integers({192, 384}, float64, 1), b = integers({384, 192}, float64, 2);
  for (const P& of_a : layouts())
    for (const P& of_b : layouts()) {
      const Array x = device_put(a, grid(), of_a), y = device_put(b, grid(), of_b);
      eval(x, y);
      const auto f = [](const Array& p, const Array& q) {
        return matmul(p, q, by(ProductAlgorithm::inner_panels));
      };
      const auto predicted = explain(f, x, y);
      if (predicted.calls("panels") == 0 || predicted.calls() != predicted.calls("panels")) continue;
      if (ranks > 1 && comm::on_one_host(0, 1) && !comm::reads_directly(0, 1))
        GTEST_SKIP() << "ranks do not read each other's memory here";
      const auto before = arrived();
      const Array product = f(x, y);
      eval(product);
      const std::int64_t mine = arrived() - before;
      std::int64_t most = 0;
      comm::all_reduce(comm::world(), ReduceKind::max, int64, &mine, &most, 1);
      EXPECT_EQ(most, predicted.bytes("panels")) << printed(of_a) << " . " << printed(of_b);
    }
}

TEST(Product, messages_carry_what_was_predicted) {
  const SettingScope messages("TESSERA_COLLECTIVES", "mpi");
  const Array a = integers({192, 384}, float64, 1), b = integers({384, 192}, float64, 2);
  int compared = 0;
  for (const P& of_a : layouts())
    for (const P& of_b : layouts())
      for (const auto algorithm :
           {ProductAlgorithm::inner_panels, ProductAlgorithm::row_panels, ProductAlgorithm::column_panels}) {
        const Array x = device_put(a, grid(), of_a), y = device_put(b, grid(), of_b);
        eval(x, y);
        const auto f = [&](const Array& p, const Array& q) { return matmul(p, q, by(algorithm)); };
        const auto predicted = explain(f, x, y);
        if (predicted.calls("panels") == 0 || predicted.calls() != predicted.calls("panels")) continue;
        ++compared;
        EXPECT_EQ(message_bytes_of([&] { eval(f(x, y)); }), predicted.bytes("panels"))
            << printed(of_a) << " . " << printed(of_b) << ", algorithm " << name_of(algorithm);
      }
  EXPECT_TRUE(compared > 0 || devices().size() == 1);
}

TEST(Product, rings_carry_what_was_predicted) {
  const int ranks = static_cast<int>(devices().size());
  const Mesh line = make_mesh({ranks}, {"x"});
  const std::int64_t n = 48 * ranks;
  const Array x = device_put(integers({n, n}, float64, 1), line, P(None, "x")),
              y = device_put(integers({n, n}, float64, 2), line, P("x", None));
  eval(x, y);
  const auto f = [&](const Array& p, const Array& q) {
    return device_put(matmul(p, q, {.memory_limit_bytes = 1}), line, P("x", None));
  };
  const auto predicted = explain(f, x, y);
  EXPECT_EQ(message_bytes_of([&] { eval(jit(f)(x, y)); }), predicted.bytes("reduce-scatter"));
  EXPECT_EQ(predicted.bytes("reduce-scatter"), (ranks - 1) * n * n * 8 / ranks);
}

TEST(Product, rows_times_rows_on_a_grid_lie_once_on_every_rank) {
  const Mesh mesh = grid();
  const P rows(axes("x", "y"), None);
  const std::int64_t n = 64 * static_cast<std::int64_t>(devices().size());
  const Array a = integers({n, n}, float64, 1), b = integers({n, n}, float64, 2);
  const Array c = matmul(device_put(a, mesh, rows), device_put(b, mesh, rows));
  EXPECT_EQ(c.sharding(), NamedSharding(mesh, rows));
  EXPECT_EQ(to_vector<double>(c), to_vector<double>(matmul(a, b)));
}

TEST(Product, temporaries_stay_within_the_limit) {
  const std::int64_t n = 1024, limit = std::int64_t{1} << 20;
  const Array a = device_put(full({n, n}, 1.0), grid(), P(axes("x", "y"), None)),
              b = device_put(full({n, n}, 2.0), grid(), P(axes("x", "y"), None));
  eval(a, b);
  const auto before = memory_use().live_bytes;
  reset_peak_memory();
  const Array product = matmul(a, b, {.memory_limit_bytes = limit});
  eval(product);
  const std::int64_t block = product.sharding().shard_shape(product.shape()).elements() * 8;
  const std::int64_t packed =
      kernels::packing_bytes(float64, n, n);  // by gemm: BLAS does not report its memory
  EXPECT_LE(memory_use().peak_bytes, before + block + limit + limit / 8 + packed);
}

TEST(MatmulScope, a_negative_limit_is_refused) {
  EXPECT_THAT(error_of<ArgumentError>([] { MatmulScope scope({.memory_limit_bytes = -1}); }),
              ::testing::HasSubstr("memory_limit_bytes is -1"));
}

TEST(MultiDot, is_the_product_in_the_cheapest_order) {
  const Array a = integers({7, 50}, float64, 1), b = integers({50, 6}, float64, 2),
              c = integers({6, 40}, float64, 3), v = integers({40}, float64, 4);
  EXPECT_EQ(to_vector<double>(multi_dot({a, b, c, v})),
            to_vector<double>(matmul(matmul(matmul(a, b), c), v)));
  const auto chain = [](Array x, Array y, Array z) { return multi_dot({x, y, z}); };
  const auto flops = explain(chain, a, b, integers({6}, float64, 4)).cost.flops;
  EXPECT_EQ(flops, 2. * (50 * 6 + 7 * 50));  // from right to left
}
TEST(MultiDot, refuses_what_is_no_chain) {
  const Array a = integers({2, 3}, float64, 1);
  EXPECT_THAT(error_of<ArgumentError>([&] { multi_dot({a}); }), ::testing::HasSubstr("at least two"));
  EXPECT_THAT(error_of<ShapeError>([&] { multi_dot({a, a}); }), ::testing::HasSubstr("inner sizes differ"));
  EXPECT_THAT(error_of<ShapeError>([&] {
                multi_dot({a, integers({3}, float64, 1), a});
              }),
              ::testing::HasSubstr("only the first and the last"));
}

}  // namespace
}  // namespace tessera::test
