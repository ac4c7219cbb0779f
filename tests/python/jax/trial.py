"""Functions as a new user of tessera.jax writes them: newer layers, solvers and samplers of packages, and rarer forms of JAX's own."""
import dataclasses
import functools

import numpy as np
import jax
import jax.numpy as jnp
import jax.scipy as jsp
import jax.scipy.spatial.transform
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

from functions import a, add, loss, made_once, mesh, params, spd

rng = np.random.RandomState(1)
labels = (np.arange(24) % 2).astype("i")


def f32(*shape):
    return rng.standard_normal(shape).astype("f")


# ---- trees ----
@functools.partial(jax.tree_util.register_dataclass, data_fields=["position", "velocity"], meta_fields=["mass"])
@dataclasses.dataclass
class Body:
    position: jax.Array
    velocity: jax.Array
    mass: float


def orbits(body):
    """Leapfrog on a tree that is a dataclass with a static field."""
    pull = lambda x: -x / (jnp.sum(x ** 2, -1, keepdims=True) + 0.1) ** 1.5 * body.mass  # noqa: E731

    def step(b, _):
        half = b.velocity + 0.005 * pull(b.position)
        position = b.position + 0.01 * half
        b = dataclasses.replace(b, position=position, velocity=half + 0.005 * pull(position))
        return b, jnp.sum(b.velocity ** 2)
    return lax.scan(step, body, None, length=20)


add("dataclass_orbits", lambda x, v: orbits(Body(x, v, 2.0)), f32(24, 3), f32(24, 3), tolerance=1e-3)
add("dataclass_gradient", lambda x, v: jax.grad(lambda b: jnp.sum(orbits(b)[0].position ** 2))(Body(x, v, 2.0)), f32(24, 3), f32(24, 3), tolerance=3e-3)
add("tree_functions", lambda x: (jax.tree.map(jnp.add, {"a": x, "b": (x, None)}, {"a": x, "b": (x * 2, None)}), jax.tree.reduce(jnp.add, [x, x, x]), jax.tree.transpose(jax.tree.structure([0, 0]), None, [{"u": x}, {"u": x + 1}]),
                                 jax.flatten_util.ravel_pytree({"p": x, "q": x[0]})[0]), a)
add("tree_of_gradients", lambda x: jax.jacrev(lambda t: {"sum": t["u"].sum(), "outer": jnp.outer(t["u"], t["v"])})({"u": x[:3, 0], "v": x[0, :2]}), a)


# ---- einsum, gathers, segments ----
add("einsum_odd", lambda x, y: (jnp.einsum("ij,ij->", x, x), jnp.einsum("ij->ji", x), jnp.einsum("i...,j...->ij...", x, x[:3]), jnp.einsum("...ij,...jk", y, y), jnp.einsum("bii->bi", y), jnp.einsum("bij,bkj,bkl->bil", y, y, y),
                                jnp.einsum("ij,k->", x, x[0]), jnp.einsum(x, [0, 1], x, [2, 1], [2, 0]), jnp.einsum("aij,bji->ab", y, y), jnp.einsum("bij->b", y, optimize="greedy")), a, f32(6, 5, 5), tolerance=1e-3)
add("einsum_gradient", jax.grad(lambda x, y: jnp.sum(jnp.einsum("bhqd,bhkd,ij,bhqi->bhkj", x, x, y, x) ** 2), (0, 1)), f32(4, 2, 3, 5) * 0.3, f32(5, 4) * 0.3, tolerance=2e-3)
add("tensordot_forms", lambda x, y: (jnp.tensordot(x, x, ((0, 1), (0, 1))), jnp.tensordot(y, y, 0).sum(), jnp.kron(x[:3], x[:2]), jnp.inner(x, x), jnp.linalg.vecdot(x, x), jnp.linalg.tensordot(y, y, axes=((1,), (2,)))), a, f32(4, 5, 5), tolerance=1e-3)
add("segment_softmax", lambda x, s: (lambda m: jnp.exp(x - m[s]) / jax.ops.segment_sum(jnp.exp(x - m[s]), s, 7)[s])(jax.ops.segment_max(x, s, 7)), f32(24), np.sort(np.arange(24) * 5 % 7).astype("i"))
add("segment_options", lambda x, s: (jax.ops.segment_sum(x, s, 9, indices_are_sorted=True), jax.ops.segment_sum(x, s, 5, unique_indices=False, mode="clip"), jax.ops.segment_sum(x, s, 9, bucket_size=4),
                                     jax.grad(lambda t: jnp.sum(jax.ops.segment_max(t, s, 9)[:2] ** 2))(x)), f32(24), np.sort(np.arange(24) % 8).astype("i"))
add("graph_network", lambda x, s, r: jax.grad(lambda w: jnp.sum(jax.nn.relu(jax.ops.segment_sum((x @ w)[s], r, 24)) ** 2))(f32_weights), a, (np.arange(60) * 7 % 24).astype("i"), (np.arange(60) * 11 % 24).astype("i"), tolerance=1e-3)
f32_weights = f32(16, 8)
add("gather_modes", lambda x, i: (x.at[i].get(mode="clip"), x.at[i].get(mode="drop", fill_value=-1), x.at[i].get(mode="promise_in_bounds") * 0, jnp.take(x, i, axis=1, mode="fill", fill_value=2.5), x.at[i, i].get(mode="fill"),
                                  jnp.take(x, i, axis=0, mode="wrap"), jnp.take_along_axis(x, i[:, None], 0, mode="clip"), x[i, ::-2], x[..., i % 16, None]), a, np.array([0, 5, 23, -1, -24, 15], "i"))
