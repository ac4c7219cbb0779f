"""Many functions of JAX at once, each with its rarer options: jax.numpy, jax.scipy, jax.lax, jax.random, transformations and packages."""
import functools
import importlib

import numpy as np
import jax
import jax.numpy as jnp
import jax.scipy
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

from functions import a, add, f32, images, mesh, square, spd

u8, ints, line = np.arange(0, 255, 15, dtype="uint8"), np.arange(-30, 30, dtype="i").reshape(12, 5), f32(13)
holed = a.copy()
holed[2, 3], holed[5, 1] = np.nan, np.inf
waves = (f32(24, 5) + 1j * f32(24, 5)).astype("complex64")
numpy_of = lambda names, *xs, **options: [getattr(jnp, n)(*xs, **options) for n in names.split()]  # noqa: E731

# ---- jax.numpy ----
add("many_unary", lambda x: numpy_of("arcsinh exp2 log2 log10 fabs trunc rint degrees rad2deg spacing frexp modf signbit isposinf unwrap angle", x), holed)
add("many_binary", lambda x: numpy_of("float_power arctan2 hypot copysign nextafter fmax fmin logaddexp2 heaviside divmod fmod remainder floor_divide", x, x[::-1] * 0.7), a)
add("many_reductions", lambda x: numpy_of("nanprod nanmean nanvar nanstd nanargmax nanmedian nancumsum nancumprod count_nonzero average nanmin", x, axis=0), a)
add("reduce_options", lambda x: (jnp.sum(x, axis=0, where=x > 0, initial=2.0), jnp.max(x, axis=1, where=x > 0, initial=-1.0), jnp.var(x, ddof=1), jnp.sum(x, dtype="int32"),
                                 jnp.mean(x, dtype="float16"), jnp.cumsum(x > 0), jnp.prod(x > 0, axis=1, keepdims=True)), a)
add("quantiles", lambda x: [jnp.quantile(x, jnp.array([0.1, 0.9]), axis=0, method=m) for m in ("linear", "lower", "higher", "midpoint", "nearest")], a)
add("nan_quantiles", lambda x: (jnp.nanquantile(x, 0.3, axis=0), jnp.nanpercentile(x, 70, axis=1), jnp.partition(x, 3, axis=0)[3], jnp.argsort(x, descending=True)), holed)
add("paddings", lambda x: [jnp.pad(x, ((2, 1), (0, 3)), mode=m) for m in ("edge", "linear_ramp", "maximum", "mean", "median", "symmetric", "wrap")], a)
add("building", lambda x: (jnp.block([[x, x], [x, x]]), jnp.column_stack([x[:, 0], x]), jnp.r_[x[0], 1.0, x[1]], jnp.insert(x, jnp.array([1, 3]), x[:2], axis=0), jnp.delete(x, 2, axis=0),
                           jnp.repeat(x, jnp.arange(16) % 3, axis=1, total_repeat_length=15), jnp.tile(x, (2, 3)), jnp.rot90(x, 3), jnp.resize(x, (5, 20))), a)
add("choosing", lambda x: (jnp.select([x > 1, x > 0], [x, -x], 7.0), jnp.piecewise(x, [x < 0, x > 1], [lambda t: -t, 5.0, lambda t: t * 2]), jnp.extract(x > 0, x, size=20, fill_value=-1),
                           jnp.put_along_axis(x, jnp.argmax(x, 1, keepdims=True), 99.0, 1, inplace=False), jnp.fill_diagonal(x, 5.0, inplace=False), jnp.take(x, jnp.array([0, 30, -1]), mode="wrap", axis=1)), a)
