// One big matrix over all ranks compared with ScaLAPACK at its best block size and grid (LAPACK on one rank),
// and many small systems.
//
// tessera's time includes everything: from the sharding P("x", None) to the block-cyclic layout and back.
// ScaLAPACK's matrix is already in its layout.
#include <cblas.h>

#include <tessera/linalg.hpp>
#include <tessera/random.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "bench.hpp"
#include "raw_mpi.hpp"

extern "C" {
int sys2blacs_handle_(int* communicator);
void blacs_gridinit_(int* context, const char* order, const int* rows, const int* columns);
void blacs_gridinfo_(const int* context, int* rows, int* columns, int* row, int* column);
void blacs_gridexit_(const int* context);
int numroc_(const int* n, const int* block, const int* process, const int* source, const int* processes);
void pdgesv_(const int* n, const int* k, double* a, const int* ia, const int* ja, const int* desc_a,
             int* pivots, double* b, const int* ib, const int* jb, const int* desc_b, int* info);
void pdpotrf_(const char* uplo, const int* n, double* a, const int* ia, const int* ja, const int* desc_a,
              int* info);
void pdgeqrf_(const int* m, const int* n, double* a, const int* ia, const int* ja, const int* desc_a,
              double* tau, double* work, const int* lwork, int* info);
void pdorgqr_(const int* m, const int* n, const int* k, double* a, const int* ia, const int* ja,
              const int* desc_a, const double* tau, double* work, const int* lwork, int* info);
void pdsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* ia, const int* ja,
              const int* desc_a, double* w, double* z, const int* iz, const int* jz, const int* desc_z,
              double* work, const int* lwork, int* iwork, const int* liwork, int* info);
void pdgesvd_(const char* job_u, const char* job_v, const int* m, const int* n, double* a, const int* ia,
              const int* ja, const int* desc_a, double* s, double* u, const int* iu, const int* ju,
              const int* desc_u, double* vt, const int* iv, const int* jv, const int* desc_v, double* work,
              const int* lwork, int* info);
void dgesv_(const int* n, const int* k, double* a, const int* lda, int* pivots, double* b, const int* ldb,
            int* info);
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info);
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work,
             const int* lwork, int* info);
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau,
             double* work, const int* lwork, int* info);
}

namespace {

using namespace tessera;

enum class Kind { solve, cholesky, qr };

double flops_of(Kind kind, int n) {
  const double n3 = std::pow(static_cast<double>(n), 3);
  return kind == Kind::solve ? n3 * 2 / 3 : kind == Kind::cholesky ? n3 / 3 : n3 * 8 / 3;
}

// A factorization by ScaLAPACK with a given grid and block size; by LAPACK on one rank. QR also computes q,
// as tessera does.
class Scalapack {
 public:
  Scalapack(Kind kind, int n, int block, int grid_rows)
      : kind_(kind), n_(n), block_(block), grid_rows_(grid_rows) {
    const int grid_columns = bench::ranks() / grid_rows, zero = 0;
    int handle = bench::raw::fortran_communicator(), row = 0, column = 0, rows_again = 0, columns_again = 0;
    context_ = sys2blacs_handle_(&handle);
    blacs_gridinit_(&context_, "R", &grid_rows, &grid_columns);
    blacs_gridinfo_(&context_, &rows_again, &columns_again, &row, &column);
    const int rows = std::max(numroc_(&n, &block, &row, &zero, &grid_rows), 1),
              columns = std::max(numroc_(&n, &block, &column, &zero, &grid_columns), 1);
    const int desc[9] = {1, context_, n, n, block, block, 0, 0, rows};
    std::copy(desc, desc + 9, desc_a_);
    std::copy(desc, desc + 9, desc_b_);
    desc_b_[3] = 1;
    given_.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    std::mt19937 bits(static_cast<unsigned>(row * 1000 + column));
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (double& value : given_) value = uniform(bits);
    if (kind == Kind::cholesky)
      for (int j = 0; j < columns; ++j)
        for (int i = 0; i < rows; ++i)
          if ((i / block * grid_rows + row) * block + i % block ==
              (j / block * grid_columns + column) * block + j % block)
            given_[static_cast<std::size_t>(j) * static_cast<std::size_t>(rows) +
                   static_cast<std::size_t>(i)] += 2 * n;
    pivots_.resize(rows + block);
    vector_.resize(std::max(rows, columns) + block);
    if (kind == Kind::qr) {
      const int query = -1, one = 1;
      int info = 0;
      double sizes[2] = {};
      factor_qr(given_.data(), &sizes[0], query, info);
      if (bench::ranks() == 1)
        dorgqr_(&n_, &n_, &n_, given_.data(), &n_, vector_.data(), &sizes[1], &query, &info);
      else
        pdorgqr_(&n_, &n_, &n_, given_.data(), &one, &one, desc_a_, vector_.data(), &sizes[1], &query, &info);
      work_.resize(static_cast<std::size_t>(std::max(sizes[0], sizes[1])) + 1);
    }
  }
  Scalapack(const Scalapack&) = delete;
  ~Scalapack() { blacs_gridexit_(&context_); }

