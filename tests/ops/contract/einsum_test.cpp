// einsum compared with sums in plain loops, for any shardings of the operands.
#include <map>

#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The sum over all labels that the result lacks, by brute force.
void expect_einsum(const std::string& inputs, const std::string& result, std::map<char, std::int64_t> sizes,
                   std::mt19937& random, const std::string& expression) {
  const Mesh mesh = random_mesh(random);
  std::vector<std::string> terms{""};
  for (const char c : inputs) c == ',' ? terms.push_back("") : terms.back().push_back(c);
  std::vector<Shape> shapes;
  std::vector<Array> operands;
  const auto value = [&](std::size_t operand, const Position& at) {
    return static_cast<double>((flat(at, shapes[operand]) * 3 + static_cast<std::int64_t>(operand)) % 5) - 2;
  };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    std::vector<std::int64_t> extents;
    for (const char c : terms[i]) extents.push_back(sizes[c]);
    shapes.emplace_back(extents);
    Array x = make(shapes[i], float64, [&](const Position& at) { return value(i, at); });
    if (random() % 5) x = device_put(x, random_sharding(random, mesh, x.ndim()));
    operands.push_back(x);
  }
  std::vector<std::int64_t> extents;
  for (const char c : result) extents.push_back(sizes[c]);
  const Array y = einsum_of(expression, operands);
  expect_elements(
      y, Shape(extents),
      [&](const Position& at) {
        std::map<char, std::int64_t> index;
        std::string open;
        for (std::size_t i = 0; i < result.size(); ++i) index[result[i]] = at[i];
        for (const auto& [label, n] : sizes)
          if (result.find(label) == std::string::npos && inputs.find(label) != std::string::npos)
            open += label, index[label] = 0;
        double total = 0;
        for (;;) {
          double product = 1;
          for (std::size_t i = 0; i < terms.size(); ++i) {
            Position source;
            for (const char c : terms[i]) source.push_back(index[c]);
            product *= value(i, source);
          }
          total += product;
          std::size_t k = open.size();
          while (k > 0 && ++index[open[k - 1]] == sizes[open[k - 1]]) index[open[--k]] = 0;
          if (k == 0) return total;
        }
      },
      expression);
}

TEST(Einsum, what_loops_give) {
  std::mt19937 random(51);
  const std::map<char, std::int64_t> sizes = {{'a', 2}, {'b', 3}, {'i', 5}, {'j', 4}, {'k', 3}, {'l', 6}};
  const std::pair<const char*, const char*> cases[] = {
      {"ij,jk", "ik"},     {"ij", "ji"},        {"ij", "i"},    {"ij", ""},         {"i,j", "ij"},
      {"i,i", ""},         {"ij,ij", "ij"},     {"ij,ij", "i"}, {"bij,bjk", "bik"}, {"ij,jk,kl", "il"},
      {"ij,jk,kl,l", "i"}, {"abij,bkj", "kai"}, {"ii", "i"},    {"ii", ""},         {"iij", "ji"},
      {"iji,j", "i"},      {"a,b,i", "iba"},    {"i,ij,j", ""}, {"ij,k", "kji"},
  };
  for (int round = 0; round < 4; ++round)
    for (const auto& [inputs, result] : cases)
      expect_einsum(inputs, result, sizes, random, std::string(inputs) + "->" + result);
}

TEST(Einsum, without_an_arrow_what_stands_once_in_alphabetical_order) {
  const Array a = reshape(arange(6), {2, 3}), b = reshape(arange(12), {3, 4});
  EXPECT_EQ(to_vector<int>(einsum("ij,jk", a, b)), to_vector<int>(matmul(a, b)));
  EXPECT_EQ(to_vector<int>(einsum("ba", a)), to_vector<int>(a.T()));
  EXPECT_EQ(item<int>(einsum("ii", reshape(arange(9), {3, 3}))), 12);
}

TEST(Einsum, an_ellipsis_broadcasts) {
  const Array a = reshape(arange(12), {2, 2, 3}), b = reshape(arange(6), {3, 2});
  EXPECT_EQ(to_vector<int>(einsum("...ij,...jk->...ik", a, b)), to_vector<int>(matmul(a, b)));
  EXPECT_EQ(to_vector<int>(einsum("i...->...i", a)), to_vector<int>(transpose(a, {1, 2, 0})));
  EXPECT_THAT(to_vector<int>(einsum("...i,...i", array({{1, 2}, {3, 4}}), array({{10, 1}}))),
              ElementsAre(12, 34));
}

TEST(Einsum, errors_name_the_term) {
  EXPECT_THAT(error_of<ArgumentError>([] {
                einsum("ij,jk", zeros({2, 2}));
              }),
              HasSubstr("2 terms for 1 operands"));
  EXPECT_THAT(error_of<ArgumentError>([] {
                einsum("ijk", zeros({2, 2}));
              }),
              HasSubstr("names 3 dimensions, operand 0 has shape (2, 2)"));
  EXPECT_THAT(error_of<ShapeError>([] {
                einsum("ij,jk", zeros({2, 3}), zeros({4, 2}));
              }),
              HasSubstr("'j' is 3 in one operand and 4 in operand 1"));
  EXPECT_THAT(error_of<ArgumentError>([] {
                einsum("ij->ik", zeros({2, 3}));
              }),
              HasSubstr("'k' of the result stands in no operand"));
  EXPECT_THAT(error_of<ArgumentError>([] { einsum("i?", zeros({2, 3})); }), HasSubstr("'?' means nothing"));
  EXPECT_THAT(error_of<ArgumentError>([] { einsum("i?", zeros({2, 3})); }), HasSubstr("einsum_test.cpp"));
}

}  // namespace
}  // namespace tessera::test
