// What a training run shows: a line of progress on a terminal, and a plot at the end. Only rank 0 writes.
#pragma once
#include <string>
#include <vector>

namespace train {

// [#####.....] 12/30  loss 0.123 ...: rewritten in place on a terminal, a line now and then elsewhere.
class Progress {
 public:
  explicit Progress(int total);
  void show(int done, const std::string& text);

 private:
  int total_;
  bool on_terminal_;
};

struct Curve {
  std::string name, colour;
  std::vector<double> values;  // one per epoch
};
// Two panels under each other, each with an axis of its own: losses on a logarithmic scale, shares from low
// to 1.
std::string training_plot(const std::string& title, const Curve& loss, const std::vector<Curve>& shares);
void write_file(const std::string& path, const std::string& content);  // IoError on every rank

}  // namespace train
