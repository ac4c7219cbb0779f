#!/usr/bin/env python3
"""Writes goldens.json: what NumPy and SciPy give for the samples of tests/support/samples, whose operands the test program writes:

    WRITE_OPERANDS=/tmp/operands.json build/tests/properties_test --gtest_filter='Known.operands*'
    python3 tests/properties/make_goldens.py /tmp/operands.json      # where `import scipy` works

A row here is a sample's name and the same calls, in the same order. The tests only read goldens.json.
"""
import json
import pathlib
import sys

import numpy as np
import scipy
from scipy import fft, linalg, special

ELEMENTWISE = {name: getattr(np, name) for name in """
    add subtract multiply divide floor_divide remainder power negative abs sign square sqrt cbrt reciprocal floor ceil trunc maximum minimum hypot
    copysign nextafter exp exp2 expm1 log log2 log10 log1p logaddexp sin cos tan sinh cosh tanh equal not_equal less less_equal greater
    greater_equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor gcd lcm fmod fmax fmin
    signbit conj real imag round""".split()} | {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": special.erf, "erfc": special.erfc, "erf_inv": special.erfinv, "lgamma": special.gammaln, "digamma": special.digamma,
    "sigmoid": special.expit, "relu": lambda x: np.maximum(x, 0), "rsqrt": lambda x: 1 / np.sqrt(x), "softplus": lambda x: np.logaddexp(x, 0),
    "silu": lambda x: x * special.expit(x), "igamma": special.gammainc, "igammac": special.gammaincc, "betainc": special.betainc,
    "i0": special.i0, "i1": special.i1, "i0e": special.i0e, "i1e": special.i1e, "where": np.where,
}


def updated(x, at, value, ufunc=None):
    y = x.copy()
    if ufunc is None:
        y[at] = value
    else:
        ufunc.at(y, at, value)
    return y


def filled(values, size, fill=0):
    return np.concatenate([values, np.full((size,) + values.shape[1:], fill, values.dtype)])[:size]


def regular(x): return x + 4 * np.eye(x.shape[-1])
def hermitian(x): return x + np.conj(np.swapaxes(x, -1, -2))
def positive(x): return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(x.shape[-1])


def conv(x, kernel, strides, padding, dilation, groups=1):
    """NCHW, OIHW, term by term."""
    spatial = kernel.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + padding)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel.shape[2:], dilation)]
    out = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, strides)]
    y = np.zeros((x.shape[0], kernel.shape[0], *out))
    per_group, inputs = kernel.shape[0] // groups, kernel.shape[1]
    for o in range(kernel.shape[0]):
        for i in range(inputs):
            for at in np.ndindex(*kernel.shape[2:]):
                window = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilation, out, strides))
                y[:, o] += kernel[(o, i, *at)] * x[(slice(None), o // per_group * inputs + i, *window)]
    return y


def attention(q, k, v, bias=0.0, mask=True, scale=None):
    """(batch, queries, heads, features), (batch, keys, kv_heads, features)."""
    repeats = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, repeats, 2), np.repeat(v, repeats, 2)
    scores = np.einsum("bqhf,bkhf->bhqk", q, k) * (scale or 1 / np.sqrt(q.shape[-1])) + bias
    return np.einsum("bhqk,bkhf->bqhf", special.softmax(np.where(mask, scores, -np.inf), -1), v)


def eig_rows(x):
    w, v = np.linalg.eigh(hermitian(x))
    return [w, np.abs(v)]


def svd_rows(x):
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return [s, np.abs(u), np.real((u * s) @ vh)]


def least_squares(a, b): return np.linalg.lstsq(a, b, rcond=None)[0]
def selu(x): return 1.0507009873554804934193349852946 * np.where(x > 0, x, 1.6732632423543772848170429916717 * np.expm1(x))
def mapped(i, choices): return np.choose(i, choices)
def log_sum(x, axis): return np.logaddexp.accumulate(x, axis)
def standard(x, axis): return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-6)
def with_nan(x, at): return np.where(at, np.nan, x)
def cross_entropy(x, p): return -(p * special.log_softmax(x, -1)).sum(-1)


