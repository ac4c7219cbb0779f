"""Functions of JAX's documentation: name -> (function, its arguments, the tolerance of its values). programs.py compares them."""
import numpy as np
import tessera.jax  # noqa: F401  JAX's devices are the ranks
import jax
import jax.numpy as jnp
import jax.scipy.optimize
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("x",))
rng = np.random.RandomState(0)
programs = {}


def f32(*shape):
    return rng.standard_normal(shape).astype("f")


a, b, spd = f32(24, 16), f32(16, 8), None
square = f32(24, 24)
spd = (square @ square.T + 24 * np.eye(24)).astype("f")
images, kernel = f32(8, 3, 12, 12), f32(4, 3, 3, 3)


made = {}  # what made_once keeps


def made_once(name, make):
    """A tree of weights that JAX computes op by op; programs.py keeps it in its file for the other ranks and runs."""
    if name not in made:
        made[name] = jax.tree_util.tree_map(np.asarray, make())
    return made[name]


def add(name, function, *arguments, tolerance=2e-4):
    programs[name] = (function, arguments, tolerance)


# ---- JAX's documentation: quickstart, autodiff cookbook, control flow, random numbers, vmap ----
add("selu", lambda x, alpha=1.67, scale=1.05: scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha), a)
add("sum_logistic", jax.grad(lambda x: jnp.sum(1.0 / (1.0 + jnp.exp(-x)))), f32(16))
add("gradient_of_gradient", jax.grad(lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(jnp.tanh(y) ** 2))(x))), f32(16))
add("jacobians", lambda x: (jax.jacfwd(jnp.sin)(x), jax.jacrev(jnp.cos)(x)), f32(8))
add("hessian", jax.hessian(lambda x: jnp.sum(jnp.exp(x) * jnp.sin(x))), f32(8))
add("hvp", lambda x, v: jax.jvp(jax.grad(lambda y: jnp.sum(y ** 4)), (x,), (v,))[1], f32(8), f32(8))
add("jvp_vjp", lambda x: (jax.jvp(jnp.sin, (x,), (x,)), jax.vjp(jnp.cos, x)[1](x)), a)
add("vmap_dot", jax.vmap(jnp.dot, in_axes=(0, None)), a, f32(16))
add("vmap_nested", jax.vmap(jax.vmap(lambda x, y: x * jnp.sin(y), (None, 0)), (0, None)), f32(8), f32(16))
add("per_example_gradients", jax.vmap(jax.grad(lambda w, x: jnp.tanh(x @ w) ** 2), in_axes=(None, 0)), f32(16), a)
add("custom_jvp", jax.grad(lambda x: jnp.sum(jax.nn.relu(x) ** 2)), a)


@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))
add("custom_vjp", jax.grad(lambda x: jnp.sum(clipped(x) ** 3)), a)
add("checkpoint", jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda y: jnp.sin(jnp.cos(y)))(x))), a)
add("stop_gradient", jax.grad(lambda x: jnp.sum(lax.stop_gradient(x) * x)), a)
add("cond", lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), a)
add("switch", lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), a, 2)
add("while_loop", lambda x: lax.while_loop(lambda s: jnp.sum(s[1]) < 1e3, lambda s: (s[0] + 1, s[1] * 1.5), (0, jnp.abs(x))), a)
add("fori_loop", lambda x: lax.fori_loop(0, 7, lambda i, v: v * 0.9 + i, x), a)
add("scan", lambda x: lax.scan(lambda c, t: (c * 0.5 + t, c.sum()), jnp.zeros(16), x), a)
add("scan_gradient", jax.grad(lambda x: lax.scan(lambda c, t: (jnp.tanh(c + t), None), jnp.zeros(16), x)[0].sum()), a)
add("scan_reverse", lambda x: lax.scan(lambda c, t: (c + t, c * t), jnp.zeros(16), x, reverse=True), a)
add("associative_scan", lambda x: lax.associative_scan(jnp.add, x), a)
add("map", lambda x: lax.map(lambda r: jnp.sort(r)[0], x), a)
add("while_under_vmap", jax.vmap(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * 2 + 1, jnp.abs(x))), f32(16))
add("cond_under_vmap", jax.vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)), f32(16))
for _name in ("normal", "uniform", "gumbel", "exponential", "laplace", "cauchy", "logistic", "rademacher"):
    add("random_" + _name, lambda k, _n=_name: getattr(jax.random, _n)(jax.random.fold_in(k, 3), (5, 7)), jax.random.PRNGKey(1))
