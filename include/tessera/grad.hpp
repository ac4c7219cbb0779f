/// @file
/// Gradients: reverse mode, recorded as ordinary graphs, and related functions.
///
/// A gradient is recorded like any other computation: nothing runs until a value is requested, results can be
/// differentiated again, and jit, vmap and shard_map apply to them. A gradient has the shape, dtype and (for
/// a committed operand) the sharding of its operand. Complex operands follow JAX: transposes of
/// complex-linear maps without conjugation, so that the gradient of a real f is df/dRe - i df/dIm.
///
/// Nothing here is collective: functions and their results record. Communication is that of the recorded ops:
/// for a replicated operand used with split data, one all-reduce of its gradient. Errors, when recorded:
/// ShapeError and DtypeError for a result that is not a real scalar, DtypeError for integer arguments,
/// ArgumentError for trees of another structure and for ops without a derivative, named with their line.
#pragma once
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tessera/detail/gradients.hpp>
#include <tessera/grad/policies.hpp>
#include <tessera/tree.hpp>

namespace tessera {

/// grad(f)(args...): the gradient of the scalar f(args...) with respect to the chosen arguments (the first,
/// unless argnums are given). The others may be of any type.
template <int... Argnums, class F>
GradOf<F, Argnums...> grad(F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

/// value_and_grad(f)(args...): pair{f(args...), gradient}. f may also return pair{value, aux}: aux is a tree
/// that is returned unchanged.
template <int... Argnums, class F>
ValueAndGradOf<F, Argnums...> value_and_grad(F f,
                                             std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}
/// value_and_grad of a function that returns pair{value, aux}.
template <int... Argnums, class F> ValueAndGradOf<F, Argnums...> value_and_grad_aux(
    F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

/// {f(args...), pullback}. All arguments must be trees.
template <class F, class... A> auto vjp(F f, const A&... args);

/// {f(primals...), its derivative along the tangents}. Forward mode by transposing the pullback: parts of it
/// that are not needed are never computed.
template <class F, class... A, class... T>
auto jvp(F f, std::tuple<A...> primals, std::tuple<T...> tangents,
         std::source_location where = std::source_location::current());

/// jacrev(f)(args...): for each leaf of the chosen arguments the array d f / d leaf, of f's shape + leaf's
/// shape.
template <int... Argnums, class F>
JacobianOf<F, Argnums...> jacrev(F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

/// hessian(f)(args...): for each leaf x of the chosen arguments the array d2 f / dx2 of shape x.shape +
/// x.shape. Mixed blocks: jacrev<1>(grad<0>(f)).
template <int... Argnums, class F>
HessianOf<F, Argnums...> hessian(F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}

/// checkpoint(f): f, with a backward pass that recomputes f's intermediate values instead of storing them:
/// saves memory for more arithmetic. The values are recomputed when the cotangents are available, one
/// checkpoint at a time.
template <class F>
Checkpointed<F> checkpoint(F f, std::source_location where = std::source_location::current()) {
  return {std::move(f), where};
}
/// The same, where the values that the policy names (checkpoint_policies) are kept and only the others are
/// computed again. f has to record the same ops each time that it is called.
template <class F> Checkpointed<F> checkpoint(F f, CheckpointPolicy policy,
                                              std::source_location where = std::source_location::current()) {
  return {std::move(f), where, std::move(policy)};
}

/// custom_vjp(f, fwd, bwd): f, with your own backward pass.
///   fwd(args...) -> pair{f(args...), residuals}     bwd(residuals, cotangent of the result) -> tuple of
///     cotangents of the arguments
/// The value is f's. fwd is recorded when a gradient is requested; computations shared with f run once. bwd
/// may return None for an argument without a gradient, and one tree instead of a tuple if there is only one
/// argument. Gradients of gradients pass through fwd and bwd.
template <class F, class Fwd, class Bwd>
CustomVjp<F, Fwd, Bwd> custom_vjp(F f, Fwd fwd, Bwd bwd,
                                  std::source_location where = std::source_location::current()) {
  return {std::move(f), std::move(fwd), std::move(bwd), where};
}

/// The tree unchanged, without gradients through it.
template <class T>
T stop_gradient(const T& tree, std::source_location where = std::source_location::current()) {
  if constexpr (std::is_arithmetic_v<T>)
    return tree;
  else
    return tree_map([&](const Array& leaf) { return detail::stop_gradient_leaf(leaf, where); }, tree);
}

}  // namespace tessera

#include <tessera/detail/grad.hpp>