  std::string name() const {
    const std::string call = kind_ == Kind::solve      ? "dgesv"
                             : kind_ == Kind::cholesky ? "dpotrf"
                                                       : "dgeqrf + orgqr";
    if (bench::ranks() == 1) return call;
    return "p" + call + " " + std::to_string(block_) + " on " + std::to_string(grid_rows_) + "x" +
           std::to_string(bench::ranks() / grid_rows_);
  }

  void prepare() {
    a_ = given_;
    std::fill(vector_.begin(), vector_.end(), 1.0);
  }

  void work() {
    const int one = 1, lwork = static_cast<int>(work_.size());
    const bool alone = bench::ranks() == 1;
    int info = 0;
    if (kind_ == Kind::solve && alone)
      dgesv_(&n_, &one, a_.data(), &n_, pivots_.data(), vector_.data(), &n_, &info);
    if (kind_ == Kind::solve && !alone)
      pdgesv_(&n_, &one, a_.data(), &one, &one, desc_a_, pivots_.data(), vector_.data(), &one, &one, desc_b_,
              &info);
    if (kind_ == Kind::cholesky && alone) dpotrf_("L", &n_, a_.data(), &n_, &info);
    if (kind_ == Kind::cholesky && !alone) pdpotrf_("L", &n_, a_.data(), &one, &one, desc_a_, &info);
    if (kind_ == Kind::qr) {
      factor_qr(a_.data(), work_.data(), lwork, info);
      if (alone)
        dorgqr_(&n_, &n_, &n_, a_.data(), &n_, vector_.data(), work_.data(), &lwork, &info);
      else
        pdorgqr_(&n_, &n_, &n_, a_.data(), &one, &one, desc_a_, vector_.data(), work_.data(), &lwork, &info);
    }
  }

 private:
  void factor_qr(double* a, double* work, int lwork, int& info) {
    const int one = 1;
    if (bench::ranks() == 1)
      dgeqrf_(&n_, &n_, a, &n_, vector_.data(), work, &lwork, &info);
    else
      pdgeqrf_(&n_, &n_, a, &one, &one, desc_a_, vector_.data(), work, &lwork, &info);
  }

  Kind kind_;
  int n_, block_, grid_rows_, context_ = 0, desc_a_[9], desc_b_[9];
  std::vector<double> given_, a_, vector_, work_;
  std::vector<int> pivots_;
};

// Tries block sizes and grids; for large matrices fewer, and each only once.
std::pair<int, int> find_best_scalapack(Kind kind, int n) {
  const std::vector<int> blocks = n > 4096 ? std::vector<int>{64, 128} : std::vector<int>{32, 64, 128, 192};
  double best_s = 1e30;
  std::pair<int, int> best{blocks[0], 1};
  for (int grid_rows = 1; grid_rows <= bench::ranks(); ++grid_rows) {
    if (bench::ranks() % grid_rows != 0) continue;
    for (const int block : blocks) {
      Scalapack candidate(kind, n, block, grid_rows);
      for (int repetition = 0; repetition < (n > 2048 ? 1 : 3); ++repetition) {
        candidate.prepare();
        if (const double s = bench::seconds_of([&] { candidate.work(); }); s < best_s)
          best_s = s, best = {block, grid_rows};
      }
    }
  }
  return best;
}

std::unique_ptr<Scalapack> best_scalapack(Kind kind, int n) {
  if (bench::ranks() == 1) return std::make_unique<Scalapack>(kind, n, n, 1);
  const auto key = "scalapack_" + std::to_string(static_cast<int>(kind)) + "_" + std::to_string(n);
  const auto best = bench::best_choice(key, [&] { return find_best_scalapack(kind, n); });
  return std::make_unique<Scalapack>(kind, n, best.first, best.second);
}

// dgemm with as many operations as a rank's share of the factorization: the upper bound for any factorization
// built on it.
bench::Work products_of(double flops) {
  constexpr int n = 2048;
  const auto values = std::make_shared<std::vector<double>>(static_cast<std::size_t>(3 * n) * n, 0.5);
  return [values, share = flops / bench::ranks()] {
    double* a = values->data();
    double *b = a + static_cast<std::ptrdiff_t>(n) * n, *c = b + static_cast<std::ptrdiff_t>(n) * n;
    for (double rest = share / (2.0 * n * n); rest >= 1; rest -= n)
      cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n,
                  static_cast<int>(std::min<double>(rest, n)), 1, a, n, b, n, 0, c, n);
  };
}

