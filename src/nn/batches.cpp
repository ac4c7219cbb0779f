// Epochs: a permutation that every rank draws alike, and rows scattered by it.
#include <tessera/nn.hpp>

#include "base/call.hpp"

namespace tessera::nn {

Array shuffled_order(const random::Key& key, std::int64_t examples, std::int64_t batch, Where where) {
  const Call call("shuffled_order", where);
  if (batch < 1 || batch > examples)
    throw ArgumentError(call_text() + ": batch is " + std::to_string(batch) + "; it must lie in 1.." +
                        std::to_string(examples) + ", the number of examples");
  const std::int64_t batches = examples / batch;
  return reshape(random::permutation(key, examples, where)(slice(0, batches * batch)), {batches, batch});
}

namespace detail {

Array scattered_batches(const Array& x, const Array& order, const Mesh& mesh,
                        const PartitionSpec& batch_spec) {
  std::vector<DimSpec> dims{None};
  dims.insert(dims.end(), batch_spec.dims().begin(), batch_spec.dims().end());
  return device_put(take(x, order, 0), mesh, PartitionSpec(dims));
}

std::int64_t common_examples(const std::vector<Array>& leaves, Where where) {
  const Call call("shuffled_batches", where);
  if (leaves.empty()) throw ArgumentError(call_text() + ": there is no array to take examples from");
  const auto examples_of = [](const Array& x) { return x.ndim() == 0 ? -1 : x.shape()[0]; };
  for (const Array& x : leaves)
    if (examples_of(x) != examples_of(leaves[0]) || x.ndim() == 0)
      throw ShapeError(call_text() + ": arrays of shapes " + to_string(leaves[0].shape()) + " and " +
                       to_string(x.shape()) +
                       "; the first dimension counts the examples, and must be the same for all");
  return examples_of(leaves[0]);
}

}  // namespace detail
}  // namespace tessera::nn
