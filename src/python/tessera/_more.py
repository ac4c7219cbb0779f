"""NumPy's functions that are one or two lines of others."""
import builtins
import math

import numpy as _np

from . import _core
from ._core import Array
from ._create import _array, _arrays, arange, asarray, copy_to_numpy
from ._shapes import _in_columns, concatenate, moveaxis, ravel, reshape, tril_indices, triu_indices

__all__ = ["apply_over_axes", "around", "bitwise_count", "degrees", "delete", "diag_indices", "diag_indices_from", "ediff1d", "fabs", "fix", "fromfunction", "insert", "ravel_multi_index", "isneginf",
           "isposinf", "isrealobj", "isscalar", "ix_", "mgrid", "modf", "ogrid", "piecewise", "poly", "polydiv", "copyto", "fill_diagonal", "packbits", "place", "put", "put_along_axis", "putmask", "unpackbits", "radians", "resize", "rint",
           "roots", "round", "s_", "tril_indices_from",
           "triu_indices_from", "unravel_index", "unwrap", "mask_indices", "real_if_close", "segment_max", "segment_min", "segment_prod", "segment_sum", "sort_complex", "spacing", "trim_zeros"]

degrees, radians, rint = _core.rad2deg, _core.deg2rad, _core.round
s_ = _np.s_


def around(x, decimals=0):
    """Rounded to so many decimals, half to even."""
    return _core.round(x) if decimals == 0 else _core.round(_array(x) * 10.0 ** decimals) / 10.0 ** decimals


def bitwise_count(x):
    """The number of one bits of |x|, uint8."""
    return _core.astype(_core.population_count(_core.abs(x)), _core.uint8)


def _segments(name, start, combine):
    def reduce(x, ids, segments):
        x, ids = _array(x), _array(ids)
        if ids.dtype.kind not in "iu":
            raise _core.errors.DtypeError(f"{name} at {_core.here()}: ids are integers, these are {ids.dtype}")
        if x.ndim == 0 or ids.shape != x.shape[:1]:
            raise _core.errors.ShapeError(f"{name} at {_core.here()}: ids of shape {ids.shape} for slices of shape {x.shape}; there must be one id for each slice of the first axis")
        outside = _core.where(_core.less(ids, 0), segments, _core.astype(ids, _core.int64))
        limits = {} if x.dtype.kind != "i" and x.dtype.kind != "u" else {-math.inf: _np.iinfo(x.dtype.name).min, math.inf: _np.iinfo(x.dtype.name).max}
        return combine(_core.full((segments, *x.shape[1:]), limits.get(start, start), x.dtype).at[outside], x)
    reduce.__name__ = reduce.__qualname__ = name
    return reduce


segment_sum = _segments("segment_sum", 0, lambda at, x: at.add(x))
segment_sum.__doc__ = "The sums of the slices along the first axis that have the same number in ids; 0 where none has it. Ids outside of [0, segments) are left out. jax.ops.segment_sum."
segment_prod = _segments("segment_prod", 1, lambda at, x: at.multiply(x))
segment_prod.__doc__ = "segment_sum's products; 1 where no slice has the id."
segment_max = _segments("segment_max", -math.inf, lambda at, x: at.max(x))
segment_max.__doc__ = "segment_sum's largest elements; -inf, or the least integer, where no slice has the id."
segment_min = _segments("segment_min", math.inf, lambda at, x: at.min(x))
segment_min.__doc__ = "segment_sum's smallest elements; inf, or the largest integer, where no slice has the id."


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


def mask_indices(n, mask_func, k=0):
    """The indices of an (n, n) matrix of ones that mask_func(ones, k), such as triu, keeps. Collective: reads their number."""
    return tuple(_core.nonzero(mask_func(_core.ones((n, n)), k)))


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


def _kept(n, places):
    """The numbers below n without those that an index names."""
    return [i for i in range(n) if i not in set(_np.atleast_1d(_np.arange(n)[places]).tolist())]


def delete(x, places, axis=None):
    """x without the slices that an integer, a slice or integers select."""
    x, axis = (ravel(x), 0) if axis is None else (_array(x), axis)
    places = _np.asarray(places) if isinstance(places, (list, tuple)) else places
    return _core.take(x, asarray(_np.array(_kept(x.shape[axis], places), _np.int32)), axis)


