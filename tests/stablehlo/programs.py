"""The programs of make_goldens.py: functions of JAX with their arguments."""
import dataclasses
from typing import Callable

import jax
import jax.export
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax
from jax.experimental.ode import odeint
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

programs = []


@dataclasses.dataclass
class Program:
    name: str
    function: Callable
    arguments: Callable
    tolerance: float = 1e-5
    x64: bool = False
    exported: bool = False  # by jax.export, whose text differs: locations, composites, constants in front
    devices: int = 1
    shardy: bool = True  # layouts as sdy.sharding; otherwise as GSPMD's strings


def drawn(*shape, seed=0, dtype=np.float32):
    """Numbers from -2 to 2 with few digits, so that the files stay small."""
    rng = np.random.default_rng([seed, *shape])
    part = lambda: np.round(rng.uniform(-2, 2, shape), 3)  # noqa: E731
    return (part() + 1j * part() if np.issubdtype(dtype, np.complexfloating) else part()).astype(dtype)


def positive(n, seed=0, dtype=np.float32):
    a = drawn(n, n, seed=seed, dtype=dtype)
    return (a @ a.conj().T / n + np.eye(n)).astype(dtype)


def program(*arguments, **options):
    def add(function):
        programs.append(Program(function.__name__, function, lambda: [a() if callable(a) else a for a in arguments], **options))
        return function
    return add


# ---- networks ----
@program(drawn(5, 7), drawn(7, 3), drawn(3), drawn(5, 3), tolerance=1e-5)
def mlp_step(x, w, b, y):
    def loss(w, b):
        return jnp.mean((jnp.tanh(x @ w + b) - y) ** 2)
    value, (dw, db) = jax.value_and_grad(loss, (0, 1))(w, b)
    return value, w - 0.1 * dw, b - 0.1 * db


def attend(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)


@program(drawn(2, 5, 3, 4), drawn(2, 5, 3, 4, seed=1), drawn(2, 5, 3, 4, seed=2))
def attention(q, k, v):
    return attend(q, k, v)


@program(drawn(2, 5, 3, 4), drawn(2, 5, 3, 4, seed=1), drawn(2, 5, 3, 4, seed=2))
def attention_gradient(q, k, v):
    return jax.grad(lambda *a: jnp.sum(attend(*a) ** 2), (0, 1, 2))(q, k, v)


@program(drawn(2, 3, 9, 8), drawn(4, 3, 3, 3))
def convolution(x, k):
    return lax.conv_general_dilated(x, k, (2, 1), "SAME"), lax.conv_general_dilated(x, k, (1, 1), [(1, 2), (0, -1)], rhs_dilation=(2, 1))


@program(drawn(2, 3, 7, 7), drawn(4, 3, 3, 3))
def convolution_gradient(x, k):
    return jax.grad(lambda x, k: jnp.sum(jnp.sin(lax.conv_general_dilated(x, k, (2, 2), "SAME"))), (0, 1))(x, k)


@program(drawn(2, 6, 8), drawn(6, 2, 3))
def grouped_convolution_gradient(x, k):
    return jax.grad(lambda x, k: jnp.sum(lax.conv_general_dilated(x, k, (1,), "VALID", feature_group_count=3) ** 2), (0, 1))(x, k)


@program(drawn(2, 7, 9))
def pools(x):
    largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2), (1, 2, 2), "SAME")
    mean = lax.reduce_window(x, 0., lax.add, (1, 2, 2), (1, 2, 2), "VALID") / 4
    gradient = jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2), (1, 2, 2), "VALID") ** 2))(x)
    return largest, mean, gradient


# ---- transforms and solvers ----
@program(drawn(12, 10))
def poisson(f):
    kx, ky = jnp.fft.fftfreq(12)[:, None], jnp.fft.fftfreq(10)[None, :]
    k2 = (2 * np.pi) ** 2 * (kx ** 2 + ky ** 2)
    return jnp.fft.ifft2(jnp.where(k2 > 0, jnp.fft.fft2(f) / jnp.where(k2 > 0, k2, 1), 0)).real


@program(drawn(6, 9))
def real_transforms(x):
    return jnp.fft.irfft2(jnp.fft.rfft2(x) * 2, s=(6, 9)), jnp.fft.rfft(x, axis=0), jnp.fft.ifft(x.astype(np.complex64))


@program(positive(6), drawn(6, 2), tolerance=2e-5)
def logdet_gradient(a, b):
    def f(a):
        l = jnp.linalg.cholesky(a)
        return 2 * jnp.sum(jnp.log(jnp.diagonal(l))) + jnp.sum(jsp.linalg.cho_solve((l, True), b) * b)
    return jax.value_and_grad(f)(a)


