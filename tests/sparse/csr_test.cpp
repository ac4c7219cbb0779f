// Sparse matrices: construction, products, traffic, derivatives, files, errors.
#include <tessera/debug.hpp>

#include <cstdio>
#include <fstream>

#include "sparse/matrices.hpp"
#include "support/traffic.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

TEST(Csr, is_its_dense_matrix) {
  for (const auto& [m, n] : {std::pair{13, 13}, {17, 5}, {3, 20}, {1, 1}}) {
    const auto a = scattered_matrix(m, n, by_rows());
    expect_alike(sparse::to_dense(a), scattered_dense(m, n));
    expect_alike(sparse::to_dense(a.T()), transpose(scattered_dense(m, n)));
  }
}

TEST(Csr, entries_of_one_place_are_added_up) {
  const auto a =
      sparse::from_coordinates({3, 3}, array<std::int64_t>({2, 0, 2}), array<std::int64_t>({1, 0, 1}),
                               array<double>({1, 2, 3}), by_rows());
  EXPECT_EQ(a.entries(), 2);
  EXPECT_EQ(item<double>(sparse::to_dense(a)(2, 1)), 4);
}

TEST(Csr, a_matrix_without_entries_gives_zeros) {
  const auto none = zeros({0}, int64);
  const auto a = sparse::from_coordinates({5, 4}, none, none, zeros({0}, float64), by_rows());
  expect_alike(sparse::matmul(a, wave(4)), zeros({5}, float64));
}

TEST(Csr, products_are_those_of_the_dense_matrix_wherever_x_lies) {
  const auto a = scattered_matrix(19, 11, by_rows());
  const Array dense = scattered_dense(19, 11);
  for (const Array& x : {wave(11), device_put(wave(11), line(), P()), device_put(wave(11), line(), P("x"))}) {
    expect_alike(sparse::matmul(a, x), matmul(dense, wave(11)));
    EXPECT_EQ(sparse::matmul(a, x).sharding(), by_rows());
  }
  for (const Array& y : {wave(19), device_put(wave(19), line(), P("x"))})
    expect_alike(sparse::matmul(a.T(), y), matmul(transpose(dense), wave(19)));
}

TEST(Csr, columns_stay_on_their_own_axis) {
  if (device_count() % 2 != 0) GTEST_SKIP() << "needs two axes";
  const Mesh mesh = make_mesh({device_count() / 2, 2}, {"x", "y"});
  const auto a = scattered_matrix(9, 7, NamedSharding(mesh, P("x")));
  const Array x = sin(reshape(arange(21), {7, 3}) * 0.3), dense = scattered_dense(9, 7);
  const Array placed = device_put(astype(x, float64), mesh, P("x", "y"));
  const Array y = sparse::matmul(a, placed);
  expect_alike(y, matmul(dense, astype(x, float64)));
  EXPECT_EQ(y.sharding(), NamedSharding(mesh, P("x", "y")));
  const auto by_values = [&](const Array& v) {
    return sum(square(sparse::matmul(a.with_values(v), placed)));
  };
  const Array g = grad(by_values)(a.values());
  const Array expected = 2 * matmul(matmul(dense, astype(x, float64)), transpose(astype(x, float64)));
  const Array rows = a.entry_rows(), columns = a.entry_columns();
  const Array at = take(reshape(expected, {-1}), where(rows >= 0, rows * 7 + columns, zeros_like(rows)), 0);
  expect_alike(g, where(rows >= 0, at, zeros_like(at)), 1e-10);
}

TEST(Csr, a_product_moves_the_elements_that_its_entries_need_and_no_more) {
  const std::int64_t side = 2 * 3 * 4 * 7 * 8 / 12;  // 112: complete grid lines for the tested rank counts
  const auto a = laplacian(side, by_rows());
  const std::int64_t neighbours = std::min(device_count() - 1, 2);
  EXPECT_EQ(a.exchanged(), device_count() == 1 ? 0 : neighbours * side);
  const Array x = device_put(wave(side * side), line(), P("x"));
  eval({x});
  const auto f = jit([&](const Array& v) { return sparse::matmul(a, v); });
  EXPECT_EQ(f.lower(x).compile().explanation().bytes(), a.exchanged() * 8);
  eval({f(x)});
  const debug::CommStats stats;
  eval({f(x)});
  EXPECT_EQ(stats.bytes(), a.exchanged() * 8);
}