f32 = np.float32
mask7 = np.arange(7) % 3 != 1
rows = {
    "add_complex_and_real": lambda x, y: [x + y], "subtract_complex_and_real": lambda x, y: [x - y], "multiply_complex_and_real": lambda x, y: [x * y],
    "divide_complex_and_real": lambda x, y: [x / y], "power_complex_and_real": lambda x, y: [x ** y], "power_to_a_number": lambda x: [x ** 3.0],
    "astype_real_to_complex": lambda x: [x.astype(complex)], "astype_to_float32_and_back": lambda x: [x.astype(f32).astype(float)],
    "zeta_by_q": lambda x: [special.zeta(2.5, x)], "polygamma_by_x": lambda x: [special.polygamma(2, x)],
    "ldexp_by_x": lambda x: [np.ldexp(x, 3), np.frexp(x)[0]],
    # reductions, statistics
    "sum": lambda x: [x.sum(), x.sum(0), x.sum(-1, keepdims=True)], "sum_complex": lambda x: [x.sum(0)], "mean": lambda x: [x.mean((0, 2))],
    "prod": lambda x: [x.prod(0), x.prod()], "max": lambda x: [x.max(0), x.max()], "min": lambda x: [x.min(1, keepdims=True), x.min()],
    "var_std": lambda x: [x.var(0), x.std(0)], "logsumexp": lambda x: [special.logsumexp(x, 0), special.logsumexp(x)],
    "softmax": lambda x: [special.softmax(x, 0), special.log_softmax(x, -1)],
    "any_all": lambda x: [x.any(0), x.all(1), np.count_nonzero(x)],
    "quantile": lambda x: [np.quantile(x, [0.1, 0.6], 0), np.nanquantile(x, 0.3, (0, 1), method="hazen")],
    "interp": lambda x: [np.interp(x, [0.0, 1, 3, 4], [2.0, -1, 0.5, 3])], "cov": lambda x: [np.cov(x), np.corrcoef(x)],
    "gradient_convolve": lambda x, k: [np.gradient(x), np.convolve(x, k), np.correlate(x, k, "same"), np.trapezoid(x)],
    "averages": lambda x, w: [np.average(x, 0, w), np.median(x), np.median(x, 0), np.ptp(x, 1), x.var(0, ddof=1), x.std()],
    "percentiles": lambda x: [np.percentile(x, [20, 90], 0), np.nanpercentile(x, 30, 1), np.nanmedian(x, 0),
                              np.quantile(x, 0.4, method="median_unbiased", keepdims=True)],
    "without_nan": lambda x: [f(with_nan(x, np.arange(5) == 3), *a) for f, a in [
        (np.nansum, (0,)), (np.nanprod, (1,)), (np.nanmean, ()), (np.nanvar, (1,)), (np.nanstd, (1,)), (np.nanmax, (1,)), (np.nanmin, ()),
        (np.nancumsum, (0,)), (np.nancumprod, (1,))]],
    "places_without_nan": lambda x: [np.nanargmax(with_nan(x, x > 1)), np.nanargmin(with_nan(x, x > 1))],
    "histograms": lambda x, w: [np.histogram(x, 4)[0], np.histogram(x, 3, (-1, 1))[0], np.histogram(x, 3, (-1, 1), weights=w)[0],
                                np.histogram(x, [-2, -1, 0.5, 2])[0], np.histogram_bin_edges(x, 5), np.histogram2d(x.ravel(), w.ravel())[0].astype(int)],
    "counted": lambda n, x: [np.bincount(n, minlength=6), np.digitize(x, [-1.0, 0, 1]), np.digitize(x, [1.0, 0], right=True)],
    "bincount_of_weights": lambda n, w: [np.bincount(n, w, 6)],
    # shapes
    "reshape": lambda x: [x.reshape(3, 10), x.reshape(2, 3, 5), x.ravel()],
    "transpose": lambda x: [x.T, x.transpose(1, 0, 2), x.swapaxes(1, 2), np.moveaxis(x, 2, 0)],
    "squeeze_expand_dims": lambda x: [x.squeeze(), np.expand_dims(x, 2)], "broadcast_to": lambda x: [np.broadcast_to(x, (2, 5, 3))],
    "concatenate": lambda x, y, z: [np.concatenate([x, y]), np.concatenate([x, z], 1), np.stack([x, z], 1)], "split": lambda x: np.split(x, 3),
    "flip_roll": lambda x: [np.flip(x), np.flip(x, 1), np.roll(x, 2, 0), np.roll(x, -1, 1)],
    "pad": lambda x: [np.pad(x, ((1, 2), (0, 1)), constant_values=3)], "tile_repeat": lambda x: [np.tile(x, (2, 1)), x.repeat(3, 0), x.repeat(2, 1)],
    "triangles": lambda x: [np.tril(x, 1), np.triu(x), x.diagonal(), x.diagonal(1)],
    "pad_modes": lambda x: [np.pad(x, ((2, 7), (0, 1)), "reflect"), np.pad(x, ((2, 1), (2, 1)), "edge"),
                            np.pad(x, ((3, 4), (3, 4)), "wrap")],
    "repeat_counts": lambda x: [x.repeat([2, 0, 3], 0)],
    "stacked": lambda x, y: [np.vstack([x, y]), np.hstack([x, y]), np.dstack([x, y]), np.column_stack([x, y]), np.append(x, y, 0),
                             np.concatenate([x, y], 1), x[:, 2], np.stack([x, y], -1), x[1:3]],
    "block": lambda x, y, z: [np.block([[x, y], [z]])],
    "turned": lambda x: [np.rot90(x), np.rot90(x, 2), np.rot90(x, -1), np.fliplr(x), np.flipud(x), x.ravel(), x.T, x.T],
    "more_dims": lambda x, y: [x, np.atleast_2d(x), np.atleast_3d(y), *np.broadcast_arrays(x, y)],
    "diagonals": lambda x, y: [np.diag(x), np.diag(x, 2), np.diag(y, 1), np.diagflat(y, -1)],
    "vander": lambda x: [np.vander(x, 3), np.vander(x, 4, True)],
    "select_choose": lambda x, y, n: [np.select([n == 1, n == 7], [x, y], 0.5), mapped(n, [x, y]), mapped((n + 3) % 2, [x, y])],
    "partition": lambda x: [np.partition(x, 3, 0)[3], np.median(x, 1)],
    "orders": lambda x, n: [np.lexsort((x, n), 0), np.sort(x, 1)[:, 2], -np.sort(-x, 1), np.argsort(-n, 0, kind="stable")],
    "places": lambda n, m: [*np.unravel_index(n, (7, 5)), np.ravel_multi_index((m, m), (5, 9)), np.indices((4, 3)), np.tri(4, 6, 1, dtype=f32)],
    "compared": lambda x, y: [np.array_equal(x, x), np.array_equal(x, y), np.array_equiv(x, y), np.isclose(x, y), np.allclose(x, x)],
    # what is taken out and put in
    "compress": lambda x: [x[mask7], x[mask7][:3], filled(x[mask7], 9, 2)],
    "bitcast": lambda x, n: [x.view(np.int64), x[..., None].view(np.int32), n.view(np.int64)[:, 0]],
    "slice": lambda x: [x[1:6:2], x[:, ::-1], x[3], x[..., None, 1:3]], "gather": lambda x, i: [x[i], x.take(i, 0)],
    "gather_of_two": lambda x, i, j: [x[i, j]], "set_slice": lambda x, v: [updated(x, slice(1, 6, 2), v)],
    "add_slice": lambda x, v: [x + np.where((np.arange(7) > 1) & (np.arange(7) < 5), 1.0, 0)[:, None] * v],
    "set_gathered": lambda x, v: [updated(x, [1, 4, 6], v)], "add_gathered": lambda x, i, v: [updated(x, i, v, np.add)],
    "multiply_gathered": lambda x, v: [updated(x, [1, 4], v, np.multiply)], "take_along_axis": lambda x, i: [np.take_along_axis(x, i, 0)],
    "extract": lambda x, m: [filled(x[m], 7), filled(x[m], 20, 3)],
    "places_of_what_is_not_0": lambda n: [filled(np.nonzero(n)[0], 8), filled(np.nonzero(n)[1], 8), filled(np.flatnonzero(n), 20, -1),
                                          filled(np.argwhere(n), 6)],
    # sorting, sums along the way
    "sort": lambda x: [np.sort(x), np.sort(x, 0)], "argsort": lambda x: [np.argsort(x), np.argsort(x, 0)],
    "argmax_argmin": lambda x: [x.argmax(), x.argmax(0), x.argmin(1, keepdims=True)],
    "top_k": lambda x: [-np.sort(-x)[:, :3], np.argsort(-x)[:, :3]], "searchsorted": lambda x, v: [np.searchsorted(np.sort(x), v)],
    "cumsum": lambda x: [x.cumsum(0), x.cumsum(1)], "cumprod": lambda x: [x.cumprod(0), x.cumprod(1)],
    "cumulative_extrema": lambda x: [np.maximum.accumulate(x, 0), np.maximum.accumulate(x[:, ::-1], 1)[:, ::-1], np.minimum.accumulate(x, 1),
                                     np.minimum.accumulate(x[::-1], 0)[::-1]],
    "cumlogsumexp": lambda x: [log_sum(x, 0), log_sum(x[:, ::-1], 1)[:, ::-1]],
    "cumsum_initial": lambda x: [np.concatenate([np.zeros((1, 3)), x.cumsum(0)]), x.cumsum()],
    # numerical functions
    "samples_of_a_function": lambda x: [*np.gradient(x, 0.5), np.trapezoid(x, dx=0.3, axis=0), np.diff(x, 2, 0)],
    "trapezoid_places": lambda x, y: [np.trapezoid(x, np.cumsum(y ** 2), axis=1)],
    "convolve_modes": lambda x, k: [np.convolve(x, k, "same"), np.convolve(k, x, "valid"), np.correlate(x, k, "full")],
    "kron_cross_vecdot": lambda x, y, z: [np.kron(x, y), np.cross(x, z), (x * z).sum(0), (x * z).sum(1)],
    "polynomials": lambda a, b, x: [np.polyval(a, x), np.polyadd(a, b), np.polysub(b, a), np.polymul(a, b), np.polyder(a, 2), np.polyint(a)],
    "polyfit": lambda y: [np.polyfit(np.linspace(-1, 1, 9), y, 3)], "angle_complex": lambda x: [np.angle(x)],
    "sinc_degrees": lambda x: [np.sinc(x), np.rad2deg(x), np.deg2rad(x), x, np.clip(x, -1.5, 1.5)],
    "windows_of_signals": lambda: [np.bartlett(11).astype(f32), np.blackman(12).astype(f32), np.hamming(11), np.hanning(12).astype(f32),
                                   np.kaiser(13, 8.6)],
    "ranges": lambda: [np.logspace(-1, 2, 13, dtype=f32), np.geomspace(2, 512, 9, dtype=f32), np.geomspace(-100, -0.1, 4)],
    "meshgrid": lambda x, y: np.meshgrid(x, y),
    "shifted": lambda x: [np.roll(x, -2, 0), np.pad(x, ((0, 0), (1, 0)), "reflect")[:, :5], np.pad(x, ((0, 2), (0, 0)), "edge")[2:],
                          np.pad(x, ((3, 0), (0, 0)), constant_values=1.5)[:7], np.pad(x, ((0, 0), (0, 2)), "symmetric")[:, 2:]],
    "creation": lambda: [np.zeros((5, 3), f32), np.ones(4, np.int32), np.full((5, 3), 2.5), np.eye(5, dtype=f32), np.eye(4, 6, 1, dtype=np.complex64),
                         np.arange(7), np.linspace(0, 1, 5, dtype=f32)],
    # products
    "outer": lambda x, y: [np.multiply.outer(x.ravel(), y).reshape(-1, 3)], "inner": lambda x, y: [np.inner(x, y)],
    "dot_vdot": lambda x, y: [x @ y, np.vdot(x, y)], "vdot_complex": lambda x, y: [np.vdot(x, y)],
    "tensordot": lambda x, y: [np.tensordot(x, y), np.tensordot(x, y, ([2, 1], [1, 0]))],
    "einsum": lambda x, y: [np.einsum("bij,bjk->kbi", x, y), np.einsum("bij,bjk->ik", x, y)], "trace": lambda x: [np.trace(x)],
    "multi_dot": lambda x, y, z: [np.linalg.multi_dot([x, y, z])],
    "conv_1d": lambda x, k: [conv(x, k, [1], [(0, 0)], [1]), conv(x, k, [2], [(1, 2)], [1])],
    "conv_2d": lambda x, k: [conv(x, k, [1, 2], [(1, 1), (0, 1)], [2, 1], 2)],
    # linear algebra
    "solve": lambda a, b: [np.linalg.solve(regular(a), b)], "lu": lambda a: linalg.lu(regular(a))[1:],
    "lu_solve": lambda a, b: [np.linalg.solve(regular(a), b)], "cholesky": lambda a: [np.linalg.cholesky(positive(a))],
    "cholesky_solve": lambda a, b: [np.linalg.solve(positive(a), b)],
    "triangular_solve": lambda a, b: [linalg.solve_triangular(regular(a), b), linalg.solve_triangular(regular(a), b, trans=1, lower=True),
                                      linalg.solve_triangular(a, b, lower=True, unit_diagonal=True)],
    "qr": lambda a: [*np.linalg.qr(a)], "svd": svd_rows, "eigh": eig_rows,
    "eigvalsh_svdvals": lambda a, b: [np.linalg.eigvalsh(hermitian(a)), np.linalg.svd(b, compute_uv=False)],
    "inv_det": lambda a: [np.linalg.inv(regular(a)), np.linalg.det(regular(a))],
    "slogdet_norm_lstsq": lambda a, b, c: [np.linalg.slogdet(regular(a))[1], np.linalg.norm(a), least_squares(b, c), np.linalg.matrix_power(a, 3),
                                           linalg.expm(a)],
    "pinv_polar": lambda a: [np.linalg.pinv(a), *linalg.polar(a)], "sqrtm": lambda a: [linalg.sqrtm(regular(a))],
    "norms": lambda a, b: [np.linalg.norm(a, 3, 0), np.linalg.norm(a, 1), np.linalg.norm(a), np.linalg.norm(a, "nuc"), np.linalg.norm(a, 2),
                           np.linalg.cond(regular(b))],
    "tensorsolve": lambda a, b: [np.linalg.tensorsolve(a + 4 * np.eye(6).reshape(2, 3, 6), b)],
    "toeplitz_block_diag": lambda x, y, z: [linalg.toeplitz(x), linalg.toeplitz(x, y), linalg.block_diag(z, y[None], z)],
    "toeplitz_complex": lambda x: [linalg.toeplitz(x)],
    "generalized_eigh": lambda a, b: [linalg.eigh(hermitian(a), positive(b))[0], np.abs(linalg.eigh(hermitian(a), positive(b))[1])],
    "eigvals_complex": lambda a: [np.linalg.eigvals(a)],
    "qr_pivoted_complete": lambda a: [*linalg.qr(a, mode="economic", pivoting=True), *np.linalg.qr(a, mode="complete")],
    # transforms
    "fft": lambda x: [np.fft.fft(x), np.fft.ifft(x, axis=0), np.fft.fft2(x)], "fft_resized": lambda x: [np.fft.fft(x, 7), np.fft.fft(x, 3)],
    "rfft": lambda x: [np.fft.rfft(x), np.fft.rfftn(x, norm="ortho")], "irfft": lambda x: [np.fft.irfft(x), np.fft.irfft(x, 9)],
    "hfft": lambda x: [np.fft.hfft(x)], "ihfft": lambda x: [np.fft.ihfft(x)],
    "fft_of_axes": lambda x: [np.fft.fftn(x, axes=(0, 2)), np.fft.ifftn(x), np.fft.ifft2(x, norm="forward"), np.fft.irfft2(x),
                              np.fft.irfftn(x, axes=(0, 1))],
    "rfft2": lambda x: [np.fft.rfft2(x)], "fftshift": lambda x: [np.fft.fftshift(x), np.fft.ifftshift(x, 1)],
    "fftfreq": lambda: [np.fft.fftfreq(7, 0.5).astype(f32), np.fft.fftfreq(8), np.fft.rfftfreq(9).astype(f32)],
    # networks
    "activations": lambda x: [np.where(x > 0, x, 0.1 * x), np.where(x > 0, x, np.expm1(x)), selu(x), x * special.ndtr(x),
                              x * np.tanh(np.logaddexp(x, 0)), -np.logaddexp(-x, 0), x / (1 + np.abs(x)), x[:, :2] * special.expit(x[:, 2:])],
    "activations_with_corners": lambda x: [np.clip(x, 0, 6), np.clip(x, -1, 1), np.clip(x + 3, 0, 6) / 6],
    "layers": lambda x, w, b: [standard(x @ w + b, -1) * b + 2 * b, standard(x, 0), x[[3, 0, 3, 1]]],
    "losses": lambda x, p, n: [cross_entropy(x, p), cross_entropy(x, np.eye(4)[n]), np.logaddexp(x, 0) - x * p, (x - p) ** 2,
                               special.huber(0.7, x - p)],
    "labels": lambda x, n: [np.eye(4, dtype=f32)[n], (x.argmax(1) == n).mean().astype(f32)],
    "attention": lambda q, k, v: [attention(q, k, v)],
    "attention_masked": lambda q, k, v, b: [attention(q[None], k[None], v[None], mask=np.tri(6, dtype=bool))[0],
                                            attention(q[None], k[None], v[None], b[None], scale=0.3)[0]],
}


