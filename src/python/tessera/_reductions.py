"""Reductions, order statistics, and cumulative functions."""
import math

from . import _core
from ._create import _array, refuse_out, words_of
from ._shapes import diagonal

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum",
           "max", "mean", "median", "min", "nanargmax", "nanargmin", "nanmedian", "nanstd", "nanvar", "prod", "ptp", "std", "sum", "trace",
           "trapezoid", "var", "log_softmax", "softmax", "logsumexp", "nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nancumsum", "nancumprod", "cummax", "cummin", "cumlogsumexp", "square_sum"]

def _over(x, axis, keepdims):
    """axis=() reduces nothing: computed as a reduction over a new axis of extent 1."""
    return (_core.expand_dims(_array(x), _array(x).ndim), -1, False) if axis == () else (x, axis, keepdims)


def _is_mask(where):
    """where=None and where=True take every element."""
    return where is not None and where is not True


def _kept(x, where, neutral):
    """x with the neutral element where the mask is false."""
    return _core.where(_array(where), x, neutral) if _is_mask(where) else x


def _reduction(function, neutral, combine):
    def reduce(x, /, axis=None, dtype=None, keepdims=False, where=None, *, out=None, initial=None):
        refuse_out(function.__name__, out)
        if keepdims is None:  # NumPy's order: axis, dtype, out, keepdims
            keepdims, where = bool(where), None
        x, axis, keepdims = _over(_kept(x, where, neutral), axis, keepdims)
        if dtype is None:
            result = function(x, axis, keepdims)
        elif function in (_core.sum, _core.prod):
            result = function(x, axis, dtype, keepdims)
        else:
            result = _core.astype(function(_core.astype(_array(x), dtype), axis, keepdims), dtype)
        return result if initial is None else combine(result, initial)
    reduce.__name__ = reduce.__qualname__ = function.__name__
    reduce.__doc__ = words_of(function)
    return reduce


sum, prod = _reduction(_core.sum, 0, _core.add), _reduction(_core.prod, 1, _core.multiply)


def _plain(function, neutral=None):
    def reduce(x, /, axis=None, keepdims=False, *, dtype=None, out=None, where=None):
        refuse_out(function.__name__, out)
        if _is_mask(where) and neutral is None:
            raise TypeError(f"{function.__name__} at {_core.here()} has no where=; write {function.__name__}(where(mask, x, ...)) with a number that does not count")
        if function is _core.nanmean:
            _has_fractions("nanmean", dtype)
        x, axis, keepdims = _over(_kept(x, where, neutral), axis, keepdims)
        return function(x if dtype is None else _core.astype(_array(x), dtype), axis, keepdims)
    reduce.__name__ = reduce.__qualname__ = function.__name__
    reduce.__doc__ = words_of(function)
    return reduce


def _extreme(function, combine, neutral=None):
    def reduce(x, /, axis=None, keepdims=False, *, dtype=None, out=None, initial=None, where=None):
        refuse_out(function.__name__, out)
        if _is_mask(where) and initial is None and neutral is None:
            raise ValueError(f"{function.__name__} at {_core.here()}: with where= it needs initial=, the result where no element counts")
        if isinstance(initial, int) and _array(x).dtype.kind == "b":
            initial = bool(initial)
        x, axis, keepdims = _over(_kept(x, where, initial if neutral is None else neutral), axis, keepdims)
        result = function(x if dtype is None else _core.astype(_array(x), dtype), axis, keepdims)
        return result if initial is None else combine(result, initial)
    reduce.__name__ = reduce.__qualname__ = function.__name__
    reduce.__doc__ = words_of(function)
    return reduce


all, any, ptp, logsumexp, count_nonzero = _plain(_core.all, True), _plain(_core.any, False), _plain(_core.ptp), _plain(_core.logsumexp), _plain(_core.count_nonzero, 0)
max, min = _extreme(_core.max, _core.maximum), _extreme(_core.min, _core.minimum)
amax, amin = max, min
nansum, nanprod = _reduction(_core.nansum, 0, _core.add), _reduction(_core.nanprod, 1, _core.multiply)
nanmean = _plain(_core.nanmean, math.nan)
nanmax, nanmin = _extreme(_core.nanmax, _core.fmax, math.nan), _extreme(_core.nanmin, _core.fmin, math.nan)


