"""scipy.linalg's names beyond NumPy's: factors with their solves, and matrices of a given structure. Part of tessera.linalg."""
import math

from . import _core
from ._control import fori_loop
from ._create import _array, asarray

__all__ = ["block_diag", "cho_factor", "cho_solve", "circulant", "companion", "convolution_matrix", "dft", "eigh_tridiagonal", "expm_frechet", "fiedler", "hadamard", "hankel", "hilbert", "invhilbert",
           "leslie", "pascal", "qr_multiply", "solve_sylvester"]

_l = _core.linalg


def block_diag(*matrices):
    """Matrices along the diagonal, zeros elsewhere. They may stand in one list."""
    given = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices
    return _l.block_diag([_core.reshape(m, [1, m.size]) if m.ndim < 2 else m for m in map(_array, given)])


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """(c, lower) for cho_solve: the Cholesky factor."""
    factor = _l.cholesky(a)
    return (factor if lower else _core.conj(_core.swapaxes(factor, -1, -2)), lower)


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """x of a x = b by cho_factor(a): two triangular solves by all ranks."""
    c, lower = c_and_lower
    factor = c if lower else _core.conj(_core.swapaxes(c, -1, -2))
    return _l.cholesky_solve(factor, b)


def _numbers(n):
    return _core.arange_integers(0, n, 1, _core.int32)


def _by_place(v, places):
    """v at index arrays, as one matrix."""
    return _core.take(v, places, 0)


def _rows_and_columns(m, n):
    return _core.reshape(_numbers(m), [m, 1]), _core.reshape(_numbers(n), [1, n])


def circulant(c):
    """The matrix with c as first column, each next one rotated by one."""
    c = _array(c)
    i, j = _rows_and_columns(c.shape[0], c.shape[0])
    return _by_place(c, _core.remainder(_core.subtract(i, j), c.shape[0]))


def hankel(c, r=None):
    """Constant along the other diagonals: c is the first column, r the last row, zeros without it; r[0] is not used."""
    c = _array(c)
    r = _core.zeros(c.shape, c.dtype) if r is None else _array(r, c)
    i, j = _rows_and_columns(c.shape[0], r.shape[0])
    return _by_place(_core.concatenate([c, r[1:]], 0), _core.add(i, j))


def companion(a):
    """The companion matrix of a polynomial's coefficients, the highest power's first."""
    a = _array(a)
    n = a.shape[0] - 1
    first = _core.divide(_core.negative(a[1:]), a[0])
    return _core.concatenate([_core.expand_dims(first, 0), _core.eye(n - 1, n, dtype=first.dtype)], 0)


def leslie(f, s):
    """f in the first row, s below the diagonal."""
    f, s = _array(f), _array(s)
    return _core.concatenate([_core.expand_dims(f, 0), _core.concatenate([_core.diag(s), _core.zeros((s.shape[0], 1), s.dtype)], 1)], 0)


def fiedler(a):
    """|a[i] - a[j]|."""
    a = _array(a)
    return _core.abs(_core.subtract(_core.expand_dims(a, 1), _core.expand_dims(a, 0)))