add("random_gamma", lambda k: jax.random.gamma(k, jnp.arange(1.0, 9.0)), jax.random.PRNGKey(1))
add("random_categorical", lambda k, x: jax.random.categorical(k, x), jax.random.PRNGKey(1), a)
add("random_permutation", lambda k, x: jax.random.permutation(k, x), jax.random.PRNGKey(1), a)
add("random_choice", lambda k: jax.random.choice(k, 50, (8,), replace=False), jax.random.PRNGKey(1))
add("random_split_map", lambda k: jax.vmap(lambda q: jax.random.normal(q, (3,)))(jax.random.split(k, 8)), jax.random.key(5))
add("random_beta", lambda k: jax.random.beta(k, 2.0, 3.0, (6,)), jax.random.PRNGKey(1))
add("random_dirichlet", lambda k: jax.random.dirichlet(k, jnp.ones(4), (3,)), jax.random.PRNGKey(1))
add("random_poisson", lambda k: jax.random.poisson(k, 4.0, (9,)), jax.random.PRNGKey(1))
add("random_mvn", lambda k: jax.random.multivariate_normal(k, jnp.zeros(3), jnp.eye(3), (4,)), jax.random.PRNGKey(1))

# ---- jax.numpy, lax ----
for _name in "sin cos tan tanh exp log1p expm1 sqrt cbrt floor ceil rint sign square reciprocal sinc arctan i0 nan_to_num".split():
    add("jnp_" + _name, lambda x, _n=_name: getattr(jnp, _n)(jnp.abs(x) + 0.1), a)
for _name in "sum prod mean var std max min argmax argmin cumsum cumprod sort argsort median any all nansum ptp".split():
    add("jnp_" + _name, lambda x, _n=_name: getattr(jnp, _n)(x, axis=0), a)
