// Starts of the windows of gather and scatter.
//
// A window of `sizes` stands at each of a batch of starts. Dims of extent one in the window, or of batches,
// become index arrays; a window that takes a dim whole keeps it as it is; any other one becomes an index
// array of starts plus places in the window.
#pragma once
#include <tessera/array.hpp>

#include <cstdint>
#include <map>
#include <vector>

#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

using Numbers = std::vector<std::int64_t>;
// A list of dims in the operation's dimension numbers, each below ndim and named once.
std::vector<int> dims_of(const OpCall&, const Attribute& numbers, const char* name, int ndim);
bool contains(const std::vector<int>& dims, int d);

struct Starts {
  // One array per indexed dim, all of the shape `batch`. `indices` has the starts of one window along
  // `vector_dim`.
  Starts(const OpCall&, const Shape& x, const Array& indices, int vector_dim, Numbers sizes,
         std::vector<int> start_map, const std::vector<int>& x_batch, const std::vector<int>& indices_batch);
  Shape batch;
  std::map<int, Array> by_dim;
  std::map<int, std::int64_t> room;  // the last start at which the window is inside
  Numbers sizes;
  std::vector<int> given;
  std::vector<int> x_batch;

  void clamp();
  Array inside() const;  // whether the window lies inside, for each of the batch
  // Dims that index arrays read; a start of a whole window can only be 0.
  std::vector<int> indexed(const Shape& x) const;
  // Index arrays for the dims, of the batch's extents and the extents of `wide`: the dims of them whose
  // windows are not of one element.
  std::vector<Array> with_window(const std::vector<int>& dims, std::vector<int>& wide) const;
};

}  // namespace tessera::stablehlo
