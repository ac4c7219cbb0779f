"""Reductions, order statistics, and what runs along an axis."""
from . import _core
from ._create import _array, words_of
from ._shapes import diagonal

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum",
           "max", "mean", "median", "min", "nanargmax", "nanargmin", "nanstd", "nanvar", "prod", "ptp", "std", "sum", "trace",
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


argmax, argmin, median, nanargmax, nanargmin = (_over_one_axis(f) for f in (_core.argmax, _core.argmin, _core.median, _core.nanargmax, _core.nanargmin))


def _nan_spread(function):
    def reduce(x, axis=None, *, correction=None, ddof=None, keepdims=False):
        return function(x, axis, keepdims, float(correction if correction is not None else ddof or 0))
    reduce.__name__, reduce.__doc__ = function.__name__, words_of(function)
    return reduce


nanvar, nanstd = _nan_spread(_core.nanvar), _nan_spread(_core.nanstd)


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
    return _core.trapezoid(y, dx, axis) if x is None else _core.trapezoid(y, _array(x), axis)


def trace(x, /, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of a diagonal of two axes."""
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype)
