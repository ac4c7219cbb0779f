// Jacobians by columns: the derivatives along all unit vectors at once.
#include <tessera/grad/forward.hpp>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "types/extents.hpp"

namespace tessera::detail {

std::vector<Array> jacobian_by_columns(const Recording& recording, const std::vector<Array>& leaves,
                                       std::source_location where) {
  const Call call("jacfwd", where);
  const Shape& result = recording.results()[0].shape();
  std::vector<Array> columns;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const auto along = [&](const Array& direction) {
      std::vector<Array> tangents;
      for (std::size_t i = 0; i < leaves.size(); ++i)
        tangents.push_back(i == k ? reshape(direction, leaves[k].shape()) : zeros_like(leaves[i]));
      return recording.push_forward(std::move(tangents))[0];
    };
    const Shape shape = join(result, leaves[k].shape());
    if (leaves[k].size() == 0) {
      columns.push_back(zeros(shape, recording.results()[0].dtype()));
      continue;
    }
    const Array units = eye(leaves[k].size(), leaves[k].dtype());
    columns.push_back(reshape(vmap(along, {.out_axes = -1})(units), shape));
  }
  return columns;
}

}  // namespace tessera::detail