// Received messages, for products in both directions, several vectors at once, and derivatives.
TEST(Csr, messages_carry_what_is_predicted) {
  const auto compare = [](const char* what, const auto& f, const Array& x) {
    eval({x});
    const auto compiled = jit(f).lower(x).compile();
    EXPECT_EQ(message_bytes_of([&] { eval({compiled(x)}); }), compiled.explanation().bytes())
        << what << "\n"
        << compiled.as_text();
  };
  const auto along_rows = [](const Array& x) { return device_put(x, line(), P("x")); };
  for (const std::int64_t side : {1, 5, 24}) {  // with ranks that have no rows, short blocks, even ones
    const auto a = laplacian(side, by_rows());
    const Array x = along_rows(wave(side * side));
    compare(
        "a x", [&](const Array& v) { return sparse::matmul(a, v); }, x);
    compare(
        "a^T x", [&](const Array& v) { return sparse::matmul(a.T(), v); }, x);
    compare(
        "a of three vectors", [&](const Array& v) { return sparse::matmul(a, v); },
        along_rows(stack({x, 2 * x, 3 * x}, 1)));
  }
  for (const auto& [m, n] :
       {std::pair{19, 11}, {3, 20}, {17, 5}}) {  // ranks need different numbers of the columns
    const auto a = scattered_matrix(m, n, by_rows());
    const Array x = along_rows(wave(n));
    compare(
        "a x", [&](const Array& v) { return sparse::matmul(a, v); }, x);
    compare(
        "a^T y", [&](const Array& v) { return sparse::matmul(a.T(), v); }, along_rows(wave(m)));
    compare("by values", grad([&](const Array& v) {
              return sum(along_rows(wave(m)) * sparse::matmul(a.with_values(v), x));
            }),
            a.values());
  }
}

TEST(Csr, gradients_by_x_and_by_values_are_those_of_the_dense_matrix) {
  const auto a = scattered_matrix(10, 6, by_rows());
  const Array dense = scattered_dense(10, 6), x = wave(6), c = wave(10);
  const auto f = [&](const Array& v, const Array& u) {
    return sum(c * sin(sparse::matmul(a.with_values(v), u))) +
           sum(sparse::matmul(a.with_values(v).T(), c) * cos(u));
  };
  const auto g = [&](const Array& d, const Array& u) {
    return sum(c * sin(matmul(d, u))) + sum(matmul(transpose(d), c) * cos(u));
  };
  const auto [by_values, by_x] = jit(grad<0, 1>(f))(a.values(), x);
  const auto [by_dense, expected_x] = grad<0, 1>(g)(dense, x);
  expect_alike(by_x, expected_x);
  const Array rows = a.entry_rows(), columns = a.entry_columns();
  const Array at = take(reshape(by_dense, {-1}), where(rows >= 0, rows * 6 + columns, zeros_like(rows)), 0);
  expect_alike(by_values, where(rows >= 0, at, zeros_like(at)));
}

TEST(Csr, second_derivatives_are_those_of_the_dense_matrix) {
  const auto a = scattered_matrix(5, 5, by_rows());
  const auto f = [&](const Array& u) { return sum(exp(sparse::matmul(a, u) * 0.1)); };
  const auto g = [&](const Array& u) { return sum(exp(matmul(scattered_dense(5, 5), u) * 0.1)); };
  expect_alike(hessian(f)(wave(5)), hessian(g)(wave(5)), 1e-11);
}

TEST(Csr, vmap_is_a_loop) {
  const auto a = scattered_matrix(7, 4, by_rows());
  const Array xs = reshape(wave(12), {3, 4});
  const auto product = [&](const Array& x) { return sparse::matmul(a, x); };
  expect_alike(vmap(product)(xs), matmul(xs, transpose(scattered_dense(7, 4))));
  const auto scaled = [&](const Array& s) { return sparse::matmul(a.with_values(s * a.values()), xs(0)); };
  expect_alike(vmap(scaled)(array<double>({1, 2})), stack({product(xs(0)), 2 * product(xs(0))}));
}

TEST(Csr, complex_and_float_32) {
  const auto a = scattered_matrix(8, 8, by_rows());
  const Array x = wave(8) + std::complex<double>(0, 1) * sin(wave(8));
  expect_alike(sparse::matmul(a, x), matmul(astype(scattered_dense(8, 8), complex128), x));
  const auto small = a.with_values(astype(a.values(), float32));
  expect_alike(sparse::matmul(small, astype(wave(8), float32)),
               matmul(astype(scattered_dense(8, 8), float32), astype(wave(8), float32)), 1e-5);
}