add("gather_gradients", jax.grad(lambda x, i: jnp.sum(x.at[i].get(mode="clip") ** 3) + jnp.sum(x.at[i, i % 16].get(mode="fill", fill_value=0) ** 2) + jnp.sum(jnp.take(x, i, 1, mode="wrap") ** 2)), a, np.array([0, 5, 23, 40, -24, 15], "i"), tolerance=1e-3)
add("scatter_rows_and_columns", lambda x: (x.at[:, jnp.array([1, 3])].multiply(2.0), x.at[jnp.ix_(jnp.array([1, 3]), jnp.array([0, 5]))].set(7.0), x.at[np.array([True, False] * 12)].add(1.0), x.at[-1].max(0.5), x.at[2:8:3, ::4].min(-0.2),
                                           x.at[jnp.array([3, 3]), jnp.array([4, 4])].power(2.0), x.at[0].set(jnp.arange(16))), a)
add("one_hot_and_where", lambda x: (jax.nn.one_hot(jnp.argmax(x, 1), 16, dtype=jnp.bfloat16), jnp.nonzero(x > 1, size=9, fill_value=(-1, -2)), jnp.argwhere(x > 1, size=4), jnp.flatnonzero(x > 1, size=4), jnp.where(x > 0, 1, 2)), a)
add("dynamic_slices_of_rows", lambda x, i: (lax.dynamic_slice(x, (i, 2), (5, 4)), lax.dynamic_update_slice(x, x[:3, :3] * 9, (i, i)), lax.dynamic_index_in_dim(x, i, 1, keepdims=False), jax.vmap(lambda k: lax.dynamic_slice_in_dim(x, k, 3))(jnp.arange(20, 26)),
                                    jax.vmap(lambda row, k: lax.dynamic_update_index_in_dim(row, 5.0, k, 0))(x, jnp.arange(24))), a, np.int32(21))


def of_keys(flags):
    """Arrays of keys among the values."""
    keys, others = jax.random.split(jax.random.key(0), 24), jax.random.split(jax.random.key(1), 24)
    chosen = jnp.where(flags > 0, keys, others)
    data = jax.random.key_data
    return (data(chosen), chosen == keys, keys != keys[3], data(jnp.tile(keys[:2], 3)), data(jax.vmap(jax.random.fold_in, (0, None))(chosen, 7)),
            data(jax.vmap(jax.random.fold_in, (None, 0))(keys[0], jnp.arange(24))))


add("arrays_of_keys", of_keys, np.random.RandomState(6).standard_normal(24).astype("f"))  # numbers of its own: later ones stay as they were
add("signs_of_vectors", lambda m: (jnp.linalg.eigh(m @ m.T)[1], *jnp.linalg.svd(m)), np.random.RandomState(5).standard_normal((9, 9)).astype("f"), tolerance=2e-3)


# ---- loops ----
def newton(x):
    return lax.while_loop(lambda s: (s[2] < 30) & (jnp.abs(s[0] ** 3 - s[1]) > 1e-4), lambda s: (s[0] - (s[0] ** 3 - s[1]) / (3 * s[0] ** 2), s[1], s[2] + 1), (jnp.maximum(x, 1.0), x, 0))[::2]


add("vmap_of_while", jax.vmap(newton), np.abs(f32(24)) * 5 + 0.2, tolerance=1e-3)
add("vmap_of_vmap_of_while", jax.vmap(jax.vmap(newton)), np.abs(f32(24, 3)) * 5 + 0.2, tolerance=1e-3)
add("vmap_of_cond", jax.vmap(lambda x, y: lax.cond(x > 0, lambda t: jnp.sin(t) @ t, lambda t: jnp.sum(t) * 2, y)), f32(24), a)
add("nested_scans", lambda x: lax.scan(lambda c, row: (lax.scan(lambda d, v: (jnp.tanh(d + v), d * v), c, row)[0], lax.fori_loop(0, 3, lambda i, t: t * 0.5 + row[i], c)), jnp.float32(0.1), x), a)
add("nested_scans_gradient", jax.grad(lambda x: lax.scan(lambda c, row: (lax.scan(lambda d, v: (jnp.tanh(d + v * c), None), c, row)[0], c ** 2), jnp.float32(0.1), x)[1].sum()), a * 0.3, tolerance=1e-3)
add("scan_options", lambda x: (lax.scan(lambda c, t: (c + t, c * 2), jnp.zeros(16), x, reverse=True, unroll=4), lax.scan(lambda c, _: (c * 1.1, None), x, None, length=5), lax.scan(lambda c, t: (c, (t["p"], t["q"] + c)), 1.0, {"p": x, "q": x * 2})[1]), a)
add("vmap_of_scan", jax.vmap(lambda x, k: lax.scan(lambda c, t: (c * k + t, c), 0.0, x), (0, None)), a, np.float32(0.5))
add("scan_of_vmap_of_cond", lambda x: lax.scan(lambda c, t: (jax.vmap(lambda u, v: lax.cond(u > v, jnp.sin, jnp.cos, u))(c, t), c.sum()), jnp.zeros(16), x), a)
add("while_with_a_tree", lambda x: lax.while_loop(lambda s: s["n"] < 6, lambda s: {"n": s["n"] + 1, "x": (s["x"][0] @ s["x"][1], s["x"][1] * 0.9)}, {"n": 0, "x": (x, jnp.eye(16) * 0.5)}), a)
add("forward_gradient_of_while", lambda x: jax.jvp(lambda t: lax.while_loop(lambda s: jnp.max(s) < 10, lambda s: s * 1.5 + 0.1, t), (x,), (jnp.ones_like(x),)), np.abs(f32(24)))
add("associative_scan_of_trees", lambda x: (lax.associative_scan(lambda p, q: {"m": p["m"] @ q["m"], "s": p["s"] + q["s"]}, {"m": x, "s": x[:, 0, 0]}), lax.associative_scan(jnp.maximum, x[:, 0], axis=1), lax.associative_scan(jnp.add, x[0], reverse=True, axis=1)), f32(24, 4, 4) * 0.6, tolerance=1e-3)
add("checkpointed_scan", jax.grad(lambda w, x: jnp.sum(lax.scan(jax.checkpoint(lambda h, t: (jnp.tanh(h @ w + t), h.sum()), policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable), jnp.zeros((3, 16)), x)[0] ** 2)), f32(16, 16) * 0.3, f32(6, 3, 16), tolerance=1e-3)
add("fori_with_a_traced_bound", lambda x, n: lax.fori_loop(n, 2 * n, lambda i, t: t.at[i].add(jnp.float32(i)), x), a, np.int32(5))
add("map_in_batches", lambda x: lax.map(lambda r: (r @ r, r * 2), x, batch_size=7), a)


