// The families that fill the table of samples: one file each.
#pragma once
#include <functional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "support/op_samples.hpp"

namespace tessera::test {

using In = const std::vector<Array>&;
using Out = std::vector<Array>;

class Table {
 public:
  std::vector<OpSample> rows;

  void add(std::string name, std::vector<OperandSample> operands, std::function<Out(In)> call,
           Smooth smooth = Smooth::twice, double tolerance = 1e-6,
           std::source_location where = std::source_location::current()) {
    const std::string path = where.file_name();
    rows.push_back({std::move(name), std::move(operands), std::move(call), smooth, tolerance,
                    path.substr(path.rfind('/') + 1)});
  }
  // Without derivatives that finite differences can check.
  void add_values(std::string name, std::vector<OperandSample> operands, std::function<Out(In)> call,
                  std::source_location where = std::source_location::current()) {
    add(std::move(name), std::move(operands), std::move(call), Smooth::no, 0, where);
  }
};

void elementwise_samples(Table&);
void special_samples(Table&);
void reduction_samples(Table&);
void statistics_samples(Table&);
void shape_samples(Table&);
void index_samples(Table&);
void sort_samples(Table&);
void contraction_samples(Table&);
void convolution_samples(Table&);
void window_samples(Table&);
void linalg_samples(Table&);
void collective_samples(Table&);
void fourier_samples(Table&);
void creation_samples(Table&);
void arrangement_samples(Table&);
void numeric_samples(Table&);
void sized_samples(Table&);
void network_samples(Table&);
void sparse_samples(Table&);
void control_samples(Table&);

}  // namespace tessera::test