add("sets_of_a_size", lambda x: (jnp.unique(x, return_index=True, return_inverse=True, return_counts=True, size=12, fill_value=0), jnp.unique(x, axis=0, size=8), jnp.setdiff1d(x[0], x[1], size=6)), ints)
add("histograms", lambda x: (jnp.histogram(x, jnp.array([-1.0, 0.0, 0.5, 2.0]), density=True), jnp.histogram2d(x, x[::-1], 4), jnp.digitize(x, jnp.array([1.0, 0.0, -1.0]), right=True)), f32(40))
add("differences", lambda x: (jnp.gradient(x, 0.5, axis=1), jnp.diff(x, prepend=0.0, append=1.0), jnp.trapezoid(x, jnp.arange(16.0), axis=-1), jnp.cross(x[:, :3], x[:, 3:6])), a)
add("polynomials", lambda x: (jnp.polyfit(jnp.arange(6.0), jnp.arange(6.0) ** 2, 2), jnp.polydiv(x, x[:2]), jnp.polyint(x), jnp.poly(x[:3]), jnp.vander(x, 3)), line[:5], tolerance=2e-3)
add("covariances", lambda x: (jnp.cov(x, aweights=jnp.arange(1.0, 17.0)), jnp.corrcoef(x), jnp.average(x, axis=0, weights=jnp.arange(24.0), returned=True)), a)
add("universal_functions", lambda x: (jnp.add.reduceat(x, jnp.array([0, 3, 5]), axis=0), jnp.multiply.accumulate(x, axis=0), jnp.subtract.outer(x[0], x[1]), jnp.add.at(x, jnp.array([0, 0, 2]), 1.0, inplace=False),
                                      jnp.apply_along_axis(lambda r: r.sum() + r[0], 1, x), jnp.vectorize(lambda p, q: p @ q, signature="(n),(n)->()")(x, x[0])), a)
