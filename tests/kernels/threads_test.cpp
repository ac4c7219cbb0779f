// Kernels write the same bits with one, two and three threads.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "kernels/dense/convolve.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/panel_product.hpp"
#include "kernels/elementwise/fused.hpp"
#include "kernels/factor/lapack.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "kernels/random/draws.hpp"
#include "kernels/random/rejection.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/sort/sort.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using testing::random_values;
using Out = std::vector<std::byte>;

struct Threads {
  explicit Threads(int count) { set_threads(count); }
  ~Threads() { set_threads(1); }
};

// work(out) must write all of `bytes`.
void expect_same_bits(const char* what, std::int64_t bytes, const std::function<void(std::byte*)>& work) {
  Out by_one(static_cast<std::size_t>(bytes), std::byte{0xEE});
  work(by_one.data());
  for (const int count : {2, 3}) {
    const Threads threads(count);
    Out by_several(by_one.size(), std::byte{0x11});
    work(by_several.data());
    EXPECT_EQ(std::memcmp(by_one.data(), by_several.data(), by_one.size()), 0) << what << " by " << count;
  }
}

template <class T> void expect_same_reductions(const Shape& shape, const std::vector<int>& axes) {
  const auto x = random_values<T>(shape.elements());
  std::int64_t kept = 1;
  for (int d = 0; d < shape.ndim(); ++d)
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) kept *= shape[d];
  for (const ReduceKind kind :
       {ReduceKind::sum, ReduceKind::prod, ReduceKind::max, ReduceKind::count_nonzero})
    expect_same_bits(name(kind),
                     kept * static_cast<std::int64_t>(itemsize(reduce_result(kind, dtype_of<T>()))),
                     [&](std::byte* out) { reduce(kind, dtype_of<T>(), x.data(), shape, axes, out); });
}

TEST(threads, a_chain_that_fails_on_a_thread_fails_where_it_was_called) {
  FusedProgram program{{{float32}}, {}, {1}};
  program.steps.push_back(
      {[](const void* const*, void*, std::int64_t) { throw std::bad_alloc(); }, float32, {0, 0, 0}, 1});
  const std::vector<float> x(1 << 18);
  std::vector<float> y(x.size());
  const FusedOperand operands[] = {{reinterpret_cast<const std::byte*>(x.data())}};
  std::byte* outputs[] = {reinterpret_cast<std::byte*>(y.data())};
  for (const int count : {1, 2}) {
    const Threads threads(count);
    EXPECT_THROW(run_fused(program, Shape{1 << 18}, operands, outputs), std::bad_alloc);
  }
}

