// P::automatic: layouts that jit's planner chooses.
#include <tessera/jit/advise.hpp>
#include <tessera/tessera.hpp>

#include <gmock/gmock.h>

#include "support/errors.hpp"

namespace tessera {
namespace {

using testing::HasSubstr;

Array product(const Array& a, const Array& b) { return matmul(a, b); }

TEST(Automatic, arguments_get_the_layouts_that_advise_finds_best) {
  const Mesh mesh = abstract_mesh({4, 2}, {"x", "y"});
  const Array a = zeros({512, 2048}), b = zeros({2048, 64});
  const auto automatic = NamedSharding(mesh, P::automatic);
  const auto plan = explain(jit(product, {.in_shardings = automatic}), a, b);
  EXPECT_DOUBLE_EQ(plan.predicted_seconds,
                   advise(product, {.meshes = {mesh}}, a, b).best[0].predicted_seconds);
  ASSERT_EQ(plan.layouts.size(), 2U);
  EXPECT_EQ(plan.layouts[0].what, "argument 0");
  EXPECT_THAT(to_string(plan), HasSubstr("automatic argument 1: "));
  EXPECT_THAT(plan.layouts_reason, HasSubstr("arithmetic"));
}

TEST(Automatic, named_layouts_and_committed_arguments_stay) {
  const Mesh mesh = abstract_mesh({8}, {"x"});
  const auto rows = NamedSharding(mesh, P("x")), columns = NamedSharding(mesh, P(None, "x"));
  const Array a = zeros({512, 512}), placed = device_put(a, rows);
  const auto named = jit(product, {.in_shardings = {columns, P::automatic}}).lower(a, a).compile();
  EXPECT_EQ(named.input_shardings()[0], columns);
  const auto committed = jit(product, {.in_shardings = P::automatic}).lower(placed, a).compile();
  EXPECT_EQ(committed.input_shardings()[0], rows);
  EXPECT_EQ(committed.input_shardings()[1].mesh(), mesh);  // the mesh of the committed argument
  EXPECT_EQ(committed.explanation().layouts.size(), 1U);
}

TEST(Automatic, results_and_constraints_cost_no_more_than_any_named_one) {
  const Mesh mesh = abstract_mesh({4}, {"x"});
  const Array x = device_put(zeros({256, 4096}), NamedSharding(mesh, P(None, "x")));
  const auto f = [](const Array& v, const auto& layout) {
    return exp(with_sharding_constraint(fft::fft(v), layout)) * 2;
  };
  const auto open = [&](const Array& v) { return f(v, P::automatic); };
  const auto plan = explain(jit(open, {.out_shardings = NamedSharding(mesh, P::automatic)}), x);
  for (const P& spec : {P(), P("x"), P(None, "x")})
    EXPECT_LE(plan.predicted_seconds,
              explain([&](const Array& v) { return f(v, NamedSharding(mesh, spec)); }, x).predicted_seconds);
  EXPECT_THAT(to_string(plan), HasSubstr("automatic with_sharding_constraint at"));
  EXPECT_THAT(to_string(plan), HasSubstr("automatic result 0: "));
}

TEST(Automatic, a_memory_limit_is_kept) {
  const Mesh mesh = abstract_mesh({8}, {"x"});
  const Array w = zeros({4096, 4096}), x = zeros({8, 4096});  // w: 64 MiB
  const auto automatic = NamedSharding(mesh, P::automatic);
  const auto plan = explain(jit(product, {.in_shardings = automatic, .memory_limit_bytes = 20 << 20}), x, w);
  EXPECT_LE(plan.memory.peak_bytes, 20 << 20);
}

TEST(Automatic, a_program_runs_with_them_and_its_values_are_the_same) {
  const Array a = arange(0.f, 48.f), b = arange(0.f, 6.f);
  const auto f = [](const Array& v, const Array& w) {
    return with_sharding_constraint(matmul(reshape(v, {8, 6}), w), P::automatic) + 1;
  };
  const auto g = jit(f, {.in_shardings = P::automatic, .out_shardings = P::automatic});
  const auto wanted = to_vector<float>(matmul(reshape(a, {8, 6}), b) + 1);
  EXPECT_EQ(to_vector<float>(g(a, b)), wanted);
  EXPECT_EQ(to_vector<float>(g(a, b)), wanted);  // the second call runs what the first one found
}

TEST(Automatic, is_refused_where_nothing_chooses) {
  const Mesh mesh = abstract_mesh({2}, {"x"});
  const Array x = zeros({4});
  const auto automatic = NamedSharding(mesh, P::automatic);
  EXPECT_THAT(test::error_of<ShardingError>([&] { (void)device_put(x, automatic); }),
              HasSubstr("P::automatic stands for a layout that the planner of jit chooses"));
  EXPECT_THAT(test::error_of<ShardingError>([&] { (void)with_sharding_constraint(x, P::automatic); }),
              HasSubstr("with_sharding_constraint at"));
  EXPECT_THAT(test::error_of<ShardingError>([&] { (void)automatic.shard_shape({4}); }),
              HasSubstr("P::automatic"));
  EXPECT_FALSE(automatic == NamedSharding(mesh, P()));
  EXPECT_FALSE(P(P::automatic) == P());
}

TEST(Explain, counts_the_options_of_a_jitted_function) {
  const Mesh mesh = abstract_mesh({8}, {"x"});
  const Array x = device_put(zeros({64, 64}), NamedSharding(mesh, P("x")));
  const auto f = [](const Array& v) { return v * 2; };
  EXPECT_EQ(explain(f, x).bytes(), 0);
  EXPECT_EQ(explain(jit(f, {.out_shardings = NamedSharding(mesh, P())}), x).calls("all-gather"), 1);
}

TEST(Explain, hints_at_layouts_that_take_much_less) {
  const Mesh mesh = abstract_mesh({8}, {"x"});
  const auto along = [](const Array& v) { return sort(v, 0); };
  const Shape shape{64, 65536};
  const auto bad = explain(along, device_put(zeros(shape), NamedSharding(mesh, P("x"))));
  EXPECT_THAT(bad.hint, HasSubstr("with the arguments as P(None, 'x') it would take"));
  EXPECT_THAT(to_string(bad), HasSubstr("hint: "));
  EXPECT_EQ(explain(along, device_put(zeros(shape), NamedSharding(mesh, P(None, "x")))).hint, "");
}

TEST(MakeMesh, empty_braces_are_an_empty_list_of_devices) {
  EXPECT_THAT(test::error_of<ShardingError>([] { (void)make_mesh({1}, {"x"}, {}); }),
              HasSubstr("the list has 0"));
}

}  // namespace
}  // namespace tessera
