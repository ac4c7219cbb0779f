// Initializers, losses, batches, and activations at extreme arguments: compared with values of JAX 0.10.2
// (jax.nn) and Optax 0.2.8. tests/catalogue has ordinary values on every layout.
#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/compare.hpp"
#include "support/errors.hpp"

namespace tessera {
namespace {

using test::error_of;

void expect_close(const Array& got, const std::vector<double>& wanted, double tolerance = 2e-6,
                  const std::string& what = "") {
  test::expect_close(got, wanted, tolerance, what);
}

Mesh line() { return make_mesh({device_count()}, {"x"}); }

// The rows of x split over all ranks: 7 rows are uneven on every number of ranks but 1 and 7.
Array split_rows(const Array& x) { return device_put(x, line(), P("x")); }

TEST(Activations, far_from_zero_and_at_their_kinks_are_those_of_jax_nn) {
  const Array x = split_rows(array({-100.f, 0.f, 100.f}));
  const auto all = [](const Array& v) {
    return std::vector<Array>{nn::leaky_relu(v), nn::elu(v),          nn::selu(v),
                              nn::mish(v),       nn::log_sigmoid(v),  nn::soft_sign(v),
                              nn::hard_tanh(v),  nn::hard_sigmoid(v), nn::exact_gelu(v)};
  };
  const std::vector<std::vector<double>> values = {{-1, 0, 100},
                                                   {-1, 0, 100},
                                                   {-1.75809932, 0, 105.070099},
                                                   {0, 0, 100},
                                                   {-100, -0.693147182, 0},
                                                   {-0.990099013, 0, 0.990099013},
                                                   {-1, 0, 1},
                                                   {0, 0.5, 1},
                                                   {0, 0, 100}};
  const std::vector<std::vector<double>> slopes = {
      {0.01, 1, 1}, {0, 1, 1},           {0, 1.75809932, 1.05070102},
      {0, 0.6, 1},  {1, 0.5, 0},         {9.80300829e-05, 1, 9.80300829e-05},
      {0, 1, 0},    {0, 0.166666672, 0}, {0, 0.5, 1}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    expect_close(all(x)[i], values[i], 2e-6, "activation " + std::to_string(i));
    expect_close(grad([&](const Array& at) { return sum(all(at)[i]); })(x), slopes[i], 2e-6,
                 "slope " + std::to_string(i));
  }
}

// The slopes where a bound is met are those of jax.nn 0.10.2.
TEST(Activations, with_bounds_have_the_slopes_of_jax_nn_at_the_bounds) {
  const Array x = split_rows(array({-3.f, -1.f, 0.f, 1.f, 3.f, 6.f}));
  const auto slopes = [&](Array (*f)(const Operand&)) {
    return grad([f](const Array& at) { return sum(f(at)); })(x);
  };
  expect_close(slopes(nn::relu6), {0, 0, 0, 1, 1, 0}, 0);
  expect_close(slopes(nn::hard_tanh), {0, 1, 1, 1, 0, 0}, 0);
  expect_close(slopes(nn::hard_sigmoid), {0, 1.0 / 6, 1.0 / 6, 1.0 / 6, 0, 0}, 1e-7);
}

TEST(OneHot, has_no_one_for_a_label_out_of_range) {
  expect_close(nn::one_hot(split_rows(array({2, 0, -1, 3})), 3), {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}, 0);
  EXPECT_EQ(nn::one_hot(array({2}), 3, int8).dtype(), int8);
}

TEST(OneHot, refuses_labels_that_are_no_integers) {
  EXPECT_THAT(error_of<DtypeError>([] { nn::one_hot(array({1.f}), 3); }),
              testing::AllOf(testing::HasSubstr("one_hot at nn_test.cpp:"), testing::HasSubstr("float32")));
}

TEST(Initializers, refuse_a_shape_without_inputs) {
  EXPECT_THAT(error_of<ShapeError>([] { nn::he_normal(random::key(0), {3}); }),
              testing::AllOf(testing::HasSubstr("he_normal at nn_test.cpp:"), testing::HasSubstr("(3,)")));
}

TEST(Initializers, may_be_a_function_of_ones_own) {
  const auto halves = [](const random::Key&, const Shape& shape, Dtype dtype) {
    return full(shape, 0.5, dtype);
  };
  const nn::Dense layer = nn::dense(random::key(0), 3, 2, halves);
  expect_close(layer(split_rows(ones({7, 3}))), std::vector<double>(14, 1.5));
}

TEST(Embedding, gives_the_row_of_each_number) {
  const nn::Embedding layer{split_rows(reshape(arange(10.f), {5, 2}))};
  expect_close(layer(split_rows(array({4, 0, 4}))), {8, 9, 0, 1, 8, 9}, 0);
  const auto drawn = nn::embedding(random::key(3), 5, 2);
  expect_close(drawn.table, to_vector<double>(random::normal(random::key(3), {5, 2}) * (1 / std::sqrt(2.f))),
               1e-6);
}

TEST(Dropout, leaves_out_the_same_elements_on_every_layout_and_scales_the_rest) {
  const auto key = random::key(11);
  const Array is_kept = random::bernoulli(key, 0.75, {7, 5});
  std::vector<double> wanted;
  for (const int kept : to_vector<int>(astype(is_kept, int32))) wanted.push_back(4.0 * kept);
  for (const P& spec : {P(), P("x"), P(None, "x")})
    expect_close(nn::dropout(key, device_put(full({7, 5}, 3.f), line(), spec), 0.25), wanted, 1e-6);
  EXPECT_THAT(error_of<ArgumentError>([&] { nn::dropout(key, ones({2}), 1); }),
              testing::HasSubstr("rate is 1.0"));
}

TEST(Losses, are_those_of_optax) {
  const Array logits = array({{1.f, 2.f, -1.f}, {0.f, 300.f, -300.f}});
  const Array labels = array({2, 1});
  for (const P& spec : {P(), P("x"), P(None, "x")}) {
    const Array x = device_put(logits, line(), spec);
    expect_close(nn::softmax_cross_entropy_with_integer_labels(x, labels), {3.3490121, 0});
    expect_close(nn::softmax_cross_entropy(x, nn::one_hot(labels, 3) * 0.9f + 0.1f / 3),
                 {3.1823454, 30.000004});
    expect_close(nn::sigmoid_binary_cross_entropy(x, array({{1.f, 0.f, 0.5f}, {1.f, 1.f, 1.f}})),
                 {0.3132617, 2.126928, 0.81326175, 0.6931472, 0, 300});
    expect_close(nn::huber_loss(x, 0, 1.5), {0.5, 1.875, 0.5, 0, 448.875, 448.875});
    expect_close(nn::squared_error(x, 1), {0, 1, 4, 1, 89401, 90601});
    expect_close(nn::accuracy(x, labels), {0.5}, 0);
  }
}

TEST(Losses, an_impossible_class_costs_nothing_where_it_is_not_the_label) {
  const Array logits = log(array({{0.f, 1.f}}));
  expect_close(nn::softmax_cross_entropy_with_integer_labels(logits, array({1})), {0}, 0);
}

TEST(Losses, refuse_labels_of_another_shape) {
  EXPECT_THAT(error_of<ShapeError>([] {
                nn::softmax_cross_entropy_with_integer_labels(ones({4, 3}), zeros({4, 3}, int32));
              }),
              testing::AllOf(testing::HasSubstr("logits (4, 3)"), testing::HasSubstr("labels (4, 3)")));
}

TEST(Mlp, computes_the_same_whole_and_split_in_pairs) {
  const nn::Mlp network = nn::mlp(random::key(1), {6, 9, 7, 10, 3});
  const Array x = random::normal(random::key(2), {7, 6});
  Array by_hand = x;
  for (std::size_t i = 0; i < network.size(); ++i) {
    by_hand = matmul(by_hand, network[i].weight) + network[i].bias;
    if (i + 1 < network.size()) by_hand = maximum(by_hand, 0);
  }
  const auto wanted = to_vector<double>(by_hand);
  expect_close(nn::apply(network, split_rows(x)), wanted, 1e-5);
  const nn::Mlp split = nn::split_in_pairs(network, line(), "x");
  EXPECT_EQ(split[1].weight.sharding(), NamedSharding(line(), P(None, "x")));
  EXPECT_EQ(split[2].weight.sharding(), NamedSharding(line(), P("x", None)));
  expect_close(nn::apply(split, x), wanted, 1e-5);
}

TEST(Mlp, split_in_pairs_refuses_an_axis_that_the_mesh_lacks) {
  for (const auto& sizes :
       {std::vector<std::int64_t>{3, 4, 5}, {6, 9, 7, 10, 3}})  // without a pair, with one
    EXPECT_THROW((void)nn::split_in_pairs(nn::mlp(random::key(1), sizes), line(), "q"), ShardingError);
}

TEST(Mlp, a_pair_sends_one_sum_and_no_weight) {
  const nn::Mlp network = nn::split_in_pairs(nn::mlp(random::key(1), {6, 9, 7, 10, 3}), line(), "x");
  const auto plan =
      explain([&](const Array& x) { return nn::apply(network, x); }, device_put(ones({5, 6}), line(), P()));
  EXPECT_EQ(plan.calls(), device_count() > 1 ? 1 : 0);
  EXPECT_EQ(plan.calls("all-reduce"), plan.calls());
}

TEST(Batches, hold_every_example_once_and_pairs_stay_together) {
  const Array x = reshape(arange(46), {23, 2}), y = arange(23);
  const auto batches =
      nn::shuffled_batches(random::key(5), std::pair{split_rows(x), split_rows(y)}, 4, line(), P("x"));
  EXPECT_EQ(batches.size(), 5);
  std::vector<int> seen;
  for (const auto& [rows, labels] : batches) {
    EXPECT_EQ(rows.shape(), (Shape{4, 2}));
    EXPECT_EQ(rows.sharding(), NamedSharding(line(), P("x")));
    const auto row_values = to_vector<int>(rows), label_values = to_vector<int>(labels);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(row_values[2 * i], 2 * label_values[i]);
    seen.insert(seen.end(), label_values.begin(), label_values.end());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_TRUE(seen.front() >= 0 && seen.back() < 23);
}

TEST(Batches, come_in_the_order_that_jax_draws_whatever_the_layout) {
  const auto wanted = to_vector<int>(random::permutation(random::key(5), 23)(slice(0, 20)));
  for (const P& data_spec : {P(), P("x")})
    for (const P& batch_spec : {P(), P("x")}) {
      const Array data = device_put(arange(23), line(), data_spec);
      std::vector<int> seen;
      for (const Array& batch : nn::shuffled_batches(random::key(5), data, 4, line(), batch_spec)) {
        const auto values = to_vector<int>(batch);
        seen.insert(seen.end(), values.begin(), values.end());
      }
      EXPECT_EQ(seen, wanted);
    }
}

TEST(Batches, refuse_arrays_of_different_length_and_batches_that_do_not_fit) {
  const auto batches_of = [](std::int64_t rows, std::int64_t batch) {
    return error_of<UserError>([&] {
      nn::shuffled_batches(random::key(0), std::pair{ones({7, 2}), ones({rows})}, batch, line(), P("x"));
    });
  };
  EXPECT_THAT(batches_of(6, 2), testing::HasSubstr("shapes (7, 2) and (6,)"));
  EXPECT_THAT(batches_of(7, 8), testing::HasSubstr("batch is 8; it must lie in 1..7"));
}

}  // namespace
}  // namespace tessera
