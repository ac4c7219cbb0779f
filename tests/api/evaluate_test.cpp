// Random graphs, meshes and layouts: sharded equals unsharded, jit(f) equals f, and counted traffic equals
// predicted traffic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/control.hpp>
#include <tessera/jit.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/settings.hpp"
#include "comm/host/direct_read.hpp"
#include "comm/watch/traffic.hpp"
#include "graph/node.hpp"
#include "support/compare.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

// The same random stream on every rank.
using Random = std::mt19937;
int pick(Random& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

// A mesh of 1 to 3 axes over some of the devices, in any order.
Mesh random_mesh(Random& random) {
  std::vector<int> ids;
  for (int i = 0; i < device_count(); ++i) ids.push_back(i);
  std::shuffle(ids.begin(), ids.end(), random);
  const int used = pick(random, 3) == 0 ? 1 + pick(random, device_count()) : device_count();
  ids.resize(used);
  std::vector<int> sizes;
  int rest = used;
  while (sizes.size() < 2 && rest > 1) {
    const int d = 1 + pick(random, rest);
    if (rest % d != 0) continue;
    sizes.push_back(d);
    rest /= d;
  }
  sizes.push_back(rest);
  std::vector<std::string> names{"x", "y", "z"};
  names.resize(sizes.size());
  return Mesh(NdDevices(sizes, ids), names);
}

P random_spec(Random& random, const Mesh& mesh, int ndim) {
  std::vector<std::vector<std::string>> dims(ndim);
  auto names = mesh.axis_names();
  std::shuffle(names.begin(), names.end(), random);
  for (const auto& name : names)
    if (ndim > 0 && pick(random, 4) > 0) dims[pick(random, ndim)].push_back(name);
  std::vector<DimSpec> specs;
  for (auto& d : dims) specs.emplace_back(std::move(d));
  return P(specs);
}

Array values(Shape shape, float scale) {
  const Array flat = arange(static_cast<float>(shape.elements()));
  return reshape(sin(flat * scale), std::move(shape));
}

struct Case {
  Array a, b, c;  // (m, k), (k, n), (n)
};
using Outcome = std::vector<Array>;

// A random program over the three operands.
Outcome random_program(unsigned seed, const Case& in) {
  Random random(seed);
  std::vector<Array> pool{in.a, in.b, in.c, matmul(in.a, in.b)};
  for (int step = 0; step < 8; ++step) {
    const Array x = pool[pick(random, static_cast<int>(pool.size()))];
    switch (pick(random, 10)) {
      case 0: pool.push_back(tanh(x) + x * 0.5f); break;
      case 1: pool.push_back(x.ndim() > 0 ? sum(x, pick(random, x.ndim())) : x + 1); break;
      case 2: pool.push_back(x.ndim() > 0 ? max(x, pick(random, x.ndim()), true) - x : -x); break;
      case 3: pool.push_back(x.T()); break;
      case 4: pool.push_back(reshape(x, Shape{x.size()})); break;
      case 5: pool.push_back(x.ndim() == 2 ? matmul(x, x.T()) * 0.1f : x * x); break;
      case 6: pool.push_back(mean(x) + x); break;
      case 7: pool.push_back(where(x > 0.1f, x, exp(x))); break;
      case 8: pool.push_back(x.ndim() == 2 ? softmax(x, pick(random, 2)) : abs(x)); break;
      default:
        pool.push_back(x.ndim() == 2 ? matmul(x, broadcast_to(expand_dims(mean(x, 0), 1), {x.shape()[1], 3}))
                                     : sqrt(x * x + 1));
        break;
    }
  }
  return {pool.end() - 4, pool.end()};
}

void expect_close(const Outcome& got, const Outcome& expected, const char* what, unsigned seed) {
  test::expect_close(got, expected, 1e-4, what + (", seed " + std::to_string(seed)));
}

class RandomPrograms : public testing::TestWithParam<unsigned> {};

TEST_P(RandomPrograms, sharded_equals_unsharded_and_jit_equals_eager) {
  for (unsigned seed = GetParam() * 100; seed < GetParam() * 100 + 12; ++seed) {
    Random random(seed);
    const int m = 1 + pick(random, 9), k = 1 + pick(random, 9), n = 1 + pick(random, 9);
    const Case plain{values({m, k}, 0.3f), values({k, n}, 0.7f), values({n}, 1.1f)};
    const Mesh mesh = random_mesh(random);
    const auto put = [&](const Array& x) { return device_put(x, mesh, random_spec(random, mesh, x.ndim())); };
    const Case sharded{put(plain.a), put(plain.b), put(plain.c)};
    const auto expected = random_program(seed, plain);
    expect_close(random_program(seed, sharded), expected, "eager", seed);
    const auto constraint = random_spec(random, mesh, 2);
    const auto program = [&](Array a, Array b, Array c) {
      return random_program(seed,
                            {with_sharding_constraint(a * 1.0f, NamedSharding(mesh, constraint)), b, c});
    };
    const auto compiled = jit(program);
    expect_close(compiled(sharded.a, sharded.b, sharded.c), expected, "jit", seed);
    expect_close(compiled(sharded.a, sharded.b, sharded.c), expected, "jit, cached", seed);
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(0u, 8u));

// Predicted bytes are those of the busiest rank; with even blocks every rank is that one.
TEST(Traffic, counted_bytes_equal_predicted_bytes) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const int n = 4 * device_count();
  const Array a = device_put(values({n, n}, 0.3f), mesh, P("x", None)),
              b = device_put(values({n, n}, 0.2f), mesh, P(None, "x"));
  eval(a, b);
  const auto f =
      jit([&](Array a, Array b) { return device_put(matmul(a, b), mesh, P(None, "x")) + sum(a, 0); });
  const auto plan = f.lower(a, b).compile().explanation();
  const auto before = comm::traffic();
  eval(f(a, b));
  EXPECT_EQ(comm::traffic().bytes - before.bytes, plan.bytes()) << plan;
}

TEST(DevicePut, any_layout_to_any_layout_across_meshes_and_subsets) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const Array plain = values({1 + pick(random, 9), 1 + pick(random, 7), 1 + pick(random, 4)}, 0.31f);
    const Mesh from = random_mesh(random), to = random_mesh(random);
    const Array there = device_put(plain, from, random_spec(random, from, 3));
    const Array back = device_put(there, to, random_spec(random, to, 3));
    EXPECT_EQ(to_vector<float>(back), to_vector<float>(plain)) << "seed " << seed;
  }
}