# ---- derivatives ----
@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 2))
def solved(function, x, steps):
    return lax.fori_loop(0, steps, lambda _, z: function(z), x)


solved.defvjp(lambda function, x, steps: (solved(function, x, steps), x), lambda function, steps, x, g: (g * steps + jnp.sin(x),))


@jax.custom_jvp
def logistic(x, scale):
    return scale / (1 + jnp.exp(-x))


logistic.defjvps(lambda t, y, x, scale: t * y * (1 - y / scale), lambda t, y, x, scale: t * y / scale)
add("custom_vjp_with_statics", jax.value_and_grad(lambda x: jnp.sum(solved(jnp.cos, x, 4))), f32(24), tolerance=1e-3)
add("custom_jvp_in_two_arguments", lambda x: (jax.jacfwd(lambda t: logistic(t, 2.0))(x), jax.grad(lambda s: jnp.sum(logistic(x, s)))(3.0), jax.hessian(lambda t: jnp.sum(logistic(t, 2.0)))(x), jax.vmap(jax.grad(logistic), (0, None))(x, 2.0)), f32(8), tolerance=1e-3)
add("hessian_under_vmap", jax.vmap(jax.hessian(lambda v: jnp.sum(jnp.exp(-jnp.sum((v[:, None] - v[None]) ** 2, -1) if v.ndim > 1 else -v ** 2)))), f32(24, 5), tolerance=1e-3)
add("gauss_newton", lambda w, x: (lambda f: jnp.linalg.solve(jax.jacrev(f)(w).T @ jax.jacrev(f)(w) + 0.1 * jnp.eye(16), jax.vjp(f, w)[1](f(w))[0]))(lambda w: jnp.tanh(x @ w)), f32(16) * 0.3, a, tolerance=2e-3)
add("grad_of_fori_of_checkpoint", jax.grad(lambda x: jnp.sum(lax.fori_loop(0, 3, lambda i, t: jax.checkpoint(lambda u: jnp.sin(u) * (i + 1))(t), x))), a, tolerance=1e-3)
add("stop_gradients", jax.grad(lambda x: jnp.sum(x * lax.stop_gradient(jnp.exp(x))) + jnp.sum(jax.lax.stop_gradient(x) ** 2)), a)
add("linear_algebra_derivatives", lambda m: (jax.grad(lambda t: jnp.sum(jnp.linalg.inv(t) ** 2))(m), jax.grad(lambda t: jnp.linalg.det(t / 24))(m), jax.grad(lambda t: jnp.sum(jnp.linalg.eigvalsh(t)[:3]))(m), jax.grad(lambda t: jnp.sum(jnp.linalg.qr(t)[1] ** 2))(m),
                                             jax.grad(lambda t: jnp.sum(jsp.linalg.expm(t * 0.01)))(m), jax.grad(lambda t: jnp.sum(jnp.abs(jnp.linalg.svd(t, compute_uv=False))))(m), jax.jvp(jnp.linalg.cholesky, (m,), (m,))[1]), spd, tolerance=5e-3)
add("float0_tangents", lambda x, n: jax.vjp(lambda t, k: t * k, x, n)[1](x)[0], a, np.int32(3))


# ---- numbers and pictures ----
add("image_resizing", lambda t: (jax.image.resize(t, (8, 6, 6, 3), "linear", antialias=False), jax.image.resize(t, (8, 24, 18, 3), "lanczos5"), jax.grad(lambda q: jnp.sum(jax.image.resize(q, (8, 5, 7, 3), "cubic") ** 2))(t)), f32(8, 12, 12, 3), tolerance=1e-3)
add("signal_filters", lambda s: (jsp.signal.convolve(s, s[:7], mode="valid"), jsp.signal.correlate(s, s[:5], mode="same", method="fft"), jsp.signal.csd(s, s[::-1], nperseg=16)[1], jsp.signal.istft(jsp.signal.stft(s, nperseg=16)[2], nperseg=16)[1]), f32(64), tolerance=1e-3)
add("interpolation", lambda x, q: (jsp.interpolate.RegularGridInterpolator((jnp.arange(24.0), jnp.arange(16.0)), x)(q), jsp.interpolate.RegularGridInterpolator((jnp.arange(24.0), jnp.arange(16.0)), x, method="nearest")(q), jnp.interp(q[:, 0], jnp.arange(24.0), x[:, 0], left=-1)), a, np.abs(f32(9, 2)) + 3)
add("integration", lambda x: (jsp.integrate.trapezoid(x, axis=0), jnp.trapezoid(x, dx=0.1), jsp.special.logsumexp(x, axis=1, b=jnp.abs(x), return_sign=True), jsp.special.softmax(x, axis=0), jnp.cumsum(x, axis=None)[::7]), a)
add("kernel_density", lambda x, q: (jsp.stats.gaussian_kde(x)(q), jsp.stats.gaussian_kde(x, bw_method=0.3).logpdf(q), jsp.stats.mode(jnp.round(x[0]), keepdims=True), jsp.stats.sem(x[0])), f32(2, 24), f32(2, 5), tolerance=1e-3)
add("spherical", lambda x: (jsp.special.bessel_jn(x, v=3), jsp.special.gammasgn(x), jsp.special.erfinv(x * 0.2), jsp.special.bernoulli(6), jsp.special.multigammaln(jnp.abs(x) + 4, 3), jsp.special.rel_entr(jnp.abs(x), jnp.abs(x) + 1)), f32(24), tolerance=2e-3)
add("rotations", lambda q: (lambda r: (r.as_matrix(), r.as_euler("xyz"), (r * r).as_quat(), r.apply(q[:, :3]), r.inv().as_rotvec()))(jsp.spatial.transform.Rotation.from_quat(q)), f32(24, 4), tolerance=1e-3)
add("minimize_bfgs", lambda x: jax.scipy.optimize.minimize(lambda v: jnp.sum((v - jnp.arange(6.0)) ** 2) + jnp.sum(v[:-1] * v[1:]) * 0.1, x, method="BFGS", options=dict(maxiter=8)).x, f32(6), tolerance=1e-2)
add("krylov_options", lambda m, r: (jsp.sparse.linalg.cg(lambda v: m @ v, r, M=lambda v: v / jnp.diag(m))[0], jsp.sparse.linalg.gmres(m, r, restart=6, maxiter=3, solve_method="incremental")[0], jsp.sparse.linalg.bicgstab(m, r, maxiter=20)[0],
                                    jax.grad(lambda b: jnp.sum(jsp.sparse.linalg.cg(m, b)[0] ** 2))(r)), spd, f32(24), tolerance=3e-3)