TEST(threads, a_shared_loop_covers_its_range_once) {
  for (const int count : {1, 2, 3, 7}) {
    const Threads threads(count);
    for (const std::int64_t n : {0, 1, 5, 16, 17, 1000})
      for (const std::int64_t step : {1, 16}) {
        std::vector<int> visits(static_cast<std::size_t>(n));
        share(n, 1, step, [&](std::int64_t begin, std::int64_t end) {
          EXPECT_EQ(begin % step, 0);
          for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(visits, std::vector<int>(visits.size(), 1)) << n << " by " << count;
      }
  }
}

TEST(threads, what_a_range_throws_arrives) {
  const Threads threads(2);
  EXPECT_THROW(share(8, 1,
                     [](std::int64_t begin, std::int64_t) {
                       if (begin > 0) throw std::out_of_range("second half");
                     }),
               std::out_of_range);
}

TEST(threads, a_loop_inside_a_loop_stays_on_its_thread) {
  const Threads threads(2);
  share(2, 1, [](std::int64_t, std::int64_t) { EXPECT_EQ(kernels::threads(), 1); });
}

TEST(threads, long_rows_are_summed_in_the_same_tree) {
  for (const std::int64_t n : {65536 * 2, 65536 * 7 + 1, 65536 * 8 + 2048, 1000003}) {
    expect_same_reductions<float>(Shape{n}, {0});
    expect_same_reductions<double>(Shape{2, n / 2}, {1});
  }
  expect_same_reductions<std::complex<float>>(Shape{500009}, {0});
  expect_same_reductions<std::int16_t>(Shape{700001}, {0});
}

TEST(threads, columns_and_middle_dims_are_summed_in_the_same_tree) {
  expect_same_reductions<float>(Shape{40000, 3}, {0});
  expect_same_reductions<float>(Shape{5000, 700}, {0});
  expect_same_reductions<double>(Shape{2, 4097, 129}, {1});
  expect_same_reductions<double>(Shape{60, 50, 40}, {0, 2});
}

TEST(threads, chains_with_a_reduction) {
  const auto a = random_values<float>(1200000);
  FusedProgram program{{{float32}, {float32}}, {}, {2}};
  FusedStep product{map<"multiply">.of(float32), float32, {0, 1, 0}, 2};
  program.steps.push_back(product);
  const auto* data = reinterpret_cast<const std::byte*>(a.data());
  const FusedOperand operands[] = {{data, {}}, {data, {}}};
  for (const Shape& shape : {Shape{1200000}, Shape{400, 3000}, Shape{300000, 4}})
    for (int axis = 0; axis < shape.ndim(); ++axis)
      expect_same_bits("chain", shape.elements() / shape[axis] * 4, [&](std::byte* out) {
        run_fused_reduce(program, shape, operands, ReduceKind::sum, {axis}, out);
      });
}

TEST(threads, copies_transposes_and_fills) {
  const auto x = random_values<double>(600 * 500);
  const auto* from = reinterpret_cast<const std::byte*>(x.data());
  const std::vector<int> turned{1, 0}, middle{0, 2, 1};
  expect_same_bits("transpose", 600 * 500 * 8, [&](std::byte* out) {
    transpose(out, from, Shape{600, 500}, turned, 8);
  });
  expect_same_bits("transpose of planes", 600 * 500 * 8, [&](std::byte* out) {
    transpose(out, from, Shape{3, 200, 500}, middle, 8);
  });
  const std::vector<std::int64_t> dense{500, 1}, flipped{500, -1}, row{0, 1};
  expect_same_bits("flip", 600 * 500 * 8, [&](std::byte* out) {
    copy_strided(out, dense, from + 499 * 8, flipped, Shape{600, 500}, 8);
  });
  expect_same_bits("broadcast", 600 * 500 * 8, [&](std::byte* out) {
    copy_strided(out, dense, from, row, Shape{600, 500}, 8);
  });
  expect_same_bits("fill", 300000 * 8, [&](std::byte* out) { fill(out, &x[1], 8, 300000); });
  expect_same_bits("iota", 300000 * 8, [&](std::byte* out) { iota(float64, out, 300000, 0.5, 0.25); });
}

TEST(threads, gathers_and_updates_of_equal_places_in_order) {
  constexpr std::int64_t n = 200000, extent = 5000;
  const auto x = random_values<float>(n);
  std::vector<std::int64_t> indices(n);
  for (std::int64_t i = 0; i < n; ++i) indices[i] = (i * 7919) % (extent + 3) - 1;  // some outside
  expect_same_bits("gather", n * 4, [&](std::byte* out) {
    gather(out, x.data(), {1, extent, 1}, indices, 4);
  });
  expect_same_bits("gather of rows", n / 50 * 50 * 4, [&](std::byte* out) {
    gather(out, x.data(), {2, 100, 25}, std::span(indices).first(n / 50), 4);
  });
  for (const char* op : {"add", "set", "max"})
    expect_same_bits(op, extent * 40 * 4, [&](std::byte* out) {
      std::memset(out, 0, extent * 40 * 4);
      scatter(op, float32, out, {1, extent * 40, 1}, indices, x.data());
    });
}

TEST(threads, running_sums_of_rows_and_columns) {
  const auto x = random_values<float>(300000);
  for (const int axis : {0, 1})
    expect_same_bits("cumulative", 300000 * 4, [&](std::byte* out) {
      cumulative(ReduceKind::sum, false, float32, x.data(), Shape{600, 500}, axis, out);
    });
}

TEST(threads, places_of_the_largest) {
  auto x = random_values<float>(1 << 20);
  x[700000] = x[900000] = 9;
  for (const Shape& shape : {Shape{1, 1 << 20}, Shape{1024, 1024}})
    for (const int axis : {0, 1})
      expect_same_bits("arg_reduce", (1 << 20) / shape[axis] * 8, [&](std::byte* out) {
        arg_reduce(true, float32, x.data(), shape, axis, 0, nullptr, reinterpret_cast<std::int64_t*>(out));
      });
}

TEST(threads, runs_are_merged_as_by_one) {
  constexpr std::int64_t n = 300'000;
  auto keys = random_values<float>(n);
  const std::int64_t offsets[] = {0, 100'001, 100'001, 270'000, n};
  for (std::size_t r = 0; r + 1 < std::size(offsets); ++r)
    std::sort(keys.begin() + offsets[r], keys.begin() + offsets[r + 1]);
  std::vector<std::int64_t> from(n), to(n);
  std::iota(from.begin(), from.end(), 0);
  std::vector<float> merged(n);
  expect_same_bits("keys", n * 4, [&](std::byte* out) {
    merge_runs(float32, keys.data(), nullptr, offsets, {}, out, nullptr);
  });
  expect_same_bits("payload", n * 8, [&](std::byte* out) {
    merge_runs(float32, keys.data(), from.data(), offsets, {}, merged.data(), to.data());
    std::memcpy(out, to.data(), n * 8);
  });
  EXPECT_TRUE(std::is_sorted(merged.begin(), merged.end()));
}

TEST(threads, lines_are_convolved_as_by_one) {
  const ConvolveShape shape{float32, 2, 1, 2, 1, {{5, 5, 3, 1, 1, -1}, {20'001, 20'001, 9, 1, 1, -4}}};
  const auto x = random_values<float>(2 * 2 * 5 * 20'001), w = random_values<float>(2 * 3 * 9, 2);
  expect_same_bits("lines", 2 * 5 * 20'001 * 4, [&](std::byte* out) {
    convolve(shape, reinterpret_cast<const std::byte*>(x.data()),
             reinterpret_cast<const std::byte*>(w.data()), out);
  });
}

TEST(threads, sorting_is_stable) {
  auto x = random_values<float>(300000);
  for (std::size_t i = 0; i < x.size(); i += 2) x[i] = x[i / 1000];  // many equals
  const auto whole = random_values<std::int32_t>(300000);
  for (const std::int64_t rows : {1, 3, 1500}) {
    expect_same_bits("sort", 300000 * 4,
                     [&](std::byte* out) { sort_rows(float32, x.data(), rows, 300000 / rows, {}, out); });
    expect_same_bits("sort of integers", 300000 * 4, [&](std::byte* out) {
      sort_rows(int32, whole.data(), rows, 300000 / rows, {true}, out);
    });
    expect_same_bits("argsort", 300000 * 8, [&](std::byte* out) {
      argsort_rows(float32, x.data(), rows, 300000 / rows, {}, reinterpret_cast<std::int64_t*>(out));
    });
  }
  auto sorted = x;
  std::sort(sorted.begin(), sorted.end());
  expect_same_bits("searchsorted", 300000 * 8, [&](std::byte* out) {
    searchsorted(float32, sorted.data(), 300000, x.data(), 300000, false,
                 reinterpret_cast<std::int64_t*>(out));
  });
  expect_same_bits("top_k", 100 * 5 * 8, [&](std::byte* out) {
    top_k_rows(float32, x.data(), 100, 3000, 5, nullptr, reinterpret_cast<std::int64_t*>(out));
  });
}

TEST(threads, draws_are_those_of_the_positions) {
  const std::vector<Words> one{{1, 2}}, several{{1, 2}, {3, 4}, {5, 6}};
  const Shape global{300, 400};
  const Box box{{10, 290}, {3, 399}};
  const std::int64_t elements = box_elements(box);
  for (const auto& keys : {one, several})
    for (const Threefry mode : {Threefry::partitionable, Threefry::original}) {
      const DrawBlock draw{keys, box, global, mode};
      const std::int64_t all = elements * static_cast<std::int64_t>(keys.size());
      expect_same_bits("bits", all * 2, [&](std::byte* out) { draw_bits(draw, uint16, out); });
      expect_same_bits("uniform", all * 4, [&](std::byte* out) { draw_uniform(draw, float32, -1, 1, out); });
      expect_same_bits("normal", all * 8,
                       [&](std::byte* out) { draw_normal(draw, float64, after_minus_one(float64), 1, out); });
      expect_same_bits("integers", all * 4, [&](std::byte* out) { draw_integers(draw, int32, -5, 11, out); });
    }
}

TEST(threads, draws_by_rejection_count_the_same_rounds) {
  const std::vector<Words> keys{{1, 2}, {3, 4}};
  const Shape global{200, 250};
  const Box box{{0, 200}, {0, 250}};
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}}) {
    const DrawBlock draw{std::span(keys).first(count), box, global};
    const auto all = box_elements(box) * static_cast<std::int64_t>(count);
    std::vector<float> lambda(static_cast<std::size_t>(all));
    for (std::size_t i = 0; i < lambda.size(); ++i) lambda[i] = static_cast<float>(i % 40) + 0.5f;
    expect_same_bits("gamma", all * 4, [&](std::byte* out) {
      draw_gamma(draw, float32, GammaSpace::linear, lambda.data(), out);
    });
    expect_same_bits("poisson", all * 4, [&](std::byte* out) {
      std::vector<std::int32_t> rounds(count);
      count_rounds_poisson(draw, lambda.data(), rounds.data());
      draw_poisson(draw, lambda.data(), rounds.data(), int32, out);
    });
  }
}