// Long runs are read in place if they are on the same host.
TEST(DevicePut, large_blocks_of_any_layout_to_any_layout) {
  const auto read_before = comm::bytes_read_directly();
  const int p = device_count();
  for (unsigned seed = 0; seed < 12; ++seed) {
    Random random(seed);
    const Shape shape = seed % 2 == 0
                            ? Shape{1 + pick(random, 40), 9000 + pick(random, 3000)}
                            : Shape{1 + pick(random, 9), 1 + pick(random, 9), 8000 + pick(random, 999)};
    const Array plain = reshape(arange(shape.elements()), shape);
    const Mesh from = random_mesh(random), to = random_mesh(random);
    const Array there = device_put(plain, from, random_spec(random, from, shape.ndim()));
    const Array back = device_put(there, to, random_spec(random, to, shape.ndim()));
    const auto both = to_vector<std::int64_t>(concatenate({back, back(slice(), slice(1))}, 1));
    const auto expected = to_vector<std::int64_t>(concatenate({plain, plain(slice(), slice(1))}, 1));
    ASSERT_EQ(both, expected) << "seed " << seed;
  }
  const Mesh line = make_mesh({p}, {"x"});
  const Array rows = device_put(reshape(arange(64 * p * 1024 * p), {64 * p, 1024 * p}), line, P("x", None));
  EXPECT_EQ(to_vector<std::int64_t>(device_put(rows, line, P(None, "x"))), to_vector<std::int64_t>(rows));
  if (p > 1 && comm::reads_directly(0, 1)) {
    EXPECT_GT(comm::bytes_read_directly(), read_before);
  }
}

TEST(Pending, long_chains_are_computed_on_the_way) {
  Array x = device_put(values({7}, 0.3f), make_mesh({device_count()}, {"x"}), P("x"));
  for (int i = 0; i < 9000; ++i) x = x * 0.5f + 1;
  for (const float v : to_vector<float>(x)) EXPECT_FLOAT_EQ(v, 2);
}

TEST(Errors, a_value_of_a_traced_array_is_refused) {
  const auto f = jit([](Array x) { return item<float>(sum(x)) > 0 ? x : -x; });
  EXPECT_THROW(f(values({3}, 1)), ArgumentError);
}

TEST(Errors, a_deleted_array_is_refused) {
  Array x = device_put(values({4}, 1), make_mesh({device_count()}, {"x"}), P("x"));
  eval(x);
  x.delete_();
  x.delete_();  // again: nothing is left to do
  EXPECT_THROW(x + 1, ArgumentError);
  EXPECT_TRUE(x.is_deleted());
}

