// Helpers to define and call ops.
#pragma once
#include <string>
#include <vector>

#include "base/call.hpp"
#include "graph/op.hpp"
#include "types/promotion.hpp"

namespace tessera {

// Registers the record when the program starts: `const Registered registered_sin(sin_op);`
struct Registered {
  explicit Registered(const OpDef& op) { register_op(&op); }
};

// Converts axis in [-ndim, ndim) to a dim in [0, ndim); IndexError naming both if it is out of range.
int checked_dim(int axis, int ndim);
// Each dim once, ascending; all dims when `axes` is empty and empty_means_all.
std::vector<int> checked_dims(const std::vector<int>& axes, int ndim, bool empty_means_all);

// NumPy's rule; ShapeError naming both shapes and the dim that differs.
Shape broadcast_shapes(const Shape&, const Shape&);

// The operand in another dtype; the array itself if it has that dtype. A weak scalar is made again from its
// value.
Array cast_to(const Array&, Dtype);

// Sums the dims along which `shape` was broadcast: turns the result's cotangent into the operand's.
Array sum_to_shape(const Array& cotangent, const Shape& shape);
// The cotangent in the operand's dtype: its real part for a real operand of a complex op.
Array sum_to_operand(const Array& cotangent, const Array& operand);

// ---- batching ----
Array batch_first(const Array& x, int batch_dim);  // the batch dim at position 0
// The same; an array without a batch dim is repeated.
Array batched_in_front(const Array& x, int dim, std::int64_t size);
Array batched_in_front(const BatchArgs&, std::size_t i);  // input i
// Batch rule of ops that already treat leading dims as a batch: moves the batch dim of each operand to the
// front.
Batched batch_leading(const BatchArgs&);

}  // namespace tessera
