#include "catalogue/calls.hpp"

namespace tessera::test {

Out parts_of_svd(const Array& x) {
  const auto [u, s, vh] = linalg::svd(x, {.full_matrices = false});
  return {s, abs(u), real(matmul(u * s, vh))};
}

Array on_all_devices(const Array& x) {
  return device_put(x, NamedSharding(make_mesh({device_count()}, {"there"}), P(None, "there")));
}

Out scanned(const Array& xs, const Array& start) {
  const auto step = [](const Array& c, const Array& v) {
    const Array next = tanh(c * v + 0.5);
    return std::pair{next, sum(next) * v};
  };
  const auto [c, ys] = jit([&](const Array& v, const Array& c0) { return scan(step, c0, v); })(xs, start);
  return {c, ys};
}

Out scanned_rows(const Array& xs, const Array& start) {
  const auto step = [](const Array& c, const Array& row) { return std::pair{c * 0.5 + row, c * row}; };
  const auto [c, ys] = jit([&](const Array& v, const Array& c0) { return scan(step, c0, v); })(xs, start);
  return {c, ys};
}

Array relaxed(const Array& x) {
  const auto step = [](const Array& i, const Array& v) { return v * 0.5 + sin(v) / (i + 1.0); };
  return jit([&](const Array& v) { return fori_loop(0, 12, step, v); })(x);
}

Array chosen(const Array& a, const Array& b) {
  const auto f = [](const Array& p, const Array& q) {
    return cond(
        sum(p) > 0.1, [](const Array& u, const Array& v) { return sin(u) * v; },
        [](const Array& u, const Array& v) { return cos(v) - u; }, p, q);
  };
  return jit(f)(a, b);
}

Array grown(const Array& x) {
  const auto grow = [](const Array& v) {
    return while_loop([](const Array& u) { return sum(u * u) < 1000.0; },
                      [](const Array& u) { return u * 1.5; }, v);
  };
  return jit(grow)(x);
}

Array switched(const Array& x, int branch) {
  return switch_(branch,
                 std::tuple{[](const Array& v) { return sin(v); }, [](const Array& v) { return cos(v); },
                            [](const Array& v) { return v * v; }},
                 x);
}

std::vector<std::pair<int, int>> ring_of_devices() {
  std::vector<std::pair<int, int>> ring;
  for (int r = 0; r < device_count(); ++r) ring.emplace_back(r, (r + 1) % device_count());
  return ring;
}

std::function<Array(const Array&)> over_devices(Array (*f)(const Array&), PartitionSpec out) {
  return [f, out](const Array& x) {
    const int n = device_count(), rows = 24 / n * n, columns = 12 / n * n;
    const auto mesh = make_mesh({n}, {"d"}, x.sharding().mesh().devices());
    return shard_map(f, mesh, P("d"), out)(x(slice(0, rows), slice(0, columns)));
  };
}

namespace {

Sharding rows_over_devices_of(const Array& x) {
  return NamedSharding(make_mesh({device_count()}, {"rows"}, x.sharding().mesh().devices()), P("rows"));
}

sparse::Entries entries_of(Range rows, std::int64_t n) {
  sparse::Entries e;
  std::vector<double> values;
  for (auto i = rows.start; i < rows.stop; ++i)
    for (const auto j : {i, 3 * i + 1, 5 * i + 2}) {
      e.rows.push_back(i);
      e.columns.push_back(j % n);
      values.push_back(j == i ? 8.0 + static_cast<double>(i % 3)
                              : 0.5 + 0.25 * static_cast<double>((i + j) % 4));
    }
  const auto count = static_cast<std::int64_t>(values.size());
  e.values = HostArray(std::move(values), Shape{count});
  return e;
}

}  // namespace

sparse::Csr banded(std::int64_t m, std::int64_t n, const Array& x) {
  return sparse::from_rows({m, n}, rows_over_devices_of(x), [n](Range rows) { return entries_of(rows, n); });
}

sparse::Csr from_lists(std::int64_t m, std::int64_t n, const Array& x) {
  const auto e = entries_of({0, m}, n);
  const Shape shape{static_cast<std::int64_t>(e.rows.size())};
  return sparse::from_coordinates({m, n}, array(HostArray(e.rows, shape)), array(HostArray(e.columns, shape)),
                                  array(e.values), rows_over_devices_of(x));
}

sparse::Csr from_dense_of(std::int64_t m, std::int64_t n, const Array& x) {
  return sparse::from_dense(sparse::to_dense(banded(m, n, x)), rows_over_devices_of(x));
}

Array symmetric_banded(std::int64_t n, const Array& x) {
  const Array a = sparse::to_dense(banded(n, n, x));
  return a + transpose(a);
}

}  // namespace tessera::test
