"""NumPy's functions that are one or two lines of others."""
import builtins
import math
import operator

import numpy as _np

from . import _core
from ._create import _array, axis_of, copy_to_numpy
from ._shapes import concatenate, moveaxis, ravel

__all__ = ["apply_over_axes", "around", "bitwise_count", "degrees", "ediff1d", "fabs", "fix", "fromfunction", "isneginf", "isposinf", "isrealobj", "isscalar", "modf", "nan_to_num", "packbits",
           "piecewise", "radians", "real_if_close", "rint", "round", "sort_complex", "spacing", "trim_zeros", "unpackbits", "unwrap"]

degrees, radians, rint = _core.rad2deg, _core.deg2rad, _core.round


def _floating(x):
    return x if x.dtype.kind in "fc" else _core.astype(x, _core.float32)


def _rounded_integers(x, step):
    """The multiples of step next to integers, half to even."""
    if step > _np.iinfo(x.dtype.dtype).max:
        return _core.zeros(x.shape, x.dtype)
    quotient = _core.floor_divide(x, step)
    over = x - quotient * step  # step - over, as twice over may not fit
    is_half, is_odd = _core.equal(over, step - over), _core.not_equal(quotient % 2, 0)
    up = _core.bitwise_or(_core.greater(over, step - over), _core.bitwise_and(is_half, is_odd))
    return (quotient + _core.astype(up, x.dtype)) * step


def around(x, decimals=0):
    """Rounded to so many decimals, half to even. Integers stay integers."""
    x = _array(x)
    try:
        decimals = operator.index(decimals)
    except TypeError:
        raise TypeError(f"round at {_core.here()}: 'decimals' is {decimals!r} ({type(decimals).__name__}); it takes an integer") from None
    if decimals == 0:
        return _core.round(x)
    if x.dtype.kind in "iu":
        return _rounded_integers(x, 10 ** -decimals) if decimals < 0 else x
    limit = 308  # powers of ten beyond it are no float64
    if abs(decimals) > limit:
        return x if decimals > 0 else x * 0.0
    return _core.round(x * 10.0 ** decimals) / 10.0 ** decimals


def nan_to_num(x, *order, copy=True, nan=0.0, posinf=None, neginf=None):
    """x with numbers for NaN and for the infinities (the largest ones unless given). Without names they stand in NumPy's order: copy, which changes nothing and may be left out, nan, posinf, neginf."""
    order = order[1:] if order and isinstance(order[0], (bool, _np.bool_)) else order
    if len(order) > 3:
        raise TypeError(f"nan_to_num at {_core.here()}: {len(order)} numbers; it takes nan, posinf and neginf")
    named = {"nan": nan, "posinf": posinf, "neginf": neginf, **dict(zip(("nan", "posinf", "neginf"), order))}
    return _core.nan_to_num(x, named["nan"], named["posinf"], named["neginf"])


def bitwise_count(x):
    """The number of one bits of |x|, uint8."""
    return _core.astype(_core.population_count(_core.abs(x)), _core.uint8)


def fabs(x):
    """|x| of real numbers, as floats."""
    x = _array(x)
    return _core.abs(x if x.dtype.kind == "f" else _core.astype(x, _core.float32))


def spacing(x):
    """The distance from x to the next number away from 0."""
    x = _floating(_array(x))
    return _core.subtract(_core.nextafter(x, _core.copysign(_core.full((), math.inf, x.dtype), x)), x)


def real_if_close(x, tol=100):
    """The real parts, if all imaginary ones are within tol machine epsilons of 0. Collective for complex numbers: reads the answer."""
    x = _array(x)
    if x.dtype.kind != "c":
        return x
    near = tol * _np.finfo("f4" if x.dtype.name == "complex64" else "f8").eps if tol > 1 else tol
    return _core.real(x) if builtins.bool(_core.all(_core.less(_core.abs(_core.imag(x)), near))) else x


def sort_complex(x):
    """Complex numbers by their real parts, then by their imaginary ones."""
    x = _array(x)
    x = x if x.dtype.kind == "c" else _core.make_complex(_floating(x), 0.0)
    return _core.take_along_axis(x, _core.lexsort([_core.imag(x), _core.real(x)], -1), -1)


def trim_zeros(x, trim="fb"):
    """A vector without its leading ("f") and trailing ("b") zeros. Collective: reads their number."""
    x = _array(x)
    first = _leading_zeros(x) if "f" in trim.lower() else 0
    if first == x.size:
        return x[:0]
    last = x.size - (_leading_zeros(x, backwards=True) if "b" in trim.lower() else 0)
    return x[first:max(first, last)]


def _leading_zeros(x, backwards=False):
    """How many zeros a vector begins or ends with. Reads ever longer parts, so that few zeros are found without the rest."""
    start, width = 0, 1024
    while start < x.size:
        stop = min(start + width, x.size)
        part = x[x.size - stop:x.size - start] if backwards else x[start:stop]
        places = _np.flatnonzero(copy_to_numpy(_core.not_equal(part, 0)))
        if places.size:
            return start + (stop - start - 1 - int(places[-1]) if backwards else int(places[0]))
        start, width = stop, 4 * width
    return x.size


