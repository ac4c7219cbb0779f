"""Searching, sorting, sets."""
import builtins

import numpy as _np

from . import _core
from ._create import _array, asarray
from ._shapes import ravel

__all__ = ["argsort", "bincount", "digitize", "flatnonzero", "interp", "isin", "nonzero", "searchsorted", "sort", "take", "take_along_axis",
           "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

def take(x, indices, /, *, axis=None, mode=None):
    """The slices along an axis that the indices name."""
    x = _array(x)
    if axis is None:
        x, axis = (x, 0) if x.ndim == 1 else (_core.reshape(x, (-1,)), 0)
    return _core.take(x, asarray(indices), axis) if mode is None else _core.take(x, asarray(indices), axis, mode)


def take_along_axis(x, indices, /, axis=-1):
    """result[.., i, ..] = x[.., indices[.., i, ..], ..]."""
    return _core.take_along_axis(x, asarray(indices), axis)


def searchsorted(x1, x2, /, side="left", sorter=None):
    """Where the values would be put into a sorted 1-D array."""
    return _core.searchsorted(x1, x2, side) if sorter is None else _core.searchsorted(x1, x2, side, sorter)


def digitize(x, bins, right=False):
    """The number of the bin that each element lies in; bins ascend."""
    return _core.searchsorted(_array(bins), x, "left" if right else "right")


def sort(x, /, axis=-1, *, descending=False, stable=True):
    """Sorted along an axis; equal elements keep their order, whether that is asked for or not."""
    x, axis = (_core.reshape(x, (-1,)), 0) if axis is None else (x, axis)
    return _core.sort(x, axis, descending=descending)


def argsort(x, /, axis=-1, *, descending=False, stable=True):
    """The places from which sort takes its elements."""
    x, axis = (_core.reshape(x, (-1,)), 0) if axis is None else (x, axis)
    return _core.argsort(x, axis, descending=descending)


def _host(x):
    return _np.asarray(_array(x)._host())


def nonzero(x, /):
    """The places of the elements that are not 0, an array per axis. Collective: gathers x, whose values decide the shape of the result."""
    x = _array(x)
    if x.ndim == 0:
        raise _core.errors.ShapeError(f"nonzero at {_core.here()}: an array without dimensions has no places")
    return tuple(asarray(i.astype(_np.int32)) for i in _np.nonzero(_host(x)))


def flatnonzero(x):
    """nonzero of the elements in a row."""
    return nonzero(ravel(x))[0]


def _unique_parts(x, equal_nan=False):
    host = _host(x)
    values, first, inverse, counts = _np.unique(host, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan)
    return values, first.astype(_np.int32), inverse.reshape(host.shape).astype(_np.int32), counts.astype(_np.int32)


def unique_all(x, /):
    """Values, first places, inverse and counts; each NaN is a value of its own. Collective, as nonzero; so are the three that follow."""
    return _core_named("UniqueAll", "values indices inverse_indices counts", *_unique_parts(x))


def unique_counts(x, /):
    """Values and counts."""
    values, _, _, counts = _unique_parts(x)
    return _core_named("UniqueCounts", "values counts", values, counts)


def unique_inverse(x, /):
    """Values, and for each element the place of its value."""
    values, _, inverse, _ = _unique_parts(x)
    return _core_named("UniqueInverse", "values inverse_indices", values, inverse)


def unique_values(x, /):
    """The distinct values."""
    return asarray(_unique_parts(x)[0])


def unique(x, return_index=False, return_inverse=False, return_counts=False):
    """numpy.unique. Collective: gathers x."""
    parts = [asarray(p) for p in _unique_parts(x, equal_nan=True)]
    wanted = [parts[0]] + [p for p, asked in zip(parts[1:], (return_index, return_inverse, return_counts)) if asked]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


_named_types = {}


def _core_named(name, fields, *values):
    import collections
    kind = _named_types.setdefault(name, collections.namedtuple(name, fields))
    return kind(*(asarray(v) for v in values))


def isin(x, test, /, *, invert=False):
    """Whether each element is among the others."""
    x, test = _array(x), ravel(_array(test))
    if test.size == 0:
        found = _core.not_equal(x, x) if x.dtype.kind != "f" else _core.less(_core.abs(x), 0)
    else:
        found = _core.any(_core.equal(_core.expand_dims(x, x.ndim), test), -1)
    return _core.logical_not(found) if invert else found


def bincount(x, weights=None, minlength=0, length=None):
    """How often each number from 0 stands in x. Collective unless a length is given: the largest number is read."""
    x = ravel(_array(x))
    if length is None:
        length = builtins.max(int(_core.max(x).item()) + 1 if x.size else 0, minlength)
    start = _core.zeros((length,), _core.int32 if weights is None else _array(weights).dtype)
    return start.at[x].add(1 if weights is None else ravel(_array(weights)))


def interp(x, xp, fp):
    """Piecewise linear interpolation; the first and last value outside."""
    xp, fp = _array(xp), _array(fp)
    right = _core.clip(_core.searchsorted(xp, x, "right"), 1, xp.shape[0] - 1)
    x0, x1, y0, y1 = (_core.take(a, i, 0) for a, i in ((xp, right - 1), (xp, right), (fp, right - 1), (fp, right)))
    share = _core.clip((x - x0) / (x1 - x0), 0.0, 1.0)
    return y0 + share * (y1 - y0)
