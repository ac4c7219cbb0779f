"""Searching, sorting, sets."""
import builtins
import collections
import math

from . import _core
from ._create import _array, _arrays, asarray, axis_of
from ._shapes import moveaxis, ravel

__all__ = ["argsort", "bincount", "histogram", "histogram_bin_edges", "isin", "nonzero", "searchsorted", "sort", "take", "take_along_axis",
           "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

def take(x, /, indices, axis=None, *, mode=None, fill_value=None):
    """The slices along an axis that the indices select. mode="fill" gives fill_value, or NaN and the like, for indices out of range."""
    x = _array(x)
    if axis is None:
        x, axis = (x, 0) if x.ndim == 1 else (_core.reshape(x, (-1,)), 0)
    if fill_value is not None and mode == "fill":
        return x.at[(builtins.slice(None),) * axis_of(axis, x.ndim, "take") + (asarray(indices),)].get(mode="fill", fill_value=fill_value)
    return _core.take(x, asarray(indices), axis) if mode is None else _core.take(x, asarray(indices), axis, mode)


def take_along_axis(x, indices, /, axis=-1):
    """result[.., i, ..] = x[.., indices[.., i, ..], ..]."""
    return _core.take_along_axis(x, asarray(indices), axis)


def searchsorted(x1, x2, /, side="left", sorter=None):
    """The indices at which the values would be inserted into a sorted 1-D array."""
    return _core.searchsorted(x1, x2, side) if sorter is None else _core.searchsorted(x1, x2, side, sorter)


def sort(x, /, axis=-1, kind=None, *, descending=False, stable=True):
    """Sorted along an axis; equal elements keep their order, whatever `kind` (NumPy's) and `stable` say."""
    x, axis = (_core.reshape(x, (-1,)), 0) if axis is None else (x, axis)
    return _core.sort(x, axis, descending=descending)


def argsort(x, /, axis=-1, kind=None, *, descending=False, stable=True):
    """The indices from which sort takes its elements."""
    x, axis = (_core.reshape(x, (-1,)), 0) if axis is None else (x, axis)
    return _core.argsort(x, axis, descending=descending)


def nonzero(x, /, *, size=None, fill_value=None):
    """The indices of the nonzero elements, an array per axis. Collective, unless the size of the result is given."""
    x = _array(x)
    if x.ndim == 0:
        raise _core.errors.ShapeError(f"nonzero at {_core.here()}: an array without dimensions has no places")
    return tuple(_core.nonzero(x, size, fill_value))


def _run_parts(x, has_order):
    """(values, first places, inverse, counts) of equal neighbours in sorted order: NaN, which equals nothing, is a run of its own each time."""
    flat = ravel(x)
    order = _core.lexsort([_core.imag(flat), _core.real(flat)]) if has_order is False else _core.argsort(flat, 0)
    ordered = _core.take(flat, order, 0)
    is_first = _core.not_equal(ordered[1:], ordered[:-1])
    is_first = _core.concatenate([_core.ones((builtins.min(1, flat.size),), _core.bool), is_first], 0)
    starts = _core.flatnonzero(is_first)
    ends = _core.concatenate([starts[1:], _core.full((builtins.min(1, flat.size),), flat.size, starts.dtype)], 0)
    inverse = _core.zeros((flat.size,), starts.dtype).at[order].set(_core.cumsum(_core.astype(is_first, starts.dtype), 0) - 1)
    return _core.take(ordered, starts, 0), _core.take(order, starts, 0), _core.reshape(inverse, x.shape), ends - starts


def _unique_parts(x, of=_core.unique_all, kept=builtins.slice(None)):
    """The standard's: each NaN is a value of its own. The library's functions take them as one, and no complex numbers; `of` gives the parts that are kept."""
    x = _array(x)
    if x.dtype.kind == "c":
        return _run_parts(x, has_order=False)[kept]
    if x.dtype.kind == "f" and builtins.bool(_core.any(_core.isnan(x))):
        return _run_parts(x, has_order=True)[kept]
    return tuple(of(x))


UniqueAll = collections.namedtuple("UniqueAll", "values indices inverse_indices counts", module="tessera")
UniqueCounts = collections.namedtuple("UniqueCounts", "values counts", module="tessera")
UniqueInverse = collections.namedtuple("UniqueInverse", "values inverse_indices", module="tessera")


def unique_all(x, /):
    """Values, first indices, inverse and counts; each NaN is a value of its own. Collective, like the three functions below: reads their number."""
    return UniqueAll(*_unique_parts(x))


def unique_counts(x, /):
    """Values and counts."""
    return UniqueCounts(*_unique_parts(x, _core.unique_counts, builtins.slice(0, 4, 3)))


def unique_inverse(x, /):
    """Values, and for each element the index of its value."""
    return UniqueInverse(*_unique_parts(x, _core.unique_inverse, builtins.slice(0, 4, 2)))


def unique_values(x, /):
    """The distinct values."""
    return _unique_parts(x, lambda values: (_core.unique(values),), builtins.slice(1))[0]


def _unique_slices(x, axis):
    """(values, first places, inverse, counts) of equal slices along an axis, in the order of their elements."""
    x = moveaxis(_array(x), axis, 0)
    rows = _core.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
    n, width = rows.shape
    if n == 0 or width == 0:
        raise _core.errors.ShapeError(f"unique at {_core.here()}: slices of shape {x.shape[1:]}, {n} of them, have no elements to compare")
    order = _core.lexsort([rows[:, j] for j in builtins.reversed(range(width))])
    ordered = _core.take(rows, order, 0)
    is_first = _core.concatenate([_core.ones((1,), _core.bool), _core.any(_core.not_equal(ordered[1:], ordered[:-1]), 1)], 0)
    starts = _core.flatnonzero(is_first)
    ends = _core.concatenate([starts[1:], _core.full((1,), n, starts.dtype)], 0)
    inverse = _core.zeros((n,), starts.dtype).at[order].set(_core.cumsum(_core.astype(is_first, starts.dtype), 0) - 1)
    values = _core.reshape(_core.take(ordered, starts, 0), (starts.size,) + x.shape[1:])
    return moveaxis(values, 0, axis), _core.take(order, starts, 0), inverse, ends - starts


def unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, size=None, fill_value=None):
    """numpy.unique, of elements or of the slices along an axis: NaN are one value unless equal_nan=False. Collective, unless the size of the result is given."""
    if axis is not None and size is not None:
        raise _core.errors.ArgumentError(f"unique at {_core.here()}: size= is for elements; slices along an axis are counted")
    if not (return_index or return_inverse or return_counts) and axis is None and equal_nan:
        return _core.unique(x, size, fill_value)
    if not (return_index or return_inverse) and axis is None and equal_nan:
        return tuple(_core.unique_counts(x, size, fill_value))
    parts = _unique_slices(x, axis) if axis is not None else _core.unique_all(x, size, fill_value) if equal_nan else _unique_parts(x)
    if not (return_index or return_inverse or return_counts):
        return parts[0]
    wanted = [parts[0]] + [p for p, asked in zip(parts[1:], (return_index, return_inverse, return_counts)) if asked]
    return tuple(wanted)