Array counted(std::int64_t n) {
  return device_put(values({n}, 1), make_mesh({device_count()}, {"x"}), P("x"));
}
bool has_memory(const Array& x) { return static_cast<bool>(output_of(x).stored->buffer); }

TEST(Deletion, what_was_recorded_before_is_computed_and_then_the_memory_is_free) {
  for (const std::int64_t n : {24, 29}) {
    Array x = counted(n);
    const auto expected = to_vector<float>(x * 2), more = to_vector<float>(x + 1);
    const Array first = x * 2, second = x + 1;
    x.delete_();
    EXPECT_TRUE(has_memory(x)) << "two pending calls read it";
    EXPECT_EQ(to_vector<float>(first), expected);
    EXPECT_TRUE(has_memory(x)) << "one does";
    EXPECT_EQ(to_vector<float>(second), more);
    EXPECT_FALSE(has_memory(x));
    EXPECT_THROW(x + 1, ArgumentError);
    EXPECT_EQ(x.shape(), Shape{n});
  }
}

TEST(Deletion, a_reader_that_is_dropped_frees_the_memory) {
  Array x = counted(24);
  eval(x);
  {
    const Array pending = sum(x * 2 + x);
    x.delete_();
    EXPECT_TRUE(has_memory(x));
  }
  EXPECT_FALSE(has_memory(x));
}

TEST(Deletion, of_a_value_that_was_never_computed_leaves_its_readers_alone) {
  Array x = device_put(values({7}, 1), make_mesh({device_count()}, {"x"}), P("x")) + 1;
  const Array reader = x * 2;
  x.delete_();
  EXPECT_EQ(to_vector<float>(reader), to_vector<float>(values({7}, 1) * 2 + 2));
  EXPECT_TRUE(x.is_deleted());
}

TEST(Errors, more_memory_than_the_host_has_is_refused_before_allocating) {
  const Array huge = zeros({1 << 22, 1 << 22});
  EXPECT_THROW(eval(huge + 1), MemoryError);
}

// The plan is the same at each run; the memory in use besides it is not.
TEST(Errors, more_memory_than_a_rank_may_use_is_refused_at_each_run) {
  const Array x = device_put(ones({1 << 20}), make_mesh({device_count()}, {"x"}), P());
  eval(x + 1);
  const SettingScope limit("TESSERA_MEM_LIMIT", std::to_string((memory_use().live_bytes >> 20) + 40) + "M");
  std::vector<Array> kept;
  const auto fill = [&](const auto& f) {
    for (int i = 0; i < 40; ++i) {
      kept.push_back(f(x));
      eval(kept.back());
    }
  };
  const auto f = jit([](const Array& a) { return a * 3; });
  eval(f(x));
  for (const bool compiled : {false, true}) {
    try {
      compiled ? fill(f) : fill([](const Array& a) { return a + 1; });
      ADD_FAILURE() << "40 results of 4 MiB fit into 40 MiB";
    } catch (const MemoryError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("a rank may use"));
    }
    EXPECT_GE(kept.size(), 8u);
    EXPECT_LE(kept.size(), 11u);
    kept.clear();
    EXPECT_EQ(item<float>(max(x + 1)), 2.f) << "there is room again";
  }
}

// Packed data are sent in pieces: no rank holds a second copy of sent or received data.
TEST(Memory, a_reshard_takes_source_and_destination) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const std::int64_t n = 2048 + 7;
  const Array rows = device_put(values({n, n}, 1e-3f), mesh, P("x", None));
  eval(rows);
  reset_peak_memory();
  const auto before = memory_use().live_bytes;
  const Array columns = device_put(rows, mesh, P(None, "x"));
  eval(columns);
  const std::int64_t block = n * ((n + device_count() - 1) / device_count()) * 4,
                     pieces = std::int64_t{6} << 20;
  EXPECT_LE(memory_use().peak_bytes - before, block + pieces);
}

TEST(Memory, parts_of_an_expression_are_not_stored) {
  constexpr std::int64_t n = 1 << 20, bytes = 4 * n;
  const Array x = device_put(full({n}, 0.5f), make_mesh({device_count()}, {"x"}), P());
  eval(x);
  reset_peak_memory();
  const std::int64_t before = memory_use().live_bytes;
  const float got = item<float>(max(tanh(x * 2 + 1) * x - exp(-square(x)) + abs(x) * 0.5f));
  EXPECT_NEAR(got, std::tanh(2.f) * 0.5f - std::exp(-0.25f) + 0.25f, 1e-6);
  EXPECT_LT(memory_use().peak_bytes - before, bytes) << "the chain ends in its reduction";
  eval(tanh(x * 2 + 1) * x - exp(-square(x)) + abs(x) * 0.5f);
  EXPECT_LT(memory_use().peak_bytes - before, 2 * bytes) << "one result";
}

