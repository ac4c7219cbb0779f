// ScaLAPACK's product of constant matrices, in block-cyclic layouts.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace bench {

struct ProductSize {
  int m, n, k;
  bool transposes_a = false;  // a is stored k x m
};

class Pdgemm {
 public:
  Pdgemm(ProductSize, int block, int grid_rows);
  Pdgemm(const Pdgemm&) = delete;
  ~Pdgemm();
  std::string name() const;
  void work();

 private:
  struct Matrix {
    int desc[9];
    std::vector<double> values;
  };
  Matrix matrix(int rows, int columns, double value) const;

  ProductSize size_;
  int block_, grid_rows_, context_ = 0;
  Matrix a_, b_, c_;
};

// The product with the block size and grid that take the least time here. Collective.
std::shared_ptr<Pdgemm> best_pdgemm(ProductSize);

}  // namespace bench