add("integers_of_all_kinds", lambda i, u: (jnp.gcd(i, 12), jnp.lcm(i, 4), i // 0, i % 0, u - 200, i * u[:12, None], i << 33, (i * 70).astype(jnp.int8), jnp.bitwise_count(i), ~u, jnp.uint8(3) << 9), ints, u8)
add("packed_bits", lambda x: (jnp.packbits(x, axis=0), jnp.unpackbits(jnp.packbits(x, axis=1, bitorder="little"), axis=1)), a > 0)
add("complex_numbers", lambda z: (jnp.angle(z, deg=True), jnp.power(z, z), jnp.sort(z, axis=0), jnp.cumprod(z, 0), jnp.max(z), jnp.arccosh(z), jnp.sign(z), jnp.var(z), jnp.vdot(z, z)), waves, tolerance=1e-3)
add("halves", lambda x: [f(x.astype(d)) for d in (jnp.bfloat16, jnp.float16) for f in (jnp.exp, jnp.sum, jnp.sort, jnp.std, jax.nn.softmax, jnp.median, lambda t: t @ t.T)], a, tolerance=3e-2)
add("updates", lambda x: (x.at[::-2].set(1), x.at[jnp.array([1, 1, 3])].add(1.0), x.at[1:3, jnp.array([0, 2])].set(9.0), x.at[30].get(mode="fill", fill_value=3), x.at[jnp.array([2, 30])].add(5, mode="clip"),
                          x.at[2].apply(jnp.sin), x.at[..., 0].divide(2), x[jnp.array([1, 2])[:, None], None, jnp.array([1, 2])]), a)
add("fourier_options", lambda x: (jnp.fft.hfft(x), jnp.fft.ihfft(x), jnp.fft.fftn(x, s=(5, 9)), jnp.fft.irfftn(x, s=(6, 8)), jnp.fft.fft(x, n=5, axis=0, norm="forward"), jnp.fft.ifftshift(x, axes=1)), a)
add("norms", lambda x: [jnp.linalg.norm(x, o) for o in (None, "nuc", 2, -2, 1, -jnp.inf)] + [jnp.linalg.cond(x), jnp.linalg.matrix_rank(x), jnp.linalg.slogdet(x), jnp.linalg.multi_dot([x, x, x])], square * 0.2, tolerance=3e-3)
add("batches_of_matrices", lambda x: (jnp.linalg.det(x), jnp.linalg.inv(x), jnp.linalg.pinv(x), jnp.linalg.svd(x, compute_uv=False), jnp.linalg.eigvalsh(x + x.mT)), f32(9, 3, 3) + 2 * np.eye(3, dtype="f"), tolerance=2e-3)

# ---- jax.scipy ----
_special, _stats = jax.scipy.special, importlib.import_module("jax.scipy.stats")
add("special_functions", lambda p, q: [getattr(_special, n)(p) for n in "digamma entr expi exp1 i1e log_ndtr spence gamma expit".split()]
    + [_special.betainc(p, p[::-1], q), _special.zeta(p + 1.5, p), _special.polygamma(2, p), _special.xlogy(p, q), _special.kl_div(p, q), _special.ndtri(q), _special.hyp1f1(p, p + 1, q)],
    np.abs(a) + 0.3, 1 / (1 + np.exp(-a)), tolerance=2e-3)
add("distributions", lambda x, p: [_stats.norm.logsf(x), _stats.t.logpdf(x, 3.0), _stats.gamma.cdf(p, 2.0), _stats.truncnorm.logpdf(x, -1.0, 1.0), _stats.vonmises.pdf(x, 1.0), _stats.pareto.logpdf(p + 1, 2.0),
                                   _stats.chi2.sf(p, 3.0), _stats.logistic.isf(p / (1 + p)), _stats.rankdata(x, axis=0), _stats.multivariate_normal.logpdf(x[:, :3], jnp.zeros(3), jnp.eye(3))], a, np.abs(a) + 0.1, tolerance=1e-3)
_linalg = importlib.import_module("jax.scipy.linalg")
add("matrix_functions", lambda m: (_linalg.expm_frechet(m * 0.02, m * 0.01), _linalg.toeplitz(m[0], m[1]), _linalg.block_diag(m[:2], m[0]), _linalg.lu_solve(_linalg.lu_factor(m), m[0], trans=1), _linalg.sqrtm(m).real,
                                   _linalg.cho_solve(_linalg.cho_factor(m), m[:, :3]), _linalg.solve_triangular(m, m[0], trans=1, lower=True)), spd, tolerance=5e-3)
_signal = importlib.import_module("jax.scipy.signal")
add("signals", lambda s, i: (_signal.fftconvolve(s, s[:9]), _signal.convolve2d(i, i[:3, :3], mode="same"), _signal.detrend(i, axis=0), _signal.welch(s, nperseg=16), _signal.stft(s, nperseg=16)[2]), f32(64), a, tolerance=1e-3)
add("map_coordinates", lambda i: [importlib.import_module("jax.scipy.ndimage").map_coordinates(i, [jnp.array([0.3, 5.6, -1.0, 40.0]), jnp.array([1.2, 3.3, 2.0, -4.5])], 1, mode=m) for m in ("constant", "nearest", "wrap", "mirror", "reflect")], a)
add("cosine_transforms", lambda t: (jax.scipy.fft.dct(t, norm="ortho"), jax.scipy.fft.idctn(t), jax.scipy.fft.dct(t, axis=0, n=9)), a) if hasattr(jax.scipy, "fft") else None
add("image_methods", lambda t: [jax.image.resize(t, (8, 3, 7, 5), m) for m in ("nearest", "cubic", "lanczos3")] + [jax.image.scale_and_translate(t, (8, 3, 7, 7), (2, 3), jnp.array([0.5, 0.8]), jnp.array([1.0, -0.5]), "linear")], images, tolerance=1e-3)

# ---- jax.lax ----
_strided = dict(padding=[(-1, 3), (2, 1)], window_strides=(2, 1), lhs_dilation=(3, 2), rhs_dilation=(2, 1))
add("conv_dilated", lambda x, w: lax.conv_general_dilated(x, w, **_strided), images, f32(4, 3, 3, 3), tolerance=1e-3)
add("conv_dilated_gradient", jax.grad(lambda x, w: jnp.sum(lax.conv_general_dilated(x, w, **_strided) ** 2), (0, 1)), images, f32(4, 3, 3, 3), tolerance=1e-2)
add("conv_grouped", lambda x, w: (lax.conv_general_dilated(x, w, (2, 1), "SAME", feature_group_count=3), lax.conv_general_dilated(x, w[:2].repeat(3, 1), (1, 1), "SAME", batch_group_count=2)), images, f32(6, 1, 3, 3), tolerance=1e-3)
add("windows", lambda x: [lax.reduce_window(x, i, f, (3, 2), (2, 1), p, **o) for i, f in ((-jnp.inf, lax.max), (0.0, lax.add), (1.0, lax.mul)) for p, o in (("SAME", dict(window_dilation=(2, 1))), (((1, 1), (0, 2)), dict(base_dilation=(2, 3))))], a)
add("cumulative", lambda x: [f(x, 0, reverse=True) for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cumlogsumexp)] + [jax.grad(lambda t: jnp.sum(lax.cumlogsumexp(t, 0) ** 2))(x)], a, tolerance=1e-3)
_rows = lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
add("scatter_kinds", lambda x: [f(x, jnp.array([[1], [30], [3], [1]]), x[:4], _rows, mode=m) for f in (lax.scatter_add, lax.scatter_min, lax.scatter_mul) for m in ("clip", "drop")], a)
add("gather_windows", lambda x: [lax.gather(x, jnp.array([[1, 2], [22, 15]]), lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (3, 2), mode=m) for m in ("clip", "fill")], a)
add("sorting_several", lambda x: (lax.sort((ints[:, 0] % 3, x[:12, 0], -x[:12, 0]), num_keys=2), lax.sort_key_val(x[0], jnp.arange(16)), lax.approx_min_k(x[0], 2), lax.approx_max_k(x[:, 0], 3, reduction_input_size_override=4096, aggregate_to_topk=False), jax.grad(lambda t: jnp.sum(jnp.sort(t, 0) * jnp.arange(24.0)[:, None]))(x)), a)
add("associative_scans", lambda x: (lax.associative_scan(jnp.multiply, x, reverse=True), lax.associative_scan(lambda p, q: p @ q, x[:, :4].reshape(24, 2, 2)),
                                    jax.grad(lambda t: jnp.sum(lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (t, t * 2))[1]))(x * 0.3)), a * 0.5, tolerance=1e-3)
