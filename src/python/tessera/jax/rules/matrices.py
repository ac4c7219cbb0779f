"""Factorizations, solves and transforms: tessera's distributed ones."""
import functools

import jax

from ... import _core as c
from ...fft import fftn, ifftn, irfftn, rfftn
from .._interpret import expand, refuse, rule
from .._values import number_like
from .arithmetic import is_complex

_jax_ops = getattr(c, "jax", None)


def adjoint(x):
    return c.conj(c.matrix_transpose(x)) if is_complex(x) else c.matrix_transpose(x)


def _identity(x, n, m=None):
    return c.broadcast_to(c.eye(n, m or n, 0, x.dtype), [*x.shape[:-2], n, m or n])


@rule("cholesky")
def cholesky(x, **_):
    """Of a matrix that is not positive definite NaN, as JAX."""
    if x.size == 0:
        return x
    return _jax_ops.cholesky(x)


@rule("lu")
def lu(x, **_):
    m, n = x.shape[-2:]
    k = min(m, n)
    if x.size == 0:
        lines = c.arange_integers(0, m, 1, "int32")
        return [x, c.zeros([*x.shape[:-2], k], "int32"), c.broadcast_to(lines, [*x.shape[:-2], m])]
    factor, pivots = c.linalg.lu_factor(x, ill_conditioned="accept")
    return [factor, pivots, _jax_ops.pivots_to_permutation(pivots, m)]


@rule("lu_pivots_to_permutation")
def lu_pivots_to_permutation(pivots, permutation_size):
    return _jax_ops.pivots_to_permutation(pivots, permutation_size)


@rule("qr")
def qr(x, full_matrices=True, pivoting=False, **_):
    m, n = x.shape[-2:]
    k = m if full_matrices else min(m, n)
    if x.size == 0:
        result = [c.broadcast_to(c.eye(m, k, 0, x.dtype), [*x.shape[:-2], m, k]), c.zeros([*x.shape[:-2], k, n], x.dtype)]
        return result + [c.zeros([*x.shape[:-2], n], "int32")] if pivoting else result
    if not pivoting:
        return list(c.linalg.qr(x, bool(full_matrices and m > n)))
    q, r, columns = c.linalg.qr_pivoted(x)
    if full_matrices and m > n:
        q, r = c.linalg.qr(c.take_along_axis(x, c.broadcast_to(c.expand_dims(columns, -2), x.shape), -1), True)
    return [q, r, columns]


def _kept(first, last):
    """What a subset keeps of values, columns and rows."""
    return (slice(first, last),), (slice(first, last),), (slice(first, last), slice(None))


@rule("svd")
def svd(x, full_matrices, compute_uv, subset_by_index=None, **_):
    m, n = x.shape[-2:]
    k = min(m, n)
    if subset_by_index not in (None, (0, k)):
        whole = svd(x, False, compute_uv)
        return [part[(Ellipsis, *at)] for part, at in zip(whole, _kept(*subset_by_index))]
    if not compute_uv:
        return [c.linalg.svdvals(x)] if x.size else [c.zeros([*x.shape[:-2], k], c.real(x).dtype)]
    if x.size == 0:
        rows, columns = (m, n) if full_matrices else (k, k)
        return [c.zeros([*x.shape[:-2], k], c.real(x).dtype), _identity(x, m, rows), _identity(x, columns, n)]
    u, s, vh = c.linalg.svd(x, bool(full_matrices))
    return [s, u, vh]


@rule("eigh")
def eigh(x, lower=True, subset_by_index=None, **_):
    """JAX gives the vectors first."""
    n = x.shape[-1]
    if subset_by_index not in (None, (0, n)):
        return [part[(Ellipsis, slice(*subset_by_index))] for part in eigh(x, lower)]
    if x.size == 0:
        return [x, c.zeros(x.shape[:-1], c.real(x).dtype)]
    w, v = c.linalg.eigh(x if lower else adjoint(x))
    return [v, w]