def scanned(xs, c, step):
    ys = []
    for x in xs:
        c, y = step(c, x)
        ys.append(y)
    return [c, np.array(ys)]


def relaxed(v):
    for i in range(12):
        v = v * 0.5 + np.sin(v) / (i + 1)
    return v


def chosen(a, b): return np.sin(a) * b if a.sum() > 0.1 else np.cos(b) - a


rows |= {
    "scan": lambda xs, c: scanned(xs, c, lambda c, v: (np.tanh(c * v + 0.5), np.tanh(c * v + 0.5).sum() * v)),
    "scan_of_rows": lambda xs, c: scanned(xs, c, lambda c, row: (c * 0.5 + row, c * row)),
    "fori_loop": lambda x: [relaxed(x)], "cond": lambda a, b: [chosen(a, b), chosen(b, a)],
    "checkpoint": lambda x: [np.exp(np.sin(x) * x)],
}
for suffix in ["", "_batched", "_broadcast", "_complex", "_complex_and_real"]:
    rows["matmul" + suffix] = lambda x, y: [x @ y]
for name in ["solve", "lu", "lu_solve", "cholesky", "cholesky_solve", "triangular_solve", "qr", "svd", "eigh", "eigvalsh_svdvals", "inv_det"]:
    rows[name + "_complex"] = rows[name]
