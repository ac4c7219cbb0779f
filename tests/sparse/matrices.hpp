// Matrices used by the tests of this folder, and their dense forms.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/sparse/krylov.hpp>
#include <tessera/transforms.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "support/compare.hpp"
#include "support/errors.hpp"

namespace tessera::test {

inline Mesh line() { return make_mesh({device_count()}, {"x"}); }
inline Sharding by_rows() { return NamedSharding(line(), P("x")); }

// -u'' on a grid of side x side points, split by rows of the grid.
inline sparse::Csr laplacian(std::int64_t side, const Sharding& sharding, double shift = 0) {
  const auto entries = [&](Range rows) {
    sparse::Entries e;
    std::vector<double> values;
    const auto add = [&](std::int64_t row, std::int64_t column, double value) {
      e.rows.push_back(row), e.columns.push_back(column), values.push_back(value);
    };
    for (auto row = rows.start; row < rows.stop; ++row) {
      const auto i = row / side, j = row % side;
      if (i > 0) add(row, row - side, -1);
      if (j > 0) add(row, row - 1, -1);
      add(row, row, 4 + shift);
      if (j + 1 < side) add(row, row + 1, -1);
      if (i + 1 < side) add(row, row + side, -1);
    }
    const auto n = static_cast<std::int64_t>(values.size());
    e.values = HostArray(std::move(values), Shape{n});
    return e;
  };
  return sparse::from_rows({side * side, side * side}, sharding, entries);
}

// Entries at (i, 3 i + 1), (i, 5 i + 2), (i, i) modulo the columns; one of them is duplicated.
struct Scattered {
  std::vector<std::int64_t> rows, columns;
  std::vector<double> values;
};
inline Scattered scattered(std::int64_t m, std::int64_t n) {
  Scattered s;
  for (std::int64_t i = 0; i < m; ++i)
    for (const auto j : {3 * i + 1, 5 * i + 2, i, i}) {
      s.rows.push_back(i);
      s.columns.push_back(j % n);
      s.values.push_back(std::sin(static_cast<double>(i * 7 + j)) + 1.5);
    }
  return s;
}
inline sparse::Csr scattered_matrix(std::int64_t m, std::int64_t n, const Sharding& sharding) {
  const auto s = scattered(m, n);
  return sparse::from_coordinates({m, n}, array(s.rows), array(s.columns), array(s.values), sharding);
}
inline Array scattered_dense(std::int64_t m, std::int64_t n) {
  const auto s = scattered(m, n);
  std::vector<double> dense(static_cast<std::size_t>(m * n), 0);
  for (std::size_t k = 0; k < s.rows.size(); ++k) dense[s.rows[k] * n + s.columns[k]] += s.values[k];
  return array(dense, {m, n});
}

inline Array wave(std::int64_t n) { return cos(arange(n) * 0.7) + astype(arange(n), float64) * 0.01; }

}  // namespace tessera::test
