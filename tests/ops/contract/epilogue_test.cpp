// Chains that run on parts of a product while they are in the cache: the program's text shows them, and
// values equal those of the product followed by the chain.
#include <tessera/grad.hpp>
#include <tessera/jit.hpp>
#include <tessera/linalg.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops.hpp>
#include <tessera/ops/products.hpp>

#include <functional>

#include "base/settings.hpp"
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

// Small integers: sums are exact in any order, also in 16-bit floats.
Array numbers(const Shape& shape, Dtype dtype, int seed) {
  return make(shape, dtype, [&](const Position& at) {
    return static_cast<double>((flat(at, shape) * 5 + flat(at, shape) / 7 + seed) % 9) - 4;
  });
}

using Operands = std::vector<Array>;
struct Sample {
  const char* name;
  std::vector<Shape> shapes;  // shapes of a, of b, and of the chain's other operands
  std::function<Array(const Operands&, const std::function<Array(Array)>& made)>
      run;  // made: called on each product
};

std::vector<Sample> samples() {
  const std::int64_t m = 211, k = 67, n = 139;
  return {
      {"a @ b + c",
       {{m, k}, {k, n}, {m, n}},
       [](const Operands& x, const auto& made) { return made(matmul(x[0], x[1])) + x[2]; }},
      {"c - a @ b",
       {{m, k}, {k, n}, {m, n}},
       [](const Operands& x, const auto& made) { return x[2] - made(matmul(x[0], x[1])); }},
      {"-a @ b",
       {{m, k}, {k, n}},
       [](const Operands& x, const auto& made) { return -made(matmul(x[0], x[1])); }},
      {"bias and relu",
       {{m, k}, {k, n}, {n}},
       [](const Operands& x, const auto& made) { return maximum(made(matmul(x[0], x[1])) + x[2], 0); }},
      {"a layer of several blocks",
       {{420, 300}, {300, 190}, {190}},
       [](const Operands& x, const auto& made) { return maximum(made(matmul(x[0], x[1])) + x[2], 0); }},
      {"a column of factors",
       {{m, k}, {k, n}, {m, 1}},
       [](const Operands& x, const auto& made) { return made(matmul(x[0], x[1])) * x[2]; }},
      {"twice in its chain",
       {{m, k}, {k, n}, {n}},
       [](const Operands& x, const auto& made) {
         const Array c = made(matmul(x[0], x[1]));
         return c * c + where(c > 3, c, x[2]);
       }},
      {"two products",
       {{m, k}, {k, n}},
       [](const Operands& x, const auto& made) {
         return made(matmul(x[0], x[1])) + made(matmul(x[0] * 2, x[1]));
       }},
      {"transposed operands",
       {{k, m}, {n, k}, {n}},
       [](const Operands& x, const auto& made) {
         return made(matmul(transpose(x[0]), transpose(x[1]))) + x[2];
       }},
      {"a batch",
       {{3, m, k}, {3, k, n}, {n}},
       [](const Operands& x, const auto& made) { return made(matmul(x[0], x[1])) * 2 + x[2]; }},
      // Chains with operands that are not rows or columns run on the complete result.
      {"a bias per matrix",
       {{3, m, k}, {3, k, n}, {3, 1, n}},
       [](const Operands& x, const auto& made) { return made(matmul(x[0], x[1])) + x[2]; }},
      {"several dims as columns",
       {{m, k}, {k, 7, 23}, {7, 1}},
       [](const Operands& x, const auto& made) { return made(tensordot(x[0], x[1], 1)) - x[2]; }},
      {"a vector",
       {{40000, k}, {k}, {40000}},
       [](const Operands& x, const auto& made) { return made(matmul(x[0], x[1])) + x[2]; }},
      {"no inner dim",
       {{m, 0}, {0, n}, {n}},
       [](const Operands& x, const auto& made) { return made(matmul(x[0], x[1])) + x[2]; }},
      {"no rows",
       {{0, k}, {k, n}, {n}},
       [](const Operands& x, const auto& made) { return made(matmul(x[0], x[1])) + x[2]; }},
      {"few elements",
       {{5, 3}, {3, 4}, {4}},
       [](const Operands& x, const auto& made) { return made(matmul(x[0], x[1])) + x[2]; }},
  };
}

Array as_it_is(Array x) { return x; }
// Evaluates the product, so that nothing may be fused into it.
Array stored(Array x) {
  eval(x);
  return x;
}