@rule("eig")
def eig(x, compute_left_eigenvectors, compute_right_eigenvectors, eqn, **_):
    if x.size == 0:
        return [c.zeros(a.shape, a.dtype.name) for a in eqn.out_avals]
    w, v = c.linalg.eig(x)
    results = [w]
    if compute_left_eigenvectors:
        left = adjoint(c.linalg.solve(v, _identity(v, v.shape[-1]), ill_conditioned="accept"))
        size = c.sqrt(c.sum(c.square(c.abs(left)), [-2], True))
        results.append(c.divide(left, size))
    if compute_right_eigenvectors:
        results.append(v)
    return results


@rule("schur")
def schur(x, compute_schur_vectors, sort_eig_vals=False, select_callable=None, **_):
    if sort_eig_vals:
        refuse("schur with sorted eigenvalues")
    t, z = c.linalg.schur(x)
    return [t, z] if compute_schur_vectors else [t]


@rule("triangular_solve")
def triangular_solve(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """x of op(a) x = b, or of x op(a) = b, which is op(a)^T x^T = b^T."""
    if b.size == 0:
        return b
    if not left_side:
        solved = triangular_solve(a, c.matrix_transpose(b), True, lower, not transpose_a, conjugate_a, unit_diagonal)
        return c.matrix_transpose(solved)
    if conjugate_a and is_complex(a):
        a = c.conj(a)
    return c.linalg.triangular_solve(a, b, lower=bool(lower), transpose=bool(transpose_a), unit_diagonal=bool(unit_diagonal))


@rule("householder_product")
def householder_product(a, taus):
    """The product of I - tau v v^H, from the last: v is what stands below the diagonal of a column, after a one."""
    m, n = a.shape[-2:]
    q = _identity(a, m)
    for i in reversed(range(taus.shape[-1])):
        q = reflected(q, _reflector(a, i), taus[(Ellipsis, slice(i, i + 1))])
    return q[(Ellipsis, slice(0, n))]


def _reflector(a, i):
    m = a.shape[-2]
    column = a[(Ellipsis, slice(i, i + 1))]
    rows = c.reshape(c.arange_integers(0, m, 1, "int32"), [m, 1])
    zero = number_like(0, a)
    return c.where(c.equal(rows, i), number_like(1, a), c.where(c.less(rows, i), zero, column))


def reflected(q, v, tau):
    """(I - tau v v^H) q."""
    return c.subtract(q, c.multiply(c.multiply(c.expand_dims(tau, -1), v), c.matmul(adjoint(v), q)))


@rule("ormqr")
def ormqr(a, taus, other, left, transpose):
    count = taus.shape[-1]
    if not left:
        return adjoint(ormqr(a, taus, adjoint(other), True, not transpose))
    order = range(count) if transpose else reversed(range(count))
    for i in order:
        tau = taus[(Ellipsis, slice(i, i + 1))]
        other = reflected(other, _reflector(a, i), c.conj(tau) if transpose and is_complex(tau) else tau)
    return other


@rule("symmetric_product")
def symmetric_product(a, other, alpha, beta):
    return c.add(c.multiply(number_like(alpha, a), c.matmul(a, c.matrix_transpose(a))), c.multiply(number_like(beta, a), other))


@functools.lru_cache(maxsize=None)
def _cholesky_update():
    from jax._src.lax import linalg as jax_linalg
    return jax_linalg._cholesky_update_jax_fn


@rule("cholesky_update")
def cholesky_update(r, w, eqn):
    return expand(_cholesky_update(), eqn.in_avals, [r, w])


@rule("tridiagonal_solve")
def tridiagonal_solve(lower, diagonal, upper, b, eqn, perturb_singular=False, **_):
    """LAPACK's gtsv, along the rows by one scan; of a batch all at once."""
    return expand(_solved_perturbed if perturb_singular else _solved_by_pivots, eqn.in_avals, [lower, diagonal, upper, b])


def _solved_by_pivots(lower, diagonal, upper, b):
    """NaN where a pivot is zero, as JAX has it."""
    first, second, third, right = _eliminated(lower, diagonal, upper, b)
    is_singular = jax.numpy.any(first == 0, 0)
    return jax.numpy.where(is_singular[..., None, None], jax.numpy.nan, _substituted(first, second, third, right))


def _solved_perturbed(lower, diagonal, upper, b):
    """Pivots near zero are those of rounding: eps times the largest entry of U, and of their sign."""
    jnp = jax.numpy
    first, second, third, right = _eliminated(lower, diagonal, upper, b)
    largest = jnp.max(jnp.maximum(jnp.maximum(jnp.abs(first), jnp.abs(second)), jnp.abs(third)), 0)
    least = jnp.maximum(jnp.finfo(first.dtype).eps * largest, jnp.finfo(first.dtype).tiny)
    first = jnp.where(jnp.abs(first) < least, jnp.where(first.real < 0, -least, least), first)
    return _substituted(first, second, third, right)


def _eliminated(lower, diagonal, upper, b):
    """U's three diagonals and the right-hand sides, rows first, of elimination with the larger pivot of two rows."""
    from jax import lax
    jnp = jax.numpy
    lower, diagonal, upper, b = (jnp.moveaxis(x, lower.ndim - 1, 0) for x in (lower, diagonal, upper, b))

    def down(row, below):
        (mid, up, right), (low, next_mid, next_up, next_right) = row, below
        swaps = jnp.abs(low) > jnp.abs(mid)
        ratio = jnp.where(swaps, mid, low) / jnp.where(swaps, low, jnp.where(mid == 0, 1, mid))
        kept = (jnp.where(swaps, low, mid), jnp.where(swaps, next_mid, up), jnp.where(swaps, next_up, 0), jnp.where(swaps[..., None], next_right, right))
        rest = (jnp.where(swaps, up - ratio * next_mid, next_mid - ratio * up), jnp.where(swaps, -ratio * next_up, next_up),
                jnp.where(swaps[..., None], right - ratio[..., None] * next_right, next_right - ratio[..., None] * right))
        return rest, kept

    (mid, up, right), kept = lax.scan(down, (diagonal[0], upper[0], b[0]), (lower[1:], diagonal[1:], upper[1:], b[1:]))
    return [jnp.concatenate([rows, last[None]]) for rows, last in zip(kept, (mid, 0 * up, 0 * mid, right))]


def _substituted(first, second, third, right):
    from jax import lax
    one = lambda x: x[..., None]  # noqa: E731

    def up(below, row):
        (x, y), (mid, next_mid, last, value) = below, row
        x, y = (value - one(next_mid) * x - one(last) * y) / one(mid), x
        return (x, y), x

    zero = jax.numpy.zeros_like(right[0])
    _, x = lax.scan(up, (zero, zero), (first, second, third, right), reverse=True)
    return jax.numpy.moveaxis(x, 0, x.ndim - 2)


def _householder_step(a, i, rows_from):
    """LAPACK's larfg of column i below row rows_from: (v with a one first, beta, tau), in JAX's words."""
    jnp = jax.numpy
    rows = jnp.arange(a.shape[0])
    x = jnp.where(rows > rows_from, a[:, i], 0)
    alpha = a[rows_from, i]
    rest = jnp.sqrt(jnp.sum(jnp.abs(x) ** 2))
    norm = jnp.sqrt(jnp.abs(alpha) ** 2 + rest ** 2)
    beta = jnp.where(alpha.real >= 0, -norm, norm)
    is_done = (rest == 0) & (alpha.imag == 0)
    beta = jnp.where(is_done, alpha.real, beta)
    tau = jnp.where(is_done, 0, (beta - alpha) / jnp.where(beta == 0, 1, beta))
    v = jnp.where(rows == rows_from, 1, jnp.where(is_done, 0, x / jnp.where(is_done, 1, alpha - beta)))
    return v.astype(a.dtype), beta.astype(a.dtype), tau.astype(a.dtype)


def _packed(a, v, beta, i, rows_from):
    jnp = jax.numpy
    rows = jnp.arange(a.shape[0])
    column = jnp.where(rows == rows_from, beta, jnp.where(rows > rows_from, v, a[:, i]))
    return a.at[:, i].set(column)


def _geqrf(a):
    jnp = jax.numpy
    taus = []
    for i in range(min(a.shape)):
        v, beta, tau = _householder_step(a, i, i)
        later = a - jnp.conj(tau) * v[:, None] * (jnp.conj(v) @ a)[None, :]
        a = _packed(jnp.where(jnp.arange(a.shape[1]) > i, later, a), v, beta, i, i)
        taus.append(tau)
    return a, jnp.stack(taus)


def _hessenberg(a):
    jnp = jax.numpy
    n = a.shape[0]
    taus = []
    for i in range(n - 1):
        v, beta, tau = _householder_step(a, i, i + 1)
        columns, rows = jnp.arange(n)[None, :], jnp.arange(n)[:, None]
        seen = jnp.where((rows > i + 1) & (columns <= i), 0, a)
        seen = seen - tau * (seen @ v)[:, None] * jnp.conj(v)[None, :]
        seen = seen - jnp.conj(tau) * v[:, None] * (jnp.conj(v) @ seen)[None, :]
        new = jnp.where(columns > i, seen, a)
        a = _packed(new, v, beta, i, i + 1)
        taus.append(tau)
    return a, jnp.stack(taus) if taus else jnp.zeros((0,), a.dtype)


@functools.lru_cache(maxsize=None)
def _batched(function, dims):
    for _ in range(dims):
        function = jax.vmap(function)
    return function


@rule("geqrf")
def geqrf(x, eqn):
    return expand(_batched(_geqrf, x.ndim - 2), eqn.in_avals, [x])


@rule("hessenberg")
def hessenberg(x, eqn):
    return expand(_batched(_hessenberg, x.ndim - 2), eqn.in_avals, [x])


def _tridiagonal(a):
    """LAPACK's hetrd of the lower triangle; the upper one stays as it is."""
    jnp = jax.numpy
    below, middle = jnp.tril(a, -1), jnp.diagonal(a).real.astype(a.dtype)
    packed, taus = _hessenberg(below + below.conj().T + jnp.diag(middle))
    diagonal = jnp.diagonal(packed).real
    return jnp.tril(packed, -1) + jnp.triu(a, 1) + jnp.diag(diagonal).astype(a.dtype), diagonal, jnp.diagonal(packed, -1).real, taus


def _tridiagonal_of_upper(a):
    """Of the upper triangle it is that of the lower one with rows and columns in reverse."""
    packed, *others = _tridiagonal(a[::-1, ::-1])
    return packed[::-1, ::-1], *[x[::-1] for x in others]


@rule("tridiagonal")
def tridiagonal(x, lower, eqn, **_):
    return expand(_batched(_tridiagonal if lower else _tridiagonal_of_upper, x.ndim - 2), eqn.in_avals, [x])


@rule("geqp3")
def geqp3(x, places, eqn, **_):
    """The columns in order of their pivots, then geqrf."""
    columns = c.linalg.qr_pivoted(x)[2]
    moved = c.take_along_axis(x, c.broadcast_to(c.expand_dims(columns, -2), x.shape), -1)
    packed, taus = expand(_batched(_geqrf, x.ndim - 2), [eqn.in_avals[0]], [moved])
    return [packed, c.add(columns, 1), taus]


@rule("fft")
def fft(x, fft_type, fft_lengths):
    kind = str(getattr(fft_type, "name", fft_type)).upper()
    dims = list(range(x.ndim - len(fft_lengths), x.ndim))
    lengths = list(fft_lengths)
    if not dims or x.size == 0 and "RFFT" not in kind:
        return x
    if "IRFFT" in kind:
        return irfftn(x, s=lengths, axes=dims)
    if "RFFT" in kind:
        return rfftn(x, s=lengths, axes=dims)
    return ifftn(x, axes=dims) if "IFFT" in kind else fftn(x, axes=dims)


