"""Products, differences, polynomials."""
import builtins

from . import _core
from ._create import _array
from ._dtypes import result_type
from ._reductions import mean, sum
from ._shapes import _along, atleast_2d, broadcast_arrays, concatenate, moveaxis, transpose

__all__ = ["apply_along_axis", "cov", "cross", "diff", "gradient", "kron", "polyval", "tensordot", "vdot", "vecdot", "vecmat", "matvec",
           "einsum_path_text"]

def tensordot(x1, x2, /, *, axes=2):
    """The last n dims of x1 with the first n of x2, or the named axes pairwise."""
    if isinstance(axes, int):
        return _core.tensordot(x1, x2, axes)
    first, second = axes
    as_list = lambda a: [a] if isinstance(a, int) else list(a)  # noqa: E731
    return _core.tensordot(x1, x2, (as_list(first), as_list(second)))


vdot = _core.vdot


def vecdot(x1, x2, /, *, axis=-1):
    """sum(conj(x1) x2) along an axis."""
    x1, x2 = _array(x1), _array(x2)
    if not -builtins.min(x1.ndim, x2.ndim) <= axis < 0 and not (x1.ndim == x2.ndim and 0 <= axis < x1.ndim):
        raise _core.errors.IndexError(f"vecdot at {_core.here()}: axis {axis} is out of range")
    if x1.shape[axis] != x2.shape[axis]:
        raise _core.errors.ShapeError(f"vecdot at {_core.here()}: extents {x1.shape[axis]} and {x2.shape[axis]} of axis {axis} differ")
    common = result_type(x1, x2)
    product = _core.multiply(_core.conj(x1), x2)
    return sum(product, axis, dtype=common)


def matvec(a, x, /):
    """The products of matrices and vectors."""
    return _core.squeeze(_core.matmul(a, _core.expand_dims(x, -1)), -1)


def vecmat(x, a, /):
    """The products of conjugated vectors and matrices."""
    return _core.squeeze(_core.matmul(_core.expand_dims(_core.conj(x), -2), a), -2)


def kron(a, b):
    """The Kronecker product."""
    a, b = _array(a), _array(b)
    n = builtins.max(a.ndim, b.ndim)
    sa, sb = (1,) * (n - a.ndim) + a.shape, (1,) * (n - b.ndim) + b.shape
    wide = [e for pair in zip(sa, (1,) * n) for e in pair], [e for pair in zip((1,) * n, sb) for e in pair]
    return _core.reshape(_core.multiply(_core.reshape(a, wide[0]), _core.reshape(b, wide[1])), [p * q for p, q in zip(sa, sb)])


def cross(x1, x2, /, *, axis=-1):
    """The vector product of 3-D vectors along an axis."""
    x1, x2 = broadcast_arrays(_array(x1), _array(x2))
    if x1.shape[axis] != 3:
        raise _core.errors.ShapeError(f"cross at {_core.here()}: axis {axis} has extent {x1.shape[axis]}; the vector product is one of 3 elements")
    turned = lambda x, n: _core.roll(x, n, axis)  # noqa: E731
    return turned(x1, -1) * turned(x2, -2) - turned(x1, -2) * turned(x2, -1)


def cov(x, rowvar=True, bias=False, ddof=None):
    """The covariance of the rows."""
    x = atleast_2d(x)
    x = x if rowvar else transpose(x)
    centered = x - mean(x, 1, keepdims=True)
    return _core.matmul(centered, _core.conj(transpose(centered))) / (x.shape[1] - (ddof if ddof is not None else 0 if bias else 1))


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """x[1:] - x[:-1] along an axis, n times."""
    ends = [e for e in (prepend, x, append) if e is not None]
    return _core.diff(ends[0] if len(ends) == 1 else concatenate(ends, axis), n, axis)


def gradient(x, *spacing, axis=None):
    """Central differences inside, one-sided ones at the ends."""
    x = _array(x)
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    steps = list(spacing) * len(axes) if len(spacing) == 1 else list(spacing) or [1.0] * len(axes)
    slopes = []
    for a, h in zip(axes, steps):
        inner = (_along(x, a, slice(2, None)) - _along(x, a, slice(None, -2))) / (2 * h)
        first = (_along(x, a, slice(1, 2)) - _along(x, a, slice(0, 1))) / h
        last = (_along(x, a, slice(-1, None)) - _along(x, a, slice(-2, -1))) / h
        slopes.append(concatenate([first, inner, last], a))
    return slopes[0] if len(slopes) == 1 else slopes


def polyval(p, x):
    """The polynomial with these coefficients, the highest first."""
    p = _array(p)
    result = _core.zeros(_array(x).shape, p.dtype)
    for i in range(p.shape[0]):
        result = result * x + p[i]
    return result


def apply_along_axis(function, axis, x):
    """function of each line along an axis."""
    from ._transforms import vmap
    lines = moveaxis(x, axis, -1)
    for _ in range(lines.ndim - 1):
        function = vmap(function)
    result = function(lines)
    return moveaxis(result, -1, axis) if result.ndim == lines.ndim else result


def einsum_path_text(expression, *operands):
    """What einsum would run, as `explain` shows it."""
    from .debug import explain
    return str(explain(lambda *a: _core.einsum(expression, *a), *operands))