Operands operands_of(const Sample& sample, Dtype dtype) {
  Operands list;
  for (std::size_t i = 0; i < sample.shapes.size(); ++i)
    list.push_back(numbers(sample.shapes[i], dtype, static_cast<int>(i)));
  return list;
}
std::vector<double> values_of(const Array& x) {
  return to_vector<double>(astype(x.dtype() == complex64 ? real(x) : x, float64));
}

std::vector<P> specs(int ndim) {
  if (ndim == 1) return {P(axes("x", "y")), P("y"), P()};
  if (ndim == 3) return {P("x", "y", None), P(None, "x", "y"), P("y"), P(None, axes("x", "y")), P()};
  return {P(axes("x", "y"), None), P(None, axes("x", "y")), P("x", "y"), P(), P("y", "x"), P(None, "x")};
}

void expect_alike(const Sample& sample, Dtype dtype, unsigned seed) {
  const Operands whole = operands_of(sample, dtype);
  const auto expected = values_of(sample.run(whole, stored));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 6; ++trial) {
    Operands put;
    std::string where = sample.name;
    for (const auto& x : whole) {
      const auto list = specs(x.ndim());
      const P& spec = list[random() % list.size()];
      put.push_back(device_put(x, grid(), spec));
      where += " " + printed(spec);
    }
    const auto algorithm = static_cast<ProductAlgorithm>(random() % 6);
    const MatmulScope scope({algorithm, algorithm == ProductAlgorithm::automatic ? 0 : 1});
    ASSERT_EQ(values_of(sample.run(put, as_it_is)), expected) << where << " " << name(dtype);
    const auto compiled = jit([&](const Operands& x) { return sample.run(x, as_it_is); });
    ASSERT_EQ(values_of(compiled(put)), expected) << where << " " << name(dtype) << ", jit";
  }
}

TEST(Epilogue, gives_what_the_product_and_then_the_chain_give) {
  unsigned seed = 1;
  for (const auto& sample : samples())
    for (const Dtype dtype : {float32, float64, int32}) expect_alike(sample, dtype, ++seed);
  expect_alike(samples()[0], complex64, 77);
  expect_alike(samples()[1], complex64, 78);
}
TEST(Epilogue, the_same_where_ranks_send_messages) {
  const SettingScope messages("TESSERA_COLLECTIVES", "mpi");
  for (const auto& sample : samples()) expect_alike(sample, float32, 99);
}

std::string program_of_sample(std::size_t n, const P& a, const P& b) {
  Operands x = operands_of(samples()[n], float64);
  for (std::size_t i = 0; i < 2; ++i) x[i] = device_put(x[i], grid(), i == 0 ? a : b);
  return program_of(samples()[n].run(x, as_it_is));
}
TEST(Epilogue, the_program_has_one_instruction) {
  EXPECT_THAT(program_of_sample(0, P(axes("x", "y"), None), P()), testing::HasSubstr("dot+add(%"));
  EXPECT_THAT(program_of_sample(3, P(axes("x", "y"), None), P()), testing::HasSubstr("dot+add+maximum(%"));
  EXPECT_THAT(program_of_sample(3, P(axes("x", "y"), None), P()), testing::Not(testing::HasSubstr("fusion")));
}

