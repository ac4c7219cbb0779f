// solve: batched and distributed, checked by residuals computed in plain loops.
#include <gmock/gmock.h>

#include "linalg/matrices.hpp"

namespace tessera::test {
namespace {

// HPL's: |A x - b| / (eps (|A| |x| + |b|) n) in the infinity norm; it accepts 16.
template <class T> double hpl_residual(const Matrix<T>& a, const Matrix<T>& x, const Matrix<T>& b) {
  const auto ax = product(a, x);
  double worst = 0;
  for (std::int64_t j = 0; j < b.columns; ++j) {
    double residual = 0, norm_x = 0, norm_b = 0, norm_a = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      double row = 0;
      for (std::int64_t k = 0; k < a.columns; ++k) row += std::abs(a(i, k));
      norm_a = std::max(norm_a, row);
      const double r = std::abs(ax(i, j) - b(i, j));
      residual = std::isnan(r) ? std::numeric_limits<double>::infinity() : std::max(residual, r);
      norm_x = std::max<double>(norm_x, std::abs(x(i, j)));
      norm_b = std::max<double>(norm_b, std::abs(b(i, j)));
    }
    if (a.rows > 0)
      worst =
          std::max(worst, residual / (eps<T>() * (norm_a * norm_x + norm_b) * static_cast<double>(a.rows)));
  }
  return worst;
}

template <class T> void expect_solves(std::int64_t n, std::int64_t k, const Sharding& layout,
                                      linalg::SolveOptions options = {}) {
  const auto a = random_matrix<T>(n, n, static_cast<unsigned>(n)), b = random_matrix<T>(n, k, 7);
  const Array x = linalg::solve(device_put(a.array(), layout), device_put(b.array(), layout), options);
  EXPECT_EQ(x.sharding(), layout) << "the solution lies as b";
  EXPECT_LT(hpl_residual(a, matrix_of<T>(x), b), 16)
      << "n=" << n << " k=" << k << " " << text_of(layout) << " block=" << options.block
      << " rows=" << options.grid_rows;
}

TEST(Solve, the_split_matrix_of_any_layout_is_solved) {
  for (const auto& layout : layouts_of_matrices())
    for (const std::int64_t n : {0, 1, 2, 5, 13, 64, 97}) expect_solves<double>(n, 3, layout);
}

TEST(Solve, all_types) {
  for (const auto& layout : layouts_of_matrices())
    for_types(AllTypes{}, [&](auto zero) { expect_solves<decltype(zero)>(37, 2, layout); });
}

TEST(Solve, hpls_small_sizes_blocks_and_grids) {
  const int ranks = device_count();
  const Sharding layout = NamedSharding(make_mesh({ranks}, {"x"}), P("x", None));
  for (std::int64_t n = 29; n <= 35; ++n)
    for (std::int64_t block = 1; block <= 4; ++block)
      for (int rows = 1; rows <= ranks; ++rows)
        if (ranks % rows == 0) expect_solves<double>(n, 1, layout, {.block = block, .grid_rows = rows});
}

TEST(Solve, larger_matrices_on_every_grid) {
  const int ranks = device_count();
  const Sharding layout = NamedSharding(make_mesh({ranks}, {"x"}), P("x", None));
  for (const std::int64_t n : {200, 331})
    for (int rows = 1; rows <= ranks; ++rows)
      if (ranks % rows == 0)
        for (const std::int64_t k : {1, 90})
          expect_solves<double>(n, k, layout, {.block = 24, .grid_rows = rows});
}

TEST(Solve, a_thousand_unknowns) {
  const Sharding layout = NamedSharding(make_mesh({device_count()}, {"x"}), P("x", None));
  expect_solves<double>(1000, 1, layout);
}

TEST(Solve, ranks_outside_of_the_mesh_only_look_on) {
  const auto a = random_matrix<double>(40, 40, 3), b = random_matrix<double>(40, 1, 7);
  const std::vector<Device> all = devices();
  std::vector<Sharding> layouts{SingleDeviceSharding(all[0]), SingleDeviceSharding(all.back())};
  if (all.size() > 2) layouts.push_back(NamedSharding(make_mesh({2}, {"x"}, {all[0], all[1]}), P("x", None)));
  for (const Sharding& layout : layouts) {
    const Array x = linalg::solve(device_put(a.array(), layout), device_put(b.array(), layout));
    eval({x});
    const auto on_all = device_put(x, NamedSharding(make_mesh({device_count()}, {"x"}), P()));
    EXPECT_LT(hpl_residual(a, matrix_of<double>(on_all), b), 16) << text_of(layout);
  }
}

TEST(Solve, many_right_hand_sides_travel_by_columns) {
  for (const auto& layout : layouts_of_matrices()) expect_solves<double>(50, 120, layout, {.block = 8});
}

TEST(Solve, vectors_stay_vectors) {
  const int ranks = device_count();
  const Mesh mesh = make_mesh({ranks}, {"x"});
  const auto a = random_matrix<double>(20, 20, 3), b = random_matrix<double>(20, 1, 4);
  const Array x = linalg::solve(device_put(a.array(), mesh, P("x", None)),
                                device_put(reshape(b.array(), {20}), mesh, P("x")));
  EXPECT_EQ(x.shape(), (Shape{20}));
  EXPECT_EQ(x.sharding(), NamedSharding(mesh, P("x")));
  EXPECT_LT(hpl_residual(a, matrix_of<double>(x), b), 16);
}

TEST(Solve, an_uncommitted_side_goes_where_the_other_is) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const auto a = random_matrix<double>(30, 30, 3), b = random_matrix<double>(30, 4, 4);
  for (const auto& spec : {P("x", None), P(None, "x")}) {
    EXPECT_LT(
        hpl_residual(a, matrix_of<double>(linalg::solve(device_put(a.array(), mesh, spec), b.array())), b),
        16);
    EXPECT_LT(
        hpl_residual(a, matrix_of<double>(linalg::solve(a.array(), device_put(b.array(), mesh, spec))), b),
        16);
  }
}

