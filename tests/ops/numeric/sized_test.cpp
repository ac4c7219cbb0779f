// Functions whose result size depends on values.
#include <tessera/debug.hpp>

#include "ops/numeric/operands.hpp"

namespace tessera::test {
namespace {

TEST(Masks, read_elements_rows_and_columns) {
  EXPECT_EQ(ones({6})(zeros({6}, bool_)).shape(), Shape{0});
  EXPECT_EQ(ones({6, 2})(ones({6}, bool_)).shape(), (Shape{6, 2}));
}

TEST(Masks, the_result_is_split_as_the_operand_was) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(arange(100), mesh, P("x"));
  const Array chosen = x(x % 3 == 0);
  EXPECT_EQ(chosen.sharding(), NamedSharding(mesh, P("x")));
  const auto values = to_vector<int>(chosen);
  ASSERT_EQ(values.size(), 34u);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<int>(3 * i));
}

// A communicating kernel's traffic is counted, and is at most a block of the result.
// Lines whose chosen elements crowd in a few blocks, so that they move to other ranks, in any direction.
template <class T> void expect_chosen_of_a_line(std::int64_t n) {
  std::vector<T> values(n);
  for (std::int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(static_cast<float>(i % 251));
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(array(values), mesh, P("x"));
  for (const auto& [from, to] : {std::pair{0.0, 1.0}, {0.0, 0.2}, {0.7, 1.0}, {0.4, 0.41}, {0.5, 0.5}})
    for (const std::int64_t every : {1, 2, 7}) {
      std::vector<std::int8_t> places(n);
      std::vector<T> chosen;
      for (std::int64_t i = 0; i < n; ++i) {
        places[i] = static_cast<double>(i) >= from * static_cast<double>(n) &&
                    static_cast<double>(i) < to * static_cast<double>(n) && i % every == 0;
        if (places[i] != 0) chosen.push_back(values[i]);
      }
      const Array mask = device_put(array(places) != 0, mesh, P("x"));
      EXPECT_EQ(to_vector<T>(x(mask)), chosen) << n << " from " << from << " to " << to << " every " << every;
    }
}
TEST(Masks, what_a_line_chooses_moves_to_its_rank) {
  for (const std::int64_t n : {1, 5, 1000, 4099}) {
    expect_chosen_of_a_line<std::uint8_t>(n);
    expect_chosen_of_a_line<std::int16_t>(n);
    expect_chosen_of_a_line<float>(n);
    expect_chosen_of_a_line<std::complex<float>>(n);
    expect_chosen_of_a_line<std::complex<double>>(n);
  }
}

TEST(Masks, nothing_is_gathered) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const std::int64_t block = 4096;
  const Array x = block_until_ready(device_put(arange(block * device_count()), mesh, P("x")));
  debug::CommStats stats;
  eval(x(x % 2 == 0));
  EXPECT_EQ(stats.bytes("all-gather"), 0);
  EXPECT_LE(stats.bytes(), block / 2 * 4 + 512);
}

TEST(Masks, the_gradient_goes_back_to_what_was_chosen) {
  std::mt19937 random(3);
  for (int round = 0; round < 4; ++round) {
    const Sharding s = random_sharding(random, random_mesh(random), 2);
    const Operands o = operands();
    const Array x = device_put(o.u, s), mask = device_put(o.n > 0, s);
    const Array g = grad([&](const Array& a) {
      const Array chosen = a(mask);
      return sum(chosen * chosen * arange(chosen.size()));
    })(x);
    const auto is_chosen = to_vector<bool>(mask);
    const auto values = to_vector<double>(x), gradient = to_vector<double>(g);
    double place = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_DOUBLE_EQ(gradient[i], is_chosen[i] ? 2 * place * values[i] : 0.0) << i << " " << text_of(s);
      place += is_chosen[i];
    }
  }
}

TEST(Masks, a_mask_of_no_elements_chooses_nothing) {
  std::mt19937 random(4);
  const Array x = device_put(reshape(arange(21), {7, 3}), random_sharding(random, random_mesh(random), 2));
  const auto shape = [&](const auto&... parts) { return block_until_ready(x(parts...)).shape(); };
  EXPECT_EQ(shape(zeros({0}, bool_)), (Shape{0, 3}));
  EXPECT_EQ(shape(zeros({7, 0}, bool_)), (Shape{0}));
  EXPECT_EQ(shape(zeros({0, 3}, bool_)), (Shape{0}));
  EXPECT_EQ(shape(slice(), zeros({0}, bool_)), (Shape{7, 0}));
  EXPECT_EQ(to_vector<int>(x.at(zeros({7, 0}, bool_)).set(-1)), to_vector<int>(x));
  EXPECT_EQ(to_vector<int>(x.at(zeros({0}, bool_)).add(zeros({0, 3}, int32))), to_vector<int>(x));
}

