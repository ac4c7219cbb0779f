#!/usr/bin/env python3
"""Writes goldens.inc: what NumPy and SciPy give for the calls of the tests beside it. Run it where `import scipy` works; the tests only read the file.
One row per call: {name, shape, values}. The operands are those of goldens.hpp.
"""
import operator
import pathlib

import numpy as np
from scipy import special

n = ((np.arange(35) * 11) % 17 - 8).reshape(7, 5)
x = n.astype(np.float64)
u = (((np.arange(35) * 13) % 37) / 4).reshape(7, 5)  # no two alike
z = np.where(n % 5 == 3, np.nan, u)
z[:, 4] = np.nan
line, taps = u.ravel()[:23], np.array([1.0, -2.0, 0.5, 3.0])
METHODS = ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
           "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased"]
quarters = np.array([0.0, 0.1, 0.25, 0.5, 0.77, 1.0])
counts2, rows2, columns2 = np.histogram2d(x.ravel(), u.ravel(), bins=4)
values, first, inverse, numbers = np.unique(n, return_index=True, return_inverse=True, return_counts=True)


def changed(function, *arguments):
    y = u.copy()
    function(y, *arguments)
    return y


with np.errstate(all="ignore"):
    import warnings
    warnings.simplefilter("ignore")
    rows = {
        # sized
        "mask": u[n > 0], "mask_rows": u[n[:, 0] > 0], "mask_columns": u[:, n[1] > 0], "mask_and_slice": u[n[:, 1] > 0, 1:3],
        "nonzero_0": np.nonzero(n > 2)[0], "nonzero_1": np.nonzero(n > 2)[1], "argwhere": np.argwhere(n > 2),
        "flatnonzero": np.flatnonzero(n > 2), "compress": np.compress([1, 0, 1, 1], u, 0), "compress_columns": np.compress(n[2] > 0, u, 1),
        "extract": np.extract(n < 0, u), "unique": values, "unique_index": first, "unique_inverse": inverse.reshape(7, 5),
        "unique_counts": numbers, "unique_nan": np.unique(z), "union1d": np.union1d(n[:4], n[2:] * 2), "intersect1d": np.intersect1d(n[:3], n[2:] * 2),
        "setdiff1d": np.setdiff1d(n, n[2:] * 2), "setxor1d": np.setxor1d(n[:2], n[1:] * 2), "isin": np.isin(n, [3, -2, 7, 100]),
        "isin_invert": np.isin(n, [3, -2, 7, 100], invert=True), "bincount": np.bincount(np.abs(n.ravel())),
        "bincount_weights": np.bincount(np.abs(n.ravel()), u.ravel(), 12),
        # statistics
        "histogram": np.histogram(u, 7)[0], "histogram_edges": np.histogram(u, 7)[1], "histogram_range": np.histogram(u, 5, (1, 6))[0],
        "histogram_between": np.histogram(u, [0, 1, 1.5, 4, 8.25])[0], "histogram_weights": np.histogram(u, 6, weights=x)[0],
        "histogram_density": np.histogram(u, 6, density=True)[0], "histogram2d": counts2, "histogram2d_x": rows2, "histogram2d_y": columns2,
        "histogramdd": np.histogramdd(u[:, :3], 3)[0], "histogramdd_density": np.histogramdd(u[:, :2], 3, density=True)[0],
        "digitize": np.digitize(x, [-5, -1, 0, 4]), "digitize_right": np.digitize(x, [-5, -1, 0, 4], right=True),
        "digitize_down": np.digitize(x, [4, 0, -1, -5]), "quantile_all": np.quantile(u, quarters), "quantile_keep": np.quantile(u, 0.3, 1, keepdims=True),
        "percentile": np.percentile(u, [20, 90], 0), "quantile_both": np.quantile(u, 0.4, (0, 1)), "quantile_nan": np.quantile(z, quarters, 0),
        "nanquantile": np.nanquantile(z, quarters, 0), "nanpercentile": np.nanpercentile(z, 30, 1), "nanmedian": np.nanmedian(z, 0),
        "nanmedian_all": np.nanmedian(z), "nansum": np.nansum(z, 0), "nanprod": np.nanprod(z, 1), "nanmean": np.nanmean(z, 0), "nanvar": np.nanvar(z, 1),
        "nanvar_correction": np.nanvar(z, 1, ddof=1), "nanstd": np.nanstd(z, 0), "nanmax": np.nanmax(z, 0), "nanmin": np.nanmin(z, 1, keepdims=True),
        "nanargmax": np.nanargmax(z, 1), "nanargmin": np.nanargmin(z[:, :4], 0), "nanargmax_flat": np.nanargmax(z), "nancumsum": np.nancumsum(z, 0),
        "nancumprod": np.nancumprod(z, 1), "cov": np.cov(u), "cov_columns": np.cov(u, rowvar=False, ddof=0), "cov_line": np.cov(u[0]),
        "corrcoef": np.corrcoef(u), "interp": np.interp(x, [-5, -1, 0, 4], [2.0, 1, 7, 3]),
        "interp_ends": np.interp(x, [-5, -1, 0, 4], [2.0, 1, 7, 3], -9, 11), "median_all": np.median(u), "median_rows": np.median(u, 1),
        # arrange
        "ravel": u.ravel(), "atleast_3d": np.atleast_3d(u), "vstack": np.vstack([u, x[2]]), "hstack": np.hstack([u, x]), "hstack_lines": np.hstack([u[0], x[1]]),
        "dstack": np.dstack([u, x]), "column_stack": np.column_stack([u[:, 0], x]), "block": np.block([[u, x], [x[:2], u[:2]]]),
        "append": np.append(u, x[:2], 0), "fliplr": np.fliplr(u), "flipud": np.flipud(u), "rot90": np.rot90(u), "rot90_2": np.rot90(u, 2), "rot90_3": np.rot90(u, -1),
        "diag": np.diag(u), "diag_of_line": np.diag(u[0]), "diag_above": np.diag(u[0], 2), "diag_below": np.diag(u[:, 1], -3), "diagflat": np.diagflat(u[:2], 1),
        "tri": np.tri(4, 6, 1), "vander": np.vander(u[0], 4), "vander_rising": np.vander(u[0], increasing=True),
        "select": np.select([x > 4, x < -3], [u, -u], 0.5), "choose": np.choose(n, [u, -u, 10 * u], mode="clip"),
        "choose_wrap": np.choose(n, [u, -u, 10 * u], mode="wrap"), "lexsort": np.lexsort((u.ravel(), (n % 3).ravel())),
        "lexsort_columns": np.lexsort((u, n % 3), 0), "unravel_1": np.unravel_index(np.abs(n), (4, 9))[1],
        "ravel_multi_index": np.ravel_multi_index((np.abs(n), n % 4), (9, 4)), "indices": np.indices((7, 5)),
        # edit
        "array_split_1": np.array_split(u, 3)[1], "insert": np.insert(u, 2, 9.0, 0), "insert_columns": np.insert(u, [4, 4], x[:, :2], 1), "delete": np.delete(u, [1, -1, 4], 0),
        "delete_columns": np.delete(u, 0, 1), "resize": np.resize(u, (4, 11)), "put": changed(np.put, [30, 2, 17], [-1.0, -2.0]), "place": changed(np.place, n > 2, [-1.0, -2, -3]),
        "fill_diagonal": changed(np.fill_diagonal, 7.5), "mask_set": changed(operator.setitem, n > 6, [-1.0, -2, -3, -4]), "round_1": np.round(u / 7, 1), "round_tens": np.round(u * 9, -1),
        "unwrap": np.unwrap(u * 3, axis=0), "unwrap_rows": np.unwrap(x), "packbits": np.packbits(n > 0, 0), "unpackbits": np.unpackbits((u * 4).astype(np.uint8), 1),
        # numeric
        "gradient_rows": np.gradient(u, axis=0), "gradient_columns": np.gradient(u, 0.5, axis=1), "trapezoid": np.trapezoid(u, dx=0.3, axis=0),
        "trapezoid_places": np.trapezoid(u, np.arange(5) ** 2, axis=1), "kron": np.kron(u[:3], x[:2]), "kron_lines": np.kron(u[0], x),
        "cross": np.cross(u[:, :3], x[:, 2:]), "vecdot": (u * x).sum(0), "logspace": np.logspace(-1, 2, 13), "logspace_base": np.logspace(0, 5, 6, base=2),
        "geomspace": np.geomspace(2, 512, 9), "geomspace_down": np.geomspace(-100, -0.1, 4), "bartlett": np.bartlett(11), "blackman": np.blackman(12),
        "hamming": np.hamming(11), "hanning": np.hanning(12), "polyval": np.polyval([2.0, -1, 0.5], u), "polyadd": np.polyadd([1.0, 2], [3.0, 4, 5]),
        "polysub": np.polysub([1.0, 2], [3.0, 4, 5]), "polymul": np.polymul([1.0, 2], [3.0, 4, 5]), "polyder": np.polyder([3.0, 4, 5, 6], 2),
        "polyint": np.polyint([3.0, 4, 5]), "polyfit": np.polyfit(line, np.sin(line), 4), "angle": np.angle(x + 1j * (u - 4)),
        "angle_degrees": np.angle(x + 1j * (u - 4), deg=True), "sinc": np.sinc(x / 3), "heaviside": np.heaviside(x, 0.25),
        "nan_to_num": np.nan_to_num(np.where(n > 5, np.inf, np.where(n < -5, -np.inf, z)), nan=1, posinf=9), "rad2deg": np.rad2deg(u),
        "deg2rad": np.deg2rad(u),
    }
    a, t, p = u / 2 + 0.4, np.abs(x) / 2 + 0.1, (u + 0.1) / 10
    rows |= {
        "igamma": special.gammainc(a, t), "igammac": special.gammaincc(a, t), "igamma_large": special.gammainc(a * 40, u * 20 + 15),
        "igammac_far": special.gammaincc(a, t * 12), "betainc": special.betainc(a, t, p), "betainc_large": special.betainc(a * 30, t * 30, p),
        "zeta": special.zeta(a + 1.2, t), "polygamma_1": special.polygamma(1, t), "polygamma_2": special.polygamma(2, t - 0.3),
        "polygamma_3": special.polygamma(3, a), "polygamma_0": special.polygamma(0, a), "gammaln": special.gammaln(a), "betaln": special.betaln(a, t),
        "i0": special.i0(x), "i1": special.i1(x), "i0e": special.i0e(x * 9), "i1e": special.i1e(x * 9), "kaiser": np.kaiser(13, 8.6),
        "fmod": np.fmod(x, 1.7), "fmax": np.fmax(z, x), "fmin": np.fmin(z, x), "signbit": np.signbit(x), "ldexp": np.ldexp(u, n),
        "frexp_mantissa": np.frexp(x)[0], "frexp_exponent": np.frexp(x)[1], "gcd": np.gcd(n, n.ravel()[::-1].reshape(7, 5) * 3),
        "lcm": np.lcm(n, n.ravel()[::-1].reshape(7, 5) * 3), "population_count": np.bitwise_count(n.astype(np.uint32)),
    }
    for method in METHODS:
        rows["quantile_" + method] = np.quantile(u, quarters, 0, method=method)
        rows["quantile_flat_" + method] = np.quantile(u, quarters, method=method)
    for mode in ["full", "same", "valid"]:
        rows["convolve_" + mode] = np.convolve(line, taps, mode)
        rows["convolve_even_" + mode] = np.convolve(taps, line[:9], mode)
        rows["correlate_" + mode] = np.correlate(line, taps, mode)
        rows["correlate_shorter_" + mode] = np.correlate(taps, line[:9], mode)

def text(v):
    return "NAN" if np.isnan(v) else "INFINITY" if v == np.inf else "-INFINITY" if v == -np.inf else repr(float(v))

with open(pathlib.Path(__file__).parent / "goldens.inc", "w") as out:
    out.write(f"// From NumPy {np.__version__} by make_goldens.py.\n")
    for name, value in rows.items():
        value = np.asarray(value)
        values = ", ".join(text(v) for v in value.ravel())
        out.write(f'{{"{name}", Shape{{{", ".join(map(str, value.shape))}}}, {{{values}}}}},\n')