TEST(Memory, what_has_a_name_is_stored_with_the_rest) {
  const Array x = device_put(full({1000}, 3.f), make_mesh({device_count()}, {"x"}), P());
  const Array twice = x * 2;
  const Array& bound = x * 3;  // the handle exists until the end of the scope
  Array moved = x * 4;
  const Array sum = twice + bound + 1, other = exp(std::move(moved));
  eval(sum);
  EXPECT_TRUE(twice.node()->is_evaluated());
  EXPECT_TRUE(bound.node()->is_evaluated());
  EXPECT_EQ(twice.node()->owners_in_expressions, 0u);
  const Array product = matmul(reshape(x, {10, 100}), reshape(x, {100, 10}));
  EXPECT_EQ(item<float>(max(product + 1)), 901);
  EXPECT_TRUE(product.node()->is_evaluated());
  EXPECT_EQ(to_vector<float>(other)[999], std::exp(12.f));
}

TEST(Donation, the_argument_is_gone) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const auto f = jit([](Array x) { return x + 1; }, JitOptions{.donate_argnums = {0}});
  Array x = device_put(values({8}, 1), mesh, P("x"));
  const auto before = to_vector<float>(x);
  const Array y = f(x);
  EXPECT_TRUE(x.is_deleted());
  EXPECT_FLOAT_EQ(to_vector<float>(y)[3], before[3] + 1);
}

TEST(Donation, pending_readers_keep_the_value) {
  for (const std::int64_t n : {8, 11}) {
    const auto f = jit([](Array x) { return x * 0 + 7; }, JitOptions{.donate_argnums = {0}});
    Array x = device_put(values({n}, 1), make_mesh({device_count()}, {"x"}), P("x"));
    const auto expected = to_vector<float>(x);
    const Array before = x + 0, sums = sum(x), y = f(x), again = f(y);
    EXPECT_TRUE(x.is_deleted());
    EXPECT_EQ(to_vector<float>(before), expected);
    EXPECT_FLOAT_EQ(item<float>(sums), std::accumulate(expected.begin(), expected.end(), 0.f));
    EXPECT_EQ(to_vector<float>(again), std::vector<float>(static_cast<std::size_t>(n), 7.f));
  }
}

TEST(Donation, memory_is_reused_where_nothing_is_pending) {
  const auto f = jit([](Array x) { return x * 2 + 1; }, JitOptions{.donate_argnums = {0}});
  const auto block_of = [](const Array& x) { return local<float>(x).data(); };
  Array x = counted(24 * device_count());
  const float* const block = block_of(x);
  const Array pending = x - 1, y = f(x);
  EXPECT_TRUE(has_memory(x));
  eval(pending);
  EXPECT_FALSE(has_memory(x));
  mutable_output_of(y).stored->seen = {};
  const auto* const memory = output_of(y).stored->buffer.data();
  const Array z = f(y);
  EXPECT_EQ(output_of(z).stored->buffer.data(), memory) << "without a copy";
  EXPECT_NE(reinterpret_cast<const float*>(memory), block);
}

TEST(Donation, of_what_a_compiled_function_captures_leaves_it_there) {
  Array w = device_put(values({6}, 1), make_mesh({device_count()}, {"x"}), P("x"));
  const auto expected = to_vector<float>(w * 2);
  const auto f = jit([&](Array x) { return x + w; });
  const auto g = jit([](Array x) { return x * 0; }, JitOptions{.donate_argnums = {0}});
  Array x = device_put(values({6}, 1), make_mesh({device_count()}, {"x"}), P("x"));
  EXPECT_EQ(to_vector<float>(f(x)), expected);
  g(w);
  EXPECT_EQ(to_vector<float>(f(x)), expected);
}

TEST(While, inside_jit_stops_where_the_loop_outside_stops) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(values({10}, 0.3f), mesh, P("x"));
  const auto f = [](Array x, Array y) {
    return while_loop([](Array v) { return sum(v * v) < 1000; }, [&](Array v) { return v * 1.5f + y; }, x);
  };
  const auto plain = to_vector<float>(f(x, ones({10}))), compiled = to_vector<float>(jit(f)(x, ones({10})));
  EXPECT_EQ(plain, compiled);
}

}  // namespace
}  // namespace tessera