add("fft_solver_3d", lambda f: (lambda k: jnp.fft.irfftn(jnp.fft.rfftn(f) / (1 + k[0][:, None, None] ** 2 + k[0][None, :, None] ** 2 + k[1] ** 2), f.shape))((jnp.fft.fftfreq(24) * 24, jnp.fft.rfftfreq(24) * 24)), f32(24, 24, 24))
add("random_walks", lambda k: (jnp.cumsum(jax.random.rademacher(k, (24, 7)), 0), jax.random.multivariate_normal(k, jnp.zeros(3), jnp.eye(3) * 2, (5,)), jax.random.dirichlet(k, jnp.ones(4), (3,)), jax.random.orthogonal(k, 4), jax.random.categorical(k, jnp.zeros((24, 5))),
                               jax.vmap(lambda q: jax.random.normal(q, (3,)))(jax.random.split(k, 24)), jax.random.loggamma(k, 2.0, (4,)), jax.random.f(k, 3.0, 4.0, (3,)), jax.random.generalized_normal(k, 1.5, (4,))), jax.random.PRNGKey(4), tolerance=2e-3)
add("bits_of_numbers", lambda x, i: (lax.bitcast_convert_type(x, jnp.int32), x.view(jnp.uint8), lax.population_count(i), lax.clz(i), jnp.ldexp(x, i % 5), jnp.frexp(x), lax.reduce_precision(x, 5, 10), lax.nextafter(x, x + 1), jnp.bitwise_xor.reduce(i)), f32(24), np.arange(-12, 12, dtype="i"))
add("reductions_of_pairs", lambda x: (lax.reduce((x, jnp.arange(384.0).reshape(24, 16)), (-jnp.inf, 0.0), lambda p, q: (jnp.maximum(p[0], q[0]), jnp.where(p[0] > q[0], p[1], q[1])), (1,)), lax.argmax(x, 1, jnp.int32), lax.reduce_and(x > -9, (0,)),
                                      lax.reduce_xor(jnp.round(x * 9).astype("i"), (1,))), a)


# ---- sciences ----
def advected(u, v, dt=0.01):
    """A semi-Lagrangian step, as in a solver of incompressible flow: values where the flow came from, then a projection."""
    n = u.shape[0]
    i, j = jnp.meshgrid(jnp.arange(n), jnp.arange(n), indexing="ij")
    back = [i - dt * n * u, j - dt * n * v]
    u, v = (jsp.ndimage.map_coordinates(w, back, order=1, mode="wrap") for w in (u, v))
    k = jnp.fft.fftfreq(n) * n
    kx, ky = k[:, None], k[None]
    uh, vh = jnp.fft.fft2(u), jnp.fft.fft2(v)
    p = (kx * uh + ky * vh) / jnp.where(kx ** 2 + ky ** 2 == 0, 1, kx ** 2 + ky ** 2)
    return jnp.fft.ifft2(uh - kx * p).real, jnp.fft.ifft2(vh - ky * p).real


add("semi_lagrangian", lambda u, v: lax.fori_loop(0, 3, lambda _, w: advected(*w), (u, v)), f32(24, 24), f32(24, 24), tolerance=2e-3)
add("semi_lagrangian_gradient", jax.grad(lambda u, v: jnp.sum(advected(u, v)[0] ** 2)), f32(24, 24), f32(24, 24), tolerance=5e-3)


def ising(key, spins):
    """A checkerboard sampler of the Ising model, as in lattice packages."""
    colour = (jnp.arange(24)[:, None] + jnp.arange(16)[None]) % 2

    def sweep(s, k):
        for c in (0, 1):
            field = sum(jnp.roll(s, d, axis) for d in (1, -1) for axis in (0, 1))
            up = jax.random.uniform(jax.random.fold_in(k, c), s.shape) < jax.nn.sigmoid(0.8 * field)
            s = jnp.where(colour == c, jnp.where(up, 1, -1), s)
        return s, jnp.sum(s)
    return lax.scan(sweep, spins, jax.random.split(key, 6))


add("ising", ising, jax.random.key(3), np.where(a > 0, 1, -1).astype("i"))
add("gaussian_process_likelihood", lambda x, y, q: (lambda k: (lambda l: (k(q, x) @ jsp.linalg.cho_solve((l, True), y), -0.5 * y @ jsp.linalg.cho_solve((l, True), y) - jnp.sum(jnp.log(jnp.diag(l)))))(jnp.linalg.cholesky(k(x, x) + 0.1 * jnp.eye(24))))(lambda p, q: jnp.exp(-0.5 * jnp.sum((p[:, None] - q[None]) ** 2, -1))),
    f32(24, 3), f32(24), f32(5, 3), tolerance=2e-3)