TEST(Solve, operands_of_different_layouts) {
  const int ranks = device_count();
  if (ranks % 2 != 0) GTEST_SKIP() << "needs a 2-d mesh";
  const Mesh mesh = make_mesh({2, ranks / 2}, {"x", "y"});
  const auto a = random_matrix<double>(30, 30, 3), b = random_matrix<double>(30, 11, 4);
  for (const auto& of_a : {P("x", "y"), P("x", None), P(None, None)})
    for (const auto& of_b :
         {P("y", "x"), P(None, "y"), P("y", None), P(None, axes("y", "x")), P(None, axes("x", "y"))})
      EXPECT_LT(hpl_residual(a,
                             matrix_of<double>(linalg::solve(device_put(a.array(), mesh, of_a),
                                                             device_put(b.array(), mesh, of_b))),
                             b),
                16);
}

// ---- batches ----

template <class T>
void expect_batch_solved(std::int64_t batch, std::int64_t n, std::int64_t k, const Sharding* layout) {
  const auto a = random_values<T>(batch * n * n, 5), b = random_values<T>(batch * n * k, 6);
  Array a_array = array(a, Shape{batch, n, n}), b_array = array(b, Shape{batch, n, k});
  if (layout != nullptr) a_array = device_put(a_array, *layout), b_array = device_put(b_array, *layout);
  const Array solved = linalg::solve(a_array, b_array);
  if (layout != nullptr) {
    EXPECT_EQ(solved.sharding(), *layout);
  }
  const auto x = to_vector<T>(solved);
  for (std::int64_t i = 0; i < batch; ++i) {
    Matrix<T> ai(n, n), bi(n, k), xi(n, k);
    std::copy_n(a.begin() + i * n * n, n * n, ai.values.begin());
    std::copy_n(b.begin() + i * n * k, n * k, bi.values.begin());
    std::copy_n(x.begin() + i * n * k, n * k, xi.values.begin());
    EXPECT_LT(hpl_residual(ai, xi, bi), 16) << "matrix " << i << " of " << batch << ", n=" << n;
  }
}

TEST(Solve, batches_of_small_matrices) {
  for (const std::int64_t n : {1, 2, 3, 7, 16, 31, 32, 33, 50})
    for_types(AllTypes{}, [&](auto zero) { expect_batch_solved<decltype(zero)>(21, n, 2, nullptr); });
  expect_batch_solved<double>(0, 4, 1, nullptr);
  expect_batch_solved<double>(5, 0, 1, nullptr);
  expect_batch_solved<double>(5, 4, 0, nullptr);
}

TEST(Solve, a_batch_with_a_system_that_needs_lapacks_care) {
  std::vector<double> a(9 * 4 * 4), b(9 * 4, 1.0);
  for (std::size_t i = 0; i < 9; ++i)
    for (std::size_t d = 0; d < 4; ++d) a[i * 16 + d * 5] = i == 6 ? 1e-308 : 2.0;  // a subnormal pivot
  const auto x = to_vector<double>(linalg::solve(array(a, Shape{9, 4, 4}), array(b, Shape{9, 4})));
  for (std::size_t i = 0; i < 9; ++i)
    for (std::size_t d = 0; d < 4; ++d) EXPECT_DOUBLE_EQ(x[i * 4 + d], 1.0 / a[i * 16 + d * 5]);
}

TEST(Solve, split_batches_stay_where_they_are) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Sharding layout = NamedSharding(mesh, P("x"));
  for (const std::int64_t batch : {1, 5, 24}) expect_batch_solved<double>(batch, 6, 2, &layout);
}