TEST(Masks, a_mask_that_does_not_fit_is_refused) {
  EXPECT_THAT(error_of<IndexError>([] {
                ones({6, 2})(ones({5}, bool_));
              }),
              testing::HasSubstr("the mask has shape (5"));
  EXPECT_THAT(error_of<IndexError>([] {
                ones({6, 2})(slice(), ones({6}, bool_));
              }),
              testing::HasSubstr("from dimension 1"));
}

TEST(Places, of_what_is_not_zero) { EXPECT_EQ(nonzero(ones({0, 3})).size(), 2u); }

TEST(Compress, along_an_axis) {
  EXPECT_THAT(error_of<ShapeError>([] {
                compress(ones({4}), ones({3, 2}), 0);
              }),
              testing::HasSubstr("at most the 3 elements of axis 0"));
}

TEST(Unique, values_places_and_numbers) { EXPECT_EQ(unique(zeros({0})).shape(), Shape{0}); }

// Integers of a known, short range use a table; values outside the range, or outside int32, are not
// members.
template <class T> void expect_members(const std::vector<T>& among) {
  std::vector<T> values(301);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(static_cast<std::int64_t>(i * 5) - 300);
  values[7] = std::numeric_limits<T>::max(), values[8] = std::numeric_limits<T>::lowest();
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const Sharding& s : {Sharding(NamedSharding(mesh, P("x"))), Sharding(NamedSharding(mesh, P()))}) {
    const auto found = to_vector<bool>(isin(device_put(array(values), s), array(among)));
    const auto traced = to_vector<bool>(jit([](const Array& x, const Array& y) { return isin(x, y, true); })(
        device_put(array(values), s), array(among)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool wanted = std::find(among.begin(), among.end(), values[i]) != among.end();
      EXPECT_EQ(found[i], wanted) << +values[i];
      EXPECT_EQ(traced[i], !wanted) << +values[i];
    }
  }
}
TEST(Sets, integers_are_members_of_a_short_range_by_a_table) {
  expect_members<std::int32_t>({3, -20, 5, 5, 7});
  expect_members<std::int8_t>({-5, 10, 20});
  expect_members<std::uint8_t>({250, 255, 230});
  expect_members<std::int64_t>({-300, -290, 1, 0});
  expect_members<std::int32_t>({std::numeric_limits<std::int32_t>::max(), 0});
  expect_members<std::int64_t>(
      {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max() - 1});
}

TEST(Sizes, are_said_in_a_trace) {
  const Array x = device_put(arange(20) % 7, make_mesh({device_count()}, {"x"}), P("x"));
  const auto values = jit([](const Array& a) { return unique(a, {.size = 9, .fill_value = -1}); })(x);
  EXPECT_EQ(to_vector<int>(values), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, -1, -1}));
  const auto all = unique_all(x, {.size = 5});
  EXPECT_EQ(to_vector<int>(all.counts), (std::vector<int>{3, 3, 3, 3, 3}));
  const auto places =
      jit([](const Array& a) { return nonzero(a == 6, {.size = 4, .fill_value = 99})[0]; })(x);
  EXPECT_EQ(to_vector<int>(places), (std::vector<int>{6, 13, 99, 99}));
  const auto few = jit([](const Array& a) { return compress(a > 3, a, 0, {.size = 2}); })(x);
  EXPECT_EQ(to_vector<int>(few), (std::vector<int>{4, 5}));
  const auto rows = vmap([](const Array& a) { return flatnonzero(a, {.size = 3, .fill_value = -1}); })(
      array({{1, 0, 1, 1}, {0, 0, 1, 0}}));
  EXPECT_EQ(to_vector<int>(rows), (std::vector<int>{0, 2, 3, 2, -1, -1}));
}

TEST(Sizes, that_were_not_said_in_a_trace_are_refused) {
  const auto text = error_of<ArgumentError>([] { jit([](const Array& a) { return a(a > 0); })(arange(5)); });
  EXPECT_THAT(text, testing::HasSubstr("not known while a function is traced"));
  EXPECT_THAT(text, testing::HasSubstr("{.size = n}"));
  EXPECT_THROW(unique(arange(3), {.size = -1}), ArgumentError);
}

}  // namespace
}  // namespace tessera::test