add("viterbi", lambda e, t: lax.scan(lambda best, row: (jnp.max(best[:, None] + t, 0) + row, jnp.argmax(best[:, None] + t, 0)), e[0], e[1:]), f32(24, 5), f32(5, 5))
add("ctc_like", jax.grad(lambda e: -jnp.sum(lax.scan(lambda c, r: (jnp.logaddexp(c, jnp.roll(c, 1)) + r, None), jnp.zeros(16), jax.nn.log_softmax(e))[0])), a, tolerance=1e-3)
add("particle_filter", lambda k, y: lax.scan(lambda s, t: (lambda p: (p[jax.random.categorical(t[0], -0.5 * (p - t[1]) ** 2, shape=(24,))], p.mean()))(s * 0.9 + jax.random.normal(t[0], (24,))), jnp.zeros(24), (jax.random.split(k, 5), y)), jax.random.key(1), f32(5), tolerance=1e-3)
add("rotary_and_cache", lambda q, cache, n: (lambda k: (lax.dynamic_update_slice(cache, k, (0, n, 0)), jax.nn.softmax(jnp.where(jnp.arange(12) <= n, jnp.einsum("bqd,bkd->bqk", k, cache), -1e9)) @ cache))(jnp.concatenate([q[..., :4] * jnp.cos(n * 0.1) - q[..., 4:] * jnp.sin(n * 0.1), q[..., 4:] * jnp.cos(n * 0.1) + q[..., :4] * jnp.sin(n * 0.1)], -1)),
    f32(8, 1, 8), f32(8, 12, 8), np.int32(3), tolerance=1e-3)
add("mixture_of_experts", jax.grad(lambda w, x: jnp.sum((lambda gates: jnp.einsum("ne,nef->nf", jnp.where(gates >= lax.top_k(gates, 2)[0][:, -1:], gates, 0), jnp.einsum("nd,edf->nef", x, w)))(jax.nn.softmax(x[:, :4])) ** 2)), f32(4, 16, 6), a, tolerance=1e-3)
add("sharding_constraints", lambda x: lax.with_sharding_constraint(jnp.sin(lax.with_sharding_constraint(x, NamedSharding(mesh, P("x"))) @ x.T), NamedSharding(mesh, P(None, "x"))).sum(0), a, tolerance=1e-3)
add("print_and_call", lambda x: (jax.debug.callback(lambda v: None, x), jax.pure_callback(lambda v: np.sin(v), jax.ShapeDtypeStruct(x.shape, x.dtype), x), jax.vmap(lambda r: jax.pure_callback(lambda v: np.cumsum(v), jax.ShapeDtypeStruct((16,), "float32"), r, vmap_method="sequential"))(x))[1:], a)


# ---- packages ----
def with_optax():
    import optax
    for name, make in {"adafactor": lambda: optax.adafactor(1e-2), "adan": lambda: optax.adan(1e-2), "sophia_like": lambda: optax.chain(optax.scale_by_sophia() if hasattr(optax, "scale_by_sophia") else optax.scale_by_adam(), optax.scale(-1e-2)), "fromage": lambda: optax.fromage(1e-2), "adamax": lambda: optax.adamaxw(1e-2),
                       "lars": lambda: optax.lars(1e-2), "rprop": lambda: optax.rprop(1e-2), "schedule_free": lambda: optax.contrib.schedule_free_adamw(1e-2), "muon": lambda: optax.contrib.muon(1e-2), "prodigy": lambda: optax.contrib.prodigy(1.0), "dadapt": lambda: optax.contrib.dadapt_adamw(1.0),
                       "inject": lambda: optax.inject_hyperparams(optax.adam)(learning_rate=optax.exponential_decay(0.1, 5, 0.9)), "finite": lambda: optax.apply_if_finite(optax.adam(1e-2), 3), "masked": lambda: optax.masked(optax.sgd(0.1), [(True, False), (False, True)]),
                       "polyak": lambda: optax.polyak_sgd(), "mechanic": lambda: optax.contrib.mechanize(optax.sgd(0.01)), "clip_adaptive": lambda: optax.chain(optax.adaptive_grad_clip(0.1), optax.sgd(0.1)), "sign": lambda: optax.chain(optax.scale_by_sign(), optax.scale(-0.01))}.items():
        def steps(p, x, y, make=make):
            chain = make()
            extra = {"value": 1.0} if "value" in getattr(chain.update, "__code__", make.__code__).co_varnames else {}

            def step(carry, _):
                values, state = carry
                value, gradient = jax.value_and_grad(loss)(values, x, y)
                updates, state = optax.with_extra_args_support(chain).update(gradient, state, values, value=value, **({} if extra else {}))
                return (optax.apply_updates(values, updates), state), value
            (values, _), losses = lax.scan(step, (p, chain.init(p)), None, length=3)
            return values, losses
        add("optax_steps_" + name, steps, params, a, f32(24, 4), tolerance=5e-3)
    add("optax_schedules", lambda n: [s(n) for s in (optax.linear_schedule(0.1, 0.0, 10), optax.piecewise_constant_schedule(0.1, {3: 0.5, 6: 0.1}), optax.cosine_onecycle_schedule(20, 0.1), optax.sgdr_schedule([dict(init_value=0.0, peak_value=0.1, warmup_steps=2, decay_steps=8)] * 2),
                                               optax.polynomial_schedule(0.1, 0.0, 2, 10), optax.join_schedules([optax.constant_schedule(0.1), optax.exponential_decay(0.1, 2, 0.5)], [4]), optax.warmup_exponential_decay_schedule(0.0, 0.1, 3, 5, 0.9))], np.int32(5))
    add("optax_losses", lambda x, y: (optax.softmax_cross_entropy(x, jax.nn.softmax(y)), optax.sigmoid_binary_cross_entropy(x, jnp.round(jax.nn.sigmoid(y))), optax.cosine_distance(x, y), optax.log_cosh(x, y), optax.hinge_loss(x, jnp.sign(y)), optax.kl_divergence(jax.nn.log_softmax(x), jax.nn.softmax(y)),
                                     optax.losses.sigmoid_focal_loss(x, jnp.round(jax.nn.sigmoid(y))), optax.ctc_loss(x.reshape(2, 12, 16), jnp.zeros((2, 12)), jnp.array([[1, 2, 3], [4, 5, 6]]), jnp.zeros((2, 3))), optax.losses.triplet_margin_loss(x, y, x + 1), optax.safe_softmax_cross_entropy(x, jax.nn.softmax(y))), a, f32(24, 16), tolerance=1e-3)
    def lbfgs(x):
        chain, value = optax.lbfgs(), lambda v: jnp.sum((v - jnp.arange(6.0)) ** 2 * jnp.arange(1.0, 7.0))
        both = optax.value_and_grad_from_state(value)

        def step(carry, _):
            v, state = carry
            y, g = both(v, state=state)
            updates, state = chain.update(g, state, v, value=y, grad=g, value_fn=value)
            return (optax.apply_updates(v, updates), state), y
        return lax.scan(step, (x, chain.init(x)), None, length=4)[0][0]
    add("optax_lbfgs", lbfgs, f32(6), tolerance=1e-2)
    add("optax_projections", lambda x: (optax.projections.projection_simplex(x), optax.projections.projection_l1_ball(x), optax.projections.projection_box(x, -0.5, 0.5), optax.tree.norm([x, x])), f32(24))


