// Concatenation. The result has the sharding of the operand that makes the cheapest exchange; every rank
// receives only the parts of its own block.
#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/remap_op.hpp"

namespace tessera {
namespace {

std::vector<Array> promoted(std::vector<Array> arrays) {
  if (arrays.empty()) throw ArgumentError(call_text() + ": the list of arrays is empty; give at least one");
  std::vector<WeakDtype> types;
  for (const auto& x : arrays) {
    check_usable(x);
    types.push_back({x.dtype(), x.is_weakly_typed()});
  }
  const Dtype dtype = promote(types).dtype;
  for (auto& x : arrays) x = cast_to(x, dtype);
  return arrays;
}

Array concatenate_at(std::vector<Array> arrays, int axis) {
  arrays = promoted(std::move(arrays));
  const int dim = checked_dim(axis, arrays[0].ndim());
  const auto d = static_cast<std::size_t>(dim);
  Shape shape = arrays[0].shape();
  shape[d] = 0;
  RemapParams p;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Shape& own = arrays[i].shape();
    Shape expected = arrays[0].shape();
    if (own.size() == expected.size()) expected[d] = own[d];
    if (!(own == expected))
      throw ShapeError(call_text() + ": array " + std::to_string(i) + " has shape " + to_string(own) +
                       ", array 0 has " + to_string(arrays[0].shape()) +
                       "; they must agree in every dimension but " + std::to_string(dim) +
                       ". Reshape or pad one of them");
    std::vector<std::int64_t> at(own.size(), 0);
    at[d] = shape[d];
    if (own.elements() > 0) p.pieces.push_back(whole_piece(static_cast<int>(i), own, at));
    shape[d] = shape[d] + own[d];
  }
  checked_bytes(shape, itemsize(arrays[0].dtype()), current_call().name);
  if (arrays.size() == 1) return arrays[0];
  p.shape = shape;
  return remap(std::move(p), std::move(arrays));
}

}  // namespace

Array concatenate(std::vector<Array> arrays, int axis, std::source_location where) {
  const Call call("concatenate", where);
  if (!arrays.empty() && arrays[0].node() && arrays[0].ndim() == 0)
    throw ShapeError(call_text() + ": scalars have no axis to be joined along; use stack");
  return concatenate_at(std::move(arrays), axis);
}

Array stack(std::vector<Array> arrays, int axis, std::source_location where) {
  const Call call("stack", where);
  arrays = promoted(std::move(arrays));
  const Shape shape = arrays[0].shape();
  const int dim = checked_dim(axis, arrays[0].ndim() + 1);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!(arrays[i].shape() == shape))
      throw ShapeError(call_text() + ": array " + std::to_string(i) + " has shape " +
                       to_string(arrays[i].shape()) + ", array 0 has " + to_string(shape) +
                       "; all must have the same shape");
    arrays[i] = expand_dims(arrays[i], dim);
  }
  return concatenate_at(std::move(arrays), dim);
}

}  // namespace tessera