TEST(threads, products_of_whole_numbers_are_exact) {
  constexpr std::int64_t m = 300, n = 260, k = 120;
  std::vector<double> a(m * k), b(k * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i % 17) - 8;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i % 13) - 6;
  for (const bool transposed : {false, true})
    expect_same_bits("gemm", m * n * 8, [&](std::byte* out) {
      gemm({float64,
            m,
            n,
            k,
            {a.data(), transposed ? m : k, transposed},
            {b.data(), transposed ? k : n, transposed},
            out,
            n});
    });
  const auto whole = random_values<std::int32_t>(m * k);
  expect_same_bits("gemm of integers", m * m * 4, [&](std::byte* out) {
    gemm({int32, m, m, k, {whole.data(), k}, {whole.data(), k, true}, out, m});
  });
  expect_same_bits("products of a batch", 64 * 40 * 40 * 8, [&](std::byte* out) {
    gemm_batched({float64, 64, 40, 40, 10, {a.data(), 400}, {b.data(), 400}, out});
  });
}

// Concurrent calls of BLAS: a BLAS without locks sometimes packs operands over each other.
TEST(threads, products_at_once_do_not_meet) {
  constexpr std::int64_t batch = 64, n = 40;
  const auto a = random_values<double>(batch * n * n), b = random_values<double>(batch * n * n, 2);
  for (int again = 0; again < 40; ++again)
    expect_same_bits("products of a batch", batch * n * n * 8, [&](std::byte* out) {
      gemm_batched({float64, batch, n, n, n, {a.data(), n * n}, {b.data(), n * n}, out});
    });
}