def with_flax():
    from flax import linen as nn, nnx
    for name, make, x in (("mlp", lambda r: nnx.Sequential(nnx.Linear(16, 32, rngs=r), nnx.BatchNorm(32, use_running_average=True, rngs=r), jax.nn.gelu, nnx.Linear(32, 4, rngs=r)), a), ("conv", lambda r: nnx.Sequential(nnx.Conv(3, 8, (3, 3), strides=2, rngs=r), nnx.GroupNorm(8, 4, rngs=r), jax.nn.silu, nnx.ConvTranspose(8, 4, (3, 3), strides=(2, 2), rngs=r)), f32(8, 12, 12, 3)),
                          ("attention", lambda r: nnx.MultiHeadAttention(4, 16, decode=False, rngs=r), f32(8, 6, 16)), ("embed", lambda r: nnx.Sequential(nnx.Embed(10, 6, rngs=r), nnx.LayerNorm(6, rngs=r), nnx.RMSNorm(6, rngs=r)), (np.arange(48) % 10).reshape(24, 2).astype("i")), ("lora", lambda r: nnx.LoRA(16, 2, 5, rngs=r), a)):
        model = make(nnx.Rngs(0))
        graph, weights = nnx.split(model)
        weights = jax.tree.map(np.asarray, weights)
        add("nnx_" + name, lambda w, x, graph=graph: nnx.merge(graph, w)(x), weights, x, tolerance=1e-3)
        if x.dtype == np.float32:
            add(f"nnx_{name}_gradient", lambda w, x, graph=graph: jax.grad(lambda t: jnp.sum(nnx.merge(graph, t)(x) ** 2), allow_int=True)(w) if name != "mlp" else jax.grad(lambda t: jnp.sum(nnx.merge(graph, w)(t) ** 2))(x), weights, x, tolerance=1e-2)

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return x + nn.Dense(16)(nn.silu(nn.Dense(32)(nn.RMSNorm()(x)))), None

    class Stack(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.scan(nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True}, length=3)()(x, None)[0]

    class Norms(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.BatchNorm(use_running_average=False, momentum=0.9)(nn.WeightNorm(nn.Dense(12))(x))
            return nn.Dense(3)(nn.Dropout(0.2, deterministic=False)(nn.PReLU()(x)))

    stack, norms = Stack(), Norms()
    weights = made_once("trial_stack", lambda: stack.init(jax.random.key(0), a))
    add("linen_scanned_blocks", jax.grad(lambda w, x: jnp.sum(stack.apply(w, x) ** 2)), weights, a, tolerance=1e-2)
    kept = made_once("trial_norms", lambda: norms.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, a))
    add("linen_batch_norm_and_dropout", lambda w, x: norms.apply(w, x, rngs={"dropout": jax.random.key(2)}, mutable=["batch_stats"]), kept, a, tolerance=1e-3)
    gru = nn.RNN(nn.GRUCell(8), reverse=True, keep_order=True)
    add("linen_bidirectional", lambda w, x: gru.apply(w, x, seq_lengths=jnp.array([3, 6, 1, 2])), made_once("trial_gru", lambda: gru.init(jax.random.key(0), np.zeros((4, 6, 8), "f"))), f32(4, 6, 8), tolerance=1e-3)


def with_equinox():
    import equinox as eqx
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    lstm, norm = eqx.nn.LSTMCell(16, 8, key=keys[0]), eqx.nn.LayerNorm(16)
    add("equinox_lstm", lambda x: lax.scan(lambda h, t: (lstm(norm(t), h), h[0]), (jnp.zeros(8), jnp.zeros(8)), x), a, tolerance=1e-3)
    net = eqx.nn.Sequential([eqx.nn.Linear(16, 32, key=keys[1]), eqx.nn.Lambda(jax.nn.relu), eqx.nn.Dropout(0.3), eqx.nn.Linear(32, 4, key=keys[2])])
    add("equinox_filtered_gradient", lambda x, k: eqx.filter(eqx.filter_grad(lambda m: jnp.sum(jax.vmap(m)(x, key=jax.random.split(k, 24)) ** 2))(net), eqx.is_array), a, jax.random.PRNGKey(2), tolerance=1e-2)
    add("equinox_bounded_while", jax.grad(lambda x: jnp.sum(eqx.internal.while_loop(lambda s: jnp.max(jnp.abs(s)) < 20, lambda s: s * 1.3, x, max_steps=16, kind="checkpointed"))), f32(8) + 2, tolerance=1e-3)
    add("equinox_errors", lambda x: eqx.error_if(x, jnp.any(x > 1e9), "too large") * 2, a)
    add("equinox_conv_pool", lambda x: jax.vmap(eqx.nn.Sequential([eqx.nn.Conv2d(3, 4, 3, padding=1, groups=1, key=keys[3]), eqx.nn.MaxPool2d(2, 2), eqx.nn.AdaptiveAvgPool2d(3)]))(x), f32(8, 3, 12, 12), tolerance=1e-3)


