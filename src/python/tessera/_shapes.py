"""Shapes: reshaping, joining, splitting, shifting, repeating, parts of matrices."""
import builtins
import operator

import numpy as _np

from . import _core
from ._core import Array
from ._create import _array, _arrays, asarray, axis_of, words_of
from ._views import giving_views, linked

__all__ = ["append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat",
           "concatenate", "diagonal", "dsplit", "expand_dims", "flip", "hsplit", "mT",
           "matrix_transpose", "meshgrid", "moveaxis", "ndim", "pad", "permute_dims", "ravel", "repeat", "reshape", "roll", "rollaxis", "shape", "size", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "tril", "triu", "unstack", "vsplit", "triu_indices", "tril_indices"]

def shape(x):
    """Extents."""
    return _array(x).shape


def ndim(x):
    """Number of dimensions."""
    return _array(x).ndim


def _at_least(function):
    def convert(*arrays):
        found = tuple(function(_array(a)) for a in arrays)
        return found[0] if len(found) == 1 else found
    convert.__name__, convert.__doc__ = function.__name__, words_of(function)
    return convert


atleast_1d, atleast_2d, atleast_3d = (_at_least(f) for f in (_core.atleast_1d, _core.atleast_2d, _core.atleast_3d))


def size(x, axis=None):
    """Number of elements, or the extent of an axis."""
    return _array(x).size if axis is None else _array(x).shape[axis]


