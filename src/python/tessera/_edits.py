"""NumPy's functions that change elements, or take some out."""
import builtins
import math

import numpy as _np

from . import _core
from ._core import Array
from ._create import _array, arange, asarray, axis_of
from ._shapes import moveaxis, ravel, reshape

__all__ = ["copyto", "delete", "fill_diagonal", "insert", "place", "put", "put_along_axis", "putmask", "resize"]


def _kept(n, places):
    """The numbers below n without those that an index names."""
    return _np.delete(_np.arange(n, dtype=_np.int32), places)


def _places(places):
    """Places that shape the result, read where they are an array."""
    return _np.asarray(places._host() if isinstance(places, Array) else places)


def delete(x, places, axis=None):
    """x without the slices that an integer, a slice or integers select."""
    x, axis = (ravel(x), 0) if axis is None else (_array(x), axis)
    axis = axis_of(axis, x.ndim, "delete")
    places = places if isinstance(places, slice) else _places(places)
    return _core.take(x, asarray(_kept(x.shape[axis], places)), axis)


def insert(x, places, values, axis=None):
    """x with the values inserted before the given indices, which refer to x."""
    x, axis = (ravel(x), 0) if axis is None else (_array(x), axis)
    axis = axis_of(axis, x.ndim, "insert")
    n, values = x.shape[axis], _core.astype(_array(values, x), x.dtype)
    places = _places(places)
    at = [int(p) for p in _np.atleast_1d(places)]
    wrong = [p for p in at if not -n <= p <= n]
    if wrong:
        raise _core.errors.IndexError(f"insert at {_core.here()}: place {wrong[0]} of an axis of {n}")
    at = [p + n if p < 0 else p for p in at]
    if places.ndim == 0:  # NumPy's: the values' dims are the last ones, and their first one counts along the axis
        values = moveaxis(_core.reshape(values, (1,) * (x.ndim - values.ndim) + tuple(values.shape)), 0, axis)
    count = values.shape[axis] if len(at) == 1 and values.ndim == x.ndim else len(at)
    at = at * count if len(at) == 1 else at
    one = [count if d == axis % x.ndim else e for d, e in enumerate(x.shape)]
    if values.ndim == 1 and x.ndim > 1 and places.ndim > 0:
        values = _core.reshape(values, [-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    values = _core.broadcast_to(_core.astype(values, x.dtype), one)
    order = sorted([(p, 0, n + k) for k, p in enumerate(at)] + [(i, 1, i) for i in range(n)])
    return _core.take(_core.concatenate([x, values], axis), asarray(_np.array([source for _, _, source in order], _np.int32)), axis)


def resize(x, shape):
    """The elements in row-major order in another shape, repeated as often as necessary."""
    flat, shape = ravel(x), (shape,) if isinstance(shape, int) else tuple(shape)
    size = math.prod(shape)
    if builtins.any(n < 0 for n in shape):
        raise _core.errors.ShapeError(f"resize at {_core.here()}: the shape {shape} has a negative extent")
    if flat.size == 0 or size == 0:
        return _core.zeros(shape, flat.dtype)
    return _core.reshape(_core.tile(flat, [-(-size // flat.size)])[:size], shape)


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
