// Ops other than products and transforms: each compared with a plain loop, or std::sort, on one rank, and
// with one rank on several.
#include <tessera/debug.hpp>
#include <tessera/jit.hpp>
#include <tessera/linalg.hpp>
#include <tessera/ops/numpy.hpp>
#include <tessera/ops/reproducible.hpp>
#include <tessera/random.hpp>
#include <tessera/sparse.hpp>

#include <algorithm>
#include <numeric>
#include <span>

#include "bench.hpp"

namespace {

using namespace tessera;

constexpr std::int64_t many = std::int64_t{16} << 20;
constexpr std::int64_t side = 4096;  // rows and columns of the plate
constexpr int bins = 256, taps = 15;

Array random_floats(Shape shape) { return random::uniform(random::key(1), std::move(shape)); }

using Function = std::function<Array(const Array&)>;
// The same step as a plain loop over this rank's block.
using Loop = std::function<void(std::span<const float>)>;

// f of x split along its first dim: two ranks compared with one, and one with the loop.
void row(const std::string& name, const Array& values, const Function& f, const std::string& loop_name,
         const Loop& loop) {
  const Array x = device_put(values, bench::split(P("x")));
  eval(x);
  const auto ours = [&] { eval(f(x)); };
  if (bench::ranks() == 1) {
    bench::compare(name, ours, {{loop_name, [&] { loop(local<float>(x)); }, 0.9}}, 7);
    return;
  }
  const Array alone = device_put(values, bench::on_one());
  eval(alone);
  bench::compare(name, ours, {{"one rank", [&] { eval(f(alone)); }, bench::ranks() == 2 ? 1.7 : 0}}, 7);
}

void along_a_line() {
  std::vector<float> out(static_cast<std::size_t>(many));
  if (bench::wanted("cumsum_f32_16Mi"))
    row(
        "cumsum_f32_16Mi", random_floats({many}), [](const Array& x) { return cumsum(x, 0); }, "plain loop",
        [&](std::span<const float> x) {
          float sum = 0;
          for (std::size_t i = 0; i < x.size(); ++i) out[i] = sum += x[i];
        });
  if (bench::wanted("roll_by_1_f32_16Mi"))
    row(
        "roll_by_1_f32_16Mi", random_floats({many}), [](const Array& x) { return roll(x, 1, 0); },
        "std::rotate_copy",
        [&](std::span<const float> x) { std::rotate_copy(x.begin(), x.end() - 1, x.end(), out.begin()); });
  if (bench::wanted("convolve_f32_16Mi"))
    row(
        "convolve_f32_16Mi", random_floats({many}),
        [kernel = random_floats({taps})](const Array& x) { return convolve(x, kernel, "same"); },
        "plain loop",
        [&, kernel = to_vector<float>(random_floats({taps}))](std::span<const float> x) {
          for (std::size_t i = taps / 2; i + taps / 2 < x.size(); ++i) {
            float sum = 0;
            for (std::size_t k = 0; k < taps; ++k) sum += kernel[k] * x[i + taps / 2 - k];
            out[i] = sum;
          }
        });
}

void by_values() {
  if (bench::wanted("argsort_f32_16Mi"))
    row(
        "argsort_f32_16Mi", random_floats({many}), [](const Array& x) { return argsort(x); },
        "std::sort of indices",
        [](std::span<const float> x) {
          std::vector<std::int32_t> order(x.size());
          std::iota(order.begin(), order.end(), 0);
          std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return x[a] < x[b]; });
        });
  if (bench::wanted("sort_f32_16Mi"))
    row(
        "sort_f32_16Mi", random_floats({many}), [](const Array& x) { return sort(x); }, "std::sort",
        [](std::span<const float> x) {
          std::vector<float> sorted(x.begin(), x.end());
          std::sort(sorted.begin(), sorted.end());
        });
  if (bench::wanted("histogram_f32_16Mi"))
    row(
        "histogram_f32_16Mi", random_floats({many}),
        [](const Array& x) {
          return histogram(x, {.bins = bins, .range = std::pair{0.0, 1.0}}).first;
        },
        "plain loop",
        [](std::span<const float> x) {
          std::vector<std::int32_t> counts(bins);
          for (const float v : x) ++counts[std::min(static_cast<int>(v * bins), bins - 1)];
          if (counts[0] < 0) std::abort();  // prevents the compiler from removing the loop
        });
  if (bench::wanted("x_of_mask_f32_16Mi"))
    row(
        "x_of_mask_f32_16Mi", random_floats({many}), [](const Array& x) { return x(x < 0.5f); },
        "std::copy_if",
        [out = std::vector<float>(many)](std::span<const float> x) mutable {
          std::copy_if(x.begin(), x.end(), out.begin(), [](float v) { return v < 0.5f; });
        });
  if (bench::wanted("any_f32_16Mi"))
    row(
        "any_f32_16Mi", random_floats({many}), [](const Array& x) { return any(x > 2.0f); }, "plain loop",
        [](std::span<const float> x) {
          bool found = false;
          for (const float v : x) found |= v > 2.0f;
          if (found) std::abort();
        });
  if (bench::wanted("all_f32_16Mi"))
    row(
        "all_f32_16Mi", random_floats({many}), [](const Array& x) { return all(x < 2.0f); }, "plain loop",
        [](std::span<const float> x) {
          bool holds = true;
          for (const float v : x) holds &= v < 2.0f;
          if (!holds) std::abort();
        });
}

