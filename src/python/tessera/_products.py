"""Products, differences, stencils."""
import builtins
import string

from . import _core
from ._create import _array, _arrays
from ._dtypes import result_type
from ._reductions import sum
from ._shapes import broadcast_arrays, concatenate, moveaxis

__all__ = ["apply_along_axis", "corrcoef", "cov", "cross", "diff", "gradient", "tensordot", "vdot", "vecdot", "vecmat", "matvec",
           "einsum", "einsum_path_text", "stencil", "angle"]

def tensordot(x1, x2, /, axes=2):
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


def cross(x1, x2, /, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The vector product of 3-D vectors along an axis: of each operand and of the result, or of all three."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = _arrays((x1, x2))
    x1, x2 = (x if a in (-1, x.ndim - 1) else moveaxis(x, a, -1) for x, a in ((x1, axisa), (x2, axisb)))
    result = _core.cross(*broadcast_arrays(x1, x2))
    return result if axisc in (-1, result.ndim - 1) else moveaxis(result, -1, axisc)


def _variables(x, y, rowvar):
    """x, and y's variables behind it, each a row."""
    parts = _arrays(v for v in (x, y) if v is not None)
    parts = [_core.reshape(v, (1, -1)) if v.ndim < 2 else v if rowvar else v.T for v in parts]
    return parts[0] if len(parts) == 1 else concatenate(parts)


def cov(x, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    """The covariances of the rows of x, and of y if given, divided by n - ddof (1, or 0 with bias). Each column counts fweights times, with a weight of aweights."""
    freedom = float(ddof if ddof is not None else 0 if bias else 1)
    if fweights is None and aweights is None:
        x = _array(x) if y is None else _variables(x, y, rowvar)
        return _core.cov(x, rowvar or y is not None, freedom)
    x = _variables(x, y, rowvar)
    times, weights = (None if w is None else _array(w, x) for w in (fweights, aweights))
    w = weights if times is None else times if weights is None else times * weights
    if w.shape != x.shape[1:]:
        raise ValueError(f"cov at {_core.here()}: weights of shape {tuple(w.shape)} for {x.shape[1]} observations; there is one for each")
    total = _core.sum(w)
    apart = x - _core.sum(x * w, 1, True) / total
    lost = 0.0 if freedom == 0 else freedom if weights is None else freedom * _core.sum(w * weights) / total
    return _core.squeeze(_core.matmul(apart * w, _core.conj(apart).T) / (total - lost))


def corrcoef(x, y=None, rowvar=True):
    """cov divided by the standard deviations."""
    return _core.corrcoef(_array(x), rowvar) if y is None else _core.corrcoef(_variables(x, y, rowvar), True)


def diff(x, /, n=1, axis=-1, prepend=None, append=None):
    """x[1:] - x[:-1] along an axis, n times."""
    x = _array(x)

    def end(value):  # a number stands for one element of each line
        value = _array(value, x)
        return _core.broadcast_to(value, [1 if d == axis % x.ndim else e for d, e in enumerate(x.shape)]) if value.ndim == 0 else value
    parts = [x if e is x else end(e) for e in (prepend, x, append) if e is not None]
    return _core.diff(parts[0] if len(parts) == 1 else concatenate(parts, axis), n, axis)


def gradient(x, *spacing, axis=None, edge_order=1):
    """Central differences inside, one-sided ones of order 1 or 2 at the ends. The spacing along each axis is a number, or the coordinates."""
    x = _array(x)
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    steps = list(spacing) * len(axes) if len(spacing) == 1 else list(spacing) or [1.0] * len(axes)
    if len(steps) != len(axes):
        raise ValueError(f"gradient at {_core.here()}: {len(steps)} spacings for {len(axes)} axes; give one, or one for each")
    if len({a % x.ndim for a in axes}) < len(axes):
        raise ValueError(f"gradient at {_core.here()}: the axes {tuple(axes)} name one twice")
    slopes = [_core.gradient(x, _array(h, x), a, edge_order) if getattr(h, "ndim", 0) or isinstance(h, (list, tuple)) else _core.gradient(x, a, float(h), edge_order)
              for a, h in zip(axes, steps)]
    return slopes[0] if len(slopes) == 1 else slopes


def apply_along_axis(function, axis, x, *args, **options):
    """Applies function to each line along an axis, with further arguments."""
    from ._transforms import vmap
    if args or options:
        plain, function = function, lambda line: plain(line, *args, **options)
    lines = moveaxis(x, axis, -1)
    for _ in range(lines.ndim - 1):
        function = vmap(function)
    result = function(lines)
    return moveaxis(result, -1, axis) if result.ndim == lines.ndim else result


def _expression_of(operands):
    """(expression, operands) of einsum's other form: each array with its list of dims' numbers, and the result's list last."""
    letters = lambda dims: "".join("..." if d is Ellipsis else (string.ascii_letters[d]) for d in dims)  # noqa: E731
    arrays, dims = operands[0:len(operands) // 2 * 2:2], operands[1::2]
    expression = ",".join(letters(d) for d in dims)
    return (expression + "->" + letters(operands[-1]) if len(operands) % 2 else expression), arrays


def einsum(expression, *operands, optimize=True):
    """The product of the operands summed over the indices that are not in the result: "ij,jk->ik", or each operand with a list of its indices: einsum(a, [0, 1], b, [1, 2], [0, 2]). The order of pairs is chosen by cost, whatever optimize says."""
    if not isinstance(expression, str):
        expression, operands = _expression_of((expression, *operands))
    return _core.einsum(expression, *operands)


def angle(x, deg=False, *, degrees=False):
    """The angle of a complex number, in (-pi, pi], or in degrees; of a real one 0 or pi."""
    return _core.angle(x, bool(deg or degrees))


def einsum_path_text(expression, *operands):
    """The plan of einsum, as `explain` shows it."""
    from .debug import explain
    return str(explain(lambda *a: _core.einsum(expression, *a), *operands))


class _Neighbours:
    """What a stencil's function sees: u() is the array, u(1, 0) the elements one further along the first axis."""

    def __init__(self, x, boundary, value):
        self.x, self.boundary, self.value = _array(x), boundary, float(value)

    def __call__(self, *offsets):
        x = self.x
        if offsets and len(offsets) != x.ndim:
            raise _core.errors.ArgumentError(f"stencil at {_core.here()}: {len(offsets)} offsets for {x.ndim} dimensions; give one for each, or none")
        for axis, offset in enumerate(offsets):
            if offset:
                x = _core.shifted(x, offset, axis, self.boundary, self.value)
        return x


def stencil(fun, x, boundary="wrap", value=0.0):
    """fun(u) of the neighbours of every element: u(1, 0) + u(-1, 0) - 2 * u(). Beyond the ends "wrap", "constant", "edge", "reflect" or "symmetric".

    Along split axes, ranks exchange the slices that the offsets reach.
    """
    return fun(_Neighbours(x, boundary, value))
