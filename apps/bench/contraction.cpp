// Products of one rank beside BLAS; products of two ranks beside one.
#include <cblas.h>

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
                   0.97}});
}

void rows() {
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
