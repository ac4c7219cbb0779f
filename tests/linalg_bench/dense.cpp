// linalg beside ScaLAPACK at its best block size and beside plain LAPACK calls, in one run:
//
//   mpirun -n 2 linalg_bench [n ...]        f64; sizes 1024 2048 4096 when none are given
//
// Ours is timed with everything it does: from the sharding P("x", None) to the block-cyclic layout and back.
#include <mpi.h>

#include <tessera/linalg.hpp>
#include <tessera/random.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

extern "C" {
int sys2blacs_handle_(int* communicator);
void blacs_gridinit_(int* context, const char* order, const int* rows, const int* columns);
void blacs_gridinfo_(const int* context, int* rows, int* columns, int* row, int* column);
void blacs_gridexit_(const int* context);
int numroc_(const int* n, const int* block, const int* process, const int* source, const int* processes);
void pdgesv_(const int* n, const int* k, double* a, const int* ia, const int* ja, const int* desc_a, int* pivots, double* b, const int* ib,
             const int* jb, const int* desc_b, int* info);
void pdpotrf_(const char* uplo, const int* n, double* a, const int* ia, const int* ja, const int* desc_a, int* info);
void pdgeqrf_(const int* m, const int* n, double* a, const int* ia, const int* ja, const int* desc_a, double* tau, double* work,
              const int* lwork, int* info);
void pdorgqr_(const int* m, const int* n, const int* k, double* a, const int* ia, const int* ja, const int* desc_a, const double* tau,
              double* work, const int* lwork, int* info);
void dgesv_(const int* n, const int* k, double* a, const int* lda, int* pivots, double* b, const int* ldb, int* info);
}

namespace {

using namespace tessera;

double now() { return MPI_Wtime(); }

// The least of several, each the time of the slowest rank.
double best_time(int repeats, const std::function<void()>& prepare, const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    prepare();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now();
    work();
    double mine = now() - start, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    best = std::min(best, slowest);
  }
  return best;
}

// ScaLAPACK on a grid and block size: a random matrix, made diagonally dominant enough for Cholesky.
struct ScalapackCase {
  ScalapackCase(int n, int block, int grid_rows, int grid_columns) : n(n) {
    int handle = MPI_Comm_c2f(MPI_COMM_WORLD), zero = 0, row = 0, column = 0;
    context = sys2blacs_handle_(&handle);
    blacs_gridinit_(&context, "R", &grid_rows, &grid_columns);
    blacs_gridinfo_(&context, &grid_rows, &grid_columns, &row, &column);
    rows = std::max(numroc_(&n, &block, &row, &zero, &grid_rows), 1);
    columns = std::max(numroc_(&n, &block, &column, &zero, &grid_columns), 1);
    const int desc[9] = {1, context, n, n, block, block, 0, 0, rows};
    std::copy(desc, desc + 9, desc_a);
    std::copy(desc, desc + 9, desc_b);
    desc_b[3] = 1;
    a.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    std::mt19937 bits(static_cast<unsigned>(row * 1000 + column));
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (double& value : a) value = uniform(bits);
    for (int j = 0; j < columns; ++j)
      for (int i = 0; i < rows; ++i)
        if ((i / block * grid_rows + row) * block + i % block == (j / block * grid_columns + column) * block + j % block)
          a[static_cast<std::size_t>(j) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(i)] += n;
  }
  ~ScalapackCase() { blacs_gridexit_(&context); }
  int n, context = 0, rows = 0, columns = 0, desc_a[9], desc_b[9];
  std::vector<double> a;
};

enum class Kind { solve, cholesky, qr };