def _in_columns(order):
    """Whether NumPy's order= counts the first axis fastest; arrays here have no memory order that "A" and "K" could mean."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order at {_core.here()} is {order!r}; it is 'C', 'F', 'A' or 'K'")
    return order == "F"


def reshape(x, /, shape, order="C", *, copy=None):
    """The elements in another shape, in row-major order, or with order="F" in column-major order; one extent may be -1."""
    if not _in_columns(order):
        return _core.reshape(x, shape)
    return _core.transpose(_core.reshape(_core.transpose(_array(x)), (shape,) if isinstance(shape, int) else tuple(shape)[::-1]))


def ravel(x, order="C"):
    """1-D, in row-major order, or with order="F" in column-major order."""
    return _core.reshape(_core.transpose(_array(x)) if _in_columns(order) else x, (-1,))


def permute_dims(x, /, axes):
    """The axes in the order that the permutation names."""
    return _core.transpose(x, list(axes))


def transpose(x, axes=None):
    """The axes in another order, reversed without one."""
    return _core.transpose(x) if axes is None else _core.transpose(x, list(axes))


def matrix_transpose(x, /):
    """The last two axes exchanged."""
    if _array(x).ndim < 2:
        raise _core.errors.ShapeError(f"matrix_transpose at {_core.here()}: an array of {_array(x).ndim} dimensions is no matrix")
    return _core.swapaxes(x, -2, -1)


mT = matrix_transpose
swapaxes = _core.swapaxes


def moveaxis(x, source, destination, /):
    """Axes moved to other positions; the remaining axes keep their order."""
    x = _array(x)
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    if len(source) != len(destination):
        raise ValueError("moveaxis: as many destinations as sources")
    source, destination = ([axis_of(a, x.ndim, "moveaxis") for a in axes] for axes in (source, destination))
    order = [a for a in range(x.ndim) if a not in source]
    for to, of in sorted(zip(destination, source)):
        order.insert(to, of)
    return _core.transpose(x, order)


def rollaxis(x, axis, start=0):
    """One axis moved before another one."""
    n = _array(x).ndim
    axis, start = axis_of(axis, n, "rollaxis"), start if start >= 0 else start + n
    if not 0 <= start <= n:
        raise _core.errors.IndexError(f"rollaxis at {_core.here()}: start {start} is no place between {n} axes")
    return moveaxis(x, axis, start - 1 if axis < start else start)


def squeeze(x, /, axis=None):
    """x without the named axes of extent 1, or without all of them."""
    if axis == ():
        return _array(x)
    return _core.squeeze(x, axis)


def expand_dims(x, /, axis=0):
    """x with new axes of extent 1 at the positions `axis` of the result."""
    if isinstance(axis, int):
        return _core.expand_dims(x, axis)
    x = _array(x)
    places = sorted(axis_of(a, x.ndim + len(axis), "expand_dims") for a in axis)
    if len(set(places)) < len(places):
        raise _core.errors.ShapeError(f"expand_dims at {_core.here()}: the axes {tuple(axis)} name a place twice")
    for a in places:
        x = _core.expand_dims(x, a)
    return x


def broadcast_to(x, /, shape):
    """x repeated along new leading dims and dims of extent 1."""
    return _core.broadcast_to(x, shape)


def broadcast_shapes(*shapes):
    """The common shape to which arrays of these shapes broadcast."""
    return _np.broadcast_shapes(*shapes)


def broadcast_arrays(*arrays):
    """The arrays in their common shape."""
    arrays = _arrays(arrays)
    return tuple(linked(b, a) for a, b in zip(arrays, _core.broadcast_arrays(arrays)))


def concatenate(arrays, /, axis=0, dtype=None):
    """The arrays joined along an axis; with axis=None their flattened elements."""
    arrays = _arrays(arrays)
    if axis is None:
        arrays, axis = [_core.reshape(a, (-1,)) for a in arrays], 0
    joined = _core.concatenate(arrays, axis)
    return joined if dtype is None else _core.astype(joined, dtype)


def concat(arrays, /, axis=0, *, dtype=None):
    """The arrays joined along an axis."""
    return concatenate(arrays, axis, dtype)


def stack(arrays, /, axis=0, *, dtype=None):
    """Arrays of one shape, stacked along a new axis."""
    stacked = _core.stack(_arrays(arrays), axis)
    return stacked if dtype is None else _core.astype(stacked, dtype)


def block(arrays):
    """Nested lists of arrays joined: the innermost lists along the last axis, each list around them along the axis before. An array by itself is its only block."""
    def levels(part):
        if isinstance(part, tuple):
            raise TypeError(f"block at {_core.here()}: a tuple among the lists; blocks stand in lists")
        if not isinstance(part, list):
            return {0}
        if not part:
            raise _core.errors.ArgumentError(f"block at {_core.here()}: a list of blocks is empty; give at least one")
        return {level + 1 for inner in part for level in levels(inner)}
    depths = levels(arrays)
    if len(depths) > 1:
        raise _core.errors.ArgumentError(f"block at {_core.here()}: lists nested {builtins.min(depths)} and {builtins.max(depths)} deep; all must have one depth")
    (depth,) = depths
    leaves = [arrays]
    for _ in range(depth):
        leaves = [inner for part in leaves for inner in part]
    leaves = _arrays(leaves)
    ndim = builtins.max(depth, *(x.ndim for x in leaves))
    rest = iter([_core.reshape(x, (1,) * (ndim - x.ndim) + tuple(x.shape)) for x in leaves])

    def joined(part, axis):
        return concatenate([joined(inner, axis + 1) for inner in part], axis) if isinstance(part, list) else next(rest)
    return joined(arrays, -depth)


def append(x, values, axis=None):
    """x followed by values, along an axis; without one both are flattened."""
    return concatenate([x, values], axis)


def unstack(x, /, *, axis=0):
    """The slices along an axis, as a tuple."""
    x = _array(x)
    if x.ndim == 0:
        raise _core.errors.ShapeError(f"unstack at {_core.here()}: an array without dimensions has no slices")
    return tuple(_core.unstack(x, axis))


def split(x, parts, axis=0):
    """Equal parts along an axis, or [0:p0], [p0:p1], ... for a list of indices."""
    return _core.split(x, parts, axis) if isinstance(parts, int) else _core.split_at(x, [operator.index(p) for p in parts], axis)


def array_split(x, parts, axis=0):
    """Parts along an axis whose sizes differ by one at most."""
    if not isinstance(parts, int):
        return split(x, parts, axis)
    if parts < 1:
        raise _core.errors.ArgumentError(f"array_split at {_core.here()}: {parts} parts; there must be at least one")
    x = _array(x)
    each, more = builtins.divmod(x.shape[axis_of(axis, x.ndim, "array_split")], parts)
    places = [n * each + builtins.min(n, more) for n in range(1, parts)]
    return _core.split_at(x, places, axis)


def _with_dims(x, least, name):
    x = _array(x)
    if x.ndim < least:
        raise _core.errors.ShapeError(f"{name} at {_core.here()}: the array has shape {tuple(x.shape)}; it must have {least} dimension{'s' * (least > 1)} or more")
    return x


def hsplit(x, parts):
    """split along axis 1, of a vector along axis 0."""
    return split(x, parts, 0 if _with_dims(x, 1, "hsplit").ndim == 1 else 1)


def vsplit(x, parts):
    """split along axis 0."""
    return split(_with_dims(x, 2, "vsplit"), parts, 0)


def dsplit(x, parts):
    """split along axis 2."""
    return split(_with_dims(x, 3, "dsplit"), parts, 2)


def flip(x, /, axis=None):
    """x reversed along the axes, or along all."""
    return _array(x) if axis == () else _core.flip(x, axis)


def roll(x, /, shift, axis=None):
    """Elements shifted along axes; those that leave at one end re-enter at the other."""
    x, shifts = _array(x), list(shift) if isinstance(shift, (list, tuple)) or _np.ndim(shift) else [shift]
    try:
        shifts = [operator.index(s) for s in shifts]
    except TypeError:
        raise TypeError(f"roll at {_core.here()}: 'shift' is {shift!r} ({type(shift).__name__}); it takes an integer or a tuple of integers") from None
    def turned(shift, extent):  # reduces a shift beyond 32 bits modulo the extent
        return shift if -(2 ** 31) <= shift < 2 ** 31 else shift % builtins.max(extent, 1)
    if axis is None:
        return _core.roll(x, turned(builtins.sum(shifts), x.size))
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    extents = [x.shape[axis_of(a, x.ndim, "roll")] for a in axes]
    return _core.roll(x, [turned(s, n) for s, n in zip(shifts, extents)] if len(shifts) == len(axes) else shifts, axes)


def pad(x, pad_width, mode="constant", constant_values=0, end_values=0):
    """x with elements added around it, by NumPy's modes."""
    x = _array(x)
    if isinstance(pad_width, int):
        widths = [(pad_width, pad_width)]
    else:
        widths = [(w, w) if isinstance(w, int) else tuple(w) * (2 // len(w)) for w in pad_width]
        if len(pad_width) == 2 and builtins.all(isinstance(w, int) for w in pad_width):
            widths = [tuple(pad_width)]
    if len(widths) == 1:
        widths = widths * x.ndim
    outside = end_values if mode == "linear_ramp" else constant_values
    if mode == "constant" and isinstance(outside, int) and not -(2 ** 31) <= outside < 2 ** 31 and x.dtype.kind in "iu":
        inside = _core.pad(_core.equal(x, x), widths, "constant", 0.0)  # a float64 would round the number
        return _core.where(inside, _core.pad(x, widths, "constant", 0.0), asarray(outside, dtype=x.dtype))
    if isinstance(outside, (int, float)):
        return _core.pad(x, widths, mode, float(outside))
    outside = _np.broadcast_to(_np.asarray(outside), (x.ndim, 2))
    for d, side in ((d, side) for d in range(x.ndim) for side in (0, 1)):
        x = _core.pad(x, [(widths[d][0] * (side == 0), widths[d][1] * (side == 1)) if k == d else (0, 0) for k in range(x.ndim)], mode, float(outside[d, side]))
    return x


def tile(x, reps):
    """The whole array repeated along each dim."""
    return _core.tile(x, [reps] if isinstance(reps, int) else list(reps))


def repeat(x, /, repeats, axis=None, *, total_repeat_length=None):
    """Each element repeated along an axis; without one, the flattened elements."""
    x = _array(x)
    if axis is None:
        x, axis = _core.reshape(x, (-1,)), 0
    if total_repeat_length is not None:
        repeats = _core.broadcast_to(asarray(repeats), [x.shape[axis]])
        return _core.repeat(x, asarray(repeats), axis, total_repeat_length)
    counts = _np.asarray(repeats._host() if isinstance(repeats, Array) else repeats)
    if counts.dtype.kind not in "biu" and counts.size:
        raise TypeError(f"repeat at {_core.here()}: 'repeats' is {repeats!r} ({type(repeats).__name__}); it takes an integer or a list of integers")
    return _core.repeat(x, counts.tolist(), axis)


def tril(x, /, k=0):
    """The elements on and below diagonal k, zeros elsewhere."""
    return _core.tril(x, k)


def triu(x, /, k=0):
    """The elements on and above diagonal k, zeros elsewhere."""
    return _core.triu(x, k)


def tril_indices(n, k=0, m=None):
    """Rows and columns of the elements on and below diagonal k."""
    return tuple(asarray(i.astype(_np.int32)) for i in _np.tril_indices(n, k, m))


def triu_indices(n, k=0, m=None):
    """Rows and columns of the elements on and above diagonal k."""
    return tuple(asarray(i.astype(_np.int32)) for i in _np.triu_indices(n, k, m))


def diagonal(x, offset=0, axis1=0, axis2=1):
    """A diagonal of two axes, as the last axis."""
    return _core.diagonal(_array(x) if (axis1, axis2) == (0, 1) else moveaxis(x, (axis1, axis2), (0, 1)), offset)


def meshgrid(*arrays, indexing="xy", sparse=False, copy=True):
    """Coordinate arrays of a grid from those of its axes; sparse: with extent 1 in the other dims."""
    arrays = [_array(a) for a in arrays]
    if not sparse:
        return _core.meshgrid(arrays, indexing) if arrays else []
    places = [1, 0, *range(2, len(arrays))] if indexing == "xy" and len(arrays) > 1 else range(len(arrays))
    return [_core.reshape(a, [a.size if d == place else 1 for d in range(len(arrays))]) for a, place in zip(arrays, places)]


for _name in ("broadcast_to", "diagonal", "expand_dims", "flip", "mT", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "rollaxis", "squeeze", "swapaxes", "transpose", "unstack",
              "split", "array_split", "hsplit", "vsplit", "dsplit"):
    globals()[_name] = giving_views(globals()[_name])
