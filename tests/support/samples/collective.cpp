// Collectives by axis name.
#include <tessera/collectives.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

// Over all ranks, on equal blocks: as many rows and columns of a 24 x 12 matrix as divide.
void collective_samples(Table& t) {
  const auto row = [&](const char* name, Array (*f)(const Array&), PartitionSpec out,
                       Smooth smooth = Smooth::twice) {
    t.add(
        name, {{{24, 12}}},
        [f, out](In x) -> Out {
          const int n = device_count(), rows = 24 / n * n, columns = 12 / n * n;
          const auto mesh = make_mesh({n}, {"d"}, x[0].sharding().mesh().devices());
          return {shard_map(f, mesh, P("d"), out)(x[0](slice(0, rows), slice(0, columns)))};
        },
        smooth);
  };
  row(
      "psum", [](const Array& x) { return psum(x * x, "d"); }, P());
  row(
      "pmean", [](const Array& x) { return x * pmean(x, "d"); }, P("d"));
  row(
      "pmax", [](const Array& x) { return pmax(x, "d"); }, P(), Smooth::no);
  row(
      "pmin", [](const Array& x) { return pmin(x, "d"); }, P(), Smooth::no);
  row(
      "all_gather", [](const Array& x) { return x * sum(all_gather(sin(x), "d", {.tiled = true}), 0); },
      P("d"));
  row(
      "psum_scatter",
      [](const Array& x) { return psum_scatter(sin(x), "d", {.scatter_dimension = 1, .tiled = true}); },
      P(None, "d"));
  row(
      "all_to_all", [](const Array& x) { return all_to_all(sin(x), "d", 1, 0, {.tiled = true}); },
      P(None, "d"));
  row(
      "ppermute",
      [](const Array& x) {
        std::vector<std::pair<int, int>> ring;
        for (int r = 0; r < device_count(); ++r) ring.emplace_back(r, (r + 1) % device_count());
        return x * ppermute(x, "d", ring);
      },
      P("d"));
  row(
      "pbroadcast", [](const Array& x) { return x * pbroadcast(x, "d", device_count() - 1); }, P("d"));
}

}  // namespace tessera::test