void dense_row(Kind kind, int n, double goal, double goal_of_dgemm) {
  static const char* const names[] = {"solve", "cholesky", "qr"};
  const std::string name =
      std::string("linalg_") + names[static_cast<int>(kind)] + "_f64_" + std::to_string(n);
  if (!bench::wanted(name)) return;
  const Array noise = random::uniform(random::key(1), {n, n}, float64) - 0.5;
  const Array positive =
      kind == Kind::cholesky ? noise + noise.T() + static_cast<double>(n) * eye(n, float64) : noise;
  const Array a = device_put(positive, bench::split(P("x", None))),
              b = device_put(ones({n}, float64), bench::split(P("x")));
  eval(a, b);
  const auto peer = best_scalapack(kind, n);
  const auto ours = [&] {
    if (kind == Kind::solve) eval(linalg::solve(a, b));
    if (kind == Kind::cholesky) eval(linalg::cholesky(a));
    if (kind == Kind::qr) {
      const auto [q, r] = linalg::qr(a);
      eval(q, r);
    }
  };
  bench::compare(
      name, ours,
      {{peer->name(), [&] { peer->work(); }, bench::ranks() > 1 ? goal : 0, 0, 0, [&] { peer->prepare(); }},
       {"dgemm of as many flops", products_of(flops_of(kind, n)), goal_of_dgemm, 0, 0, {}, true}},
      n <= 2048          ? 9
      : n <= 4096        ? 5
      : kind == Kind::qr ? 1
                         : 3);
}

// Eigenvectors or singular vectors by ScaLAPACK: blocks of 64 on one grid row up to four ranks, on two from
// then on.
class Spectrum {
 public:
  Spectrum(bool is_svd, int n)
      : is_svd_(is_svd), n_(n), grid_rows_(bench::ranks() > 4 && bench::ranks() % 2 == 0 ? 2 : 1) {
    const int grid_columns = bench::ranks() / grid_rows_, zero = 0, block = 64;
    int handle = bench::raw::fortran_communicator(), row = 0, column = 0, rows_again = 0, columns_again = 0;
    context_ = sys2blacs_handle_(&handle);
    blacs_gridinit_(&context_, "R", &grid_rows_, &grid_columns);
    blacs_gridinfo_(&context_, &rows_again, &columns_again, &row, &column);
    const int rows = std::max(numroc_(&n, &block, &row, &zero, &grid_rows_), 1),
              columns = std::max(numroc_(&n, &block, &column, &zero, &grid_columns), 1);
    const int desc[9] = {1, context_, n, n, block, block, 0, 0, rows};
    std::copy(desc, desc + 9, desc_);
    given_.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    std::mt19937 bits(static_cast<unsigned>(row * 1000 + column));
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (double& value : given_) value = uniform(bits);
    values_.resize(n), left_.resize(given_.size()), right_.resize(is_svd ? given_.size() : 1);
    a_ = given_;
    double size = 0;
    int int_size = 1;
    call(&size, -1, &int_size, -1);
    work_.resize(static_cast<std::size_t>(size) + 1), int_work_.resize(std::max(int_size, 1));
  }
  Spectrum(const Spectrum&) = delete;
  ~Spectrum() { blacs_gridexit_(&context_); }
  std::string name() const { return is_svd_ ? "pdgesvd" : "pdsyevd"; }
  void prepare() { a_ = given_; }
  void work() {
    call(work_.data(), static_cast<int>(work_.size()), int_work_.data(), static_cast<int>(int_work_.size()));
  }