def with_diffrax():
    import diffrax
    pendulum = diffrax.ODETerm(lambda t, y, k: jnp.stack([y[1], -k * jnp.sin(y[0])]))
    solve = functools.partial(diffrax.diffeqsolve, pendulum, t0=0.0, t1=1.0, dt0=0.05)
    hunting = diffrax.ODETerm(lambda t, y, k: (k[0] * y[0] - k[1] * y[0] * y[1], -k[2] * y[1] + k[1] * y[0] * y[1]))
    add("diffrax_from_numbers", lambda k: diffrax.diffeqsolve(hunting, diffrax.Tsit5(), 0, 20, 0.1, (10.0, 10.0), args=k, saveat=diffrax.SaveAt(ts=jnp.linspace(0, 20, 9))).ys, np.array([0.1, 0.02, 0.4], "f"), tolerance=2e-3)
    for name, make in dict(bosh3=diffrax.Bosh3, dopri8=diffrax.Dopri8, ralston=diffrax.Ralston, midpoint=diffrax.Midpoint).items():
        add("diffrax_pendulum_" + name, lambda y, k, make=make: solve(make(), y0=y, args=k).ys, f32(2), np.float32(3.0), tolerance=2e-3)
    add("diffrax_implicit_euler", lambda y: solve(diffrax.ImplicitEuler(root_finder=diffrax.VeryChord(1e-3, 1e-5)), y0=y, args=2.0).ys, f32(2), tolerance=3e-3)
    add("diffrax_adjoints", lambda y, k: [jax.grad(lambda q: jnp.sum(solve(diffrax.Tsit5(), y0=y, args=q, adjoint=adjoint).ys ** 2))(k) for adjoint in (diffrax.BacksolveAdjoint(), diffrax.DirectAdjoint(), diffrax.RecursiveCheckpointAdjoint(checkpoints=3))], f32(2), np.float32(3.0), tolerance=5e-3)
    add("diffrax_dense", lambda y: jax.vmap(solve(diffrax.Tsit5(), y0=y, args=2.0, saveat=diffrax.SaveAt(dense=True)).evaluate)(jnp.linspace(0.0, 0.9, 7)), f32(2), tolerance=2e-3)
    add("diffrax_many", jax.vmap(lambda y: solve(diffrax.Tsit5(), y0=y, args=2.0, stepsize_controller=diffrax.PIDController(1e-3, 1e-5), saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 4)), max_steps=32).ys), f32(8, 2), tolerance=5e-3)
    noise = lambda k: diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, (2,), k)  # noqa: E731
    add("diffrax_stochastic", lambda k, y: diffrax.diffeqsolve(diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, _: -y), diffrax.ControlTerm(lambda t, y, _: 0.1 * jnp.eye(2), noise(k))), diffrax.EulerHeun(), 0.0, 1.0, 0.1, y).ys, jax.random.PRNGKey(0), f32(2), tolerance=3e-3)
    event = diffrax.Event(lambda t, y, args, **_: y[0] < 0.0)
    add("diffrax_event", lambda y: diffrax.diffeqsolve(pendulum, diffrax.Tsit5(), 0.0, 5.0, 0.1, y, args=2.0, event=event).ts, np.array([1.0, 0.0], "f"), tolerance=2e-3)


def with_lineax():
    import lineax as lx
    for name, make in dict(lu=lx.LU, qr=lx.QR, svd=lx.SVD, cholesky=lx.Cholesky, cg=lambda: lx.CG(1e-5, 1e-5), gmres=lambda: lx.GMRES(1e-4, 1e-4), bicgstab=lambda: lx.BiCGStab(1e-5, 1e-5), auto=lambda: lx.AutoLinearSolver(well_posed=None)).items():
        tags = lx.positive_semidefinite_tag if name in ("cholesky", "cg") else ()
        add("lineax_" + name, lambda m, r, make=make, tags=tags: jax.value_and_grad(lambda q: jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(m, tags), q, make()).value ** 2))(r), spd, f32(24), tolerance=5e-3)
    add("lineax_tridiagonal", lambda d, r: lx.linear_solve(lx.TridiagonalLinearOperator(jnp.abs(d) + 4, d[1:], d[:-1]), r).value, f32(24), f32(24), tolerance=1e-3)
    add("lineax_jacobian", lambda x: lx.linear_solve(lx.JacobianLinearOperator(lambda y, _: y + 0.1 * jnp.sin(y), x), x, lx.AutoLinearSolver(well_posed=True)).value, f32(24), tolerance=1e-3)


def with_optimistix():
    import optimistix as optx
    add("optimistix_newton", lambda x: optx.root_find(lambda y, k: jnp.tanh(y) + 0.5 * y - k, optx.Newton(1e-5, 1e-5), x, args=0.3).value, f32(6), tolerance=2e-3)
    add("optimistix_levenberg", lambda x: optx.least_squares(lambda y, _: jnp.stack([10 * (y[1] - y[0] ** 2), 1 - y[0]]), optx.LevenbergMarquardt(1e-4, 1e-4), x, max_steps=40, throw=False).value, np.array([0.5, 0.7], "f"), tolerance=1e-2)
    add("optimistix_bfgs", lambda x: optx.minimise(lambda y, _: jnp.sum((y - 2) ** 2 * jnp.arange(1.0, 7.0)), optx.BFGS(1e-4, 1e-4), x, max_steps=60, throw=False).value, f32(6), tolerance=1e-2)
    add("optimistix_fixed_point", jax.grad(lambda k: jnp.sum(optx.fixed_point(lambda y, q: jnp.cos(y) * q, optx.FixedPointIteration(1e-5, 1e-5), jnp.zeros(4), args=k).value)), np.float32(0.7), tolerance=5e-3)