def convolution_matrix(a, n, mode="full"):
    """The matrix whose product with v, of n elements, is the convolution of a and v."""
    a = _array(a)
    m = a.shape[0]
    first, rows = {"full": (0, m + n - 1), "same": ((min(m, n) - 1) // 2, max(m, n)), "valid": (min(m, n) - 1, max(m, n) - min(m, n) + 1)}[mode]
    i, j = _rows_and_columns(rows, n)
    place = _core.subtract(_core.add(i, first), j)
    inside = _core.bitwise_and(_core.greater_equal(place, 0), _core.less(place, m))
    return _core.where(inside, _by_place(a, _core.clip(place, 0, m - 1)), _core.zeros((), a.dtype))


def hilbert(n):
    """1 / (i + j + 1)."""
    i, j = _rows_and_columns(n, n)
    return _core.divide(1.0, _core.add(_core.add(i, j), 1.0))


def invhilbert(n, exact=False):
    """The inverse of hilbert(n), from binomial coefficients."""
    return asarray([[float((-1) ** (i + j) * (i + j + 1) * math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2) for j in range(n)] for i in range(n)])


def pascal(n, kind="symmetric", exact=True):
    """Binomial coefficients: symmetric, or the "lower" or "upper" triangle."""
    entry = {"symmetric": lambda i, j: math.comb(i + j, i), "lower": math.comb, "upper": lambda i, j: math.comb(j, i)}[kind]
    return asarray([[float(entry(i, j)) for j in range(n)] for i in range(n)])


def hadamard(n, dtype=_core.int32):
    """Entries 1 and -1 with orthogonal rows; n is a power of two."""
    if n < 1 or n & (n - 1):
        raise _core.errors.ArgumentError(f"hadamard at {_core.here()}: n is {n}; it must be a power of two")
    i, j = _rows_and_columns(n, n)
    return _core.astype(_core.subtract(1, _core.multiply(_core.remainder(_core.astype(_core.population_count(_core.bitwise_and(i, j)), _core.int32), 2), 2)), dtype)


def dft(n, scale=None):
    """The matrix of the discrete Fourier transform, divided by sqrt(n) for scale="sqrtn" and by n for "n"."""
    i, j = _rows_and_columns(n, n)
    angle = _core.multiply(_core.astype(_core.remainder(_core.multiply(i, j), n), _core.float32), -2 * math.pi / n)
    matrix = _core.make_complex(_core.cos(angle), _core.sin(angle))
    return _core.multiply(matrix, {None: 1.0, "sqrtn": n ** -0.5, "n": 1 / n}[scale])


def eigh_tridiagonal(d, e, *, eigvals_only=False):
    """Eigenvalues, and eigenvectors, of the symmetric matrix with d on the diagonal and e beside it."""
    d, e = _array(d), _array(e)
    whole = _core.add(_core.diag(d), _core.add(_core.diag(e, 1), _core.diag(e, -1)))
    values, vectors = _l.eigh(whole)
    return values if eigvals_only else (values, vectors)


def expm_frechet(A, E, *, method=None, compute_expm=True):  # noqa: N803
    """(expm(A), its derivative in the direction E): the blocks of expm([[A, E], [0, A]])."""
    A, E = _array(A), _array(E)  # noqa: N806
    n = A.shape[-1]
    whole = _l.expm(_core.concatenate([_core.concatenate([A, E], -1), _core.concatenate([_core.zeros(A.shape, A.dtype), A], -1)], -2))
    return (whole[..., :n, :n], whole[..., :n, n:]) if compute_expm else whole[..., :n, n:]


def qr_multiply(a, c, mode="right"):
    """(c q, r), or (q c, r) for mode="left", of a's QR factorization."""
    q, r = _l.qr(a)
    return (_core.matmul(c, q), r) if mode == "right" else (_core.matmul(q, c), r)


def solve_sylvester(A, B, C):  # noqa: N803
    """x of A x + x B = C: Bartels and Stewart 1972, by complex Schur forms, one triangular solve for each column of C. The Schur forms gather split matrices, as linalg.schur does."""
    A, B, C = _array(A, C), _array(B, C), _array(C)  # noqa: N806
    wide = _core.add(_core.add(A.reshape(-1)[:1], B.reshape(-1)[:1]), C.reshape(-1)[:1]).dtype
    as_complex = "complex128" if wide.itemsize == 8 and wide.kind == "f" or wide.itemsize == 16 else "complex64"
    s, u = _l.schur(_core.astype(A, as_complex))
    t, v = _l.schur(_core.astype(B, as_complex))
    right = _core.matmul(_core.matmul(_core.conj(_core.swapaxes(u, 0, 1)), _core.astype(C, as_complex)), v)
    unit = _core.eye(s.shape[0], dtype=as_complex)

    def column(k, found):
        """(s + t[k, k]) y_k = right_k - sum over j < k of y_j t[j, k]; later columns are still 0."""
        of_t, of_right = (_core.dynamic_slice(x, [0, k], [x.shape[0], 1]) for x in (t, right))
        shift = _core.dynamic_slice(t, [k, k], [1, 1])
        y = _l.triangular_solve(_core.add(s, _core.multiply(unit, shift)), _core.subtract(of_right, _core.matmul(found, of_t)), lower=False)
        return _core.dynamic_update_slice(found, y, [0, k])

    found = fori_loop(0, C.shape[1], column, _core.zeros(C.shape, as_complex))
    x = _core.matmul(_core.matmul(u, found), _core.conj(_core.swapaxes(v, 0, 1)))
    return x if wide.kind == "c" else _core.astype(_core.real(x), wide)