 private:
  void call(double* work, int lwork, int* int_work, int liwork) {
    const int one = 1;
    int info = 0;
    if (is_svd_)
      pdgesvd_("V", "V", &n_, &n_, a_.data(), &one, &one, desc_, values_.data(), left_.data(), &one, &one,
               desc_, right_.data(), &one, &one, desc_, work, &lwork, &info);
    else
      pdsyevd_("V", "L", &n_, a_.data(), &one, &one, desc_, values_.data(), left_.data(), &one, &one, desc_,
               work, &lwork, int_work, &liwork, &info);
  }
  bool is_svd_;
  int n_, grid_rows_, context_ = 0, desc_[9];
  std::vector<double> given_, a_, values_, left_, right_, work_;
  std::vector<int> int_work_;
};

void spectrum_row(bool is_svd, int n) {
  const std::string name = std::string("linalg_") + (is_svd ? "svd" : "eigh") + "_f64_" + std::to_string(n);
  if (!bench::wanted(name) || bench::ranks() == 1) return;
  const Array noise = random::uniform(random::key(1), {n, n}, float64) - 0.5;
  const Array a = device_put(is_svd ? noise : noise + noise.T(), bench::split(P("x", None)));
  eval(a);
  Spectrum peer(is_svd, n);
  const auto ours = [&] {
    if (is_svd) {
      const auto [u, s, vh] = linalg::svd(a);
      eval(u, s, vh);
    } else {
      const auto [w, v] = linalg::eigh(a);
      eval(w, v);
    }
  };
  bench::compare(name, ours, {{peer.name(), [&] { peer.work(); }, 1.5, 0, 0, [&] { peer.prepare(); }}},
                 n <= 2048 ? 5 : 2);
}

// 10,000 systems of 16 x 16, split over the ranks.
void batch_row() {
  constexpr int systems = 10000, n = 16;
  const std::string name = "linalg_solve_f64_10000x16x16";
  if (!bench::wanted(name)) return;
  const Array a = device_put(random::normal(random::key(1), {systems, n, n}, float64), bench::split(P("x")));
  const Array b = device_put(random::normal(random::key(2), {systems, n}, float64), bench::split(P("x")));
  const Array a_one = device_put(a, bench::on_one()), b_one = device_put(b, bench::on_one());
  eval(a, b), eval(a_one, b_one);
  const auto la = local<double>(a), lb = local<double>(b);
  std::vector<double> matrix(n * n), x(lb.size());
  const auto loop = [&] {
    const int size = n, one = 1;
    int pivots[n], info = 0;
    std::copy(lb.begin(), lb.end(), x.begin());
    for (std::size_t i = 0; i * matrix.size() < la.size(); ++i) {
      std::copy_n(la.begin() + static_cast<std::ptrdiff_t>(i * matrix.size()), matrix.size(), matrix.begin());
      dgesv_(&size, &one, matrix.data(), &size, pivots, x.data() + i * n, &size, &info);
    }
  };
  std::vector<bench::Peer> peers{{"a loop over dgesv", loop, 3}};
  if (bench::ranks() > 1)
    peers.push_back({"one rank", [&] { eval(linalg::solve(a_one, b_one)); }, bench::ranks() == 2 ? 1.8 : 0});
  bench::compare(
      name, [&] { eval(linalg::solve(a, b)); }, peers);
}

void rows() {
  batch_row();
  for (const int n : {2048, 4096}) spectrum_row(false, n);
  for (const int n : {1024, 2048}) spectrum_row(true, n);
  for (const int n : {2048, 4096, 8192}) {
    dense_row(Kind::solve, n, 1.5, n == 8192 ? 0.8 : 0);
    dense_row(Kind::cholesky, n, 1.5, 0);
    dense_row(Kind::qr, n, 1.3, 0);
  }
}

const bench::Group group(rows);

}  // namespace
