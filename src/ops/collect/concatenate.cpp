// Arrays side by side. The result has the sharding of the operand that makes the cheapest exchange; every
// rank receives the parts of its own block only.
#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/remap_op.hpp"

namespace tessera {
namespace {

std::vector<Array> promoted(std::vector<Array> arrays, const char* call, std::source_location where) {
  if (arrays.empty())
    throw ArgumentError(call_text(call, where) + ": the list of arrays is empty; give at least one");
  std::vector<WeakDtype> types;
  for (const auto& x : arrays) {
    check_usable(x, call);
    types.push_back({x.dtype(), x.is_weakly_typed()});
  }
  const Dtype dtype = promote(types).dtype;
  for (auto& x : arrays) x = cast_to(x, dtype, where);
  return arrays;
}

Array concatenate_at(std::vector<Array> arrays, int axis, const char* call, std::source_location where) {
  arrays = promoted(std::move(arrays), call, where);
  const int dim = checked_dim(axis, arrays[0].ndim(), call, where);
  const auto d = static_cast<std::size_t>(dim);
  Shape shape = arrays[0].shape();
  shape[d] = 0;
  RemapParams p;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Shape& own = arrays[i].shape();
    Shape expected = arrays[0].shape();
    if (own.size() == expected.size()) expected[d] = own[d];
    if (!(own == expected))
      throw ShapeError(call_text(call, where) + ": array " + std::to_string(i) + " has shape " +
                       to_string(own) + ", array 0 has " + to_string(arrays[0].shape()) +
                       "; they must agree in every dimension but " + std::to_string(dim) +
                       ". Reshape or pad one of them");
    std::vector<std::int64_t> at(own.size(), 0);
    at[d] = shape[d];
    if (own.elements() > 0) p.pieces.push_back(whole_piece(static_cast<int>(i), own, at));
    shape[d] = shape[d] + own[d];
  }
  checked_bytes(shape, itemsize(arrays[0].dtype()), call);
  if (arrays.size() == 1) return arrays[0];
  p.shape = shape;
  return remap(RemapName::concatenate, std::move(p), std::move(arrays), where);
}

}  // namespace

Array concatenate(std::vector<Array> arrays, int axis, std::source_location where) {
  if (!arrays.empty() && arrays[0].node() && arrays[0].ndim() == 0)
    throw ShapeError(call_text("concatenate", where) +
                     ": scalars have no axis to be joined along; use stack");
  return concatenate_at(std::move(arrays), axis, "concatenate", where);
}

Array stack(std::vector<Array> arrays, int axis, std::source_location where) {
  arrays = promoted(std::move(arrays), "stack", where);
  const Shape shape = arrays[0].shape();
  const int dim = checked_dim(axis, arrays[0].ndim() + 1, "stack", where);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!(arrays[i].shape() == shape))
      throw ShapeError(call_text("stack", where) + ": array " + std::to_string(i) + " has shape " +
                       to_string(arrays[i].shape()) + ", array 0 has " + to_string(shape) +
                       "; all must have one shape");
    arrays[i] = expand_dims(Operand(arrays[i], where), dim);
  }
  return concatenate_at(std::move(arrays), dim, "stack", where);
}

}  // namespace tessera
