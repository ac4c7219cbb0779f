#include <tessera/jit/advise.hpp>
#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "advise/search.hpp"
#include "support/errors.hpp"

namespace tessera {
namespace {

using testing::HasSubstr;

// The least predicted time over all layouts of two operands, by the plainest loop.
double least_of_all(const Mesh& mesh, const Array& a, const Array& b, const auto& f) {
  double least = 1e300;
  for (const auto& la : layouts_of(mesh, a.shape()))
    for (const auto& lb : layouts_of(mesh, b.shape()))
      least = std::min(least, explain(f, device_put(zeros(a.shape(), a.dtype()), la),
                                      device_put(zeros(b.shape(), b.dtype()), lb))
                                  .predicted_seconds);
  return least;
}

TEST(Layouts, every_axis_goes_to_one_dim_or_to_none) {
  const Mesh mesh = abstract_mesh({4, 2}, {"x", "y"});
  EXPECT_EQ(layouts_of(mesh, {64, 64}).size(), 9U);
  EXPECT_EQ(layouts_of(mesh, {64}).size(), 4U);
  EXPECT_EQ(layouts_of(mesh, {}).size(), 1U);
  EXPECT_EQ(layouts_of(mesh, {3, 64}).size(), 6U);  // 4 or 8 blocks of 3 rows would leave empty ones
  EXPECT_TRUE(layouts_of(mesh, {64, 64}).front().is_fully_replicated());
  EXPECT_EQ(layouts_of(abstract_mesh({1}, {"x"}), {8, 8}).size(), 1U);
}

TEST(Advise, finds_the_least_of_all_combinations) {
  const Mesh mesh = abstract_mesh({4, 2}, {"x", "y"});
  const auto product = [](const Array& a, const Array& b) { return matmul(a, b); };
  const auto spectrum = [](const Array& a, const Array& b) { return sum(abs(fft::fft2(a)) * b); };
  for (const Shape& shape : {Shape{512, 512}, Shape{4000, 24}, Shape{7, 9001}}) {
    const Array a = zeros(shape), b = zeros({shape[1], 64});
    const auto advice = advise(product, {.meshes = {mesh}}, a, b);
    EXPECT_TRUE(advice.is_exhaustive);
    EXPECT_DOUBLE_EQ(advice.best[0].predicted_seconds, least_of_all(mesh, a, b, product));
    EXPECT_LE(advice.best[0].predicted_seconds, advice.best[1].predicted_seconds);
    const Array c = zeros(shape);
    EXPECT_DOUBLE_EQ(advise(spectrum, {.meshes = {mesh}}, a, c).best[0].predicted_seconds,
                     least_of_all(mesh, a, c, spectrum));
  }
}

TEST(Advise, a_search_with_few_plans_comes_within_a_twentieth_of_the_least) {
  const Mesh mesh = abstract_mesh({4, 4}, {"x", "y"});
  const auto chain = [](const Array& a, const Array& b, const Array& c) {
    return sum(maximum(matmul(matmul(a, b), c), 0));
  };
  const Array a = zeros({4096, 512}), b = zeros({512, 2048}), c = zeros({2048, 256});
  const auto all = advise(chain, {.meshes = {mesh}}, a, b, c);
  const auto few = advise(chain, {.meshes = {mesh}, .most_plans = 150}, a, b, c);
  EXPECT_TRUE(all.is_exhaustive);
  EXPECT_FALSE(few.is_exhaustive);
  EXPECT_LE(few.plans, 150);
  EXPECT_LE(few.best[0].predicted_seconds, 1.05 * all.best[0].predicted_seconds);
}

TEST(Advise, a_memory_limit_splits_what_would_be_replicated) {
  const Mesh mesh = abstract_mesh({8}, {"x"});
  const auto f = [](const Array& w, const Array& x) { return matmul(x, w); };
  const Array w = zeros({4096, 4096}), x = zeros({8, 4096});  // w: 64 MiB
  const auto limited = advise(f, {.meshes = {mesh}, .memory_limit_bytes = 20 << 20}, w, x);
  EXPECT_TRUE(limited.best[0].is_within_memory_limit);
  EXPECT_LE(limited.best[0].peak_bytes, 20 << 20);
  EXPECT_FALSE(limited.best[0].shardings[0].is_fully_replicated());
  const auto none = advise(f, {.meshes = {mesh}, .memory_limit_bytes = 1 << 10}, w, x);
  EXPECT_FALSE(none.best[0].is_within_memory_limit);
  EXPECT_THAT(to_string(none), HasSubstr("over the memory limit"));
}

TEST(Advise, given_layouts_are_judged_and_kept_ones_stay) {
  const Mesh mesh = abstract_mesh({8}, {"x"});
  const Array a = device_put(zeros({8192, 64}), NamedSharding(mesh, P("x"))),
              b = device_put(zeros({64, 64}), NamedSharding(mesh, P("x")));
  const auto f = [](const Array& p, const Array& q) { return matmul(p, q); };
  const auto advice = advise(f, {.meshes = {mesh}, .keep = {1}}, a, b);
  EXPECT_EQ(advice.best[0].shardings[1], b.sharding());
  ASSERT_TRUE(advice.given.has_value());
  EXPECT_GE(advice.given->predicted_seconds, advice.best[0].predicted_seconds);
  const Array worst = device_put(zeros({64, 65536}), NamedSharding(mesh, P("x")));
  const auto columns = advise([](const Array& v) { return sort(v, 0); }, {.meshes = {mesh}}, worst);
  EXPECT_GT(columns.given->predicted_seconds, 1.5 * columns.best[0].predicted_seconds);
  EXPECT_THAT(to_string(columns), HasSubstr("times the best one's"));
}

TEST(Advise, chooses_a_mesh_and_works_for_thousands_of_ranks) {
  EXPECT_EQ(meshes_of(12).size(), 3U);  // 12, 6 x 2, 4 x 3
  EXPECT_EQ(meshes_of(7).size(), 1U);
  const auto f = [](const Array& a, const Array& b) { return matmul(a, b); };
  const auto advice = advise(f, {.meshes = meshes_of(4096)}, zeros({65536, 65536}), zeros({65536, 65536}));
  EXPECT_EQ(advice.best[0].shardings[0].mesh().size(), 4096);
  EXPECT_EQ(advice.best[0].shardings[0].mesh().axis_names().size(), 2U)
      << advice;  // blocks send less than rows
}

TEST(Advise, trees_are_flattened_and_gradients_planned) {
  struct Layer {
    Array w, b;
  };
  const Mesh mesh = abstract_mesh({8}, {"batch"});
  const auto loss = [](const Layer& layer, const Array& x) {
    return sum(square(matmul(x, layer.w) + layer.b));
  };
  const Layer layer{zeros({64, 32}), zeros({32})};
  const auto advice = advise(grad(loss), {.meshes = {mesh}}, layer, zeros({65536, 64}));
  ASSERT_EQ(advice.best[0].shardings.size(), 3U);
  EXPECT_TRUE(advice.best[0].shardings[2].is_equivalent_to(NamedSharding(mesh, P("batch")), 2)) << advice;
  EXPECT_TRUE(advice.best[0].shardings[0].is_fully_replicated()) << advice;
}

TEST(Advise, refuses_what_cannot_be_answered) {
  const auto f = [](const Array& a) { return a; };
  const Array a = zeros({4});
  EXPECT_THAT(test::error_of<ArgumentError>([&] { (void)advise([](int n) { return zeros({n}); }, {}, 3); }),
              HasSubstr("no array among the arguments"));
  EXPECT_THAT(test::error_of<ArgumentError>([&] { (void)advise(f, {.keep = {1}}, a); }),
              HasSubstr("keep names leaf 1"));
  EXPECT_THAT(test::error_of<ArgumentError>([&] { (void)advise(f, {.keep = {0}}, a); }),
              HasSubstr("which has no layout yet"));
  EXPECT_THAT(test::error_of<ArgumentError>([&] { (void)advise(f, {.best = 0}, a); }),
              HasSubstr("best is 0"));
  EXPECT_THAT(test::error_of<ArgumentError>([&] { (void)meshes_of(0); }), HasSubstr("0 ranks"));
}

}  // namespace
}  // namespace tessera
