// Linear maps that solvers apply: matrices, functions, their transposes, preconditioners.
#include <tessera/sparse/krylov.hpp>
#include <tessera/transforms.hpp>

#include "base/call.hpp"
#include "ops/build.hpp"
#include "sparse/solver.hpp"
#include "types/extents.hpp"

namespace tessera::sparse {

LinearMap::LinearMap(Csr a) : apply_([a](const Array& x) { return matmul(a, x); }), sparse_(std::move(a)) {}
LinearMap::LinearMap(Array a)
    : apply_([a](const Array& x) { return tessera::matmul(a, x); }), dense_(std::move(a)) {}

Array LinearMap::operator()(const Array& x) const {
  if (sparse_ || dense_) return apply_(x);
  const UserCode users;
  return apply_(x);
}

LinearMap LinearMap::transposed(const Array& example) const {
  if (sparse_) return sparse_->T();
  if (dense_) return transpose(*dense_);
  return [apply = apply_, example](const Array& g) {
    return std::get<0>(tessera::vjp(apply, stop_gradient(example)).second(g));
  };
}

void check_system(const LinearMap& a, const Array& b) {
  check_usable(b);
  if (!is_inexact(b.dtype()))
    throw DtypeError(call_text() + ": b has the dtype " + name(b.dtype()) +
                     "; convert it with astype(b, float64)");
  if (!a.sparse_ && !a.dense_) return;
  const Shape shape = a.sparse_ ? a.sparse_->shape() : a.dense_->shape();
  if (shape.ndim() != 2 || shape[0] != shape[1])
    throw ShapeError(call_text() + ": the matrix has the shape " + to_string(shape) +
                     "; it must be square. Least squares: linalg::lstsq");
  if (b.ndim() == 0 || b.shape()[0] != shape[1])
    throw ShapeError(call_text() + ": the matrix has the shape " + to_string(shape) + ", b " +
                     to_string(b.shape()) + "; the first dim of b must be " + std::to_string(shape[1]));
}

namespace {
void check_residual(const Array& x, std::int64_t rows) {
  if (x.ndim() > 0 && x.shape()[0] == rows) return;
  throw ShapeError(call_text() + ": the matrix has " + std::to_string(rows) + " rows, x the shape " +
                   to_string(x.shape()) + "; the first dim of x must be " + std::to_string(rows));
}
}  // namespace

LinearMap jacobi(const Csr& a, std::source_location where) {
  const Call call("jacobi", where);
  const Array reciprocals = 1 / diagonal(a, where);
  return [reciprocals, where](const Array& x) {
    const Call applied("jacobi", where);
    check_residual(x, reciprocals.shape()[0]);
    return x * reshape(reciprocals, with_ones(reciprocals.shape(), x.shape().size()));
  };
}

LinearMap block_jacobi(const Csr& a, std::source_location where) {
  const Call call("block_jacobi", where);
  const auto pattern = a.pattern();
  if (pattern->rows != pattern->columns)
    throw ShapeError(call_text() + ": the matrix has the shape " + to_string(a.shape()) +
                     "; it must be square");
  const Array factors = sparse_incomplete_lu(pattern, stop_gradient(a.values()));
  const bool is_transposed = a.is_transposed();
  return [pattern, factors, is_transposed, where](const Array& x) {
    const Call applied("block_jacobi", where);
    check_residual(x, pattern->rows);
    return sparse_solve_lu(pattern, cast_to(factors, x.dtype()), x, is_transposed);
  };
}

}  // namespace tessera::sparse
