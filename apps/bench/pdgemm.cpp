#include "pdgemm.hpp"

#include <algorithm>

#include "bench.hpp"
#include "raw_mpi.hpp"

extern "C" {
int sys2blacs_handle_(const int* communicator);
void blacs_gridinit_(int* context, const char* order, const int* rows, const int* columns);
void blacs_gridinfo_(const int* context, int* rows, int* columns, int* row, int* column);
void blacs_gridexit_(const int* context);
int numroc_(const int* n, const int* block, const int* process, const int* source, const int* processes);
void pdgemm_(const char* of_a, const char* of_b, const int* m, const int* n, const int* k,
             const double* alpha, const double* a, const int* ia, const int* ja, const int* desc_a,
             const double* b, const int* ib, const int* jb, const int* desc_b, const double* beta, double* c,
             const int* ic, const int* jc, const int* desc_c);
}

namespace bench {

Pdgemm::Pdgemm(ProductSize size, int block, int grid_rows)
    : size_(size), block_(block), grid_rows_(grid_rows) {
  const int grid_columns = ranks() / grid_rows;
  const int communicator = raw::fortran_communicator();
  context_ = sys2blacs_handle_(&communicator);
  blacs_gridinit_(&context_, "R", &grid_rows, &grid_columns);
  a_ = size.transposes_a ? matrix(size.k, size.m, 0.5) : matrix(size.m, size.k, 0.5);
  b_ = matrix(size.k, size.n, 0.25);
  c_ = matrix(size.m, size.n, 0);
}
Pdgemm::~Pdgemm() { blacs_gridexit_(&context_); }

Pdgemm::Matrix Pdgemm::matrix(int rows, int columns, double value) const {
  int grid_rows = 0, grid_columns = 0, row = 0, column = 0;
  const int zero = 0;
  blacs_gridinfo_(&context_, &grid_rows, &grid_columns, &row, &column);
  const int mine = std::max(numroc_(&rows, &block_, &row, &zero, &grid_rows), 1),
            columns_of_mine = std::max(numroc_(&columns, &block_, &column, &zero, &grid_columns), 1);
  return {{1, context_, rows, columns, block_, block_, 0, 0, mine},
          std::vector<double>(std::size_t(mine) * std::size_t(columns_of_mine), value)};
}

std::string Pdgemm::name() const {
  return "pdgemm " + std::to_string(block_) + " on " + std::to_string(grid_rows_) + "x" +
         std::to_string(ranks() / grid_rows_);
}

void Pdgemm::work() {
  const int one = 1;
  const double alpha = 1, beta = 0;
  pdgemm_(size_.transposes_a ? "T" : "N", "N", &size_.m, &size_.n, &size_.k, &alpha, a_.values.data(), &one,
          &one, a_.desc, b_.values.data(), &one, &one, b_.desc, &beta, c_.values.data(), &one, &one, c_.desc);
}

static std::pair<int, int> find_best_pdgemm(ProductSize size) {
  double best_s = 1e30;
  std::pair<int, int> best{64, 1};
  for (int grid_rows = 1; grid_rows <= ranks(); ++grid_rows) {
    if (ranks() % grid_rows != 0) continue;
    for (const int block : {64, 128, 256, 512}) {
      Pdgemm candidate(size, block, grid_rows);
      if (const double s = seconds_of([&] { candidate.work(); }); s < best_s)
        best_s = s, best = {block, grid_rows};
    }
  }
  return best;
}

std::shared_ptr<Pdgemm> best_pdgemm(ProductSize size) {
  std::string key = "pdgemm";
  for (const int extent : {size.m, size.n, size.k}) key += "_" + std::to_string(extent);
  const auto best = best_choice(key, [&] { return find_best_pdgemm(size); });
  return std::make_shared<Pdgemm>(size, best.first, best.second);
}

}  // namespace bench
