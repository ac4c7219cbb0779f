// Reductions, and what else runs along axes: arg-reductions, softmax, cumulative sums, order statistics.
//
// Over all axes unless some are named. A split axis costs one all-reduce of the result.
#pragma once
#include <tessera/array.hpp>
#include <tessera/ops/axes.hpp>

namespace tessera {

Array sum(const Operand& x, Axes axes = {}, bool keepdims = false);
Array prod(const Operand& x, Axes axes = {}, bool keepdims = false);
Array mean(const Operand& x, Axes axes = {}, bool keepdims = false);
Array var(const Operand& x, Axes axes = {}, bool keepdims = false);
Array std(const Operand& x, Axes axes = {}, bool keepdims = false);
Array max(const Operand& x, Axes axes = {}, bool keepdims = false);
Array min(const Operand& x, Axes axes = {}, bool keepdims = false);
Array ptp(const Operand& x, Axes axes = {}, bool keepdims = false);
Array all(const Operand& x, Axes axes = {}, bool keepdims = false);
Array any(const Operand& x, Axes axes = {}, bool keepdims = false);
Array count_nonzero(const Operand& x, Axes axes = {}, bool keepdims = false);
Array logsumexp(const Operand& x, Axes axes = {}, bool keepdims = false);
Array median(const Operand& x);  // of all elements; NaN if there is one
Array median(const Operand& x, int axis, bool keepdims = false);
Array average(const Operand& x, const Operand& weights, Axes axes = {},
              bool keepdims = false);  // weights broadcast to x
Array argmax(const Operand& x);
Array argmax(const Operand& x, int axis, bool keepdims = false);
Array argmin(const Operand& x);
Array argmin(const Operand& x, int axis, bool keepdims = false);

// ---- along one axis: the result has the shape of x ----
Array softmax(const Operand& x, int axis = -1);
Array log_softmax(const Operand& x, int axis = -1);
Array cumsum(const Operand& x, int axis);
Array cumprod(const Operand& x, int axis);

}  // namespace tessera
