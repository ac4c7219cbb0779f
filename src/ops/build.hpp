// Helpers with which ops are defined and called.
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

// axis in [-ndim, ndim) as a dim in [0, ndim); IndexError naming both otherwise.
int checked_dim(int axis, int ndim);
// Each once, ascending; all dims when `axes` is empty and empty_means_all.
std::vector<int> checked_dims(const std::vector<int>& axes, int ndim, bool empty_means_all);

// NumPy's rule; ShapeError naming both shapes and the dim that differs.
Shape broadcast_shapes(const Shape&, const Shape&);

// The operand with its dtype changed; the array itself when it has that dtype already. A weak scalar is made
// anew from its value.
Array cast_to(const Array&, Dtype);

// Sums the dims along which `shape` was broadcast: the cotangent of an operand from that of the result.
Array sum_to_shape(const Array& cotangent, const Shape& shape);
// The cotangent in the operand's dtype: the real part where a real operand met complex ones.
Array sum_to_operand(const Array& cotangent, const Array& operand);

// ---- batching ----
// The batch dim moved to position 0; an unbatched operand gets a batch dim of size 1 (broadcast) or of
// `size`.
Array batch_first(const Array& x, int batch_dim);
// Input i with its batch dim at position 0; an unbatched one is repeated.
Array batched_in_front(const BatchArgs&, std::size_t i);
// A batch rule for ops that treat leading dims as a batch already: every batched operand gets its batch dim
// in front.
Batched batch_leading(const BatchArgs&);

}  // namespace tessera
