// The sum of squared distances from a mean, as var and std record it, in the pass that makes the mean: slabs
// take the distances from the mean of the first slab, and what that adds is subtracted at the end.
//
//   var(x, 0)    total = sum(x, 0), mean = total / n, squares = sum(square(x - mean), 0)
//   pass         shift = mean of slab 0; of each slab: square(x - shift) and x - shift, summed up
//   end          squares = sum of squares - (sum of distances)^2 / n
//
// The relative error is that of two passes times 1 + (mean - shift)^2 / variance. The shift is the mean of as
// many elements as 1 / k of all, so that this is at most 1 + k; for steady or growing values it is near 1.
#pragma once
#include <tessera/array.hpp>

#include <optional>
#include <vector>

#include "graph/op.hpp"

namespace tessera::stream {

// The values below a node that sums up square(difference), difference = x - mean, mean = total / n.
struct CentredSum {
  Array total, x, mean, difference;
  std::vector<int> dims;  // that are reduced
};
std::optional<CentredSum> centred_sum_of(const Node&);
// The number of elements of a shape along these dims.
double elements_along(const Shape&, const std::vector<int>& dims);
// The sum of squared distances from the mean, by those from another number: n distances and their squares.
Array squares_about_mean(const Array& squares, const Array& distances, double n);

}  // namespace tessera::stream
