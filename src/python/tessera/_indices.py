"""NumPy's functions that make indices."""
import numpy as _np

from . import _core
from ._create import _array, arange, asarray
from ._shapes import _in_columns, tril_indices, triu_indices

__all__ = ["diag_indices", "diag_indices_from", "ix_", "mask_indices", "mgrid", "ogrid", "ravel_multi_index", "s_", "tril_indices_from", "triu_indices_from", "unravel_index"]

s_ = _np.s_


def mask_indices(n, mask_func, k=0):
    """The indices of an (n, n) matrix of ones that mask_func(ones, k), such as triu, keeps. Collective: reads their number."""
    return tuple(_core.nonzero(mask_func(_core.ones((n, n)), k)))


def diag_indices(n, ndim=2):
    """The indices of the diagonal of an array of ndim dims."""
    return (arange(n),) * ndim


def diag_indices_from(x):
    """The indices of the diagonal of an array."""
    x = _array(x)
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise _core.errors.ShapeError(f"diag_indices_from at {_core.here()}: the array has shape {tuple(x.shape)}; it must have two dimensions or more, of one extent")
    return diag_indices(x.shape[0], x.ndim)


def _rows_and_columns(x, name):
    shape = _array(x).shape
    if len(shape) != 2:
        raise _core.errors.ShapeError(f"{name} at {_core.here()}: the array has shape {tuple(shape)}; it must be a matrix")
    return shape


def tril_indices_from(x, k=0):
    """The indices on and below diagonal k of a matrix."""
    rows, columns = _rows_and_columns(x, "tril_indices_from")
    return tril_indices(rows, k, columns)


def triu_indices_from(x, k=0):
    """The indices on and above diagonal k of a matrix."""
    rows, columns = _rows_and_columns(x, "triu_indices_from")
    return triu_indices(rows, k, columns)


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


class _Grid:
    """numpy.mgrid and ogrid: slices between brackets become coordinates."""

    def __init__(self, numpys):
        self.numpys = numpys

    def __getitem__(self, slices):
        made = self.numpys[slices]
        short = lambda host: asarray(host.astype(_np.int32 if host.dtype.kind == "i" else _np.float32))  # noqa: E731
        return [short(_np.asarray(p)) for p in made] if isinstance(made, (list, tuple)) else short(made)


mgrid, ogrid = _Grid(_np.mgrid), _Grid(_np.ogrid)