def _has_fractions(name, dtype):
    """Whether a mean or spread of that dtype has fractions; NumPy's mean of integers has none, a spread of integers means nothing."""
    kind = "f" if dtype is None else _core.dtype(dtype).kind
    if kind == "b" or kind in "iu" and name != "mean":
        raise TypeError(f"{name} at {_core.here()}: dtype={_core.dtype(dtype)} holds no fractions; take a dtype of floating numbers, or cast the result: {name}(x).astype(...)")
    return kind not in "iu"


def mean(x, /, axis=None, keepdims=False, *, dtype=None, out=None, where=None):
    refuse_out("mean", out)
    if not _has_fractions("mean", dtype):  # NumPy's: the sum as an integer, divided, without what is behind the point
        mask = _core.broadcast_to(_array(where if _is_mask(where) else True), _array(x).shape)
        total, count = sum(x, axis, dtype, keepdims, where), sum(mask, axis, keepdims=keepdims)
        return _core.astype(_core.divide(_core.astype(total, "float64"), count), dtype)
    x = _array(x) if dtype is None else _core.astype(_array(x), dtype)
    if _is_mask(where):
        mask = _core.broadcast_to(_array(where), x.shape)
        return sum(x, axis, keepdims=keepdims, where=mask) / sum(mask, axis, keepdims=keepdims)
    return _core.mean(*_over(x, axis, keepdims))


mean.__doc__ = words_of(_core.mean)


def _of_spread(name, x, dtype):
    x = _array(x)
    _has_fractions(name, dtype)
    if dtype is not None and x.dtype.kind == "c" and _core.dtype(dtype).kind != "c":
        raise TypeError(f"{name} at {_core.here()}: dtype={_core.dtype(dtype)} would drop the imaginary parts of {x.dtype}; take real(x) first, or a complex dtype")
    return x if dtype is None else _core.astype(x, dtype)


def _spread_of(function, x, axis, correction, ddof, keepdims, dtype, out, where):
    refuse_out(function.__name__, out)
    x = _of_spread(function.__name__, x, dtype)
    freedom = float(correction if correction is not None else ddof or 0)
    if not _is_mask(where):
        return function(*_over(x, axis, keepdims), freedom)
    mask = _core.broadcast_to(_array(where), x.shape)
    apart = x - mean(x, axis, True, where=mask)
    variance = sum(_core.square(_core.abs(apart)), axis, keepdims=keepdims, where=mask) / (sum(mask, axis, keepdims=keepdims) - freedom)
    return variance if function is _core.var else _core.sqrt(variance)


def var(x, /, axis=None, *, correction=None, ddof=None, keepdims=False, dtype=None, out=None, where=None):
    """The mean square distance from the mean, divided by n - correction."""
    return _spread_of(_core.var, x, axis, correction, ddof, keepdims, dtype, out, where)


def std(x, /, axis=None, *, correction=None, ddof=None, keepdims=False, dtype=None, out=None, where=None):
    """sqrt(var(x))."""
    return _spread_of(_core.std, x, axis, correction, ddof, keepdims, dtype, out, where)


