"""The standard's linalg extension, and numpy.linalg's names."""
import math as _math
from collections import namedtuple as _namedtuple

from . import _core
from ._core.linalg import *  # noqa: F401,F403
from ._core import outer as _outer, matmul, multi_dot  # noqa: F401
from ._create import axis_of
from ._core.errors import LinAlgError  # noqa: F401
from ._matrices import *  # noqa: F401,F403
from ._create import _array, _arrays
from ._dtypes import finfo as _finfo
from ._products import cross, tensordot, vecdot  # noqa: F401
from ._reductions import sum as _sum
from ._searching import sort as _sort
from ._shapes import concatenate as _concatenate, diagonal as _diagonal, flip as _flip, matrix_transpose, ndim as _ndim

_l = _core.linalg


def outer(x1, x2, /):
    """x1[i] x2[j] of two vectors."""
    if _ndim(x1) != 1 or _ndim(x2) != 1:
        raise _core.errors.ShapeError(f"linalg.outer at {_core.here()}: operands have {_ndim(x1)} and {_ndim(x2)} dimensions; it takes vectors")
    return _outer(x1, x2)


def cholesky(x, /, *, upper=False):
    """Lower l with l l^H = x, or upper u with u^H u = x."""
    lower = _l.cholesky(x)
    return _core.conj(matrix_transpose(lower)) if upper else lower