def insert(x, places, values, axis=None):
    """x with the values inserted before the given indices, which refer to x."""
    x, axis = (ravel(x), 0) if axis is None else (_array(x), axis)
    n, values = x.shape[axis], _core.astype(_array(values, x), x.dtype)
    at = [(int(p) % n if p < 0 else int(p)) for p in _np.atleast_1d(_np.asarray(places))]
    if builtins.any(p > n for p in at):
        raise _core.errors.IndexError(f"insert at {_core.here()}: place {builtins.max(at)} of an axis of {n}")
    if _np.ndim(places) == 0:  # NumPy's: the values' dims are the last ones, and their first one counts along the axis
        values = moveaxis(_core.reshape(values, (1,) * (x.ndim - values.ndim) + tuple(values.shape)), 0, axis)
    count = values.shape[axis] if len(at) == 1 and values.ndim == x.ndim else len(at)
    at = at * count if len(at) == 1 else at
    one = [count if d == axis % x.ndim else e for d, e in enumerate(x.shape)]
    if values.ndim == 1 and x.ndim > 1 and _np.ndim(places) > 0:
        values = _core.reshape(values, [-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    values = _core.broadcast_to(_core.astype(values, x.dtype), one)
    order = sorted([(p, 0, n + k) for k, p in enumerate(at)] + [(i, 1, i) for i in range(n)])
    return _core.take(_core.concatenate([x, values], axis), asarray(_np.array([source for _, _, source in order], _np.int32)), axis)


def resize(x, shape):
    """The elements in row-major order in another shape, repeated as often as necessary."""
    flat, shape = ravel(x), (shape,) if isinstance(shape, int) else tuple(shape)
    size = math.prod(shape)
    if flat.size == 0 or size == 0:
        return _core.zeros(shape, flat.dtype)
    return _core.reshape(_core.tile(flat, [-(-size // flat.size)])[:size], shape)


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


def _put(name, x, replaced, inplace):
    """NumPy's functions that change their argument: its handle gets the new value, as by x[i] = v; inplace=False gives it instead, as in jax.numpy."""
    if not inplace:
        return replaced
    if not isinstance(x, Array):
        raise TypeError(f"{name} at {_core.here()}: it changes an array of tessera, and was given a {type(x).__name__}; {name}(..., inplace=False) gives a new one")
    x[...] = replaced
    return None


def put_along_axis(x, indices, values, axis, *, inplace=True):
    """values at x[.., indices[.., i, ..], ..]; of a flattened x with axis=None. Changes x as x[i] = v does, or gives a new array with inplace=False."""
    given, x, indices = x, _array(x), _array(indices)
    if axis is None:
        return _put("put_along_axis", given, reshape(ravel(x).at[ravel(indices)].set(values if isinstance(values, (int, float)) else ravel(_array(values, x))), x.shape), inplace)
    axis %= x.ndim
    places = [_core.reshape(arange(n), [n if k == d else 1 for k in range(x.ndim)]) for d, n in enumerate(indices.shape)]
    places[axis] = indices
    return _put("put_along_axis", given, x.at[tuple(_core.broadcast_to(p, indices.shape) for p in places)].set(_array(values, x)), inplace)


def _repeated(values, count, x):
    """As many of the values as there are places in x, from the first again where they end."""
    values = ravel(_array(values, x))
    return values if values.size == count else resize(values, count)


def put(x, indices, values, mode="raise", *, inplace=True):
    """values at the indices of the flattened x, repeated if there are fewer. Changes x as x[i] = v does, or gives a new array with inplace=False."""
    given, x, indices = x, _array(x), ravel(_array(indices))
    if mode == "raise":
        _core.take(ravel(x), indices, 0, "raise")
    elif mode == "wrap":
        indices = _core.remainder(indices, x.size)
    elif mode == "clip":
        indices = _core.clip(indices, 0, x.size - 1)
    else:
        raise ValueError(f"put at {_core.here()}: there is no mode '{mode}'; take raise, wrap or clip")
    return _put("put", given, reshape(ravel(x).at[indices].set(_repeated(values, indices.size, x)), x.shape), inplace)


def place(x, mask, values, *, inplace=True):
    """values, in order and repeated if there are fewer, where the mask is true. Collective: reads the number of true elements. Changes x as x[i] = v does, or gives a new array with inplace=False."""
    given, x = x, _array(x)
    places = _core.flatnonzero(_core.broadcast_to(_array(mask), x.shape))
    return _put("place", given, reshape(ravel(x).at[places].set(_repeated(values, places.size, x)), x.shape), inplace)


def putmask(x, mask, values, *, inplace=True):
    """values[n], repeated if there are fewer, at each index n where the mask is true. Changes x as x[i] = v does, or gives a new array with inplace=False."""
    values = _array(values, x)
    fitting = values if values.shape == _array(x).shape or values.ndim == 0 else resize(values, _array(x).shape)
    return _put("putmask", x, _core.astype(_core.where(_array(mask), fitting, x), _array(x).dtype), inplace)


def copyto(x, values, casting="same_kind", where=True):
    """x[...] = values where the condition holds. Changes x as x[i] = v does."""
    values = _array(values, x)
    return _put("copyto", x, _core.broadcast_to(_core.astype(_core.where(where, values, x) if where is not True else values, x.dtype), x.shape), True)


def fill_diagonal(x, value, wrap=False, *, inplace=True):
    """The value, or the values one after the other, on the diagonal; with wrap the diagonal starts again below the square part. Changes x as x[i] = v does, or gives a new array with inplace=False."""
    given, x = x, _array(x)
    if x.ndim < 2 or x.ndim > 2 and len(set(x.shape)) > 1:
        raise _core.errors.ShapeError(f"fill_diagonal at {_core.here()}: an array of shape {x.shape} has no diagonal; it needs two dimensions, or more of one extent")
    step = x.shape[1] + 1 if x.ndim == 2 else 1 + builtins.sum(math.prod(x.shape[:d]) for d in range(1, x.ndim))
    end = x.shape[1] ** 2 if x.ndim == 2 and not wrap else x.size
    count = -(-builtins.min(end, x.size) // step)
    return _put("fill_diagonal", given, reshape(ravel(x).at[arange(count) * step].set(_repeated(value, count, x)), x.shape), inplace)


def packbits(x, axis=None, bitorder="big"):
    """Packs eight bools (nonzero numbers) into a uint8, along an axis or over the flattened array; zeros fill the last byte."""
    x = _array(x)
    if x.dtype.kind not in "biu":
        raise TypeError(f"packbits at {_core.here()}: bits of {x.dtype}; it takes bools and integers")
    x, axis = (ravel(x), 0) if axis is None else (x, axis % x.ndim)
    return _core.packbits(x, axis, _order(bitorder, "packbits"))


def unpackbits(x, axis=None, count=None, bitorder="big"):
    """The eight bits of each uint8, along an axis or over the flattened array. count: the number of bits, filled with zeros; if negative, all but the last -count."""
    x = _array(x)
    if x.dtype != _core.uint8:
        raise TypeError(f"unpackbits at {_core.here()}: bytes of {x.dtype}; it takes uint8")
    x, axis = (ravel(x), 0) if axis is None else (x, axis % x.ndim)
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
        y = function(x, axis % x.ndim)
        x = y if y.ndim == x.ndim else _core.expand_dims(y, axis % x.ndim)
    return x


def diag_indices(n, ndim=2):
    """The indices of the diagonal of an array of ndim dims."""
    return (arange(n),) * ndim


def diag_indices_from(x):
    """The indices of the diagonal of an array."""
    return diag_indices(_array(x).shape[0], _array(x).ndim)


def tril_indices_from(x, k=0):
    """The indices on and below diagonal k of a matrix."""
    return tril_indices(x.shape[-2], k, x.shape[-1])


def triu_indices_from(x, k=0):
    """The indices on and above diagonal k of a matrix."""
    return triu_indices(x.shape[-2], k, x.shape[-1])


def unravel_index(indices, shape, order="C"):
    """Converts row-major indices in a shape (column-major with order="F") to a tuple with one index array per dim."""
    if _in_columns(order):
        return tuple(_core.unravel_index(_array(indices), tuple(shape)[::-1]))[::-1]
    return tuple(_core.unravel_index(_array(indices), shape))


def ravel_multi_index(numbers, shape, mode="raise", order="C"):
    """Converts one index per dim to row-major indices (column-major with order="F"). mode "clip" and "wrap" bring indices beyond an extent back into it; with "raise", those of arrays from the host are an IndexError."""
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"ravel_multi_index at {_core.here()}: there is no mode '{mode}'; the modes are 'raise', 'clip' and 'wrap'")
    numbers, shape = [_array(n) for n in numbers], tuple(shape)
    if mode != "raise" and len(numbers) == len(shape):
        numbers = [_core.clip(n, 0, e - 1) if mode == "clip" else _core.remainder(n, e) for n, e in zip(numbers, shape)]
    return _core.ravel_multi_index(numbers[::-1], shape[::-1]) if _in_columns(order) else _core.ravel_multi_index(numbers, shape)


def ix_(*lists):
    """Index arrays that select the grid of these indices."""
    lists = [_array(v) for v in lists]
    lists = [_core.flatnonzero(v) if v.dtype.kind == "b" else v for v in lists]
    return tuple(_core.reshape(v, [v.size if k == d else 1 for k in range(len(lists))]) for d, v in enumerate(lists))


def _floating(x):
    return x if x.dtype.kind in "fc" else _core.astype(x, _core.float32)


def poly(x):
    """The coefficients, the highest power first, of the polynomial with these roots, or of a matrix's characteristic polynomial. numpy.poly."""
    from .lax import scan
    x = _array(x)
    zeros = _floating(_core.linalg.eigvals(x) if x.ndim == 2 else ravel(x))
    one = _core.astype(_core.equal(arange(zeros.size + 1), 0), zeros.dtype)
    times = lambda p, zero: (p - zero * _core.concatenate([_core.zeros((1,), p.dtype), p[:-1]], 0), None)  # noqa: E731
    return scan(times, one, zeros)[0]


def polydiv(u, v):
    """(quotient, remainder) of two polynomials, the highest power first; the remainder keeps its leading zeros, as jax.numpy.polydiv's does."""
    from .lax import scan
    u, v = (_floating(p) for p in _arrays([u, v]))
    u, v = (_core.astype(p, _core.add(u[:1], v[:1]).dtype) for p in (u, v))
    if v.size > u.size:
        return u[:0], u
    divisor = _core.concatenate([v, _core.zeros((u.size - v.size,), v.dtype)], 0)

    def step(rest, _):
        q = rest[0] / v[0]
        return _core.concatenate([(rest - q * divisor)[1:], _core.zeros((1,), v.dtype)], 0), q

    rest, quotient = scan(step, u, length=u.size - v.size + 1)
    return quotient, rest[:v.size - 1]


def roots(p, *, strip_zeros=True):
    """The roots of the polynomial with these coefficients, the highest power first: the eigenvalues of its companion matrix, complex. numpy.roots.

    Collective: leading and trailing zeros are searched. With strip_zeros=False there must be none, and it only records, in jit too.
    """
    p, behind = _floating(ravel(_array(p))), 0
    if strip_zeros:
        places = _np.flatnonzero(copy_to_numpy(p))
        p, behind = (p[places[0]:places[-1] + 1], p.size - 1 - int(places[-1])) if places.size else (p[:0], 0)
    dtype = _core.complex128 if p.dtype.name in ("float64", "complex128") else _core.complex64
    n = builtins.max(p.size - 1, 0)
    found = _core.zeros((behind,), dtype)
    if n == 0:
        return found
    companion = _core.concatenate([_core.expand_dims(-p[1:] / p[0], 0), _core.eye(n - 1, n, 0, p.dtype)], 0)
    return _core.concatenate([_core.linalg.eigvals(companion), found], 0)


class _Grid:
    """numpy.mgrid and ogrid: slices between brackets become coordinates."""

    def __init__(self, numpys):
        self.numpys = numpys

    def __getitem__(self, slices):
        made = self.numpys[slices]
        short = lambda host: asarray(host.astype(_np.int32 if host.dtype.kind == "i" else _np.float32))  # noqa: E731
        return [short(_np.asarray(p)) for p in made] if isinstance(made, (list, tuple)) else short(made)


mgrid, ogrid = _Grid(_np.mgrid), _Grid(_np.ogrid)
round = around
