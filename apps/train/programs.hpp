// The programs behind `train`.
#pragma once
#include <tessera/mesh.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace train {

// "4x2" -> axes data: 4, model: 2; all ranks along data if empty.
tessera::Mesh training_mesh(const std::string& sizes);

struct DigitsOptions {
  std::string data = TRAIN_DATA, mesh, optimizer = "adam", plot, checkpoint;
  std::vector<std::int64_t> hidden = {96, 64, 64};
  int epochs = 30, batch = 96, seed = 0;
  double rate = 0, demand = 0.95;
  bool resume = false;
};
int train_digits(const DigitsOptions&);

struct MlpOptions {
  std::string mesh;
  std::vector<std::int64_t> sizes = {784, 512, 512, 512, 10};
  int batch = 512, steps = 10;
  bool json = false;
};
int train_mlp(const MlpOptions&);

}  // namespace train
