// The plot of a training run. Only rank 0 writes.
#pragma once
#include <string>
#include <vector>

namespace train {

struct LossCurve {
  std::string name, colour;
  std::vector<double> values;  // one per epoch
};
// Two panels, one above the other, each with its own axis: losses on a logarithmic scale, fractions from low
// to 1.
std::string training_plot(const std::string& title, const LossCurve& loss,
                          const std::vector<LossCurve>& shares);
void write_file(const std::string& path, const std::string& content);  // IoError on every rank

}  // namespace train