TEST(Solve, batch_and_matrix_dims_split_together) {
  const int ranks = device_count();
  if (ranks < 4 || ranks % 2 != 0) GTEST_SKIP() << "needs a 2-d mesh";
  const Mesh mesh = make_mesh({2, ranks / 2}, {"x", "y"});
  for (const auto& spec : {P("x", "y"), P("x", None, "y"), P("y", "x")})
    for (const std::int64_t batch :
         {1, 2, 3, 17}) {  // few: ranks factor a matrix together; many: scattered over ranks
      const Sharding layout = NamedSharding(mesh, spec);
      expect_batch_solved<double>(batch, 9, 2, &layout);
    }
}

TEST(Solve, batch_dims_broadcast) {
  const auto a = random_matrix<double>(4, 4, 1);
  const auto b = random_values<double>(3 * 4 * 2, 2);
  const auto x = to_vector<double>(linalg::solve(a.array(), array(b, Shape{3, 4, 2})));
  for (std::size_t i = 0; i < 3; ++i) {
    Matrix<double> bi(4, 2), xi(4, 2);
    std::copy_n(b.begin() + static_cast<std::ptrdiff_t>(i * 8), 8, bi.values.begin());
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(i * 8), 8, xi.values.begin());
    EXPECT_LT(hpl_residual(a, xi, bi), 16);
  }
}

// ---- errors ----

template <class F> std::string linalg_error(F&& f) {
  try {
    f();
  } catch (const LinAlgError& error) {
    return error.what();
  }
  return "";
}

TEST(Solve, a_singular_split_matrix_is_an_error_on_every_rank_with_the_pivot) {
  auto a = random_matrix<double>(12, 12, 3);
  for (std::int64_t j = 0; j < 12; ++j) a(7, j) = 0;
  for (const auto& layout : layouts_of_matrices()) {
    const auto text = linalg_error([&] {
      eval({linalg::solve(device_put(a.array(), layout), ones({12, 1}, float64))});
    });
    if (!takes_part(layout)) continue;
    EXPECT_NE(text.find("is singular: pivot "), std::string::npos) << text;
    EXPECT_NE(text.find("solve"), std::string::npos) << text;
  }
}

TEST(Solve, the_singular_matrix_of_a_batch_is_named_by_its_global_place) {
  std::vector<double> a(6 * 2 * 2);
  for (std::size_t i = 0; i < 6; ++i) a[i * 4] = a[i * 4 + 3] = i == 4 ? 0.0 : 1.0;
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const auto text = linalg_error([&] {
    eval({linalg::solve(device_put(array(a, Shape{6, 2, 2}), mesh, P("x")), ones({6, 2, 1}, float64))});
  });
  EXPECT_NE(text.find("matrix (4) of the batch is singular: pivot 0"), std::string::npos) << text;
}

TEST(Solve, nan_comes_out_as_nan_and_nothing_hangs) {
  for (const auto& layout : layouts_of_matrices()) {
    auto a = random_matrix<double>(17, 17, 3);
    a(4, 2) = std::numeric_limits<double>::quiet_NaN();
    const auto x = matrix_of<double>(linalg::solve(device_put(a.array(), layout), ones({17, 1}, float64)));
    EXPECT_TRUE(std::all_of(x.values.begin(), x.values.end(), [](double v) { return std::isnan(v); }))
        << text_of(layout);
  }
}

TEST(Solve, shapes_that_do_not_fit_are_named) {
  EXPECT_THROW(linalg::solve(zeros({3, 4}), zeros({3})), ShapeError);
  EXPECT_THROW(linalg::solve(zeros({3, 3}), zeros({4})), ShapeError);
  EXPECT_THROW(linalg::solve(zeros({3}), zeros({3})), ShapeError);
  EXPECT_THROW(linalg::solve(zeros({2, 3, 3}), zeros({5, 3, 1})), ShapeError);
}

TEST(Solve, refinement_reaches_double_precision_with_a_single_precision_factor) {
  for (const auto& layout : layouts_of_matrices()) expect_solves<double>(40, 2, layout, {.refine = true});
}

TEST(Solve, refinement_refuses_a_singular_matrix_as_the_plain_solve_does) {
  auto a = random_matrix<double>(12, 12, 1);
  for (int j = 0; j < 12; ++j) a(j, 3) = 0;
  const auto b = random_matrix<double>(12, 1, 2);
  for (const auto& layout : layouts_of_matrices())
    for (const bool refine : {false, true}) {
      const Array x = linalg::solve(device_put(a.array(), layout), b.array(), {.refine = refine});
      const std::string text = linalg_error([&] { eval({x}); });
      if (!takes_part(layout)) continue;
      EXPECT_THAT(text, testing::HasSubstr(refine ? "singular: pivot 3" : "singular: pivot "))
          << text_of(layout) << " refine " << refine;
    }
  const Array stacked = linalg::solve(stack({eye(12, float64), a.array()}), b.array(), {.refine = true});
  EXPECT_THAT(linalg_error([&] { eval({stacked}); }), testing::HasSubstr("pivot 3"));
}

}  // namespace
}  // namespace tessera::test
