/// @file
/// Control flow whose decisions may depend on values. Outside a trace these are plain C++ loops and branches
/// on values. Inside jit, vmap and similar functions they are one instruction of the compiled program that
/// owns its body: a loop of 10,000 steps is as large as one of ten, and only one side of a branch runs. Loops
/// of up to 8 steps are unrolled there.
///
/// Carried values keep their structure, shapes, dtypes and layout; the error for a mismatch names the leaf. A
/// carried value without a layout gets the one that the body's result has. If a body returns a value in
/// another layout, it is moved back in every step, or carried in the new layout if that moves fewer bytes
/// (see explain). Arrays that a body reads from outside are operands of gradients and vmap like all others;
/// computations that do not change between steps run once.
#pragma once
#include <source_location>
#include <type_traits>

#include <tessera/ops.hpp>
#include <tessera/tree.hpp>

namespace tessera {

/// value = body(i, value) for i in [lo, hi), from init. Not collective: records. In a trace, a body that
/// takes i as an Array is recorded once; one that takes a number is called for every i, and the loop is
/// unrolled if the steps differ in more than the numbers that they use.
template <class F, class T>
T fori_loop(int lo, int hi, F body, T init, std::source_location where = std::source_location::current());

/// A loop that carries a value and collects results: f(carry, x) -> pair{carry, y} along the leading dim of
/// xs; returns the last carry and the stacked ys. Every rank takes every step. In a trace, an array of xs
/// that is split along the steps stays split: its blocks are processed in order, each broadcast by its owner
/// along the axes that split it before the first of its steps, so that a rank holds its own block and one
/// more; or the split moves to another dim (all-to-all), if that moves fewer bytes. The ys are split along
/// the steps like the first such array of xs, unless one of their other dims is split over its axes.
/// ShapeError if the leading sizes of xs differ. Not collective: records.
template <class F, class C, class X>
std::invoke_result_t<F&, C, X> scan(F f, C init, X xs,
                                    std::source_location where = std::source_location::current());

/// pred ? f(args...) : g(args...): both are recorded and must return the same structure, shapes and dtypes
/// (ArgumentError, naming both); only one of them runs. Collective over all ranks outside a trace, where the
/// predicate is read; inside a trace it records. In a trace the predicate is made the same on all ranks,
/// which take the same branch together. If a predicate differs between ranks of a mapped function, or between
/// examples of vmap, both branches run and the results are selected elementwise.
template <class F, class G, class... A>
std::invoke_result_t<F&, const A&...> cond(const Operand& predicate, F f, G g, const A&... args);

/// value = init; while (condition(value)) value = body(value). Collective over all ranks outside a trace,
/// where the condition is read in each step; inside a trace it records. In a trace the number of steps is
/// unknown: there is jvp, but no gradient (use fori_loop or scan). Under vmap it runs until all examples are
/// finished; finished ones keep their values. ShapeError and DtypeError unless the condition is one bool.
template <class C, class F, class T>
T while_loop(C condition, F body, T init, std::source_location where = std::source_location::current());

}  // namespace tessera

#include <tessera/detail/control.hpp>