def fix(x):
    """Rounded towards 0."""
    return _core.trunc(x)


def modf(x):
    """(fraction, whole part), both with the sign of x."""
    whole = _core.trunc(x)
    return _core.copysign(_core.where(_core.isinf(x), 0, _core.subtract(x, _core.where(_core.isinf(x), 0, whole))), x), whole


def isposinf(x):
    """Elementwise: whether x is inf."""
    return _core.equal(x, math.inf)


def isneginf(x):
    """Elementwise: whether x is -inf."""
    return _core.equal(x, -math.inf)


def isrealobj(x):
    """Whether x has no complex dtype."""
    return _array(x).dtype.kind != "c"


def isscalar(x):
    """Whether x is a plain number or a NumPy scalar."""
    return _np.isscalar(x)


def ediff1d(x, to_end=None, to_begin=None):
    """The differences of neighbours in row-major order, between to_begin and to_end."""
    ends = [None if e is None else ravel(_array(e, x)) for e in (to_begin, to_end)]
    parts = [p for p in (ends[0], _core.diff(ravel(x), 1, 0), ends[1]) if p is not None]
    return concatenate(parts) if len(parts) > 1 else parts[0]


def unwrap(x, discont=None, axis=-1, period=2 * math.pi):
    """Removes jumps of more than half a period by adding multiples of the period."""
    x = moveaxis(_array(x), axis, -1)
    steps = _core.diff(x, 1, -1)
    turned = _core.remainder(steps + period / 2, period) - period / 2
    turned = _core.where(_core.logical_and(_core.equal(turned, -period / 2), _core.greater(steps, 0)), period / 2, turned)
    change = _core.where(_core.less(_core.abs(steps), period / 2 if discont is None else discont), 0.0, turned - steps)
    return moveaxis(_core.concatenate([x[..., :1], x[..., 1:] + _core.cumsum(change, -1)], -1), -1, axis)


def fromfunction(function, shape, *, dtype=_core.float32, **options):
    """function(coordinates of each element), one array per axis."""
    places = _core.indices(shape, _core.int32)
    return function(*(_core.astype(places[d], dtype) for d in range(len(shape))), **options)


def piecewise(x, conditions, functions, *args, **options):
    """For each element the function, or the number, of the last condition that holds; an extra last function applies elsewhere (default 0)."""
    x = _array(x)
    conditions = [_array(c) for c in (conditions if isinstance(conditions, (list, tuple)) else [conditions])]
    functions = list(functions)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"piecewise at {_core.here()}: {len(conditions)} conditions and {len(functions)} functions; there must be as many, or one more")
    value = lambda f: _core.astype(f(x, *args, **options) if callable(f) else _array(f, x), x.dtype)  # noqa: E731
    result = value(functions[-1]) if len(functions) > len(conditions) else _core.zeros((), x.dtype)
    for condition, function in zip(conditions, functions):
        result = _core.where(condition, value(function), result)
    return _core.broadcast_to(result, x.shape)


def packbits(x, axis=None, bitorder="big"):
    """Packs eight bools (nonzero numbers) into a uint8, along an axis or over the flattened array; zeros fill the last byte."""
    x = _array(x)
    if x.dtype.kind not in "biu":
        raise TypeError(f"packbits at {_core.here()}: bits of {x.dtype}; it takes bools and integers")
    x, axis = (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim, "packbits"))
    return _core.packbits(x, axis, _order(bitorder, "packbits"))


def unpackbits(x, axis=None, count=None, bitorder="big"):
    """The eight bits of each uint8, along an axis or over the flattened array. count: the number of bits, filled with zeros; if negative, all but the last -count."""
    x = _array(x)
    if x.dtype != _core.uint8:
        raise TypeError(f"unpackbits at {_core.here()}: bytes of {x.dtype}; it takes uint8")
    x, axis = (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim, "unpackbits"))
    bits = _core.unpackbits(x, axis, _order(bitorder, "unpackbits"))
    if count is None:
        return bits
    wanted = count if count >= 0 else bits.shape[axis] + count
    widths = [(0, 0)] * bits.ndim
    widths[axis] = (0, builtins.max(wanted - bits.shape[axis], 0))
    return _core.pad(bits, widths, "constant", 0.0)[(slice(None),) * axis + (slice(wanted),)]


def _order(bitorder, name):
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name} at {_core.here()}: there is no bitorder '{bitorder}'; take big or little")
    return bitorder


def apply_over_axes(function, x, axes):
    """Applies function(x, axis) for each axis in turn; a result that lost the axis gets it back with extent 1."""
    x = _array(x)
    for axis in (axes if isinstance(axes, (list, tuple)) else [axes]):
        axis = axis_of(axis, x.ndim, "apply_over_axes")
        y = function(x, axis)
        x = y if y.ndim == x.ndim else _core.expand_dims(y, axis)
    return x


round = around