@program(drawn(9, 9) + 4 * np.eye(9, dtype=np.float32), drawn(9, 2), tolerance=2e-5)
def lu_solve(a, b):
    return jnp.linalg.solve(a, b), jnp.linalg.det(a / 4), jnp.linalg.inv(a)


@program(drawn(7, 4), drawn(2, 3, 5), tolerance=2e-5)
def qr(a, wide):
    q, r = jnp.linalg.qr(a)
    whole, upper = jnp.linalg.qr(a, "complete")
    return q, r, whole[:, :4], upper, *jnp.linalg.qr(wide)


@program(positive(6), tolerance=2e-5)
def eigh(a):
    w, v = jnp.linalg.eigh(a)
    return w, v * v, (v * jnp.exp(w)) @ v.T, jnp.linalg.eigvalsh(a)


@program(drawn(6, 4), tolerance=2e-5)
def svd(a):
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return s, (u * s) @ vh, jnp.linalg.pinv(a), jnp.linalg.svd(a, compute_uv=False)


@program(drawn(3, 5, 5) + 4 * np.eye(5, dtype=np.float32), drawn(3, 5, 2), tolerance=2e-5)
def batched_solves(a, b):
    lower = jnp.tril(a)
    return jnp.linalg.solve(a, b), lax.linalg.triangular_solve(lower, b, left_side=True, lower=True), lax.linalg.triangular_solve(
        lower, jnp.swapaxes(b, 1, 2), left_side=False, lower=True, transpose_a=True)


@program(drawn(4, 4) / 3, tolerance=2e-5)
def matrix_functions(a):
    return jsp.linalg.expm(a), jnp.linalg.matrix_power(a, 5)


@program(positive(8), drawn(8), tolerance=1e-4)
def conjugate_gradients(a, b):
    return jsp.sparse.linalg.cg(lambda x: a @ x, b, tol=1e-6)[0]


@program(np.array([1., 0.5], np.float32), tolerance=1e-4)
def ordinary_differential_equation(y0):
    return odeint(lambda y, t: jnp.stack([y[1], (1 - y[0] ** 2) * y[1] - y[0]]), y0, jnp.linspace(0., 2., 5))


# ---- control flow ----
@program(drawn(11, 3), drawn(3, 3) / 2)
def recurrence(xs, w):
    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, jnp.sum(h)
    return lax.scan(step, jnp.zeros(3), xs)


@program(drawn(11, 3), drawn(3, 3) / 2)
def recurrence_gradient(xs, w):
    def loss(xs, w):
        return jnp.sum(lax.scan(lambda h, x: (jnp.tanh(h @ w + x), h), jnp.zeros(3), xs)[0] ** 2)
    return jax.grad(loss, (0, 1))(xs, w)


@program(np.float32(2), np.int32(3))
def newton(x, n):
    root = lax.while_loop(lambda s: jnp.abs(s * s - x) > 1e-5, lambda s: (s + x / s) / 2, x)
    return root, lax.fori_loop(0, n, lambda i, v: v * 2 + i, 1)


@program(np.int32(1), drawn(4, 5))
def branches(which, x):
    chosen = lax.switch(which, [lambda x: x, lambda x: jnp.sin(x) * 2, lambda x: x @ x.T @ x], x)
    return chosen, lax.cond(x[0, 0] > 0, lambda x: x + 1, lambda x: -x, x), jax.grad(lambda x: jnp.sum(lax.cond(x[0, 0] > 9, jnp.sin, jnp.cos, x)))(x)


# ---- orders and indices ----
@program(np.array([[3, -0., 0., np.nan, -1, np.inf, 2], [1, 1, 2, -np.inf, 5, 4, 1]], np.float32), drawn(2, 7))
def sorts(x, y):
    return jnp.sort(x), jnp.argsort(x), jnp.sort(x, descending=True), lax.sort((x, y), num_keys=2)[1], lax.top_k(x, 3), jnp.argmax(x, 1), jnp.argmin(y, 0), jnp.median(y)


@program(drawn(6, 5), np.array([[0, 5, 7], [-1, 2, -9]], np.int32), drawn(2, 3, 5))
def gather_and_scatter(x, i, v):
    return x[i], x.at[i].add(v), x.at[i, 1].set(v[..., 0]), x.at[:, i[0]].max(2.), jnp.take_along_axis(x[:2], jnp.abs(i[:, :2]) % 5, 1), lax.dynamic_slice(
        x, (i[0, 1], i[0, 2]), (2, 3)), lax.dynamic_update_slice(x, v[0, :2, :3], (i[0, 0], i[0, 2]))


@program(drawn(9, 4), np.array([0, 2, 1, 2, 0, 4, 2, 9, 1], np.int32))
def segments(x, ids):
    return jax.ops.segment_sum(x, ids, 5), jax.ops.segment_max(x, ids, 5), jnp.bincount(ids, length=6), jnp.searchsorted(jnp.sort(x[:, 0]), x[:, 1])