TEST(threads, panels_are_summed_as_by_one) {
  constexpr std::int64_t m = 500, n = 333, k = 300;
  const auto a = random_values<double>(m * k), b = random_values<double>(k * n, 2);
  expect_same_bits("product", m * n * 8, [&](std::byte* out) {
    product<double>(m, n, k, -1.0, {a.data(), 1, m}, {b.data(), 1, k}, false, reinterpret_cast<double*>(out),
                    m);
  });
}

TEST(threads, systems_are_solved_as_by_one) {
  for (const auto& [batch, n] : {std::pair<std::int64_t, std::int64_t>{500, 8}, {40, 48}, {1, 600}}) {
    auto a = random_values<double>(batch * n * n);
    const auto b = random_values<double>(batch * n, 2);
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t j = 0; j < n; ++j) a[i * n * n + j * n + j] += 2.0 * static_cast<double>(n);
    expect_same_bits("solve", batch * n * 8, [&, batch = batch, n = n](std::byte* out) {
      EXPECT_FALSE(solve(float64, batch, n, 1, a.data(), b.data(), out).happened());
    });
  }
}

TEST(threads, one_matrix_is_factored_as_by_one) {
  constexpr std::int64_t n = 700;
  auto a = random_values<double>(n * n);
  expect_same_bits("qr", 2 * n * n * 8,
                   [&](std::byte* out) { qr(float64, 1, n, n, false, a.data(), out, out + n * n * 8); });
  for (std::int64_t i = 0; i < n; ++i) a[i * n + i] += 2.0 * n;
  expect_same_bits("cholesky", n * n * 8,
                   [&](std::byte* out) { EXPECT_FALSE(cholesky(float64, 1, n, a.data(), out).happened()); });
}

TEST(threads, the_first_singular_matrix_of_a_batch_is_named) {
  const Threads threads(3);
  constexpr std::int64_t batch = 60, n = 40;
  std::vector<double> a(batch * n * n, 0.0), b(batch * n, 1.0), x(batch * n);
  for (std::int64_t i = 0; i < batch; ++i)
    for (std::int64_t j = 0; j < n; ++j) a[i * n * n + j * n + j] = i >= 23 && j == 5 ? 0 : 1;
  const Breakdown breakdown = solve(float64, batch, n, 1, a.data(), b.data(), x.data());
  EXPECT_EQ(breakdown.matrix, 23);
  EXPECT_EQ(breakdown.index, 5);
}

}  // namespace
}  // namespace tessera::kernels
