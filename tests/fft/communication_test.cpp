// Traffic of transforms: only exchanges within the mesh axes that split the transformed dims.
#include <tessera/debug.hpp>
#include <tessera/jit.hpp>
#include <tessera/random.hpp>
#include <tessera/tree.hpp>

#include <gmock/gmock.h>

#include "fft/reference.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Values random_values(const Shape& shape, std::uint64_t seed) {
  return RandomSource(seed).values(shape, true);
}
const auto transform = [](const Array& x) { return fft::fftn(x); };

// Evaluates f on x; the bytes that this rank received must equal those predicted by explain().
template <class F> Array counted(F f, const Array& x, std::int64_t exchanges) {
  eval(x);
  const auto planned = explain(f, x);
  EXPECT_EQ(planned.calls("all-gather"), 0) << to_string(planned);
  EXPECT_EQ(planned.calls(), planned.calls("all-to-all") + planned.calls("collective-permute"))
      << to_string(planned);
  if (exchanges >= 0) {
    EXPECT_EQ(planned.calls(), exchanges) << to_string(planned);
  }
  const debug::CommStats stats;
  const Array result = f(x);
  eval(result);
  EXPECT_LE(stats.bytes(), planned.bytes());
  EXPECT_EQ(stats.calls("all-gather"), 0);
  return result;
}

TEST(Communication, unsplit_axes_move_nothing) {
  const Mesh mesh = make_mesh({process_count()}, {"x"});
  const Values v = random_values({7, 6, 5}, 1);
  const Array x = device_put(complex_array(v, {7, 6, 5}, complex128), mesh, P("x"));
  const Array y = counted([](const Array& a) { return fft::fftn(a, {.axes = {1, 2}}); }, x, 0);
  expect_close(y, naive_dft(naive_dft(v, {7, 6, 5}, 1, 6, -1), {7, 6, 5}, 2, 5, -1), {7, 6, 5}, 1e-12, "");
}

TEST(Communication, slabs_take_one_exchange_and_one_back) {
  const int p = process_count();
  const Mesh mesh = make_mesh({p}, {"x"});
  const std::int64_t n = 16;
  const Array x = device_put(complex_array(random_values({n, n, n}, 2), {n, n, n}, complex128), mesh, P("x"));
  const std::int64_t one = p > 1 ? 1 : 0;
  const Array y = counted(transform, x, 2 * one);
  EXPECT_EQ(y.sharding(), x.sharding());
  const Array left =
      counted([](const Array& a) { return fft::fftn(a, {.out_sharding = fft::transposed}); }, x, one);
  expect_close(left, to_vector<Complex>(y), {n, n, n}, 1e-14, "transposed");
  // An inverse of the transposed result returns to the initial layout.
  const Array back =
      counted([](const Array& a) { return fft::ifftn(a, {.out_sharding = fft::transposed}); }, left, one);
  EXPECT_EQ(back.sharding(), x.sharding());
  expect_close(back, to_vector<Complex>(x), {n, n, n}, 1e-13, "back");
}

TEST(Communication, pencils_take_two_exchanges) {
  const int p = process_count();
  if (p % 2 != 0 || p < 4) GTEST_SKIP() << "needs a grid of ranks";
  const Mesh mesh = make_mesh({2, p / 2}, {"x", "y"});
  const std::int64_t n = 16;
  const Array x =
      device_put(complex_array(random_values({n, n, n}, 3), {n, n, n}, complex64), mesh, P("x", "y"));
  const Array left =
      counted([](const Array& a) { return fft::fftn(a, {.out_sharding = fft::transposed}); }, x, 2);
  const Array back =
      counted([](const Array& a) { return fft::ifftn(a, {.out_sharding = fft::transposed}); }, left, 2);
  EXPECT_EQ(back.sharding(), x.sharding());
  expect_close(back, to_vector<Complex>(x), {n, n, n}, 1e-6, "back");
  counted(transform, x, -1);
}

