// Every distribution compared with JAX's draws (make_goldens.py), in both counter modes.
#include "golden.hpp"

#include <functional>
#include <map>

namespace tessera::test {
namespace {

using random::Threefry;
using random::ThreefryScope;

struct Mode {
  Threefry mode;
  const char* suffix;
};
constexpr Mode modes[] = {{Threefry::partitionable, ""}, {Threefry::original, ".original"}};

// The tolerance of a draw.
struct Row {
  std::function<Array(const Case&)> draw;
  double ulps = 0;  // 0: bit for bit
  double size = 0;  // magnitude of the numbers that the draw subtracts
};

void check(const std::string& file, const std::map<std::string, Row>& table) {
  for (const auto& [mode, suffix] : modes) {
    ThreefryScope scope(mode);
    const auto cases = read_cases(file + suffix);
    ASSERT_GT(cases.size(), 0u);
    for (const auto& c : cases) {
      const auto row = table.find(c.draw);
      ASSERT_TRUE(row != table.end()) << c.draw;
      const Array x = row->second.draw(c);
      if (is_inexact(c.dtype))
        expect_close(x, c, row->second.ulps, row->second.size);
      else
        expect_same_integers(x, c);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

Array stacked(const std::vector<random::Key>& keys) {
  std::vector<std::uint32_t> words;
  for (const auto& k : keys)
    for (const auto w : to_vector<std::uint32_t>(random::key_data(k))) words.push_back(w);
  return array(words, Shape{static_cast<std::int64_t>(keys.size()), 2});
}
// The same key computed by an op: its words are not known when ops are recorded.
random::Key unknown(const random::Key& key) { return random::wrap_key_data(key.data + zeros({2}, uint32)); }

TEST(random_golden, keys_splits_and_folds) {
  check(
      "keys",
      {
          {"key", {[](const Case& c) { return random::key_data(random::key(c.integer(0))); }}},
          {"split",
           {[](const Case& c) { return stacked(random::split(c.key, static_cast<int>(c.integer(0)))); }}},
          {"fold_in", {[](const Case& c) { return random::key_data(random::fold_in(c.key, c.integer(0))); }}},
      });
}

TEST(random_golden, keys_that_are_computed_split_and_fold_alike) {
  check("keys", {
                    {"key", {[](const Case& c) { return random::key_data(random::key(c.integer(0))); }}},
                    {"split", {[](const Case& c) {
                       return random::key_data(random::split_batch(unknown(c.key), {c.integer(0)}));
                     }}},
                    {"fold_in", {[](const Case& c) {
                       return random::key_data(random::fold_in(unknown(c.key), c.integer(0)));
                     }}},
                });
  check("keys", {
                    {"key", {[](const Case& c) { return random::key_data(random::key(c.integer(0))); }}},
                    {"split", {[](const Case& c) {
                       return stacked(random::split(unknown(c.key), static_cast<int>(c.integer(0))));
                     }}},
                    {"fold_in", {[](const Case& c) {
                       return random::key_data(random::fold_in(c.key, astype(c.integer(0), int64)));
                     }}},
                });
}

TEST(random_golden, bits_of_8_to_64) {
  for (const auto& [mode, suffix] : modes) {
    ThreefryScope scope(mode);
    for (const auto& c : read_cases(std::string("uniform_bits") + suffix)) {
      const Array x = random::bits(c.key, c.shape, c.dtype);
      if (c.values.is_array()) {
        expect_same_integers(x, c);
        continue;
      }
      const auto values = to_vector<std::uint64_t>(x);
      std::uint64_t folded = 0, sum = 0;
      for (const auto v : values) folded ^= v, sum += v;
      EXPECT_EQ(folded, c.values["xor"].get<std::uint64_t>()) << c.text();
      EXPECT_EQ(sum, c.values["sum"].get<std::uint64_t>()) << c.text();
      for (std::size_t i = 0; i < c.values["at"].size(); ++i)
        EXPECT_EQ(values[c.values["at"][i].get<std::size_t>()], c.values["samples"][i].get<std::uint64_t>())
            << c.text();
    }
  }
}

TEST(random_golden, uniform_normal_randint_bernoulli) {
  const auto uniform = [](const Case& c) {
    return random::uniform(c.key, c.shape, c.dtype, c.number(0), c.number(1));
  };
  const auto bernoulli = [](const Case& c) { return random::bernoulli(c.key, c.array(0), c.shape); };
  check("basics",
        {
            {"uniform", {uniform}},
            {"normal", {[](const Case& c) { return random::normal(c.key, c.shape, c.dtype); }, 8}},
            {"randint", {[](const Case& c) {
               return random::randint(c.key, c.shape, c.integer(0), c.integer(1), c.dtype);
             }}},
            {"bernoulli", {bernoulli}},
            {"bernoulli_high", {[](const Case& c) {
               return random::bernoulli(c.key, c.array(0), c.shape, random::Resolution::high);
             }}},
            {"rademacher", {[](const Case& c) { return random::rademacher(c.key, c.shape, c.dtype); }}},
        });
}

TEST(random_golden, continuous_distributions) {
  using namespace random;
  const double ulps = 8;
  const auto of_shape = [&](Array (*f)(const Key&, Shape, Dtype, Where)) {
    return Row{[f](const Case& c) { return f(c.key, c.shape, c.dtype, Where::current()); }, ulps};
  };
  const auto row = [&](std::function<Array(const Case&)> draw, double size = 0) {
    return Row{std::move(draw), ulps, size};
  };
  check(
      "continuous",
      {
          {"exponential", of_shape(exponential)},
          {"gumbel", row([](const Case& c) { return gumbel(c.key, c.shape, c.dtype); }, 1)},
          {"laplace", of_shape(laplace)},
          {"logistic", row([](const Case& c) { return logistic(c.key, c.shape, c.dtype); }, 1)},
          {"cauchy", of_shape(cauchy)},
          {"maxwell", of_shape(maxwell)},
          {"truncated_normal", row(
                                   [](const Case& c) {
                                     if (c.args[0].is_number())
                                       return truncated_normal(c.key, c.number(0), c.number(1), c.shape,
                                                               c.dtype);
                                     return truncated_normal(c.key, c.array(0), c.array(1), c.shape, c.dtype);
                                   },
                                   1)},
          {"uniform",
           {[](const Case& c) { return uniform(c.key, c.shape, c.dtype, c.array(0), c.array(1)); }}},
          {"pareto", row([](const Case& c) { return pareto(c.key, c.array(0), c.shape, c.dtype); })},
          {"weibull_min",
           row([](const Case& c) { return weibull_min(c.key, c.array(0), c.array(1), c.shape, c.dtype); })},
          {"rayleigh", row([](const Case& c) { return rayleigh(c.key, c.array(0), c.shape, c.dtype); })},
          {"lognormal", row([](const Case& c) { return lognormal(c.key, c.array(0), c.shape, c.dtype); })},
          {"triangular", row(
                             [](const Case& c) {
                               return triangular(c.key, c.array(0), c.array(1), c.array(2), c.shape, c.dtype);
                             },
                             1)},
          {"wald", {[](const Case& c) { return wald(c.key, c.array(0), c.shape, c.dtype); }, 32, 1}},
          {"double_sided_maxwell", row(
                                       [](const Case& c) {
                                         return double_sided_maxwell(c.key, c.array(0), c.array(1), c.shape,
                                                                     c.dtype);
                                       },
                                       1)},
          {"geometric", row([](const Case& c) { return geometric(c.key, c.array(0), c.shape, c.dtype); })},
      });
}

TEST(random_golden, rejection) {
  using namespace random;
  const auto row = [](std::function<Array(const Case&)> draw, double ulps = 64, double size = 0) {
    return Row{std::move(draw), ulps, size};
  };
  check(
      "rejection",
      {
          {"gamma", row([](const Case& c) { return gamma(c.key, c.array(0), c.shape, c.dtype); })},
          {"loggamma",
           row([](const Case& c) { return loggamma(c.key, c.array(0), c.shape, c.dtype); }, 64, 1)},
          {"beta", row([](const Case& c) { return beta(c.key, c.array(0), c.array(1), c.shape, c.dtype); },
                       1000)},  // exp of a logarithm that may be large
          {"dirichlet",
           row([](const Case& c) { return dirichlet(c.key, c.array(0), Shape{c.shape[0]}, c.dtype); },
               1000)},  // exp of a logarithm that may be large
          {"t", row([](const Case& c) { return random::t(c.key, c.array(0), c.shape, c.dtype); })},
          {"chisquare", row([](const Case& c) { return chisquare(c.key, c.array(0), c.shape, c.dtype); },
                            1000)},  // exp of a logarithm that may be large
          {"f", row([](const Case& c) { return random::f(c.key, c.array(0), c.array(1), c.shape, c.dtype); },
                    1000)},  // exp of a logarithm that may be large
          {"generalized_normal",
           row([](const Case& c) { return generalized_normal(c.key, c.number(0), c.shape, c.dtype); })},
          {"ball", row([](const Case& c) {
             return ball(c.key, c.integer(0), c.number(1), Shape{c.shape[0]}, c.dtype);
           })},
          {"poisson", row([](const Case& c) { return poisson(c.key, c.array(0), c.shape, c.dtype); })},
          {"binomial",
           row([](const Case& c) { return binomial(c.key, c.array(0), c.array(1), c.shape, c.dtype); })},
      });
}

TEST(random_golden, permutations_choices_categories) {
  using namespace random;
  const auto chosen = [](const Case& c) {
    const bool replace = c.integer(1) != 0;
    const auto p = c.args.size() > 2 ? std::optional<Array>(c.array(2)) : std::nullopt;
    const Array a = c.array(0);
    const Shape shape = a.ndim() == 2 ? Shape{c.shape[0]} : c.shape;
    return choice(c.key, a, shape, replace, p);
  };
  const auto category = [](const Case& c) {
    return categorical(c.key, c.array(0), static_cast<int>(c.integer(1)), c.shape, c.integer(2) != 0);
  };
  check("picking",
        {
            {"permutation", {[](const Case& c) { return permutation(c.key, c.integer(0)); }}},
            {"permutation_array", {[](const Case& c) {
               return permutation(c.key, c.array(0), static_cast<int>(c.integer(1)), c.integer(2) != 0);
             }}},
            {"choice", {chosen}},
            {"categorical", {category}},
            {"multinomial",
             {[](const Case& c) { return multinomial(c.key, c.array(0), c.array(1), {}, c.dtype); }}},
        });
}

TEST(random_golden, vectors_and_matrices) {
  using namespace random;
  const auto q = [](const Case& c) {
    const auto n = c.integer(0), m = c.integer(1);
    return orthogonal(c.key, n, c.shape.size() == 3 ? Shape{c.shape[0]} : Shape{}, c.dtype, m);
  };
  check("matrices", {
                        {"multivariate_normal",
                         {[](const Case& c) {
                            return multivariate_normal(c.key, c.array(0), c.array(1), Shape{c.shape[0]},
                                                       c.dtype);
                          },
                          16, 4}},
                        {"orthogonal", {q, 32, 1}},
                    });
}

}  // namespace
}  // namespace tessera::test