@program(drawn(5, 8))
def running(x):
    return jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 1, reverse=True), lax.cumlogsumexp(x, 0), lax.associative_scan(jnp.add, x, axis=1)


# ---- numbers ----
@program(lambda: np.array([0, 7], np.uint32))
def random_numbers(key):
    k = jax.random.wrap_key_data(key)
    a, b, c = jax.random.split(k, 3)
    return jax.random.normal(a, (5, 3)), jax.random.randint(b, (7,), 0, 100), jax.random.permutation(c, 9), jax.random.bernoulli(a, 0.3, (6,))


@program(lambda: np.array([1, 2, 3, 4], np.uint32))
def random_bits_of_philox(key):
    k = jax.random.wrap_key_data(key, impl="rbg")
    return jax.random.bits(k, (3, 5)), jax.random.uniform(k, (7,)), jax.random.bits(k, (5,), "uint8")


@program(np.array([7, -7, 5, -2147483648, 0], np.int32), np.array([2, 2, -3, -1, 0], np.int32), np.array([1, 2 ** 31, 255, 0, 7], np.uint32))
def integers(a, b, u):
    return lax.div(a, b), lax.rem(a, b), a // jnp.where(b == 0, 1, b), a << 3, lax.shift_right_logical(a, 2), a >> 2, lax.population_count(u), lax.clz(u), ~a ^ b, u * u, jnp.sum(
        a), a.astype(jnp.int8), lax.bitcast_convert_type(u, jnp.float32).astype(jnp.int32) * 0, jnp.max(a), jnp.prod(b)


@program(np.array([[True, False], [True, True]]), drawn(2, 2))
def bools(m, x):
    return m & ~m.T, jnp.any(m, 0), jnp.all(m, 1), jnp.where(m, x, 0), jnp.sum(m), m.at[0].set(x[0] > 0), jnp.argmax(m, 1), jnp.sort(m, 1), jnp.logical_xor(m, x > 0)


@program(drawn(3, 4, dtype=np.complex64), drawn(4, 3, dtype=np.complex64, seed=3))
def complex_numbers(x, y):
    return x @ y, jnp.abs(x), jnp.exp(x) / y.T, jnp.conj(x).T, jnp.angle(x), jnp.sum(x * y.T), jnp.sqrt(x), jnp.tanh(x), lax.complex(x.real, y.T.imag), jnp.prod(x, 0)


@program(lambda: drawn(4, 6).astype(jnp.bfloat16), lambda: drawn(6, 3).astype(jnp.bfloat16), tolerance=8e-3)
def bfloat16_numbers(x, y):
    return x @ y, jnp.sum(x, 0), jax.nn.softmax(x), (x * 3).astype(jnp.float32), jnp.sort(x, 1), lax.reduce_precision(x.astype(jnp.float32), 8, 3)


@program(lambda: drawn(4, 6, dtype=np.float16), tolerance=1e-3)
def float16_numbers(x):
    return x * x + 1, jnp.exp(x), jnp.max(x), x.astype(jnp.float32) / 3


@program(drawn(5, 5, dtype=np.float64) + 4 * np.eye(5), np.arange(5, dtype=np.int64), x64=True, tolerance=1e-12)
def float64_numbers(a, i):
    return jnp.linalg.solve(a, a[:, :1]), jnp.exp(a) * i, jnp.fft.fft(a), jnp.argsort(a), i ** 3, jnp.linalg.eigvalsh(a + a.T)


@program(drawn(3, 4) * 0.45, drawn(3, 4, seed=5), tolerance=1e-5)
def special_functions(x, y):
    a = jnp.abs(y) + 0.5
    return (jsp.special.erf(x), jsp.special.erfinv(x), jsp.special.gammaln(a), jsp.special.digamma(a), jnp.arcsin(x), jnp.arctan2(x, y), jnp.sinh(y), jnp.arctanh(x), jnp.cbrt(y), jnp.expm1(x),
            jnp.log1p(a), jsp.special.i0e(y), jsp.special.zeta(a + 1, a), jsp.special.gammainc(a, a), jnp.nextafter(x, y), jnp.sign(y), jnp.round(y, 1), jnp.power(a, x), jax.nn.sigmoid(y), jnp.tan(x))


@program(drawn(3, 4) * 0.45, exported=True)
def exported_program(x):
    return jsp.special.erfinv(x), lax.top_k(x, 2), jnp.sort(x, 0), jax.nn.gelu(x), jnp.linalg.qr(x.T)[1], lax.fori_loop(0, 12, lambda i, v: v * 1.1 + i, x)