def average(x, axis=None, weights=None, keepdims=False, *, returned=False):
    """sum(x w) / sum(w); with returned also sum(w), of the same shape."""
    found = mean(x, axis, keepdims) if weights is None else _core.average(x, weights, axis, keepdims)
    if not returned:
        return found
    x, weights = _array(x), _array(1.0 if weights is None else weights)
    if weights.ndim == 1 and x.ndim > 1:  # of the elements along the axis
        weights = _core.reshape(weights, [-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    total = sum(_core.broadcast_to(weights, x.shape), axis, keepdims=keepdims)
    return found, _core.astype(total, found.dtype)


def _over_one_axis(function):
    def reduce(x, /, axis=None, keepdims=False, *, out=None):
        refuse_out(function.__name__, out)
        if axis is not None:
            return function(x, axis, keepdims)
        result = function(x)
        return _core.reshape(result, (1,) * _array(x).ndim) if keepdims else result
    reduce.__name__ = reduce.__qualname__ = function.__name__
    reduce.__doc__ = words_of(function)
    return reduce


argmax, argmin, nanargmax, nanargmin = (_over_one_axis(f) for f in (_core.argmax, _core.argmin, _core.nanargmax, _core.nanargmin))

def _median(function):
    of_axis = _over_one_axis(function)

    def median(x, /, axis=None, keepdims=False, *, out=None):
        if axis is None or isinstance(axis, int):
            return of_axis(x, axis, keepdims, out=out)
        refuse_out(function.__name__, out)
        x, axis, keepdims = _over(_array(x), tuple(axis), keepdims)
        return function(x, [axis] if isinstance(axis, int) else list(axis), keepdims)
    median.__name__ = median.__qualname__ = function.__name__
    median.__doc__ = words_of(function)
    return median


median, nanmedian = _median(_core.median), _median(_core.nanmedian)


def _nan_spread(function):
    def reduce(x, axis=None, *, correction=None, ddof=None, keepdims=False, out=None, dtype=None, where=None):
        refuse_out(function.__name__, out)
        x = _of_spread(function.__name__, x, dtype)
        x, axis, keepdims = _over(_kept(x, where, math.nan), axis, keepdims)
        return function(x, axis, keepdims, float(correction if correction is not None else ddof or 0))
    reduce.__name__ = reduce.__qualname__ = function.__name__
    reduce.__doc__ = words_of(function)
    return reduce


nanvar, nanstd = _nan_spread(_core.nanvar), _nan_spread(_core.nanstd)


def _axis_of_one(x, axis, name):
    if axis is not None:
        return x, axis
    if x.ndim != 1 and name.startswith("cumulative"):
        raise ValueError(f"{name}: an array of {x.ndim} dimensions needs an axis")
    return (x if x.ndim == 1 else _core.reshape(x, (-1,))), 0


def _cumulative(function, name):
    def accumulate(x, /, axis=None, *, dtype=None, include_initial=False, reverse=False, out=None):
        refuse_out(name, out)
        x, axis = _axis_of_one(_array(x), axis, name)
        return function(x, axis, dtype=dtype, include_initial=include_initial, reverse=reverse)
    accumulate.__name__ = accumulate.__qualname__ = name
    accumulate.__doc__ = words_of(function)
    return accumulate


cumulative_sum, cumulative_prod = _cumulative(_core.cumsum, "cumulative_sum"), _cumulative(_core.cumprod, "cumulative_prod")
cumsum, cumprod = _cumulative(_core.cumsum, "cumsum"), _cumulative(_core.cumprod, "cumprod")


def _nan_cumulative(function):
    def accumulate(x, /, axis=None, *, dtype=None, out=None):
        refuse_out(function.__name__, out)
        x, axis = _axis_of_one(_array(x), axis, function.__name__)
        return function(x if dtype is None else _core.astype(x, dtype), axis)
    accumulate.__name__ = accumulate.__qualname__ = function.__name__
    accumulate.__doc__ = words_of(function)
    return accumulate


nancumsum, nancumprod = _nan_cumulative(_core.nancumsum), _nan_cumulative(_core.nancumprod)
cummax, cummin, cumlogsumexp = _core.cummax, _core.cummin, _core.cumlogsumexp
softmax, log_softmax = _core.softmax, _core.log_softmax


def square_sum(x, axis=None, keepdims=False):
    """sum(x * x)."""
    return sum(_core.square(x), axis, keepdims=keepdims)


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral by the trapezoidal rule."""
    return _core.trapezoid(y, dx, axis) if x is None else _core.trapezoid(y, _array(x, y), axis)


def trace(x, /, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of a diagonal of two axes."""
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype)