// A Poisson solver: one exchange each way; the division is done in the spectrum's layout.
TEST(Communication, pointwise_work_between_stays_where_the_spectrum_lies) {
  const Mesh mesh = make_mesh({process_count()}, {"x"});
  const std::int64_t n = 12;
  const Array x = device_put(real_array(random_values({n, n, n}, 8), {n, n, n}, float64), mesh, P("x"));
  const auto halved = [&](const Array& a) {
    const Array k = reshape(fft::fftfreq(n, 1.0, float64), {n, 1, 1});
    const Array spectrum = fft::rfftn(a, {.out_sharding = fft::transposed});
    return fft::irfftn(spectrum / (2 + 0 * square(k)), {.given = a.sharding(), .s = {n, n, n}});
  };
  const Array y = counted(halved, x, process_count() > 1 ? 2 : 0);
  EXPECT_EQ(y.sharding(), x.sharding());
  expect_close(y * 2, to_vector<Complex>(x), {n, n, n}, 1e-13, "");
}

TEST(Communication, every_dim_split_at_once) {
  const int p = process_count();
  if (p != 8) GTEST_SKIP() << "needs 8 ranks";
  const Mesh mesh = make_mesh({2, 2, 2}, {"x", "y", "z"});
  const Shape shape{8, 6, 10};
  const Values v = random_values(shape, 4);
  const Array x = device_put(complex_array(v, shape, complex128), mesh, P("x", "y", "z"));
  const Array y = counted(transform, x, -1);
  EXPECT_EQ(y.sharding(), x.sharding());
  expect_close(y, naive_dft(naive_dft(naive_dft(v, shape, 0, 8, -1), shape, 1, 6, -1), shape, 2, 10, -1),
               shape, 1e-12, "");
}

// JAX uses all-gathers for both of these.
TEST(Communication, no_all_gather_in_the_compiled_text) {
  if (process_count() != 8) GTEST_SKIP() << "needs 8 ranks";
  const Array cube = random::normal(random::key(0), {16, 16, 16});
  const Array expected = fft::fftn(cube);
  for (const auto& [sizes, spec] :
       {std::pair{std::vector<int>{4, 2}, P("x", "y")}, std::pair{std::vector<int>{1, 8}, P(None, "y")}}) {
    const Array split = device_put(cube, make_mesh(sizes, {"x", "y"}), spec);
    EXPECT_THAT(jit(transform).lower(split).compile().as_text(), Not(HasSubstr("all-gather")));
    const Array result = jit(transform)(split);
    EXPECT_EQ(result.sharding(), split.sharding());
    expect_close(result, to_vector<Complex>(expected), {16, 16, 16}, 1e-6, "");
  }
}

TEST(Communication, nothing_is_gathered_for_any_shape_split_and_kind) {
  RandomSource random(21);
  for (int round = 0; round < 80; ++round) {
    const int ndim = 1 + static_cast<int>(random.below(3));
    std::vector<std::int64_t> extents;
    for (int d = 0; d < ndim; ++d) extents.push_back(1 + random.below(12));
    const Shape shape(extents);
    const Array x =
        device_put(complex_array(random.values(shape, true), shape, complex128), random.sharding(ndim));
    counted(transform, x, -1);
    counted([](const Array& a) { return fft::rfftn(real(a)); }, x, -1);
    counted(
        [](const Array& a) {
          return fft::irfftn(fft::rfftn(real(a), {.out_sharding = fft::transposed}),
                             {.s = a.shape().vector()});
        },
        x, -1);
    if (testing::Test::HasFailure()) break;
  }
}

TEST(Communication, long_lines_move_three_times_their_share) {
  const int p = process_count();
  if (p == 1) GTEST_SKIP();
  const std::int64_t n = 1 << 14;
  const Array x =
      device_put(complex_array(random_values({n}, 5), {n}, complex128), make_mesh({p}, {"x"}), P("x"));
  const Array y = counted([](const Array& a) { return fft::fft(a); }, x, 3);
  EXPECT_LE(explain([](const Array& a) { return fft::fft(a); }, x).bytes(), 3 * 16 * ((n + p - 1) / p));
  const double power_of_x = item<double>(sum(square(abs(x)))), power_of_y = item<double>(sum(square(abs(y))));
  EXPECT_NEAR(power_of_y / power_of_x, static_cast<double>(n), 1e-9 * static_cast<double>(n));  // Parseval
}

TEST(Communication, a_batch_is_not_moved) {
  const Mesh mesh = make_mesh({process_count()}, {"x"});
  const Array x = device_put(complex_array(random_values({9, 64}, 6), {9, 64}, complex128), mesh, P("x"));
  counted([](const Array& a) { return fft::ifft(fft::fft(a)); }, x, 0);
}

}  // namespace
}  // namespace tessera::test