// ---- a stencil of five points on a ring-shaped plate ----

Array sweep(const Array& u) {
  return stencil(
      [](const Neighbours& v) { return v() + 0.2f * (v(1, 0) + v(-1, 0) + v(0, 1) + v(0, -1) - 4.0f * v()); },
      u);
}

void sweep_plainly(std::span<const float> u, std::vector<float>& out) {
  for (std::int64_t i = 0; i < side; ++i) {
    const float* const here = &u[i * side];
    const float* const above = &u[(i == 0 ? side - 1 : i - 1) * side];
    const float* const below = &u[(i + 1 == side ? 0 : i + 1) * side];
    float* const to = &out[i * side];
    const auto at = [&](std::int64_t j, std::int64_t left, std::int64_t right) {
      to[j] = here[j] + 0.2f * (above[j] + below[j] + here[left] + here[right] - 4.0f * here[j]);
    };
    at(0, side - 1, 1);
    for (std::int64_t j = 1; j + 1 < side; ++j) at(j, j - 1, j + 1);
    at(side - 1, side - 2, 0);
  }
}

void plate() {
  if (bench::wanted("stencil_f32_4096x4096")) {
    std::vector<float> out(static_cast<std::size_t>(side * side));
    row("stencil_f32_4096x4096", random_floats({side, side}), jit(sweep), "plain loop",
        [&](std::span<const float> u) { sweep_plainly(u, out); });
  }
  if (bench::wanted("stencil_traffic") && bench::ranks() > 1) {
    const Array u = device_put(random_floats({side, side}), bench::split(P("x")));
    eval(u);
    eval(sweep(u));
    const debug::CommStats stats;
    eval(sweep(u));
    bench::compare_bytes("stencil_traffic", static_cast<double>(stats.bytes()), "two lines",
                         static_cast<double>(2 * side * sizeof(float)));
  }
}

// ---- a sparse matrix times a vector ----

// Entries of the 2-D Laplacian on a grid of side / 2 x side / 2 points, in row order.
sparse::Entries entries_of_laplacian(Range rows) {
  constexpr std::int64_t n = side / 2;
  sparse::Entries e;
  std::vector<double> values;
  for (auto row = rows.start; row < rows.stop; ++row) {
    const auto i = row / n, j = row % n;
    const auto add = [&](bool is_inside, std::int64_t column, double value) {
      if (!is_inside) return;
      e.rows.push_back(row), e.columns.push_back(column), values.push_back(value);
    };
    add(i > 0, row - n, -1);
    add(j > 0, row - 1, -1);
    add(true, row, 4);
    add(j + 1 < n, row + 1, -1);
    add(i + 1 < n, row + n, -1);
  }
  const auto count = static_cast<std::int64_t>(values.size());
  e.values = HostArray(std::move(values), Shape{count});
  return e;
}

