// The two halves of vmap, for other transformations: trace with one example, then apply the recording to
// whole batches.
#pragma once
#include <tessera/maps.hpp>

#include <optional>
#include <string>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

struct BatchedValue {
  Array value;
  int dim = not_batched;
};

// Replays every node between `placeholders` and `roots` through its op's batch rule, with values[i] in place
// of placeholders[i]. frame: the number of the vmap frame that this resolves; 0 for none.
std::vector<BatchedValue> replay_batched(const std::vector<Array>& roots,
                                         const std::vector<Array>& placeholders,
                                         const std::vector<BatchedValue>& values, std::int64_t size,
                                         std::uint64_t frame);

// A placeholder for one example of the batch x. A committed one has the batch's layout, without the axes that
// split the batch dim.
Array example_of(const Array& x, int dim);

struct VmapRequest {
  std::vector<std::optional<int>> in_dims;  // per leaf of the arguments, counted from the front
  AxesTree out_axes = 0;
  std::string axis_name;
  std::int64_t size = 1;
  std::string call;  // "vmap at train.cpp:12"
};
std::vector<Array> apply_vmap(detail::MappedCall& call, const VmapRequest& request);

// in_axes broadcast over the leaves, negative ones counted from the end; IndexError if one is out of range.
std::vector<std::optional<int>> leaf_axes(const AxesTree& axes, const detail::MappedCall& call,
                                          const std::string& what);
// The size of the mapped dims; ArgumentError if they differ or nothing is mapped.
std::int64_t mapped_size(const std::vector<std::optional<int>>& dims, const std::vector<Array>& leaves,
                         std::optional<int> given, const std::string& call);
// out_axes broadcast over the leaves of the result, as dims of the mapped result. ndim: of the leaves of one
// example.
std::vector<std::optional<int>> result_axes(const AxesTree& axes, const detail::TreeShape& result,
                                            const std::vector<Array>& leaves, const std::string& what);

}  // namespace tessera