def with_blackjax():
    import blackjax
    density = lambda w: -0.5 * jnp.sum(w ** 2 * jnp.arange(1.0, 7.0))  # noqa: E731
    for name, make in dict(hmc=lambda: blackjax.hmc(density, 0.1, jnp.ones(6), 4), nuts=lambda: blackjax.nuts(density, 0.1, jnp.ones(6), max_num_doublings=3), mala=lambda: blackjax.mala(density, 0.05), rmh=lambda: blackjax.additive_step_random_walk(density, blackjax.mcmc.random_walk.normal(0.1 * jnp.ones(6))),
                           sgld=lambda: blackjax.sgld(lambda w, _: -w), ghmc=lambda: blackjax.ghmc(density, 0.1, jnp.ones(6), 0.5, 0.1)).items():
        def chain(key, w, make=make, name=name):
            sampler = make()
            if name == "sgld":
                return lax.scan(lambda s, k: (sampler.step(k, s, None, 1e-2), None), sampler.init(w), jax.random.split(key, 5))[0]
            init = sampler.init(w, key) if name == "ghmc" else sampler.init(w)
            return lax.scan(lambda s, k: (lambda t: (t[0], t[0].position))(sampler.step(k, s)), init, jax.random.split(key, 5))[1]
        add("blackjax_" + name, chain, jax.random.PRNGKey(1), f32(6), tolerance=5e-3)
    def tempered(key, x):
        smc = blackjax.tempered_smc(lambda w: -0.5 * jnp.sum(w ** 2), lambda w: -jnp.sum((w - 1) ** 2), blackjax.hmc.build_kernel(), blackjax.hmc.init, dict(step_size=jnp.array([0.1]), inverse_mass_matrix=jnp.ones((1, 2)), num_integration_steps=jnp.array([2])), blackjax.smc.resampling.systematic, num_mcmc_steps=2)
        return smc.step(key, smc.init(x), 0.5)[0].particles
    add("blackjax_tempered", tempered, jax.random.PRNGKey(1), f32(24, 2), tolerance=5e-3)


def with_numpyro():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import NUTS, SVI, Predictive, Trace_ELBO, autoguide

    def eight_schools(y):
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
        with numpyro.plate("schools", 8):
            theta = numpyro.sample("theta", dist.TransformedDistribution(dist.Normal(0, 1), dist.transforms.AffineTransform(mu, tau)))
            numpyro.sample("y", dist.Normal(theta, 10.0), obs=y)

    schools = np.array([28, 8, -3, 7, -1, 1, 18, 12], "f")

    def nuts(key, y):
        kernel = NUTS(eight_schools, step_size=0.1, max_tree_depth=4, adapt_step_size=False)
        state = kernel.init(key, 0, None, (y,), {})
        return lax.scan(lambda s, _: ((lambda t: (t, t.z["mu"]))(kernel.sample(s, (y,), {}))), state, None, length=2)[1]

    add("numpyro_eight_schools", nuts, jax.random.PRNGKey(2), schools, tolerance=1e-2)

    def svi(key, y):
        guide = autoguide.AutoNormal(eight_schools)
        fit = SVI(eight_schools, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
        state = fit.init(key, y)
        return lax.scan(lambda s, _: fit.update(s, y), state, None, length=4)[1]

    add("numpyro_svi", svi, jax.random.PRNGKey(2), schools, tolerance=5e-3)
    add("numpyro_predictive", lambda k, w: Predictive(eight_schools, {"mu": w, "tau": jnp.abs(w), "theta": jnp.zeros((5, 8))})(k, None)["y"], jax.random.PRNGKey(2), f32(5), tolerance=1e-3)
    for name, make in dict(lkj=lambda: dist.LKJCholesky(3, 1.0), mvn=lambda: dist.MultivariateNormal(jnp.zeros(3), jnp.eye(3) * 2), mixture=lambda: dist.MixtureSameFamily(dist.Categorical(jnp.ones(3) / 3), dist.Normal(jnp.arange(3.0), 1.0)), negative_binomial=lambda: dist.NegativeBinomial2(3.0, 2.0),
                           zero_inflated=lambda: dist.ZeroInflatedPoisson(0.3, 2.0), von_mises=lambda: dist.VonMises(0.0, 2.0), gp=lambda: dist.GaussianRandomWalk(0.5, 6)).items():
        add("numpyro_dist_" + name, lambda k, make=make: (lambda d, s: (s, d.log_prob(s)))(make(), make().sample(k, (4,))), jax.random.PRNGKey(6), tolerance=3e-3)


def with_jaxopt():
    import jaxopt
    add("jaxopt_ista", lambda x, y: jaxopt.ProximalGradient(lambda w, x, y: jnp.mean((x @ w - y) ** 2), jaxopt.prox.prox_lasso, maxiter=20).run(jnp.zeros(16), 0.1, x, y).params, a, f32(24), tolerance=1e-2)
    add("jaxopt_anderson", lambda x: jaxopt.AndersonAcceleration(lambda v: jnp.cos(v) * 0.5, maxiter=12).run(x).params, f32(6), tolerance=1e-2)
    add("jaxopt_bisection", lambda k: jaxopt.Bisection(lambda x, k: x ** 3 - k, 0.0, 4.0, maxiter=25, check_bracket=False).run(k=k).params, np.float32(5.0), tolerance=1e-3)
    add("jaxopt_gauss_newton", lambda x: jaxopt.GaussNewton(lambda v: jnp.stack([v[0] ** 2 + v[1] - 2, v[1] - 0.5]), maxiter=6).run(x).params, np.array([1.5, 1.0], "f"), tolerance=1e-2)
    add("jaxopt_isotonic", lambda x: jaxopt.projection.projection_l2_ball(x, 1.0), f32(24))
    add("jaxopt_losses", lambda x: (jaxopt.loss.multiclass_logistic_loss(3, x), jaxopt.loss.huber_loss(x[0], x[1]), jax.grad(lambda t: jaxopt.loss.multiclass_sparsemax_loss(2, t))(x)), f32(16), tolerance=1e-3)


packages = {"optax": with_optax, "flax": with_flax, "equinox": with_equinox, "diffrax": with_diffrax, "lineax": with_lineax, "optimistix": with_optimistix, "blackjax": with_blackjax, "numpyro": with_numpyro, "jaxopt": with_jaxopt}
