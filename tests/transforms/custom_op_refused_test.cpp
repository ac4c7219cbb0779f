// Refusals of a custom op, when it is made, called and computed: the same text on every rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/custom_op.hpp>
#include <tessera/error.hpp>
#include <tessera/multihost.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <stdexcept>

#include "support/errors.hpp"

namespace {

using namespace tessera;
using test::error_of;
using test::expect_error;

void copy(BlockView<const float> x, BlockView<float> y) {
  for (std::int64_t i = 0; i < x.size(); ++i) y.data_handle()[i] = x.data_handle()[i];
}
CustomOp made(const char* rule, std::vector<Halo> halo = {}) {
  return custom_op({.name = "mine", .rule = rule, .kernel = copy, .halo = std::move(halo)});
}

TEST(CustomOpErrors, sentences_are_read_when_the_op_is_made) {
  expect_error<ArgumentError>([] { made("i j"); },
                              {"custom_op at custom_op_refused_test.cpp", "\"i j\"", "no '->'",
                               "A sentence reads \"i j, j k -> i k | sum j\""});
  expect_error<ArgumentError>([] { made("i j -> i"); }, {"factor j is in no output: say 'sum' or 'whole'"});
  expect_error<ArgumentError>([] { made("i -> i | some i"); },
                              {"'some' is no way to combine partial results"});
  expect_error<ArgumentError>([] { made("-> i"); }, {"it has no operand; name the dims of one before ->"});
  expect_error<ArgumentError>([] { made("i -> ~i"); },
                              {"a result is marked with ~; margins belong to operands"});
  expect_error<ArgumentError>([] { made("~i -> i"); }, {"~i has no halo; say {\"i\", before, after}"});
  expect_error<ArgumentError>([] { made("~S.. -> S.."); }, {"~S is a group; mark single letters"});
  expect_error<ArgumentError>([] { made("i -> i", {{"i"}}); },
                              {"there is a halo for 'i', which no operand has as ~i"});
  expect_error<ArgumentError>(
      [] {
        made("~i -> i", {{"i"}, {"i"}});
      },
      {"there are two halos for 'i'; keep one"});
  expect_error<ArgumentError>(
      [] {
        made("~i -> i", {{"i", -1, 2}});
      },
      {"the halo of 'i' is (-1, 2); margins are 0 or more"});
  expect_error<ArgumentError>([] { made("~i j -> j | whole i", {{"i"}}); }, {"~i is reduced or whole"});
  expect_error<ArgumentError>(
      [] { custom_op({.name = "two", .rule = "i j -> i, i j", .kernel = [](const Blocks&) {}}); },
      {"'two'", "a result lacks j, and would depend on how it is split"});
  expect_error<ArgumentError>(
      [] { made("i, i -> i"); },
      {"the kernel of 'mine' takes 1 operand, the sharding rule \"i, i -> i\" has 2"});
  expect_error<ArgumentError>([] { made("i -> i, i"); },
                              {"the kernel of 'mine' takes 1 result, the sharding rule \"i -> i, i\" has 2"});
  expect_error<ArgumentError>([] { custom_op({.name = "idle", .rule = "i -> i"}); },
                              {"the op 'idle' has no kernel"});
  expect_error<ArgumentError>([] { custom_op({.rule = "i -> i", .kernel = copy}); }, {"the op has no name"});
}

TEST(CustomOpErrors, operands_are_checked_when_it_is_called) {
  const auto op = made("i j -> i j");
  expect_error<ShapeError>([&] { op(zeros({3})); },
                           {"mine at custom_op_refused_test.cpp:", "sharding rule \"i j -> i j\" on (3,):",
                            "2 dims in the text", "call it with operands that the sentence fits"});
  expect_error<DtypeError>(
      [&] {
        op(zeros({3, 2}, float64));
      },
      {"mine at custom_op_refused_test.cpp:", "operand 0 is float64[3,2], the kernel takes float32",
       "astype(x, float32)"});
  expect_error<ArgumentError>(
      [&] {
        op(zeros({3, 2}), zeros({3, 2}));
      },
      {"it is called with 2 operands, the sharding rule \"i j -> i j\" has 1"});
  const auto sum =
      custom_op({.name = "both",
                 .rule = "i, i -> i",
                 .kernel = [](BlockView<const float>, BlockView<const float>, BlockView<float>) {}});
  expect_error<ShapeError>([&] { sum(zeros(5), zeros(1)); }, {"factor i is 5 and 1"});
  const auto square = custom_op({.name = "square", .rule = "i i -> i", .kernel = copy});
  expect_error<ShapeError>([&] { square(zeros({3, 4})); }, {"factor i is 3 and 4"});
  const auto narrow = made("~i -> i", {{"i", 2, 2, std::nullopt}});
  expect_error<ShapeError>(
      [&] { narrow(zeros(3)); },
      {"operand 0 has shape (3,), but its dim 0 needs 4 elements for the margins alone"});
  const auto longer = custom_op({.name = "longer", .rule = "i -> i", .kernel = copy, .result = [](auto in) {
                                   return std::vector<ShapeDtype>{{Shape{in[0].shape[0] + 1}, float32}};
                                 }});
  expect_error<ShapeError>([&] { longer(zeros(3)); }, {"factor i is 3 and 4"});
  expect_error<ArgumentError>(
      [&] { custom_op({.name = "pair", .rule = "i -> i, i", .kernel = [](const Blocks&) {}})(zeros(3)); },
      {"it has 2 results; ask for all of them, op.results({a, b})"});
}

TEST(CustomOpErrors, rules_of_transformations_are_checked) {
  const auto op = made("i -> i");
  expect_error<ArgumentError>(
      [&] { grad([&](Array x) { return sum(op(x)); })(zeros(3)); },
      {"mine at custom_op_refused_test.cpp:", "has no derivative: its custom_op has neither vjp nor jvp"});
  const auto with_vjp = [](DerivativeRule rule) {
    return custom_op({.name = "mine", .rule = "i -> i", .kernel = copy, .vjp = std::move(rule)});
  };
  const auto gradient = [](const CustomOp& f) { grad([&](Array x) { return sum(f(x)); })(zeros(3)); };
  expect_error<ArgumentError>(
      [&] { gradient(with_vjp([](auto, auto, auto) { return std::vector<Array>(); })); },
      {"mine at custom_op_refused_test.cpp:", "its vjp gives 0 arrays; return 1"});
  expect_error<ArgumentError>(
      [&] { gradient(with_vjp([](auto, auto, auto) { return std::vector<Array>{zeros(4)}; })); },
      {"a cotangent returned by vjp is float32[4]", "belongs to float32[3]",
       "must have the same shape and dtype"});
  const auto batched =
      custom_op({.name = "mine", .rule = "i -> i", .kernel = copy, .batch = [](auto in, auto, auto) {
                   return std::vector<Array>{in[0](0)};
                 }});
  expect_error<ShapeError>(
      [&] {
        vmap([&](Array x) { return batched(x); })(zeros({4, 3}));
      },
      {"its batch gives float32[3] as result 0; it must be float32[4,3]"});
}

// A kernel that fails on the rank whose block holds a given row of the array.
CustomOp failing(std::int64_t row, int what) {
  return custom_op({.name = "failing",
                    .rule = "i -> i",
                    .kernel = [row, what](BlockView<const float> x, BlockView<float> y) {
                      copy(x, y);
                      if (row < x.start(0) || row >= x.start(0) + x.extent(0)) return;
                      if (what == 0) throw std::runtime_error("row " + std::to_string(row) + " is no good");
                      if (what == 1) throw LinAlgError("row " + std::to_string(row) + " is singular");
                      throw 5;
                    }});
}

TEST(CustomOpErrors, an_error_of_one_rank_is_raised_on_all) {
  const int p = device_count();
  const Array x = device_put(ones(3 * p), make_mesh({p}, {"x"}), P("x"));
  const std::string last = "rank " + std::to_string(p - 1) + ": failing at custom_op_refused_test.cpp:";
  const auto texts_agree = [](const std::string& text) {
    EXPECT_NO_THROW(multihost::assert_equal(array(std::vector<std::int32_t>(text.begin(), text.end()))));
  };
  const auto plain = error_of<UserError>([&] { eval(failing(3 * p - 1, 0)(x)); });
  EXPECT_THAT(plain, testing::HasSubstr(last));
  EXPECT_THAT(plain,
              testing::HasSubstr("its kernel failed: row " + std::to_string(3 * p - 1) + " is no good"));
  texts_agree(plain);
  texts_agree(error_of<LinAlgError>([&] { eval(failing(3 * p - 1, 1)(x)); }));
  expect_error<UserError>([&] { eval(failing(0, 2)(x)); },
                          {"rank 0: ", "something that is no std::exception"});
  const auto compiled = jit([&](Array a) { return failing(3 * p - 1, 0)(a + 1) * 2; });
  expect_error<UserError>([&] { eval(compiled(x)); }, {last, "is no good"});
  const auto looped = jit([&](Array a) {
    return fori_loop(
        0, 20, [&](Array i, Array v) { return failing(0, 0)(v) + astype(i, float32); }, a);
  });
  expect_error<UserError>([&] { eval(looped(x)); }, {"rank 0: failing at", "is no good"});
  EXPECT_EQ(item<float>(sum(made("i -> i")(x))), 3.0f * static_cast<float>(p));  // nothing else is harmed
}

TEST(CustomOpErrors, blocks_know_their_dtypes) {
  const auto op = custom_op(
      {.name = "wrong", .rule = "i -> i", .kernel = [](const Blocks& blocks) { blocks.in<double>(0); }});
  expect_error<UserError>([&] { eval(op(ones(4))); },
                          {"the kernel asks for operand 0 as float64, it is float32"});
  const auto beyond = custom_op(
      {.name = "beyond", .rule = "i -> i", .kernel = [](const Blocks& blocks) { blocks.out<float>(1); }});
  expect_error<UserError>([&] { eval(beyond(ones(4))); }, {"the kernel asks for result 1, there are 1"});
}

}  // namespace
