#include "sparse/solver.hpp"

#include <tessera/transforms.hpp>

#include <algorithm>
#include <limits>
#include <string>

#include "base/call.hpp"
#include "ops/build.hpp"

namespace tessera::sparse {

Array inner(const Array& a, const Array& b) { return sum((is_complex(a.dtype()) ? conj(a) : a) * b); }
Array real_inner(const Array& a, const Array& b) {
  const Array all = inner(a, b);
  return is_complex(all.dtype()) ? real(all) : all;
}

void check_options(const SolverOptions& o) {
  if (o.tol < 0 || o.atol < 0 || o.maxiter < 0)
    throw ArgumentError(call_text() + ": tol " + std::to_string(o.tol) + ", atol " + std::to_string(o.atol) +
                        " and maxiter " + std::to_string(o.maxiter) + " must not be negative");
  if (o.restart < 1)
    throw ArgumentError(call_text() + ": restart is " + std::to_string(o.restart) +
                        "; it must be at least 1");
}

namespace {
// The map on vectors of b's dtype, which their images must not exceed: iterations carry them.
std::function<Array(const Array&)> checked(const LinearMap& map, const std::string& what, Dtype dtype) {
  return [=](const Array& x) {
    Array image = map(x);
    const Dtype together = promote(WeakDtype{image.dtype()}, WeakDtype{dtype}).dtype;
    if (!(together == dtype))
      throw DtypeError(call_text() + ": b has the dtype " + name(dtype) + ", but " + what + " makes " +
                       name(image.dtype()) + " of it; convert b with astype(b, " + name(together) + "), or " +
                       what);
    return image;
  };
}
}  // namespace

SparseSystem system_of(const LinearMap& a, const Array& b, const SolverOptions& o) {
  SparseSystem s;
  s.a = checked(a, "the matrix", b.dtype());
  s.precondition = [](const Array& x) { return x; };
  if (o.preconditioner) s.precondition = checked(*o.preconditioner, "the preconditioner", b.dtype());
  s.b = b;
  s.x0 = o.x0 ? cast_to(*o.x0, b.dtype()) : zeros_like(b);
  s.limit = maximum(o.tol * o.tol * real_inner(b, b), o.atol * o.atol);
  s.maxiter = o.maxiter > 0 ? o.maxiter : 10 * std::max<std::int64_t>(b.size(), 1);
  s.maxiter = std::min<std::int64_t>(s.maxiter, std::numeric_limits<std::int32_t>::max());
  s.restart = static_cast<int>(std::min<std::int64_t>(o.restart, std::max<std::int64_t>(b.size(), 1)));
  return s;
}

// The value is x. Its derivative is that of a^-1 r at r = b - a x: with x held constant, b and all values
// that a depends on affect the result through r, and the backward pass is one solve with the transposed
// function.
Solution solved(Iteration iterate, const LinearMap& a, const Array& b, const SolverOptions& options) {
  check_options(options);
  check_system(a, b);
  if (options.x0 && options.x0->shape() != b.shape())
    throw ShapeError(call_text() + ": x0 has the shape " + to_string(options.x0->shape()) + ", b " +
                     to_string(b.shape()) + "; they must be alike");
  Solution found = iterate(system_of(a, b, options));
  const Array example = stop_gradient(found.x);
  const auto correct =
      custom_vjp([](const Array& x, const Array&) { return x; },
                 [](const Array& x, const Array&) {
                   return std::pair{x, x};
                 },
                 [=](const Array&, const Array& g) {
                   SolverOptions back = options;
                   back.x0.reset();
                   if (options.preconditioner)
                     back.preconditioner = options.preconditioner->transposed(example);
                   return std::tuple{None, solved(iterate, a.transposed(example), g, back).x};
                 });
  found.x = correct(example, b - a(example));
  found.iterations = stop_gradient(found.iterations);
  found.residual = stop_gradient(found.residual);
  return found;
}

}  // namespace tessera::sparse