add("einsum", lambda x, y: jnp.einsum("ij,jk->ki", x, y), a, b)
add("tensordot", lambda x: jnp.tensordot(x, x, axes=[[2, 3], [2, 3]]), images)
add("outer_kron", lambda x: (jnp.outer(x, x), jnp.kron(x, x)), f32(6))
add("gather", lambda x, i: x[i], a, np.array([3, 1, 40, -1]))
add("gather_rows_columns", lambda x, i: x[i, i], a, np.array([3, 1, 4]))
add("take_along", lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), a)
add("scatter_add", lambda x, i: x.at[i].add(1.0), a, np.array([3, 1, 3]))
add("scatter_max", lambda x, i: x.at[i, 2:5].max(0.0), a, np.array([3, 1, 3]))
add("scatter_drop", lambda x: x.at[jnp.array([1, 99])].set(0.0, mode="drop"), a)
add("gather_gradient", jax.grad(lambda x: jnp.sum(jnp.sin(x[jnp.array([1, 1, 5])]))), a)
add("dynamic_slices", lambda x, i: (lax.dynamic_slice(x, (i, 1), (4, 5)), lax.dynamic_update_slice(x, x[:2, :2], (i, i))), a, 21)
add("top_k", lambda x: lax.top_k(x, 3), a)
add("unique_size", lambda x: jnp.unique(jnp.round(x), size=9), f32(16))
add("nonzero_size", lambda x: jnp.nonzero(x > 0, size=12, fill_value=-1), f32(16))
add("searchsorted", lambda x: jnp.searchsorted(jnp.linspace(-1.0, 1.0, 9), x), f32(16))
add("histogram", lambda x: jnp.histogram(x, bins=8, range=(-2, 2)), f32(64))
add("interp", lambda x: jnp.interp(x, jnp.linspace(-1.0, 1.0, 9), jnp.arange(9.0)), f32(16))
add("roll_flip_pad", lambda x: jnp.pad(jnp.flip(jnp.roll(x, 3, 0), 1), ((1, 2), (0, 3)), mode="reflect"), a)
add("concatenate_stack", lambda x: (jnp.concatenate([x, x * 2], 0), jnp.stack([x, -x], 1), jnp.split(x, 4, 1)), a)
add("tril_triu", lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.diag(x[:16])), a)
add("integers", lambda i: (i // 3, i % 3, i ** 3, i << 2, i >> 1, ~i, i & 5, lax.population_count(i), lax.clz(i)), np.arange(-16, 16, dtype="i"))
add("unsigned_overflow", lambda i: (i * i, i + 200, -i), np.arange(32, dtype="uint8"))
add("bitcast", lambda x: lax.bitcast_convert_type(x, jnp.int32), a)
add("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), a)
add("segment_sum", lambda x: jax.ops.segment_sum(x, jnp.arange(24) // 5, num_segments=5), a)
add("convolve", lambda x, y: jnp.convolve(x, y, mode="same"), f32(32), f32(5))
add("fft", lambda x: jnp.abs(jnp.fft.fft2(x)), a)
add("fft_poisson", lambda r: jnp.fft.ifft2(jnp.fft.fft2(r) / (1 + jnp.fft.fftfreq(24)[:, None] ** 2 + jnp.fft.fftfreq(16)[None] ** 2)).real, a)
add("rfft_gradient", jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2)), f32(32), tolerance=1e-3)
add("solve", jnp.linalg.solve, spd, f32(24, 3))
add("solve_gradient", jax.grad(lambda m, v: jnp.sum(jnp.linalg.solve(m, v) ** 2)), spd, f32(24))
add("inverse", jnp.linalg.inv, spd)
add("logdet_gradient", jax.grad(lambda m: jnp.linalg.slogdet(m)[1]), spd)
add("cholesky_gradient", jax.grad(lambda m: jnp.sum(jnp.linalg.cholesky(m))), spd)
add("gaussian_process", lambda m, y: -0.5 * y @ jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(m, lower=True), y), spd, f32(24))
add("eigh_values", lambda m: jnp.linalg.eigh(m)[0], spd, tolerance=1e-3)
add("svd_values", lambda m: jnp.linalg.svd(m, compute_uv=False), a)
add("qr_product", lambda m: jnp.matmul(*jnp.linalg.qr(m)), a)
add("lstsq", lambda m, y: jnp.linalg.lstsq(m, y)[0], a, f32(24), tolerance=1e-3)
add("expm", lambda m: jax.scipy.linalg.expm(m * 0.1), square, tolerance=1e-3)
add("conjugate_gradients", lambda m, y: jax.scipy.sparse.linalg.cg(m, y)[0], spd, f32(24), tolerance=1e-3)
add("bfgs", lambda x: jax.scipy.optimize.minimize(lambda v: jnp.sum((v - 1) ** 2 * jnp.arange(1.0, 5.0)), x, method="BFGS").x, f32(4), tolerance=1e-3)
add("logsumexp_softmax", lambda x: (jax.nn.logsumexp(x, 0), jax.nn.softmax(x), jax.nn.log_softmax(x, 0)), a)
add("special", lambda x: (jax.scipy.special.gammaln(x), jax.scipy.special.erf(x), jax.scipy.special.i0e(x), jax.scipy.special.gammainc(x, 2.0)), np.abs(a) + 0.5)
add("conv", lambda x, w: lax.conv(x, w, (2, 2), "SAME"), images, kernel, tolerance=1e-3)
add("conv_gradient", jax.grad(lambda x, w: jnp.sum(lax.conv(x, w, (1, 1), "VALID") ** 2), (0, 1)), images, kernel, tolerance=1e-2)
add("conv_transpose", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")), images, f32(3, 3, 3, 3), tolerance=1e-3)
add("max_pool_gradient", jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") ** 2)), images)
add("attention", lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True), f32(2, 8, 4, 16))
add("attention_gradient", jax.grad(lambda q: jnp.sum(jax.nn.dot_product_attention(q, q, q) ** 2)), f32(2, 8, 4, 16), tolerance=1e-3)
add("resize", lambda x: jax.image.resize(x, (8, 3, 6, 6), "bilinear"), images, tolerance=1e-3)
add("odeint", lambda y: __import__("jax.experimental.ode").experimental.ode.odeint(lambda u, t: -u, y, jnp.linspace(0.0, 1.0, 4)), np.abs(f32(8)), tolerance=1e-3)
add("psum", jax.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()), f32(24, 4))
add("ring", jax.shard_map(lambda x: lax.ppermute(x, "x", [(i, (i + 1) % mesh.size) for i in range(mesh.size)]), mesh=mesh, in_specs=P("x"), out_specs=P("x")), f32(24, 4))
add("shard_map_gradient", jax.grad(lambda x: jax.shard_map(lambda v: lax.psum(jnp.sum(v ** 3), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)), f32(24, 4), tolerance=1e-3)
add("pure_callback", lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x), a)


# ---- networks ----
def mlp(params, x):
    for w, bias in params:
        x = jnp.tanh(x @ w + bias)
    return x


params = [(f32(16, 32) * 0.2, np.zeros(32, "f")), (f32(32, 4) * 0.2, np.zeros(4, "f"))]


def loss(p, x, y):
    return jnp.mean((mlp(p, x) - y) ** 2)


add("mlp_gradient", jax.value_and_grad(loss), params, a, f32(24, 4))
