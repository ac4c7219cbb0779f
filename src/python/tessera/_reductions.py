"""Reductions, order statistics, and what runs along an axis."""
import math

import numpy as _np

from . import _core
from ._create import _array, asarray, words_of
from ._shapes import _along, diagonal

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum",
           "max", "mean", "median", "min", "nanmax", "nanmean", "nanmin", "nansum", "percentile", "prod", "ptp", "quantile", "std", "sum", "trace",
           "trapezoid", "var", "log_softmax", "softmax", "logsumexp", "cummax", "cummin", "cumlogsumexp", "square_sum"]

def _over(x, axis, keepdims):
    """axis=() reduces nothing: that is a reduction over a new axis of extent 1."""
    return (_core.expand_dims(_array(x), _array(x).ndim), -1, False) if axis == () else (x, axis, keepdims)


def _reduction(function):
    def reduce(x, /, axis=None, dtype=None, keepdims=False, where=None):
        if where is not None:
            raise TypeError(f"{function.__name__} has no where=; write {function.__name__}(where(mask, x, neutral))")
        x, axis, keepdims = _over(x, axis, keepdims)
        return function(x, axis, keepdims) if dtype is None else function(x, axis, dtype, keepdims)
    reduce.__name__, reduce.__doc__ = function.__name__, words_of(function)
    return reduce


sum, prod = _reduction(_core.sum), _reduction(_core.prod)


def _plain(function, name=None):
    def reduce(x, /, axis=None, keepdims=False, *, dtype=None):
        x, axis, keepdims = _over(x, axis, keepdims)
        return function(x if dtype is None else _core.astype(_array(x), dtype), axis, keepdims)
    reduce.__name__, reduce.__doc__ = name or function.__name__, words_of(function)
    return reduce


mean, max, min, all, any, ptp, logsumexp = (_plain(f) for f in (_core.mean, _core.max, _core.min, _core.all, _core.any, _core.ptp, _core.logsumexp))
amax, amin = max, min
count_nonzero = _plain(_core.count_nonzero)


def var(x, /, axis=None, *, correction=None, ddof=None, keepdims=False):
    """The mean square distance from the mean, divided by n - correction."""
    x, axis, keepdims = _over(x, axis, keepdims)
    return _core.var(x, axis, keepdims, float(correction if correction is not None else ddof or 0))


def std(x, /, axis=None, *, correction=None, ddof=None, keepdims=False):
    """sqrt(var(x))."""
    x, axis, keepdims = _over(x, axis, keepdims)
    return _core.std(x, axis, keepdims, float(correction if correction is not None else ddof or 0))


def average(x, axis=None, weights=None, keepdims=False):
    """sum(x w) / sum(w)."""
    return mean(x, axis, keepdims) if weights is None else _core.average(x, weights, axis, keepdims)


def _over_one_axis(function):
    def reduce(x, /, axis=None, keepdims=False):
        if axis is not None:
            return function(x, axis, keepdims)
        result = function(x)
        return _core.reshape(result, (1,) * _array(x).ndim) if keepdims else result
    reduce.__name__, reduce.__doc__ = function.__name__, words_of(function)
    return reduce


argmax, argmin, median = (_over_one_axis(f) for f in (_core.argmax, _core.argmin, _core.median))


def _sorted_values(x, axis):
    x = _array(x)
    if axis is None:
        return _core.sort(_core.reshape(x, (-1,)), 0), 0
    return _core.sort(x, axis), axis % x.ndim


def quantile(x, q, axis=None, keepdims=False, method="linear"):
    """The value below which a share q of the elements lies, between neighbours by NumPy's methods. Sorts."""
    x = _array(x)
    if not x.dtype.kind in "f":
        x = _core.astype(x, _core.float32)
    ordered, at = _sorted_values(x, axis)
    places = _np.asarray(q, dtype=float) * (ordered.shape[at] - 1)
    low, high = _np.floor(places).astype(int), _np.ceil(places).astype(int)
    take_at = lambda n: _core.take(ordered, asarray(n.astype(_np.int32)), at)  # noqa: E731
    share = asarray((places - low).astype(_np.float32).reshape(places.shape + (1,) * (ordered.ndim - at - 1)))
    below, above = take_at(low), take_at(high)
    picked = {"lower": below, "higher": above, "nearest": take_at(_np.rint(places).astype(int)), "midpoint": (below + above) / 2}.get(method)
    result = below + (above - below) * _core.astype(share, x.dtype) if picked is None else picked
    result = _core.where(_core.isnan(_core.expand_dims(max(x, axis, False), 0) if places.ndim and axis is None else max(x, axis)), _np.nan, result) if places.ndim == 0 else result
    if places.ndim == 1 and at != 0:
        result = _core.moveaxis(result, at, 0)
    if keepdims:
        kept = tuple(1 for _ in x.shape) if axis is None else tuple(1 if d == axis % x.ndim else n for d, n in enumerate(x.shape))
        result = _core.reshape(result, places.shape + kept)
    return result


def percentile(x, q, axis=None, keepdims=False, method="linear"):
    """quantile with q in percent."""
    return quantile(x, _np.asarray(q, dtype=float) / 100, axis, keepdims, method)


def _without_nan(function, neutral):
    def reduce(x, axis=None, keepdims=False):
        x = _array(x)
        return function(_core.where(_core.isnan(x), neutral, x), axis, keepdims=keepdims)
    return reduce


nansum, nanmax, nanmin = _without_nan(sum, 0), _without_nan(max, -math.inf), _without_nan(min, math.inf)


def nanmean(x, axis=None, keepdims=False):
    """The mean of the elements that are no NaN."""
    x = _array(x)
    return nansum(x, axis, keepdims) / sum(_core.astype(_core.logical_not(_core.isnan(x)), x.dtype), axis, keepdims=keepdims)


def _axis_of_one(x, axis, name):
    if axis is not None:
        return x, axis
    if x.ndim != 1 and name.startswith("cumulative"):
        raise ValueError(f"{name}: an array of {x.ndim} dimensions needs an axis")
    return (x if x.ndim == 1 else _core.reshape(x, (-1,))), 0


def _cumulative(function, name):
    def accumulate(x, /, axis=None, *, dtype=None, include_initial=False, reverse=False):
        x, axis = _axis_of_one(_array(x), axis, name)
        return function(x, axis, dtype=dtype, include_initial=include_initial, reverse=reverse)
    accumulate.__name__, accumulate.__doc__ = name, words_of(function)
    return accumulate


cumulative_sum, cumulative_prod = _cumulative(_core.cumsum, "cumulative_sum"), _cumulative(_core.cumprod, "cumulative_prod")
cumsum, cumprod = _cumulative(_core.cumsum, "cumsum"), _cumulative(_core.cumprod, "cumprod")
cummax, cummin, cumlogsumexp = _core.cummax, _core.cummin, _core.cumlogsumexp
softmax, log_softmax = _core.softmax, _core.log_softmax


def square_sum(x, axis=None, keepdims=False):
    """sum(x * x)."""
    return sum(_core.square(x), axis, keepdims=keepdims)


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral by the trapezoidal rule."""
    y = _array(y)
    ends = [_along(y, axis, slice(1, None)), _along(y, axis, slice(None, -1))]
    steps = dx if x is None else _core.diff(x) if _array(x).ndim == 1 else _core.diff(x, 1, axis)
    return sum((ends[0] + ends[1]) * steps / 2, axis)


def trace(x, /, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of a diagonal of two axes."""
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype)
