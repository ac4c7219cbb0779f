// Sparse matrices: products both ways, and solvers made of them.
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/sparse/krylov.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {
namespace {

// Entries at (i, i), (i, 3 i + 1) and (i, 5 i + 2) modulo the columns, added up; rows over all devices, in the order in which
// x has them.
sparse::Csr scattered(std::int64_t m, std::int64_t n, const Array& x) {
  const auto entries = [n](Range rows) {
    sparse::Entries e;
    std::vector<double> values;
    for (auto i = rows.start; i < rows.stop; ++i)
      for (const auto j : {i, 3 * i + 1, 5 * i + 2}) {
        e.rows.push_back(i), e.columns.push_back(j % n);
        values.push_back(j == i ? 8.0 + static_cast<double>(i % 3)
                                : 0.5 + 0.25 * static_cast<double>((i + j) % 4));
      }
    const auto count = static_cast<std::int64_t>(values.size());
    e.values = HostArray(std::move(values), Shape{count});
    return e;
  };
  const Mesh mesh = make_mesh({device_count()}, {"rows"}, x.sharding().mesh().devices());
  return sparse::from_rows({m, n}, NamedSharding(mesh, P("rows")), entries);
}

}  // namespace

void sparse_samples(Table& t) {
  // The values times a scalar: they are differentiated, too.
  t.add("sparse_products", {{{7}}, {{11}}, {{}, 0.5, 2}}, [](In x) -> Out {
    const auto a = scattered(11, 7, x[0]);
    const auto scaled = a.with_values(a.values() * x[2]);
    return {sparse::matmul(scaled, x[0]), sparse::matmul(scaled.T(), x[1])};
  });
  t.add("sparse_product_of_columns", {{{7, 3}}},
        [](In x) -> Out { return {sparse::matmul(scattered(11, 7, x[0]), x[0])}; });
  t.add("sparse_dense", {{{7}}}, [](In x) -> Out {
    const auto a = scattered(5, 7, x[0]);
    return {sparse::to_dense(a.with_values(a.values() * 2)), sparse::diagonal(a), x[0] * 1};
  });
  t.add_values("sparse_preconditioners", {{{9}}}, [](In x) -> Out {
    const auto a = scattered(9, 9, x[0]);
    return {sparse::jacobi(a)(x[0]), sparse::block_jacobi(a)(x[0])};
  });
}

}  // namespace tessera::test