// A plain sparse matrix by rows, as one would write it.
struct PlainCsr {
  explicit PlainCsr(const sparse::Entries& e, std::int64_t rows)
      : starts(static_cast<std::size_t>(rows) + 1), columns(e.columns.begin(), e.columns.end()) {
    for (const auto row : e.rows) ++starts[row + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    for (std::size_t k = 0; k < columns.size(); ++k) values.push_back(columns[k] == e.rows[k] ? 4 : -1);
  }
  void times(std::span<const double> x, std::vector<double>& y) const {
    for (std::size_t i = 0; i < y.size(); ++i) {
      double sum = 0;
      for (auto k = starts[i]; k < starts[i + 1]; ++k) sum += values[k] * x[columns[k]];
      y[i] = sum;
    }
  }
  std::vector<std::int64_t> starts;
  std::vector<std::int32_t> columns;
  std::vector<double> values;
};

void sparse_product() {
  if (!bench::wanted("spmv_laplacian_2048x2048")) return;
  constexpr std::int64_t n = side / 2 * (side / 2);
  const auto ones_on = [](const Sharding& sharding) {
    const Array x = device_put(ones({n}, float64), sharding);
    eval(x);
    return x;
  };
  const auto matrix_on = [](const Sharding& sharding) {
    return sparse::from_rows({n, n}, sharding, entries_of_laplacian);
  };
  const auto rows = bench::split(P("x"));
  const auto a = matrix_on(rows);
  const Array x = ones_on(rows);
  const auto ours = [&] { eval(sparse::matmul(a, x)); };
  if (bench::ranks() == 1) {
    const PlainCsr plain(entries_of_laplacian({0, n}), n);
    std::vector<double> y(static_cast<std::size_t>(n));
    bench::compare("spmv_laplacian_2048x2048", ours,
                   {{"plain loop", [&] { plain.times(local<double>(x), y); }, 0.9}}, 7);
    return;
  }
  const auto one = NamedSharding(make_mesh({1}, {"x"}, {devices()[0]}), P("x"));
  const auto alone = matrix_on(one);
  const Array x_alone = ones_on(one);
  bench::compare("spmv_laplacian_2048x2048", ours,
                 {{"one rank", [&] { eval(sparse::matmul(alone, x_alone)); }, bench::ranks() == 2 ? 1.7 : 0}},
                 7);
}

// Compares a run in a ReproducibleScope with one outside; it may take `most` times as long.
void price(const std::string& name, const std::function<Array()>& f, double most) {
  bench::compare(
      name,
      [&] {
        const ReproducibleScope scope;
        eval(f());
      },
      {{"without the scope", [&] { eval(f()); }, 1 / most}}, 7);
}

void same_bits() {
  const auto floats = [](Shape shape, const PartitionSpec& spec) {
    const Array x = device_put(random_floats(std::move(shape)), bench::split(spec));
    eval(x);
    return x;
  };
  if (bench::wanted("same_bits_sum_f32_16Mi")) {
    const Array x = floats({many}, P("x"));
    price(
        "same_bits_sum_f32_16Mi", [&] { return sum(x); }, 1.2);
  }
  if (bench::wanted("same_bits_sum_of_columns_f32_4096")) {
    const Array x = floats({side, side}, P("x"));
    price(
        "same_bits_sum_of_columns_f32_4096", [&] { return sum(x, 0); }, 1.2);
  }
  if (bench::wanted("same_bits_product_f32_2048")) {
    const Array a = floats({side / 2, side / 2}, P("x")), b = floats({side / 2, side / 2}, P());
    price(
        "same_bits_product_f32_2048", [&] { return matmul(a, b); }, 1.15);
  }
  if (bench::wanted("same_bits_product_of_columns_by_rows_f32_2048")) {
    const Array a = floats({side / 2, side / 2}, P(None, "x")),
                b = floats({side / 2, side / 2}, P("x", None));
    price(
        "same_bits_product_of_columns_by_rows_f32_2048", [&] { return matmul(a, b); }, 1.15);
  }
  if (bench::wanted("same_bits_solve_f64_4096")) {
    const Array a = astype(floats({side, side}, P("x")), float64),
                b = astype(floats({side}, P("x")), float64);
    eval(a, b);
    price(
        "same_bits_solve_f64_4096", [&] { return linalg::solve(a, b); }, 1.3);
  }
  if (bench::wanted("same_bits_cg_25_steps_2048x2048")) {
    constexpr std::int64_t n = side / 2 * (side / 2);
    const auto a = sparse::from_rows({n, n}, bench::split(P("x")), entries_of_laplacian);
    const Array b = astype(floats({n}, P("x")), float64);
    eval(b);
    price(
        "same_bits_cg_25_steps_2048x2048", [&] { return sparse::cg(a, b, {.tol = 0, .maxiter = 25}).x; },
        1.1);
  }
}

const bench::Group group([] {
  same_bits();
  along_a_line();
  by_values();
  plate();
  sparse_product();
});

}  // namespace
