/// @file
/// Control flow whose decisions may depend on values. Outside a trace these are plain C++ loops and
/// branches on values. Inside jit, vmap and the like they are one instruction of the compiled program that
/// owns its body: a loop of 10,000 steps is as large as one of ten, and of a branch one side runs. Loops of
/// up to 8 steps are unrolled there.
///
/// What a loop carries keeps its structure, shapes, dtypes and layout; the error that says otherwise names
/// the leaf. A carried value without a layout gets that in which the body leaves it; a body that leaves one
/// elsewhere than it was moves it back in every step, if that moves less than carrying it there (see
/// explain). Arrays that a body reads from around it are gradients' and vmap's operands like all others;
/// what does not change from step to step is computed once.
#pragma once
#include <source_location>
#include <type_traits>

#include <tessera/ops.hpp>
#include <tessera/tree.hpp>

namespace tessera {

/// value = body(i, value) for i in [lo, hi), from init. Not collective: records. In a trace, a body that
/// takes i as an Array is recorded once; one that takes a number is called for every i, and the loop is
/// unrolled when the steps differ in more than the numbers that they use.
template <class F, class T>
T fori_loop(int lo, int hi, F body, T init, std::source_location where = std::source_location::current());

/// A loop that carries a value and collects results: f(carry, x) -> pair{carry, y} along the leading dim of
/// xs; returns the last carry and the ys stacked. Every rank takes every step. An array of xs that is split
/// along the steps stays so in a trace: its blocks are walked one after the other, each sent by its owner
/// (broadcast) to the ranks along the axes that split it before the first of its steps, so that a rank holds
/// its own block and one more; or the split moves to another dim (all-to-all), where that moves less. The ys
/// are split along the steps as the first such array of xs is, unless one of their other dims is split over
/// its axes. ShapeError when the leading sizes of xs differ. Not collective: records.
template <class F, class C, class X>
std::invoke_result_t<F&, C, X> scan(F f, C init, X xs,
                                    std::source_location where = std::source_location::current());

/// pred ? f(args...) : g(args...): both are recorded and must return the same structure, shapes and dtypes
/// (ArgumentError, naming both); only one of them runs. Collective over all ranks outside a trace, where
/// the predicate is read; inside it records. In a trace the predicate is made the same on all ranks, which
/// enter the same branch together. Where a predicate differs from rank to rank of a mapped function, or from
/// example to example of vmap, both branches run and the results are selected from.
template <class F, class G, class... A>
std::invoke_result_t<F&, const A&...> cond(const Operand& predicate, F f, G g, const A&... args);

/// value = init; while (condition(value)) value = body(value). Collective over all ranks outside a trace,
/// where the condition is read in each step; inside it records. In a trace the number of steps is not
/// known: there is jvp, but no gradient (use fori_loop or scan). Mapped by vmap it runs until all examples
/// are done, those that are keep their values. ShapeError and DtypeError unless the condition is one bool.
template <class C, class F, class T>
T while_loop(C condition, F body, T init, std::source_location where = std::source_location::current());

}  // namespace tessera

#include <tessera/detail/control.hpp>
