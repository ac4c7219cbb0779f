// Moving data: from rows to columns, compared with hand-written MPI.
#include <cstring>

#include "base/settings.hpp"
#include "bench.hpp"
#include "raw_mpi.hpp"

namespace {

using namespace tessera;

// Rank r holds rows [r b, (r+1) b) of an n x n matrix and wants columns [r b, (r+1) b); b = n / ranks.
struct RowsToColumns {
  explicit RowsToColumns(int n)
      : n(n),
        p(bench::ranks()),
        b(n / p),
        from(static_cast<std::size_t>(n) * static_cast<std::size_t>(b), 1.0),
        to(from.size()),
        packed(from.size()) {}
  int n, p, b;
  std::vector<double> from, to, packed;

  void alltoallw() { bench::raw::rows_to_columns(from.data(), n, b, to.data()); }
  void pack_alltoallv() {
    const std::size_t row = b * sizeof(double);
    double* out = packed.data();
    for (int r = 0; r < p; ++r)
      for (int i = 0; i < b; ++i, out += b)
        std::memcpy(out, from.data() + static_cast<std::ptrdiff_t>(i) * n + r * b, row);
    std::vector<int> counts(p, b * b), offsets(p);
    for (int r = 0; r < p; ++r) offsets[r] = r * b * b;
    // The data from rank r are its rows of this rank's columns: already in place.
    bench::raw::all_to_all(packed.data(), counts, offsets, to.data());
  }
};

void rows() {
  constexpr int n = 8192;
  if (!bench::wanted("reshard_f64_8192x8192") || bench::ranks() < 2 || n % bench::ranks() != 0) return;
  const Array x = device_put(ones({n, n}, float64), bench::split(P("x", None)));
  eval(x);
  RowsToColumns raw(n);
  const auto columns = bench::split(P(None, "x"));
  bench::compare("reshard_f64_8192x8192", [&] { eval(device_put(x, columns)); },
                 {{"MPI_Alltoallw", [&] { raw.alltoallw(); }, 1},
                  {"pack + MPI_Alltoallv", [&] { raw.pack_alltoallv(); }, 1}},
                 7, {0, 64, 16.0 * n * n});
}

// The cost of the hash that detects data that differ between ranks: computed while the data are copied in.
void entered_data_row() {
  const std::string name = "array_of_64_MiB_from_memory";
  if (!bench::wanted(name) || bench::ranks() < 2) return;
  constexpr int n = 16 << 20;
  const std::vector<float> values(n, 1.5f);
  std::vector<float> copy(n);
  const auto enter = [&] { (void)array(values); };
  bench::compare(
      name, enter,
      {{"TESSERA_CHECK_DATA=0",
        [&] {
          const SettingScope unchecked("TESSERA_CHECK_DATA", "0");
          enter();
        },
        0.6},
       {"memcpy", [&] { std::memcpy(copy.data(), values.data(), n * sizeof(float)); }, 0, 0, 0, {}, true}},
      9, {0, 32, 8.0 * n});
}

const bench::Group group(rows);
const bench::Group entered_data(entered_data_row);

}  // namespace
