// Arrays on many layouts.
#pragma once
#include "support/layouts.hpp"

namespace tessera::test {

// Arrays on random specs of one random mesh, and their description for failures.
struct Placed {
  std::vector<Array> arrays;
  std::string text;
};
inline Placed placed(std::mt19937& random, const std::vector<Array>& arrays) {
  const Mesh mesh = random_mesh(random);
  Placed result;
  for (const auto& x : arrays) {
    result.arrays.push_back(device_put(x, random_sharding(random, mesh, x.ndim())));
    result.text += text_of(result.arrays.back().sharding()) + " ";
  }
  return result;
}

}  // namespace tessera::test
