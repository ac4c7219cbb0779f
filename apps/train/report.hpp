// The plot of a training run. Only rank 0 writes.
#pragma once
#include <string>
#include <vector>

namespace train {

struct Curve {
  std::string name, colour;
  std::vector<double> values;  // one per epoch
};
// Two panels under each other, each with an axis of its own: losses on a logarithmic scale, shares from low
// to 1.
std::string training_plot(const std::string& title, const Curve& loss, const std::vector<Curve>& shares);
void write_file(const std::string& path, const std::string& content);  // IoError on every rank

}  // namespace train
