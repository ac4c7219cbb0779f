// Square products on each of the 16 pairs of layouts {row, column, block, replicated}, compared with
// ScaLAPACK's pdgemm at its best block size and grid and with one rank's dgemm; their memory; and the
// predicted against the measured order of the algorithms. Then the shapes of COSMA's tests, and a batch.
#include <cblas.h>
#include <malloc.h>
#include <unistd.h>

#include <tessera/ops/products.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>

#include "bench.hpp"
#include "pdgemm.hpp"
#include "raw_mpi.hpp"
#include "types/buffer.hpp"

namespace {

using namespace tessera;

struct Layout {
  std::string name;
  PartitionSpec spec;
};
Mesh grid() {
  int rows = 1;
  for (int d = 2; d * d <= bench::ranks(); ++d)
    if (bench::ranks() % d == 0) rows = d;
  return make_mesh({rows, bench::ranks() / rows}, {"x", "y"});
}
const std::vector<Layout>& layouts() {
  static const std::vector<Layout> list = {{"row", P(axes("x", "y"), None)},
                                           {"column", P(None, axes("x", "y"))},
                                           {"block", P("x", "y")},
                                           {"replicated", P()}};
  return list;
}
int cores() { return std::min(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), bench::ranks()); }

template <class Use> void for_each_pair(const std::string& prefix, Use&& use) {
  for (const auto& of_a : layouts())
    for (const auto& of_b : layouts())
      if (const auto name = prefix + of_a.name + "_" + of_b.name; bench::wanted(name)) use(name, of_a, of_b);
}

// Runs work on rank 0 while the others sleep: waiting inside MPI they would use its core.
void alone(const bench::Work& work) {
  if (bench::rank() == 0) work();
  bench::raw::sleeping_barrier();
}

template <class T> bench::Work gemm_on_one_rank(bench::ProductSize size, int times = 1) {
  const auto m = std::size_t(size.m), n = std::size_t(size.n), k = std::size_t(size.k);
  const bool mine = bench::rank() == 0;
  const auto a = std::make_shared<std::vector<T>>(mine ? m * k : 0, T(0.5)),
             b = std::make_shared<std::vector<T>>(mine ? k * n : 0, T(0.25)),
             c = std::make_shared<std::vector<T>>(mine ? m * n : 0, T(0));
  return [=] {
    alone([&] {
      const auto of_a = size.transposes_a ? CblasTrans : CblasNoTrans;
      const int lda = size.transposes_a ? size.m : size.k;
      for (int i = 0; i < times; ++i)
        if constexpr (sizeof(T) == 8)
          cblas_dgemm(CblasRowMajor, of_a, CblasNoTrans, size.m, size.n, size.k, 1, a->data(), lda, b->data(),
                      size.n, 0, c->data(), size.n);
        else
          cblas_sgemm(CblasRowMajor, of_a, CblasNoTrans, size.m, size.n, size.k, 1, a->data(), lda, b->data(),
                      size.n, 0, c->data(), size.n);
    });
  };
}

void speed_rows(int n) {
  std::shared_ptr<bench::Pdgemm> pdgemm;
  bench::Work dgemm;
  for_each_pair(
      "product_f64_" + std::to_string(n) + "_", [&](const auto& name, const auto& of_a, const auto& of_b) {
        if (!pdgemm) pdgemm = bench::best_pdgemm({n, n, n}), dgemm = gemm_on_one_rank<double>({n, n, n});
        const Array a = device_put(full({n, n}, 0.5, float64), grid(), of_a.spec),
                    b = device_put(full({n, n}, 0.25, float64), grid(), of_b.spec);
        eval(a, b);
        bench::compare(
            name, [&] { eval(matmul(a, b)); },
            {{pdgemm->name(), [&] { pdgemm->work(); }, 1.25}, {"one rank's dgemm", dgemm, 0.92 * cores()}},
            n > 2048 ? 3 : 5, {2.0 * n * n * n});
      });
}

// ---- memory ----

double kilobytes_of(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == key) {
      double value = 0;
      status >> value;
      return value;
    }
  return 0;
}
// Resets the recorded peak memory. False if the system does not support it.
bool reset_high_water_mark() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

void memory_rows(int n) {
  bool warm = false;
  for_each_pair("product_memory_f64_" + std::to_string(n) + "_",
                [&](const auto& name, const auto& of_a, const auto& of_b) {
                  const auto blocks = [&](const Layout& layout, int size, double value) {
                    return device_put(full({size, size}, value, float64), grid(), layout.spec);
                  };
                  // A first product, so that allocations of BLAS and MPI are not counted.
                  if (!warm) eval(matmul(blocks(layouts()[0], 1024, 0.5), blocks(layouts()[1], 1024, 0.25)));
                  warm = true;
                  release_pooled_memory();
                  malloc_trim(0);
                  const double before = kilobytes_of("VmRSS:");
                  const Array a = blocks(of_a, n, 0.5), b = blocks(of_b, n, 0.25);
                  eval(a, b);
                  if (!reset_high_water_mark()) return;
                  const Array c = matmul(a, b);
                  eval(c);
                  double asked = 0;
                  for (const Array& array : {a, b, c})
                    asked += 8. * static_cast<double>(array.sharding().shard_shape(array.shape()).elements());
                  bench::compare_bytes(name, 1024 * (kilobytes_of("VmHWM:") - before),
                                       "operands + result + 15 %", 1.15 * asked);
                });
}