TEST(Csr, the_diagonal_needs_no_word) {
  const auto a = scattered_matrix(9, 9, by_rows());
  expect_alike(sparse::diagonal(a), diagonal(scattered_dense(9, 9)));
  expect_alike(sparse::diagonal(scattered_matrix(9, 5, by_rows())), diagonal(scattered_dense(9, 5)));
}

TEST(Csr, from_a_dense_matrix) {
  const Array dense = where(scattered_dense(9, 6) > 2, scattered_dense(9, 6), zeros({9, 6}, float64));
  expect_alike(sparse::to_dense(sparse::from_dense(dense, by_rows())), dense);
}

TEST(Csr, a_file_is_written_and_read_in_parts) {
  const std::string path = "sparse-" + std::to_string(device_count()) + ".mtx";
  const auto a = scattered_matrix(23, 17, by_rows());
  sparse::save_matrix_market(path, a);
  const auto back = sparse::load_matrix_market(path, by_rows());
  EXPECT_EQ(back.entries(), a.entries());
  expect_alike(sparse::to_dense(back), sparse::to_dense(a));
  if (process_index() == 0) std::remove(path.c_str());
}

TEST(Csr, a_symmetric_file_has_both_triangles) {
  const std::string path = "sparse-symmetric-" + std::to_string(device_count()) + ".mtx";
  if (process_index() == 0)
    std::ofstream(path) << "%%MatrixMarket matrix coordinate integer symmetric\n% a comment\n3 3 4\n1 1 5\n"
                           "2 1 7\n3 3 -2\n\n3 2 9\n";
  eval({device_put(ones({device_count()}), by_rows())});
  const auto a = sparse::load_matrix_market(path, by_rows());
  expect_alike(sparse::to_dense(a), array<double>({{5, 7, 0}, {7, 0, 9}, {0, 9, -2}}));
  if (process_index() == 0)
    std::ofstream(path) << "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n2 2 2\n";
  eval({device_put(2 * ones({device_count()}), by_rows())});
  EXPECT_THAT(error_of<IoError>([&] { sparse::load_matrix_market(path, by_rows()); }),
              HasSubstr("says that it holds 3 entries, and has 2"));
  if (process_index() == 0) std::remove(path.c_str());
}

TEST(Csr, errors_name_the_shapes_and_the_entry) {
  const auto a = scattered_matrix(6, 4, by_rows());
  EXPECT_THAT(error_of<ShapeError>([&] { sparse::matmul(a, wave(6)); }),
              HasSubstr("the first dim of x must be the 4 columns"));
  EXPECT_THAT(error_of<ShapeError>([&] {
                (void)a.with_values(ones({1, 1}));
              }),
              HasSubstr("the matrix stores"));
  const auto one = array<std::int64_t>({0}), nine = array<std::int64_t>({9});
  EXPECT_THAT(error_of<IndexError>([&] {
                (void)sparse::from_coordinates({3, 3}, one, nine, ones({1}), by_rows());
              }),
              HasSubstr("the entry at (0, 9) lies outside of a matrix of shape (3, 3)"));
  EXPECT_THAT(error_of<ShapeError>([&] {
                (void)sparse::from_coordinates({3, 3, 3}, one, one, ones({1}), by_rows());
              }),
              HasSubstr("is no matrix's"));
  EXPECT_THAT(error_of<DtypeError>([&] {
                (void)sparse::from_coordinates({3, 3}, ones({1}), one, ones({1}), by_rows());
              }),
              HasSubstr("must be integers"));
  EXPECT_THAT(
      error_or<ShardingError>(
          "nothing was thrown",
          [&] {
            (void)sparse::from_coordinates({3, 3}, one, one, ones({1}), NamedSharding(line(), P(None, "x")));
          }),
      device_count() > 1 ? HasSubstr("the sharding splits columns") : HasSubstr(""));
  EXPECT_THAT(error_of<IndexError>([&] {
                (void)sparse::from_rows({30, 3}, by_rows(), [](Range) {
                  return sparse::Entries{{31}, {0}, HostArray(std::vector<double>{1}, {1})};
                });
              }),
              HasSubstr("the function gave an entry of row 31"));
}

}  // namespace
}  // namespace tessera::test