for t in [1, 2, 3, 4]:
    rows[f"dct_dst_{t}"] = lambda x, t=t: [fft.dct(x, t), fft.idct(x, t, axis=0), fft.dst(x, t, axis=0, norm="ortho"), fft.idst(x, t, norm="forward"),
                                           fft.dctn(x, t), fft.idctn(x, t, axes=[0])]


def array_of(entry):
    values = np.array(entry["re"], float)
    if "im" in entry:
        values = values + 1j * np.array(entry["im"], float)
    return values.reshape(entry["shape"]).astype(entry["dtype"])


def number(v):
    return float(v) if np.isfinite(v) else str(float(v))


def entry_of(value):
    value = np.asarray(value)
    entry = {"dtype": value.dtype.name, "shape": list(value.shape), "re": [number(v) for v in np.real(value).ravel()]}
    if np.iscomplexobj(value):
        entry["im"] = [number(v) for v in np.imag(value).ravel()]
    return entry


operands = json.load(open(sys.argv[1]))
for name in operands:
    base = name.removesuffix("_other_way").removesuffix("_complex")
    if name not in rows and base in ELEMENTWISE:
        rows[name] = lambda *x, f=ELEMENTWISE[base]: [f(*x)]
missing = [name for name in rows if name not in operands]
if missing:
    sys.exit(f"no such samples: {missing}")
samples = {}
with np.errstate(all="ignore"):
    for name in sorted(rows):
        samples[name] = [entry_of(value) for value in rows[name](*map(array_of, operands[name]))]
path = pathlib.Path(__file__).parent / "goldens.json"
with open(path, "w") as out:
    out.write(f'{{"from": "NumPy {np.__version__}, SciPy {scipy.__version__}, by make_goldens.py",\n"samples": {{\n')
    out.write(",\n".join(f'"{name}": {json.dumps(entries)}' for name, entries in samples.items()))
    out.write("}}\n")
print(f"{len(samples)} samples; without a golden: {' '.join(sorted(set(operands) - set(rows)))}")