def diagonal(x, /, *, offset=0):
    """The diagonals of the last two axes."""
    return _diagonal(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of the last two axes."""
    return _sum(diagonal(x, offset=offset), -1, dtype)


def matrix_power(x, n, /):
    """x to the power n."""
    return _l.matrix_power(x, n)


def qr(x, /, mode="reduced"):
    """x = Q R: "reduced", "complete" with a square Q, or "r" for R alone."""
    if mode in ("reduced", "r"):
        return _l.qr(x) if mode == "reduced" else _l.qr(x).R
    if mode != "complete":
        raise ValueError(f"qr: there is no mode '{mode}'; the modes are 'reduced', 'complete' and 'r'")
    m, n = x.shape[-2:]
    if m <= n:
        return _l.qr(x)
    wide = _concatenate([x, _core.broadcast_to(_core.eye(m, m, 0, x.dtype), x.shape[:-2] + (m, m))], -1)
    full = _l.qr(wide)
    return type(full)(full.Q, full.R[..., :n])


def _triangle(x, uplo):
    """The matrix whose lower triangle counts, of NumPy's UPLO."""
    if uplo not in ("L", "U"):
        raise ValueError(f"UPLO at {_core.here()} is {uplo!r}; it is 'L' or 'U'")
    return x if uplo == "L" else _core.conj(matrix_transpose(_array(x)))


def eigh(x, /, b=None, UPLO="L"):  # noqa: N803
    """The eigenvalues of Hermitian matrices, ascending, and their vectors as columns; one triangle is read. With b those of x v = w b v."""
    b, UPLO = (None, b) if isinstance(b, str) else (b, UPLO)
    return _l.eigh(_triangle(x, UPLO)) if b is None else _l.eigh(_triangle(x, UPLO), _triangle(b, UPLO))


def eigvalsh(x, /, UPLO="L"):  # noqa: N803
    """The eigenvalues of Hermitian matrices, ascending; one triangle is read."""
    return _l.eigvalsh(_triangle(x, UPLO))


def _hermitian_svd(x):
    """(U, S, Vh) of a Hermitian matrix by its eigenvectors."""
    w, v = _l.eigh(x)
    order = _core.argsort(_core.abs(w), -1, descending=True)
    w, v = _core.take_along_axis(w, order, -1), _core.take_along_axis(v, _core.expand_dims(order, -2), -1)
    return v, _core.abs(w), _core.conj(matrix_transpose(_core.where(_core.expand_dims(_core.less(w, 0), -2), -v, v)))


def svd(x, /, full_matrices=True, compute_uv=True, hermitian=False):
    """x = U diag(S) Vh. The eigenvectors of a Hermitian matrix give it as well, and sooner."""
    if hermitian:
        return _core._named_tuple("SVD", "U S Vh", _hermitian_svd(x)) if compute_uv else _flip(_sort(_core.abs(_l.eigvalsh(x))), -1)
    return _l.svd(x, full_matrices) if compute_uv else _l.svdvals(x)


def _rounding(x):
    """NumPy's rtol where none is given, of the standard: the larger extent times eps."""
    x = _array(x)
    return max(x.shape[-2:]) * float(_finfo(x.dtype).eps)


def _tolerance(x, s, rtol, default):
    given = default if rtol is None else rtol
    return _core.multiply(_core.max(s, -1, True), _core.expand_dims(given, -1) if isinstance(given, _core.Array) and given.ndim else given)


def pinv(x, /, rcond=None, hermitian=False, *, rtol=None):
    """The Moore-Penrose inverse: singular values up to rtol (NumPy's rcond) times the largest count as 0."""
    rtol = rcond if rtol is None else rtol
    if rtol is None and not hermitian:
        return _l.pinv(x)
    rtol = _rounding(x) if rtol is None else rtol
    u, s, vh = svd(x, False, hermitian=hermitian)
    inverse = _core.where(_core.greater(s, _tolerance(x, s, rtol, 0)), 1 / _core.where(_core.equal(s, 0), 1, s), 0)
    return _core.matmul(_core.conj(matrix_transpose(vh)) * _core.expand_dims(inverse, -2), _core.conj(matrix_transpose(u)))


def matrix_rank(x, /, tol=None, hermitian=False, *, rtol=None):
    """How many singular values are above rtol times the largest, or above tol."""
    if rtol is None and tol is None and not hermitian:
        return _l.matrix_rank(x)
    s = svd(x, compute_uv=False, hermitian=hermitian)
    if rtol is None and tol is None:
        rtol = _rounding(x)
    if rtol is None:
        return _core.count_nonzero(_core.greater(s, _core.expand_dims(tol, -1) if getattr(tol, "ndim", 0) else tol), -1)
    return _core.count_nonzero(_core.greater(s, _tolerance(x, s, rtol, 0)), -1)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Norms of the last two axes."""
    if ord == 0:
        raise ValueError("matrix_norm: 0 is no order of a matrix norm")
    return _l.norm(x, ord if isinstance(ord, str) else float(ord), (-2, -1), keepdims)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Norms over one axis, over several axes taken as one, or of all elements."""
    x = _array(x)
    if axis is None and ord == 2 and not keepdims:
        return _l.norm(x)
    if axis is None or not isinstance(axis, int):
        axes = tuple(range(x.ndim)) if axis is None else tuple(axis_of(a, x.ndim, "vector_norm") for a in axis)
        rest = [d for d in range(x.ndim) if d not in axes]
        flat = _core.reshape(_core.transpose(x, rest + list(axes)) if x.ndim else x, [x.shape[d] for d in rest] + [_math.prod(x.shape[d] for d in axes)])
        result = _l.norm(flat, float(ord), -1, False)
        return _core.reshape(result, [1 if d in axes else n for d, n in enumerate(x.shape)]) if keepdims else result
    return _l.norm(x, float(ord), axis, keepdims)


def norm(x, ord=None, axis=None, keepdims=False):
    """numpy.linalg.norm."""
    x = _array(x)
    if ord is None:
        return vector_norm(x, axis=axis, keepdims=keepdims)
    return _l.norm(x, ord if isinstance(ord, str) else float(ord), axis, keepdims)


Lstsq = _namedtuple("Lstsq", "x residuals rank s", module="tessera.linalg")


def _singular_values(x):
    """Those of x; in a ReproducibleScope, which refuses them of a split matrix, by its triangle, which every rank takes."""
    if not _core.is_reproducible() or x.ndim != 2:
        return _l.svdvals(x)
    triangle = _l.qr(x if x.shape[0] >= x.shape[1] else _core.conj(matrix_transpose(x)))[1]
    if triangle.committed:
        triangle = _core.device_put_leaf(triangle, _core.NamedSharding(triangle.sharding.mesh, _core.PartitionSpec()))
    return _l.svdvals(triangle)


def lstsq(a, b, rcond=None):
    """(x, residuals, rank, s): the x of smallest norm with the smallest |a x - b|, as numpy.linalg.lstsq. Not collective: results that are not read are not computed.

    residuals are |a x - b|^2 of each column of b where a has more rows than columns, whatever its rank; s are the singular values of a, of which those
    up to rcond times the largest count as 0 (None: machine precision times the larger extent).
    """
    a, b = _arrays([a, b])
    s = _singular_values(a)
    smallest = _finfo(s.dtype).eps * max(a.shape) if rcond is None or rcond < 0 else rcond
    x = _l.lstsq(a, b) if rcond is None or rcond < 0 else matmul(pinv(a, rtol=rcond), b)
    rank = _core.count_nonzero(_core.greater(s, _core.multiply(_core.max(s), smallest)) if s.size else s)
    rest = _core.square(_core.abs(matmul(a, x) - b))
    residuals = _core.sum(rest, 0) if b.ndim > 1 else _core.reshape(_core.sum(rest), (1,))
    return Lstsq(x, residuals if a.shape[0] > a.shape[1] else _core.zeros((0,), residuals.dtype), rank, s)


def tensorinv(a, ind=2):
    """The inverse of a for tensordot(a, b, ind); the first `ind` extents have the same product as the others."""
    a = _array(a)
    front, rest = a.shape[:ind], a.shape[ind:]
    if ind <= 0 or _math.prod(front) != _math.prod(rest):
        raise _core.errors.ShapeError(f"tensorinv at {_core.here()}: {a.shape} parted at {ind} is no square: {_math.prod(front)} and {_math.prod(rest)}")
    return _core.reshape(_l.inv(_core.reshape(a, (_math.prod(front), _math.prod(rest)))), rest + front)


def lu(a):
    """(p, l, u) with a = p l u."""
    return _l.lu(a)


def solve_triangular(a, b, lower=False, trans=0, unit_diagonal=False):
    """scipy.linalg.solve_triangular: with a, its transposed (trans=1 or "T") or its conjugate transposed matrix (2 or "C")."""
    way = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    if way not in (0, 1, 2):
        raise _core.errors.ArgumentError(f"solve_triangular at {_core.here()}: there is no trans={trans!r}; it is 0, 1, 2, 'N', 'T' or 'C'")
    return _l.triangular_solve(_core.conj(a) if way == 2 else a, b, lower=lower, transpose=way != 0, unit_diagonal=unit_diagonal)