def isin(x1, x2, /, *, assume_unique=False, invert=False, kind=None):
    """Whether each element of x1 is among those of x2; NaN never is."""
    x1, x2 = _arrays([x1, x2])
    if "c" not in x1.dtype.kind + x2.dtype.kind:
        return _core.isin(x1, x2, invert)
    found = _core.any(_core.equal(_core.expand_dims(x1, x1.ndim), ravel(x2)), -1)
    return _core.logical_not(found) if invert else found


def bincount(x, weights=None, minlength=0, length=None):
    """How often each number from 0 occurs in x, or the sum of its weights. Collective unless a length is given: reads the largest number."""
    x = ravel(_array(x))
    if length is None:
        if weights is None and minlength == 0:
            return _core.bincount(x)
        least, most = (int(end) for end in _core.stack([_core.min(x), _core.max(x)]).tolist()) if x.size else (0, -1)
        if least < 0:
            raise _core.errors.ArgumentError(f"bincount at {_core.here()}: the values begin at {least}; counted are numbers from 0 up. Give a length to leave out the negative ones")
        length = builtins.max(most + 1, minlength)
    return _core.bincount(x, length) if weights is None else _core.bincount(x, ravel(_array(weights)), length)


def histogram(x, bins=10, range=None, density=False, weights=None):  # noqa: A002
    """(counts, edges) for bins of equal width, or between ascending edges."""
    options = {"range": range, "weights": weights, "density": density}
    return _core.histogram(x, bins=bins, **options) if isinstance(bins, int) else _core.histogram(x, _array(bins, x), **options)


def histogram_bin_edges(x, bins=10, range=None, weights=None):  # noqa: A002
    """The edges of histogram's bins."""
    if isinstance(bins, int):
        return _core.histogram_bin_edges(x, bins=bins, range=range, weights=weights)
    if not isinstance(bins, _core.Array) and builtins.any(a > b for a, b in zip(bins, bins[1:])):
        raise _core.errors.ArgumentError(f"histogram_bin_edges at {_core.here()}: the edges descend somewhere; each must be at least the one before it")
    return _array(bins, x)