// ---- predicted and measured order of the algorithms ----

constexpr std::pair<ProductAlgorithm, const char*> algorithms[] = {
    {ProductAlgorithm::whole, "whole"},
    {ProductAlgorithm::inner_panels, "inner"},
    {ProductAlgorithm::row_panels, "rows"},
    {ProductAlgorithm::column_panels, "columns"},
    {ProductAlgorithm::inner_shared, "inner shared"}};

struct Measured {
  std::string name;
  double predicted_s, seconds;
};

// Lists pairs of algorithms with a wrong predicted order that differ by more than a tenth.
void print_ranking(const std::string& name, const std::vector<Measured>& list) {
  if (bench::rank() != 0) return;
  int misses = 0, pairs = 0;
  std::string text;
  for (const auto& one : list) {
    char words[80];
    std::snprintf(words, sizeof words, "  %s %.1f (%.1f) ms", one.name.c_str(), one.seconds * 1e3,
                  one.predicted_s * 1e3);
    text += words;
    for (const auto& other : list)
      if (one.seconds * 1.1 < other.seconds) {
        ++pairs;
        misses += one.predicted_s > other.predicted_s * 1.001 ? 1 : 0;
      }
  }
  std::printf("%-40s %2d ranks  %d of %d in another order than predicted; measured (predicted):%s\n",
              name.c_str(), bench::ranks(), misses, pairs, text.c_str());
  std::fflush(stdout);
}

void ranking_rows(int n) {
  for_each_pair("product_ranking_f64_" + std::to_string(n) + "_",
                [&](const auto& name, const auto& of_a, const auto& of_b) {
                  const Array a = device_put(full({n, n}, 0.5, float64), grid(), of_a.spec),
                              b = device_put(full({n, n}, 0.25, float64), grid(), of_b.spec);
                  eval(a, b);
                  std::vector<Measured> list;
                  for (const auto& [algorithm, word] : algorithms) {
                    const MatmulOptions options{algorithm};
                    const auto f = [&](const Array& x, const Array& y) { return matmul(x, y, options); };
                    double predicted = 0;
                    for (const auto& choice : explain(f, a, b).choices)
                      for (const auto& candidate : choice.candidates)
                        if (candidate.chosen && candidate.why == "asked for") predicted = candidate.seconds;
                    if (predicted == 0) continue;  // this algorithm does not apply
                    std::vector<double> times;
                    for (int i = 0; i < 4; ++i) {
                      const double s = bench::seconds_of([&] { eval(f(a, b)); });
                      if (i > 0) times.push_back(s);
                    }
                    list.push_back({word, predicted, bench::median(times)});
                  }
                  print_ranking(name, list);
                });
}

// ---- other shapes ----

struct Shaped {
  std::string name;
  bench::ProductSize size;
};

void shape_row(const Shaped& row, const Layout& layout) {
  const std::string name = "product_" + row.name + "_" + layout.name;
  if (!bench::wanted(name)) return;
  const auto& s = row.size;
  const Array a = device_put(s.transposes_a ? full({s.k, s.m}, 0.5, float64) : full({s.m, s.k}, 0.5, float64),
                             grid(), layout.spec),
              b = device_put(full({s.k, s.n}, 0.25, float64), grid(), layout.spec);
  eval(a, b);
  const auto pdgemm = bench::best_pdgemm(s);
  bench::compare(
      name, [&] { eval(matmul(s.transposes_a ? a.T() : a, b)); },
      {{pdgemm->name(), [&] { pdgemm->work(); }, 1.25}, {"one rank's dgemm", gemm_on_one_rank<double>(s), 0}},
      7, {2.0 * s.m * s.n * s.k});
}

void batch_row() {
  const int n = 4096, batch = 8;
  const std::string name = "product_batch_f32_8x4096";
  if (!bench::wanted(name)) return;
  const Sharding split = bench::split(P("x", None, None));
  const Array a = device_put(full({batch, n, n}, 0.5f), split),
              b = device_put(full({batch, n, n}, 0.25f), split);
  eval(a, b);
  bench::compare(name, [&] { eval(matmul(a, b)); },
                 {{"one rank's sgemm, 8 times", gemm_on_one_rank<float>({n, n, n}, batch), 0.95 * cores()}},
                 3, {2.0 * batch * n * n * n, 32});
}

void rows() {
  for (const int n : {1536, 4096}) memory_rows(n);
  if (bench::ranks() == 1) return;
  for (const int n : {2048, 4096}) speed_rows(n);
  ranking_rows(2048);
  for (const auto& shaped : std::vector<Shaped>{{"217x217x43417", {217, 217, 43417, true}},
                                                {"512x32x736", {512, 32, 736}},
                                                {"64x64x100000", {64, 64, 100000}},
                                                {"20000x64x64", {20000, 64, 64}}})
    for (const auto& layout : layouts()) shape_row(shaped, layout);
  batch_row();
}

const bench::Group group(rows);

}  // namespace