double scalapack_seconds(Kind kind, int n, std::string& best_setting) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double best = 1e30;
  for (const int block : {32, 64, 128, 192})
    for (int grid_rows = 1; grid_rows <= ranks; ++grid_rows) {
      if (ranks % grid_rows != 0) continue;
      const ScalapackCase c(n, block, grid_rows, ranks / grid_rows);
      std::vector<double> a, b, work(1);
      std::vector<int> pivots(static_cast<std::size_t>(c.rows + block));
      const int one = 1;
      int info = 0, lwork = -1;
      if (kind == Kind::qr) {
        b.resize(static_cast<std::size_t>(c.columns + block));
        pdgeqrf_(&n, &n, work.data(), &one, &one, c.desc_a, b.data(), work.data(), &lwork, &info);
        lwork = static_cast<int>(work[0]);
        work.resize(static_cast<std::size_t>(lwork));
      }
      const double seconds = best_time(
          2, [&] { a = c.a, b.assign(static_cast<std::size_t>(std::max(c.rows, c.columns) + block), 1.0); },
          [&] {
            if (kind == Kind::solve)
              pdgesv_(&n, &one, a.data(), &one, &one, c.desc_a, pivots.data(), b.data(), &one, &one, c.desc_b, &info);
            if (kind == Kind::cholesky) pdpotrf_("L", &n, a.data(), &one, &one, c.desc_a, &info);
            if (kind == Kind::qr) {
              pdgeqrf_(&n, &n, a.data(), &one, &one, c.desc_a, b.data(), work.data(), &lwork, &info);
              pdorgqr_(&n, &n, &n, a.data(), &one, &one, c.desc_a, b.data(), work.data(), &lwork, &info);
            }
          });
      if (seconds < best)
        best = seconds,
        best_setting = "block " + std::to_string(block) + ", grid " + std::to_string(grid_rows) + "x" + std::to_string(ranks / grid_rows);
    }
  return best;
}

double own_seconds(Kind kind, int n, std::int64_t block) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array noise = random::uniform(random::key(1), {n, n}, float64);
  const Array a = device_put(noise + noise.T() + static_cast<double>(n) * eye(n, float64), mesh, P("x", None)),
              b = device_put(ones({n}, float64), mesh, P("x"));
  eval({a, b});
  Array result;
  return best_time(
      3, [&] { result = Array(); },
      [&] {
        if (kind == Kind::solve) result = linalg::solve(a, b, {.block = block});
        if (kind == Kind::cholesky) result = linalg::cholesky(a);
        if (kind == Kind::qr) result = linalg::qr(a).q;
        eval({result});
      });
}

void compare(const char* what, Kind kind, int n, double flops) {
  std::string setting;
  const double theirs = scalapack_seconds(kind, n, setting);
  const double ours = own_seconds(kind, n, 0);
  if (is_main_process())
    std::printf("%-9s n=%5d  %d ranks  ours %8.1f ms %6.1f GF/s   ScaLAPACK %8.1f ms %6.1f GF/s (%s)   ratio %.2f\n", what, n,
                device_count(), ours * 1e3, flops / ours * 1e-9, theirs * 1e3, flops / theirs * 1e-9, setting.c_str(), theirs / ours);
  std::fflush(stdout);
}

void compare_batch(std::int64_t systems, int n) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array a = device_put(random::normal(random::key(1), {systems, n, n}, float64), mesh, P("x"));
  const Array b = device_put(random::normal(random::key(2), {systems, n}, float64), mesh, P("x"));
  eval({a, b});
  Array x;
  const double ours = best_time(
      9, [&] { x = Array(); }, [&] { eval({x = linalg::solve(a, b)}); });
  const auto la = local<double>(a), lb = local<double>(b);
  std::vector<double> matrix(static_cast<std::size_t>(n * n)), out(lb.size());
  std::vector<int> pivots(static_cast<std::size_t>(n));
  const double loop = best_time(
      9, [] {},
      [&] {
        const int one = 1;
        int info = 0;
        std::copy(lb.begin(), lb.end(), out.begin());
        for (std::size_t i = 0; i * matrix.size() < la.size(); ++i) {
          std::copy_n(la.begin() + static_cast<std::ptrdiff_t>(i * matrix.size()), matrix.size(), matrix.begin());
          dgesv_(&n, &one, matrix.data(), &n, pivots.data(), out.data() + i * static_cast<std::size_t>(n), &n, &info);
        }
      });
  if (is_main_process())
    std::printf("batch     %lld systems %dx%d  %d ranks  ours %7.2f ms   dgesv in a loop %7.2f ms   ratio %.2f\n",
                static_cast<long long>(systems), n, n, device_count(), ours * 1e3, loop * 1e3, loop / ours);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [&] {
    std::vector<int> sizes;
    for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
    if (sizes.empty()) sizes = {1024, 2048, 4096};
    for (const int n : {4, 8, 16, 32}) compare_batch(10000, n);
    for (const int n : sizes) {
      const double n3 = std::pow(static_cast<double>(n), 3);
      compare("solve", Kind::solve, n, n3 * 2 / 3);
      compare("cholesky", Kind::cholesky, n, n3 / 3);
      compare("qr", Kind::qr, n, n3 * 8 / 3);
    }
  });
}
