#include "ops/build.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <complex>

#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"
#include "ops/left_out.hpp"
#include "types/extents.hpp"

namespace tessera {

int checked_dim(int axis, int ndim) {
  if (axis < -ndim || axis >= ndim)
    throw IndexError(call_text() + ": axis " + std::to_string(axis) + " is out of range for an array of " +
                     format_count(ndim, "dimension") + "; it must be in [" + std::to_string(-ndim) + ", " +
                     std::to_string(ndim) + ")");
  return axis < 0 ? axis + ndim : axis;
}

std::vector<int> checked_dims(const std::vector<int>& axes, int ndim, bool empty_means_all) {
  std::vector<int> dims;
  if (axes.empty() && empty_means_all)
    for (int d = 0; d < ndim; ++d) dims.push_back(d);
  for (const int axis : axes) dims.push_back(checked_dim(axis, ndim));
  std::sort(dims.begin(), dims.end());
  if (const auto twice = std::adjacent_find(dims.begin(), dims.end()); twice != dims.end())
    throw IndexError(call_text() + ": axis " + std::to_string(*twice) +
                     " is named twice; name each axis once");
  return dims;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  Shape result = a.size() < b.size() ? b : a;
  if (a == b) return result;
  for (std::size_t i = 0; i < result.size(); ++i) {  // from the last dimension
    const std::int64_t na = i < a.size() ? a[a.size() - 1 - i] : 1,
                       nb = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (na != nb && na != 1 && nb != 1)
      throw ShapeError(call_text() + ": the shapes " + to_string(a) + " and " + to_string(b) +
                       " do not broadcast: dimension " + std::to_string(-static_cast<int>(i) - 1) + " is " +
                       std::to_string(na) + " in one and " + std::to_string(nb) +
                       " in the other. Reshape one of them, or add a dimension with expand_dims");
    result[result.size() - 1 - i] = na == 1 ? nb : na;
  }
  return result;
}

Array cast_to(const Array& x, Dtype dtype) {
  if (x.dtype() == dtype && !x.is_weakly_typed()) return x;
  if (const auto value = scalar_value(x)) return make_scalar(*value, dtype, false);
  return astype(x, dtype);
}

Array sum_to_shape(const Array& cotangent, const Shape& shape) {
  const int lead = cotangent.ndim() - shape.ndim();
  if (!may_leave_out(cotangent)) {  // a dim may have one element on this rank alone
    std::vector<int> summed;
    for (int d = 0; d < cotangent.ndim(); ++d)
      if (d < lead || shape[d - lead] == 1) summed.push_back(d);
    // All ranks sum over the same number of dims: a ReproducibleScope records an op for each.
    const int more = cotangent.ndim() + 1 - static_cast<int>(summed.size());
    for (int& d : summed) d += more;
    for (int d = 0; d < more; ++d) summed.push_back(d);
    auto extents = cotangent.shape().vector();
    extents.insert(extents.begin(), static_cast<std::size_t>(more), 1);
    return reshape(sum(reshape(cotangent, Shape(std::move(extents))), Axes(summed)), shape);
  }
  if (cotangent.shape() == shape) return cotangent;
  std::vector<int> leading, kept;
  for (int d = 0; d < lead; ++d) leading.push_back(d);
  Array result = leading.empty() ? cotangent : sum(cotangent, Axes(leading));
  for (int d = 0; d < shape.ndim(); ++d)
    if (shape[d] == 1 && result.shape()[d] != 1) kept.push_back(d);
  return kept.empty() ? result : sum(result, Axes(kept), true);
}

Array sum_to_operand(const Array& cotangent, const Array& operand) {
  Array result = sum_to_shape(cotangent, operand.shape());
  if (is_complex(result.dtype()) && !is_complex(operand.dtype())) result = real(result);
  return result.dtype() == operand.dtype() ? result : astype(result, operand.dtype());
}

Array batch_first(const Array& x, int batch_dim) { return batch_dim == 0 ? x : moveaxis(x, batch_dim, 0); }

Array batched_in_front(const Array& x, int dim, std::int64_t size) {
  return dim == not_batched ? broadcast_to(expand_dims(x, 0), with_dim(x.shape(), 0, size))
                            : batch_first(x, dim);
}
Array batched_in_front(const BatchArgs& args, std::size_t i) {
  return batched_in_front(args.in[i], args.dims[i], args.size);
}

Batched batch_leading(const BatchArgs& args) {
  std::vector<Array> in;
  for (std::size_t i = 0; i < args.in.size(); ++i) in.push_back(batched_in_front(args, i));
  auto out = record_all(*args.node.op, args.node.params, std::move(in));
  std::vector<int> dims(out.size(), 0);
  return {std::move(out), std::move(dims)};
}

}  // namespace tessera