@program(drawn(40, 3), exported=True)
def large_constants(x):
    return x + np.asarray(drawn(40, 3, seed=8)), jnp.where(np.asarray(drawn(40, 3, seed=9)) > 0, x, 0), x * np.full((40, 3), 2, np.float32)


@program(drawn(4, 5, 6))
def shapes(x):
    return (jnp.transpose(x, (2, 0, 1)), x.reshape(10, 12)[::-1, 1::3], jnp.pad(x, ((1, 0), (0, 2), (3, 1)), constant_values=7), lax.pad(x, 0., ((-1, 2, 1), (1, -1, 0), (0, 0, 2))),
            jnp.concatenate([x, x * 2], 1), jnp.roll(x, 2, 1), jnp.repeat(x, 2, 0), jnp.tril(x), jnp.einsum("abc,acd->bd", x, jnp.swapaxes(x, 1, 2)), jnp.diagonal(x), x[:0])


# ---- layouts ----
def mesh(*sizes):
    return jax.make_mesh(sizes, ("x", "y")[:len(sizes)], axis_types=(AxisType.Auto,) * len(sizes))


@program(drawn(16, 10), drawn(10, 6), devices=8)
def layouts(x, w):
    m = mesh(4, 2)
    h = lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(m, P("x", "y")))
    return lax.with_sharding_constraint(h.T @ h, NamedSharding(m, P(None, ("y", "x")))), jnp.sum(h, 0)


def over_ranks(x, w):
    def blockwise(x, w):
        i = lax.axis_index("x")
        whole = lax.all_gather(x, "y", axis=1, tiled=True)
        moved = lax.ppermute(x, "x", [(k, (k + 1) % 4) for k in range(4)])
        turned = lax.all_to_all(x, "y", 1, 0, tiled=True)
        part = lax.psum_scatter(jnp.tile(whole @ w, (2, 1)), "x", scatter_dimension=0, tiled=True)
        return moved + i, turned, part, lax.psum(jnp.sum(x), ("x", "y")), lax.pmax(x, "x"), lax.psum(x, "y")
    return jax.shard_map(blockwise, mesh=mesh(4, 2), in_specs=(P("x", "y"), P()), out_specs=(P("x", "y"), P(("x", "y")), P("x"), P(), P(None, "y"), P("x")), check_vma=False)(x, w)


@program(drawn(8, 8), drawn(8, 3), devices=8)
def shard_map(x, w):
    return over_ranks(x, w)


@program(drawn(16, 8), drawn(8, 5), devices=8)
def argument_layouts(x, w):
    return jnp.sin(x) @ w, jnp.sum(x, 1)


programs[-1].function = jax.jit(argument_layouts, in_shardings=(lambda m: (NamedSharding(m, P("x", "y")), NamedSharding(m, P("y"))))(mesh(4, 2)),
                                out_shardings=(lambda m: (NamedSharding(m, P("x")), NamedSharding(m, P())))(mesh(4, 2)))


@program(drawn(13, 7), drawn(7, 11), devices=8)
def uneven_layouts(x, w):
    m = mesh(4, 2)
    return lax.with_sharding_constraint(lax.with_sharding_constraint(x, NamedSharding(m, P(P.UNCONSTRAINED, "y"))) @ w, NamedSharding(m, P("x", "y")))


@program(drawn(8, 12), drawn(12, 8), devices=8, shardy=False)
def layouts_of_gspmd(x, w):
    return lax.with_sharding_constraint(jnp.tanh(x), NamedSharding(mesh(4, 2), P("y", None))) @ w


programs[-1].function = jax.jit(layouts_of_gspmd, in_shardings=(lambda m: (NamedSharding(m, P("x", "y")), NamedSharding(m, P())))(mesh(4, 2)),
                                out_shardings=NamedSharding(mesh(4, 2), P(None, ("x", "y"))))


@program(drawn(6, 4), np.array([1, 3, 3, 0, 9], np.int32), drawn(5, 4))
def scatters(x, i, v):
    return (x.at[i].apply(jnp.sin), x.at[i].mul(v), x.at[i].min(v), x.at[jnp.array([0, 2])].set(v[:2]), lax.approx_max_k(x, 2), lax.approx_min_k(x, 2),
            lax.scatter_sub(x, i[:, None], v, lax.ScatterDimensionNumbers((1,), (0,), (0,))), jax.vmap(lambda a, k, b: a.at[k].add(b))(x[:5], i % 4, v[:, 0]))


@program(drawn(6, 4), tolerance=2e-5)
def reflections(a):
    packed, taus = jnp.linalg.qr(a, mode="raw")
    packed = packed.T
    return lax.linalg.householder_product(packed, taus), lax.linalg.householder_product(packed, taus * jnp.array([1., 1., 0., 0.])), lax.linalg.householder_product(
        packed[:, :2], taus[:2]), jnp.triu(packed[:4])
