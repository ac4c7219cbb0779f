// Products of one rank compared with BLAS; products of two ranks compared with one.
#include <cblas.h>

#include <algorithm>

#include "bench.hpp"

namespace {

using namespace tessera;

void local_row(std::int64_t n) {
  const std::string name = "matmul_local_f32_" + std::to_string(n);
  if (!bench::wanted(name) || bench::ranks() > 1) return;
  const Array a = device_put(full({n, n}, 1.25f), bench::on_one()),
              b = device_put(full({n, n}, 0.75f), bench::on_one());
  eval(a, b);
  std::vector<float> x(n * n, 1.25f), y(x.size(), 0.75f), z(x.size());
  const int m = static_cast<int>(n);
  bench::compare(name, [&] { eval(matmul(a, b)); },
                 {{"OpenBLAS sgemm",
                   [&] {
                     cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, m, m, 1, x.data(), m, y.data(),
                                 m, 0, z.data(), m);
                   },
                   0.97,
                   0,
                   0,
                   {},
                   true}});
}

// The scores of attention, with batch and heads split over the ranks, compared with a loop over BLAS whose
// heads are adjacent in memory.
void attention_row() {
  const std::string name = "einsum_bqhd_bkhd_f32_16x512x8x64";
  constexpr int batch = 16, length = 512, heads = 8, depth = 64, row = heads * depth;
  if (!bench::wanted(name)) return;
  const Array q = device_put(full({batch, length, heads, depth}, 0.5f), bench::split(P("x"))),
              k = device_put(full({batch, length, heads, depth}, 0.25f), bench::split(P("x")));
  eval(q, k);
  const auto mine_q = local<float>(q), mine_k = local<float>(k);
  const int mine = static_cast<int>(mine_q.size()) / (length * row);
  std::vector<float> scores(static_cast<std::size_t>(mine) * heads * length * length);
  const auto by_blas = [&] {
    for (int b = 0; b < mine; ++b)
      for (int h = 0; h < heads; ++h) {
        const std::ptrdiff_t at = std::ptrdiff_t{b} * length * row + h * depth;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, length, length, depth, 1, mine_q.data() + at,
                    row, mine_k.data() + at, row, 0,
                    scores.data() + (std::ptrdiff_t{b} * heads + h) * length * length, length);
      }
  };
  bench::compare(name, [&] { eval(einsum("bqhd,bkhd->bhqk", q, k)); }, {{"a loop over sgemm", by_blas, 0.95}},
                 9,
                 {2.0 * batch * heads * length * length * depth, 32, 4.0 * batch * heads * length * length});
}

// A product of three matrices, whose order the library chooses.
void chain_row() {
  const std::string name = "einsum_ij_jk_kl_f32_2048_64_2048";
  if (!bench::wanted(name)) return;
  constexpr std::int64_t n = 2048, middle = 64;
  const Array a = device_put(full({n, n}, 0.5f), bench::split(P("x", None))),
              b = device_put(full({n, middle}, 0.25f), bench::split(P())),
              c = device_put(full({middle, n}, 0.125f), bench::split(P()));
  eval(a, b, c);
  bench::compare(name, [&] { eval(einsum("ij,jk,kl->il", a, b, c)); },
                 {{"two products", [&] { eval(matmul(matmul(a, b), c)); }, 0.95}}, 9,
                 {4.0 * n * n * middle, 32});
}

// A layer: bias and relu in the epilogue of the product, compared with a separate pass (the product's value
// is held), and with BLAS and a loop.
void layer_row(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  const std::string name =
      "layer_f32_" + std::to_string(rows) + "x" + std::to_string(inner) + "x" + std::to_string(columns);
  if (!bench::wanted(name)) return;
  const Array x = device_put(full({rows, inner}, 0.5f), bench::split(P("x", None))),
              w = device_put(full({inner, columns}, 0.25f), bench::split(P())),
              bias = device_put(full({columns}, -3.0f), bench::split(P()));
  eval(x, w, bias);
  const auto mine = local<float>(x), weights = local<float>(w), biases = local<float>(bias);
  const int m = static_cast<int>(static_cast<std::int64_t>(mine.size()) / inner), k = static_cast<int>(inner),
            n = static_cast<int>(columns);
  std::vector<float> out(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
  const auto by_blas = [&] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, mine.data(), k, weights.data(), n, 0,
                out.data(), n);
    for (int i = 0; i < m; ++i) {
      float* const row = out.data() + std::ptrdiff_t{i} * n;
      for (int j = 0; j < n; ++j) row[j] = std::max(row[j] + biases[static_cast<std::size_t>(j)], 0.0f);
    }
  };
  const auto apart = [&] {
    const Array product = matmul(x, w);
    eval(product, maximum(product + bias, 0.0f));
  };
  bench::compare(name, [&] { eval(maximum(matmul(x, w) + bias, 0.0f)); },
                 {{"sgemm and a loop", by_blas, 1.0}, {"two passes", apart, 1.0}}, 9,
                 {2.0 * static_cast<double>(rows * inner * columns), 32});
}

void rows() {
  attention_row();
  chain_row();
  layer_row(4096, 256, 4096);
  layer_row(8192, 784, 2048);
  local_row(512);
  local_row(2048);
  if (bench::wanted("matmul_rows_f32_2048") && bench::ranks() > 1) {
    const std::int64_t n = 2048;
    const Array a = full({n, n}, 1.25f), b = full({n, n}, 0.75f);
    const Array a_rows = device_put(a, bench::split(P("x", None))),
                b_rows = device_put(b, bench::split(P("x", None)));
    const Array a_one = device_put(a, bench::on_one()), b_one = device_put(b, bench::on_one());
    eval(a_rows, b_rows), eval(a_one, b_one);
    bench::compare("matmul_rows_f32_2048", [&] { eval(matmul(a_rows, b_rows)); },
                   {{"one rank", [&] { eval(matmul(a_one, b_one)); }, 0}});
  }
}

const bench::Group group(rows);

}  // namespace
