"""NumPy's functions of polynomials, the highest power first."""
import builtins
import collections

import numpy as _np

from . import _core, linalg
from ._control import scan
from ._create import _array, _arrays, arange, copy_to_numpy
from ._derived import _floating
from ._dtypes import finfo
from ._reductions import sum
from ._shapes import ravel

__all__ = ["poly", "polydiv", "polyfit", "polyint", "roots"]


def poly(x):
    """The coefficients, the highest power first, of the polynomial with these roots, or of a matrix's characteristic polynomial. numpy.poly."""
    x = _array(x)
    zeros = _floating(_core.linalg.eigvals(x) if x.ndim == 2 else ravel(x))
    one = _core.astype(_core.equal(arange(zeros.size + 1), 0), zeros.dtype)
    times = lambda p, zero: (p - zero * _core.concatenate([_core.zeros((1,), p.dtype), p[:-1]], 0), None)  # noqa: E731
    return scan(times, one, zeros)[0]


def polydiv(u, v):
    """(quotient, remainder) of two polynomials, the highest power first; the remainder keeps its leading zeros, as jax.numpy.polydiv's does."""
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


def polyint(coefficients, m=1, k=None):
    """The m-th integral, with k as its constants of integration: a number, or the first constant first."""
    if k is None:
        return _core.polyint(coefficients, m)
    constants = [k] * m if not isinstance(k, (list, tuple)) and not getattr(k, "ndim", 0) else list(k)
    if len(constants) != m:
        raise ValueError(f"polyint at {_core.here()}: {len(constants)} constants for {m} integrations; give one, or one for each")
    for constant in constants:
        coefficients = _core.polyint(coefficients, 1)
        coefficients = coefficients.at[-1].set(constant)
    return coefficients


PolynomialFit = collections.namedtuple("PolynomialFit", "coefficients residuals rank singular_values rcond", module="tessera")


def polyfit(x, y, degree=None, rcond=None, full=False, w=None, cov=False, *, deg=None):
    """The polynomial of a degree that fits y, or each column of y, at x best, by least squares with weights w. With full also the residuals, rank, singular values
    and rcond, with cov the covariances of the coefficients."""
    degree = deg if degree is None else degree
    x, y = _arrays((x, y))
    if rcond is None and w is None and y.ndim == 1 and not (full or cov):
        return _core.polyfit(x, y, degree)
    powers = _core.vander(x if x.dtype.kind in "fc" else _core.astype(x, _core.float32), degree + 1)
    if w is not None:
        w = _array(w, x)
        powers, y = powers * _core.expand_dims(w, 1), y * (w if y.ndim == 1 else _core.expand_dims(w, 1))
    length = _core.sqrt(sum(_core.square(_core.abs(powers)), 0))
    powers = powers / length
    rcond = x.size * float(finfo(powers.dtype).eps) if rcond is None else rcond
    found, residuals, rank, singular_values = linalg.lstsq(powers, y, rcond)
    found = found / (length if y.ndim == 1 else _core.expand_dims(length, 1))
    if full:
        return PolynomialFit(found, residuals, rank, singular_values, rcond)
    if not cov:
        return found
    spread = linalg.inv(_core.matmul(_core.conj(powers).T, powers)) / _core.outer(length, length)
    if cov != "unscaled":
        residuals = residuals / (x.size - degree - 1)
        spread = spread * residuals if y.ndim == 1 else _core.expand_dims(spread, 2) * residuals
    return found, spread