add("ragged_products", lambda x, w: lax.ragged_dot(x, w, jnp.array([5, 0, 19])), a, f32(3, 16, 5), tolerance=1e-3)
add("branches_mapped", lambda x: (jax.vmap(lambda i, t: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], t))(jnp.arange(24) % 4, x), lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), lax.map(lambda r: r * 2, x, batch_size=5)), a)
add("roots_and_solves", lambda m, v: (jax.grad(lambda c: lax.custom_root(lambda z: z ** 2 - c, c, lambda f, z: lax.fori_loop(0, 30, lambda _, y: y - f(y) / (2 * y), z), lambda g, y: y / g(1.0)))(2.5),
                                      jax.grad(lambda r: jnp.sum(lax.custom_linear_solve(lambda z: m @ z, r, lambda _, q: jnp.linalg.solve(m, q), symmetric=True) ** 2))(v)), spd, f32(24), tolerance=1e-3)
add("segments", lambda x: [f(x, jnp.arange(24) * 7 % 9, num_segments=8) for f in (jax.ops.segment_max, jax.ops.segment_min, jax.ops.segment_prod)], a)

# ---- jax.random, jax.nn ----
for _name, _draw in dict(gammas=lambda k: jax.random.gamma(k, jnp.array([0.3, 1.0, 7.0]), (2, 3)), chosen=lambda k: jax.random.choice(k, 5, (3,), replace=False, p=jnp.arange(5.0) / 10), balls=lambda k: jax.random.ball(k, 3, shape=(4,)),
                         binomials=lambda k: jax.random.binomial(k, 10, 0.3, (5,)), triangles=lambda k: jax.random.triangular(k, 0.0, 0.3, 1.0, (5,)), truncated=lambda k: jax.random.truncated_normal(k, -1.0, 2.0, (6,)),
                         independent=lambda k: jax.random.permutation(k, jnp.arange(12.0).reshape(3, 4), axis=1, independent=True), bits=lambda k: jax.random.bits(k, (7,), "uint8"), geometric=lambda k: jax.random.geometric(k, 0.3, (5,)),
                         complex_normal=lambda k: jax.random.normal(k, (5,), jnp.complex64), half=lambda k: jax.random.normal(k, (5,), jnp.bfloat16), wald=lambda k: jax.random.wald(k, 2.0, (5,))).items():
    add("drawn_" + _name, lambda s, draw=_draw: (draw(jax.random.key(s)), draw(jax.random.PRNGKey(s + 1))), 7, tolerance=2e-3)
add("drawn_rbg", lambda s: [jax.random.uniform(jax.random.split(jax.random.key(s, impl=i), 3)[1], (5,)) for i in ("rbg", "unsafe_rbg")], 5)
add("activations", lambda t: [jax.grad(lambda q, f=getattr(jax.nn, n): jnp.sum(f(q) ** 2))(t) for n in "relu6 soft_sign hard_swish hard_tanh celu selu glu mish log_sigmoid squareplus".split()], a, tolerance=1e-3)
add("attention_options", lambda q: (jax.nn.dot_product_attention(q, q[:, :, :2], q[:, :, :2], scale=0.3), jax.nn.dot_product_attention(q, q, q, query_seq_lengths=jnp.array([3, 6]), key_value_seq_lengths=jnp.array([4, 6])),
                                    jax.nn.dot_product_attention(q, q, q, local_window_size=2)), f32(2, 6, 4, 8), tolerance=1e-3)