// A transpose or a negation of an operand is not materialised for the product.
TEST(Product, operands_that_are_transposed_or_negated_are_not_copied) {
  const Array a = numbers({70, 60}, float64, 1), b = numbers({50, 70}, float64, 2);
  const auto expected = values_of(negative(matmul(stored(transpose(a)), stored(transpose(b)))));
  const Array turned = -matmul(transpose(a), -transpose(-b));
  const Array put =
      matmul(-transpose(device_put(a, grid(), P("x", "y"))), transpose(device_put(b, grid(), P("y"))));
  const std::string program = program_of(put);
  EXPECT_THAT(program, testing::Not(testing::HasSubstr("transpose")));
  EXPECT_EQ(values_of(put), expected);
  EXPECT_EQ(values_of(turned), expected);
  // A batch with transposed matrices; an operand with its batch dim last is copied, with the same result.
  const Array s = numbers({4, 30, 20}, float64, 3), t = numbers({4, 30, 25}, float64, 4);
  const auto products = values_of(matmul(stored(transpose(s, {0, 2, 1})), t));
  EXPECT_EQ(values_of(matmul(transpose(s, {0, 2, 1}), t)), products);
  EXPECT_EQ(values_of(einsum("bki,bkj->bij", s, t)), products);
  const Array behind = stored(transpose(s, {1, 2, 0}));  // (k, i, b)
  EXPECT_EQ(values_of(matmul(transpose(behind, {2, 1, 0}), t)), products);
  const Array gone = transpose(a);
  Array deleted = gone;
  deleted.delete_();
  EXPECT_THAT(error_of<Error>([&] { matmul(gone, a); }), testing::HasSubstr("deleted"));
}
// Integers wrap around at the negation, not at the multiplication.
TEST(Product, an_integer_is_negated_before_it_is_converted) {
  const Array bytes = astype(numbers({3, 4}, float64, 1) + 4.0, uint8), x = numbers({4, 2}, float32, 2);
  EXPECT_EQ(values_of(matmul(-bytes, x)), values_of(matmul(stored(-bytes), x)));
  const Array least = full({2, 3}, -128, int8), ones_of = full({3, 2}, 1.0F, float32);
  EXPECT_EQ(values_of(matmul(-least, ones_of)), values_of(matmul(stored(-least), ones_of)));
  EXPECT_EQ(values_of(matmul(-bytes, astype(x + 4.0, uint8))),
            values_of(matmul(stored(-bytes), astype(x + 4.0, uint8))));
}
// U on some devices, V on others: each mesh computes separately.
TEST(Product, factors_of_uncommitted_arrays_on_two_meshes) {
  const auto all = devices();
  const Mesh first = make_mesh({1}, {"x"}, {all.front()}), second = make_mesh({1}, {"x"}, {all.back()}),
             both = make_mesh({static_cast<int>(all.size())}, {"x"});
  const auto [q, r] = linalg::qr(numbers({9, 4}, float64, 1));
  const Array on_first = device_put(q, first, P()), on_second = device_put(r, second, P()),
              whole = device_put(matmul(q, r), both, P("x"));
  eval(on_first, on_second, whole);
  const auto expected = values_of(numbers({9, 4}, float64, 1)), got = values_of(whole);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12);
}

// Gradients pass through operands that are not materialised.
TEST(Product, gradients_of_transposed_and_negated_operands) {
  const Array a = numbers({17, 23}, float64, 1), b = numbers({19, 17}, float64, 2),
              g = numbers({23, 19}, float64, 3);
  const auto slope = [&](const std::function<Array(Array)>& made) {
    return grad([&](const Array& x) { return sum(g * matmul(made(-transpose(x)), made(transpose(b)))); })(a);
  };
  // d/dx sum(g * (-xᵀ bᵀ)) = -(g b)ᵀ
  EXPECT_EQ(values_of(slope(as_it_is)), values_of(stored(transpose(stored(negative(stored(matmul(g, b))))))));
  EXPECT_EQ(values_of(vmap([&](const Array& x) { return matmul(transpose(x), a); })(
                numbers({3, 17, 5}, float64, 5)))[0],
            values_of(matmul(stored(transpose(numbers({3, 17, 5}, float64, 5)(0))), a))[0]);
}

TEST(Epilogue, what_is_read_elsewhere_is_stored) {
  const Array a = numbers({60, 50}, float32, 1), b = numbers({50, 70}, float32, 2);
  const Array c = matmul(a, b), d = c + 1;
  EXPECT_THAT(program_text(compile(collect({c, d}, false))), testing::Not(testing::HasSubstr("dot+")));
  EXPECT_EQ(values_of(d)[0], values_of(c)[0] + 1);
}

// A chain must run on the sum over ranks, not on its terms.
TEST(Epilogue, does_not_come_before_the_sum_over_ranks) {
  const Array a = numbers({90, 160}, float64, 1), b = numbers({160, 80}, float64, 2),
              c = numbers({80}, float64, 3);
  const auto expected = values_of(maximum(stored(matmul(a, b)) + c, 0));
  const Array split = maximum(
      matmul(device_put(a, grid(), P(None, axes("x", "y"))), device_put(b, grid(), P(axes("x", "y")))) + c,
      0);
  EXPECT_EQ(values_of(split), expected);
}

TEST(Epilogue, gradients_of_a_layer_are_those_of_its_ops) {
  const Array x = numbers({64, 48}, float64, 1), w = numbers({48, 40}, float64, 2),
              bias = numbers({40}, float64, 3);
  const auto loss = [&](std::function<Array(Array)> made) {
    return [&, made](const Array& at) {
      return sum(maximum(made(matmul(device_put(x, grid(), P("x")), at)) + bias, 0));
    };
  };
  const Array slope = grad(loss(as_it_is))(w);
  // By hand: xᵀ times the mask of positive layer outputs.
  const Array above = astype(stored(matmul(x, w)) + bias > 0, float64);
  EXPECT_EQ(values_of(slope), values_of(stored(matmul(transpose(x), above))));
}

}  // namespace
}  // namespace tessera::test