# ---- transformations ----
_sum = lambda t: jnp.sum(jnp.sin(t) ** 2 * jnp.arange(t.size).reshape(t.shape))  # noqa: E731
add("derivatives", lambda x: (jax.hessian(_sum)(x), jax.linearize(_sum, x)[1](x), jax.linear_transpose(lambda t: 3 * t, x)(x), jax.vjp(lambda t: (_sum(t), t), x, has_aux=True)[1](1.0), jax.jvp(jax.grad(_sum), (x,), (x,))), line, tolerance=2e-3)
add("complex_derivatives", lambda z: (jax.grad(lambda t: jnp.abs(t).sum())(z), jax.grad(lambda t: jnp.sum(t ** 2), holomorphic=True)(z), jax.jacfwd(lambda t: t ** 2, holomorphic=True)(z)), waves[:, 0])
_ring = [(k, (k + 1) % 24) for k in range(24)]
add("named_maps", lambda x: (jax.vmap(lambda p: (p - lax.pmean(p, "i"), lax.pmax(p, "i"), lax.axis_index("i"), lax.ppermute(p, "i", _ring)), axis_name="i")(x), jax.vmap(lambda p: lax.psum_scatter(p, "j", tiled=True), axis_name="j")(x[:16]),
                             jax.vmap(lambda p: lax.all_to_all(p, "j", 0, 0), axis_name="j")(x[:16]), jax.vmap(lambda t: t["a"] + t["b"], in_axes=({"a": 0, "b": None},))({"a": x, "b": x[0]})), a)
_policies = jax.checkpoint_policies
for _name, _policy in dict(dots=_policies.dots_saveable, names=_policies.save_only_these_names("mid"), nothing=_policies.nothing_saveable, both=_policies.save_from_both_policies(_policies.dots_saveable, _policies.everything_saveable)).items():
    add("checkpoint_" + _name, lambda w, x, policy=_policy: jax.grad(jax.checkpoint(lambda v: jnp.sum(checkpoint_name(jnp.sin(jnp.tanh(x @ v) @ v.T), "mid") ** 2), policy=policy))(w), f32(16, 16) * 0.3, a, tolerance=1e-3)


@jax.custom_batching.custom_vmap
def _doubled(x):
    return x * 2


_doubled.def_vmap(lambda size, mapped, x: (x * 3, mapped[0]))
add("custom_vmap", lambda x: (_doubled(x), jax.vmap(_doubled)(x)), a)
_ode = importlib.import_module("jax.experimental.ode")
add("odeint_gradient", jax.grad(lambda u, k: jnp.sum(_ode.odeint(lambda p, t, c: -c * p, u, jnp.linspace(0.0, 1.0, 4), k) ** 2), (0, 1)), line[:8], np.float32(0.5), tolerance=3e-3)
_sparse = importlib.import_module("jax.experimental.sparse")
add("sparse_matrices", lambda m, y: (_sparse.BCOO.fromdense(m, nse=200) @ y, _sparse.sparsify(lambda p, q: p.T @ q + 1)(_sparse.BCOO.fromdense(m, nse=200), m), _sparse.BCOO.fromdense(m, nse=200)[1:4].todense()), np.where(a > 0.5, a, 0).astype("f"), f32(16, 3), tolerance=1e-3)
add("lobpcg", lambda m, x: importlib.import_module("jax.experimental.sparse.linalg").lobpcg_standard(m, x, 40)[0], (square @ square.T + np.diag(np.arange(24) * 40)).astype("f"), f32(24, 2), tolerance=5e-3)
_next = [(i, (i + 1) % mesh.size) for i in range(mesh.size)]


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False)
def _turned(block, b):
    return lax.fori_loop(0, mesh.size, lambda _, s: (s[0] + block @ s[1], lax.ppermute(s[1], "x", _next)), (jnp.zeros((block.shape[0], 3)), b))[0]


add("shard_map_ring", _turned, np.random.RandomState(3).standard_normal((mesh.size * 4, 6)).astype("f"), f32(6, 3), tolerance=1e-3)  # numbers of its own: later ones are those of any number of ranks
