"""calls.py [name ...]: what SciPy, scikit-learn, einops, opt_einsum, xarray and dask give for tessera's arrays, beside what they give for NumPy's.

On one process arrays are whole; on several they are split by their first dim. Every process makes the same calls, the first one reports. A call that fails
must be in calls.txt with a reason, for `whole` or `split` arrays; one that is there and passes is reported, so that the list stays short. A call that asks
for memory is refused for split arrays with the cure, which is tried: it is one of `gathers`.
"""
import os
import pathlib
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as np  # noqa: E402

import tessera as ts  # noqa: E402

here = pathlib.Path(__file__).resolve().parent
draw = np.random.default_rng(3)
spd = draw.normal(size=(6, 6))
hosts = {
    "x": draw.normal(size=(7, 5)), "v": draw.normal(size=24), "u": draw.normal(size=24), "w": draw.uniform(0.1, 0.9, size=24), "p": draw.uniform(0.5, 4, size=24), "z": draw.normal(size=24) + 1j * draw.normal(size=24),
    "m": spd @ spd.T + 6 * np.eye(6), "b": draw.normal(size=6), "i": draw.integers(0, 3, size=24), "X": draw.normal(size=(40, 4)), "y": draw.normal(size=40), "k": draw.integers(0, 2, size=40),
    "t": draw.normal(size=(2, 3, 4)), "xnan": np.where(draw.uniform(size=(7, 5)) < 0.2, np.nan, draw.normal(size=(7, 5))),
}

special = {name: f"special.{name}(v)" for name in "erf erfc expit log_ndtr ndtr i0 i0e i1 i1e sinc".split()}
special |= {name: f"special.{name}(p)" for name in "gammaln digamma exp10 log1p k0 k1 gamma".split() if name not in ("log1p", "exp10")}
special |= {"logit": "special.logit(w)", "entr": "special.entr(w)", "rel_entr": "special.rel_entr(w, p)", "xlogy": "special.xlogy(w, p)", "betainc": "special.betainc(p, p, w)", "gammainc": "special.gammainc(p, w)",
            "gammaincc": "special.gammaincc(p, w)", "logsumexp": "special.logsumexp(x, axis=1)", "softmax": "special.softmax(x, axis=0)", "log_softmax": "special.log_softmax(x, axis=1)", "chdtr": "special.chdtr(p, p)",
            "stdtrit": "special.stdtrit(p, w)", "logsumexp b": "special.logsumexp(x, b=abs(x))", "logsumexp all": "special.logsumexp(z)"}
stats = {name: f"stats.{name}(v)" for name in "skew kurtosis moment sem zscore gstd variation describe tmean tvar tstd tsem tmin tmax iqr normaltest jarque_bera skewtest kurtosistest entropy".split()}
stats |= {"hmean": "stats.hmean(p)", "gmean": "stats.gmean(p)", "pmean": "stats.pmean(p, 2)", "zmap": "stats.zmap(v, u)", "gzscore": "stats.gzscore(p)", "entropy": "stats.entropy(p)", "gstd": "stats.gstd(p)",
          "pearsonr": "stats.pearsonr(v, u)", "ttest_1samp": "stats.ttest_1samp(x, 0.)", "ttest_ind": "stats.ttest_ind(v, u)", "ttest_rel": "stats.ttest_rel(v, u)", "chisquare": "stats.chisquare(p, p)",
          "power_divergence": "stats.power_divergence(p)", "f_oneway": "stats.f_oneway(v, u)", "bartlett": "stats.bartlett(v, u)", "levene": "stats.levene(v, u)", "combine_pvalues": "stats.combine_pvalues(w)",
          "false_discovery_control": "stats.false_discovery_control(w)", "rankdata": "stats.rankdata(v)", "circmean": "stats.circmean(v)", "circvar": "stats.circvar(v)", "circstd": "stats.circstd(v)",
          "directional_stats": "stats.directional_stats(x).mean_direction", "lmoment": "stats.lmoment(v)", "trim_mean": "stats.trim_mean(v, 0.1)", "monte_carlo": "stats.bws_test(v, u).statistic", "boxcox_llf": "stats.boxcox_llf(0.3, p)",
          "quantile": "stats.quantile(v, 0.3)", "kstat": "stats.kstat(v, 2)", "moment 3": "stats.moment(x, 3, axis=0)", "skew axis": "stats.skew(x, axis=1)", "mannwhitneyu": "stats.mannwhitneyu(v, u)",
          "cramervonmises": "stats.cramervonmises(v, stats.norm.cdf)", "wilcoxon": "stats.wilcoxon(v)", "friedmanchisquare": "stats.friedmanchisquare(v, u, p)", "expectile": "stats.expectile(v)"}
signal = {"convolve": "signal.convolve(v, u)", "correlate": "signal.correlate(v, u)", "fftconvolve": "signal.fftconvolve(v, u)", "oaconvolve": "signal.oaconvolve(v, u[:5])", "detrend": "signal.detrend(v)",
          "hilbert": "signal.hilbert(v)", "resample": "signal.resample(v, 30)", "decimate": "signal.decimate(v, 2, ftype='fir')", "upfirdn": "signal.upfirdn(u[:2], v, 2)", "sosfilt": "signal.sosfilt(arr(signal.butter(4, 0.2, output='sos')), v)",
          "sosfiltfilt": "signal.sosfiltfilt(arr(signal.butter(2, 0.2, output='sos')), v)", "lfilter": "signal.lfilter(arr([1.]), arr([1., 0.4]), v)", "filtfilt": "signal.filtfilt(arr([0.5, 0.5]), arr([1.]), v)", "periodogram": "signal.periodogram(v)",
          "welch": "signal.welch(v, nperseg=8)", "csd": "signal.csd(v, u, nperseg=8)", "savgol_filter": "signal.savgol_filter(v, 5, 2)", "medfilt": "signal.medfilt(v)", "wiener": "signal.wiener(v)", "choose_conv": "signal.convolve(x, x, 'same')",
          "convolve2d": "signal.convolve2d(x, x)", "resample_poly": "signal.resample_poly(v, 2, 3)", "freqz": "signal.freqz(arr([1., .5]), worN=v)[1]", "spectrogram": "signal.spectrogram(v, nperseg=8)", "hilbert2": "signal.hilbert2(x)",
          "correlate fft": "signal.correlate(x, x, method='fft')", "vectorstrength": "signal.vectorstrength(v, 2.0)", "envelope": "signal.envelope(v)"}
fft = {name: f"fft.{name}({a})" for name, a in {"fft": "v", "ifft": "z", "rfft": "v", "irfft": "z", "hfft": "z", "ihfft": "v", "fft2": "x", "ifft2": "x", "rfft2": "x", "irfft2": "x", "fftn": "t", "ifftn": "t", "rfftn": "t", "irfftn": "t",
       "hfft2": "x", "hfftn": "x", "fftshift": "v", "ifftshift": "v", "dct": "v", "idct": "v", "dst": "v", "dctn": "x", "idstn": "x"}.items()} | {"fht": "fft.fht(v, 0.1, 0.5)"}
linalg = {"expm": "linalg.expm(m / 20)", "cholesky": "linalg.cholesky(m)", "inv": "linalg.inv(m)", "solve": "linalg.solve(m, b)", "svdvals": "linalg.svdvals(x)", "det": "linalg.det(m)", "bandwidth": "linalg.bandwidth(m)", "eigvalsh": "linalg.eigvalsh(m)"}
ndimage = {"gaussian_filter": "ndimage.gaussian_filter(x, 1.)", "uniform_filter": "ndimage.uniform_filter(x)", "zoom": "ndimage.zoom(x, 2)", "label": "ndimage.label(x > 0)[1]"}
other = {"whiten": "vq.whiten(X)", "vq": "vq.vq(X, X[:3])", "linkage": "hierarchy.linkage(X)", "cdist": "distance.cdist(X, X[:5])", "pdist": "distance.pdist(X)", "simpson": "integrate.simpson(v)", "trapezoid": "integrate.trapezoid(v)",
         "cumulative_trapezoid": "integrate.cumulative_trapezoid(v)", "derivative": "differentiate.derivative(lambda a: a ** 3, v).df", "jacobian": "differentiate.jacobian(lambda a: a ** 2, b).df", "tanhsinh": "integrate.tanhsinh(lambda a: a ** 2, w, w + 1).integral",
         "find_root": "elementwise.find_root(lambda a, c: a ** 3 - c, (w * 0, w * 0 + 2), args=(w,)).x", "bracket": "elementwise.bracket_root(lambda a: a ** 3 - 1, w).bracket[0]", "rosen": "optimize.rosen(X.T)", "rosen_der": "optimize.rosen_der(v)",
         "cubic": "interpolate.CubicSpline(arr(range(24)) * 1., v)(2.5)", "rotation": "Rotation.from_rotvec(x[:, :3]).as_matrix()", "rotation apply": "Rotation.from_rotvec(x[:, :3]).apply(x[:, :3])", "kmeans2": "vq.vq(X, X[:2])[0]"}
sklearn = {"euclidean": "pairwise.euclidean_distances(X)", "manhattan": "pairwise.manhattan_distances(X)", "cosine": "pairwise.cosine_similarity(X)", "linear": "pairwise.linear_kernel(X)", "rbf": "pairwise.rbf_kernel(X)",
           "poly": "pairwise.polynomial_kernel(X)", "sigmoid": "pairwise.sigmoid_kernel(X)", "chi2": "pairwise.additive_chi2_kernel(abs(X))", "paired": "pairwise.paired_euclidean_distances(X, X[::-1])", "laplacian": "pairwise.laplacian_kernel(X)",
           "mse": "metrics.mean_squared_error(y, y + 1)", "mae": "metrics.mean_absolute_error(y, y + 1)", "r2": "metrics.r2_score(y, y + 0.1)", "accuracy": "metrics.accuracy_score(k, k)", "zero_one": "metrics.zero_one_loss(k, k)",
           "f1": "metrics.f1_score(k, k)", "confusion": "metrics.confusion_matrix(k, k)", "log_loss": "metrics.log_loss(k, 0.3 + 0 * y)", "d2": "metrics.d2_tweedie_score(abs(y), abs(y) + .1)", "max_error": "metrics.max_error(y, y + 1)", "jaccard": "metrics.jaccard_score(k, k)",
           "standard": "preprocessing.StandardScaler().fit_transform(X)", "minmax": "preprocessing.MinMaxScaler().fit_transform(X)", "maxabs": "preprocessing.MaxAbsScaler().fit_transform(X)", "normalize": "preprocessing.Normalizer().fit_transform(X)",
           "center": "preprocessing.KernelCenterer().fit_transform(m)", "binarize": "preprocessing.Binarizer().fit_transform(X)", "poly features": "preprocessing.PolynomialFeatures(2).fit_transform(X)", "labels": "preprocessing.LabelEncoder().fit_transform(k)",
           "pca": "abs(decomposition.PCA(2, svd_solver='full').fit_transform(X))", "ridge": "linear_model.Ridge(solver='svd').fit(X, y).predict(X)", "ridge classifier": "linear_model.RidgeClassifier(solver='svd').fit(X, k).predict(X)",
           "lda": "abs(LinearDiscriminantAnalysis().fit(X, k).transform(X))", "bayes": "GaussianNB().fit(X, k).predict(X)", "mixture": "GaussianMixture(1, init_params='random', random_state=0).fit(X).means_", "split": "train_test_split(X, random_state=0)[0]"}
clients = {"einops.array_api": "einops_api.rearrange(t, 'a b c -> c (a b)')", "einops": "einops.rearrange(t, 'a b c -> c (a b)')", "einops reduce": "einops.reduce(t, 'a b c -> b', 'mean')", "einops repeat": "einops.repeat(b, 'a -> a c', c=3)",
           "einops einsum": "einops.einsum(x, x, 'a b, c b -> a c')", "opt_einsum": "opt_einsum.contract('ab,cb->ac', x, x)", "opt_einsum three": "opt_einsum.contract('ab,cb,cd->ad', x, x, x)", "compat": "compat.array_namespace(x).sum(x)",
           "compat size": "compat.size(x)", "compat device": "compat.to_device(x, compat.device(x))", "xarray add": "(da(x) + da(x)).data", "xarray mean": "da(x).mean('a').data", "xarray sum": "da(x).sum().data", "xarray cumsum": "da(x).cumsum('a').data",
           "xarray argmax": "da(x).argmax('a').data", "xarray where": "da(x).where(da(x) > 0, 0.).data", "xarray fillna": "da(xnan).fillna(0.).data", "xarray nanmean": "da(xnan).mean('a', skipna=True).data", "xarray coarsen": "da(x).isel(a=slice(0, 6)).coarsen(a=2).mean().data",
           "xarray rolling": "da(x).rolling(a=3).mean().data", "xarray isel": "da(x).isel(a=2).data", "xarray std": "da(x).std('b').data", "xarray clip": "da(x).clip(0, 1).data", "xarray transpose": "da(x).transpose('b', 'a').data", "xarray stack": "da(x).stack(c=('a', 'b')).data",
           "xarray diff": "da(x).diff('a').data", "xarray concat": "xarray.concat([da(x), da(x)], 'a').data", "dask": "dask.array.from_array(x, chunks=(3, 5), asarray=False).sum(axis=0).compute(scheduler='sync')",
           "dask mean": "(dask.array.from_array(x, chunks=(4, 5), asarray=False) * 2).mean().compute(scheduler='sync')"}
rooms = {"scipy.special": special, "scipy.stats": stats, "scipy.signal": signal, "scipy.fft": fft, "scipy.linalg": linalg, "scipy.ndimage": ndimage, "scipy": other, "sklearn": sklearn, "clients": clients}


def names():
    """What the calls are written with."""
    import array_api_compat
    import dask
    import dask.array  # noqa: F401
    import einops
    import einops.array_api
    import opt_einsum  # noqa: F401
    import scipy.cluster.hierarchy  # noqa: F401
    import sklearn
    import xarray
    from scipy import cluster, differentiate, fft, integrate, interpolate, linalg, ndimage, optimize, signal, spatial, special, stats  # noqa: F401
    from scipy.optimize import elementwise  # noqa: F401
    from scipy.spatial.transform import Rotation  # noqa: F401
    from sklearn import decomposition, linear_model, metrics, preprocessing  # noqa: F401
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: F401
    from sklearn.metrics import pairwise  # noqa: F401
    from sklearn.mixture import GaussianMixture  # noqa: F401
    from sklearn.model_selection import train_test_split  # noqa: F401
    from sklearn.naive_bayes import GaussianNB  # noqa: F401
    import tessera.einops  # noqa: F401  the backend of plain einops
    sklearn.set_config(array_api_dispatch=True)
    known = dict(vq=cluster.vq, hierarchy=cluster.hierarchy, distance=spatial.distance, compat=array_api_compat, einops_api=einops.array_api, da=lambda x: xarray.DataArray(x, dims=("a", "b")), np=np)
    return {**locals(), **known}


def flat(value):
    """The numbers of a result, as NumPy arrays in order."""
    if isinstance(value, ts.Array):
        return [np.asarray(ts.device_get(value))]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in flat(part)]
    if hasattr(value, "_fields") or hasattr(value, "statistic"):
        return flat([value.statistic, value.pvalue])
    return [np.asarray(value)]


def problem_of(text, known, arrays, within=False):
    """None, or why the call gives something else than for NumPy's arrays; 'gathers' where it gives the same within gathering()."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = flat(eval(text, {**known, "arr": np.asarray, **hosts}))
        except Exception as error:
            return f"NumPy: {type(error).__name__}: {error}"
        try:
            found = flat(eval(text, {**known, "arr": lambda values: ts.asarray(values, dtype=ts.float64), **arrays}))
        except Exception as error:
            if "tessera.gathering()" in str(error) and not within:
                with ts.gathering():
                    return problem_of(text, known, arrays, True)
            return f"{type(error).__name__}: {error}"
    if [f.shape for f in found] != [e.shape for e in expected]:
        return f"shapes {[f.shape for f in found]} for {[e.shape for e in expected]}"
    for f, e in zip(found, expected):
        if f.dtype.kind in "OU" or not np.allclose(f, e, 1e-6, 1e-8, equal_nan=True):
            return "other values"
    return "gathers" if within else None


def main():
    n = ts.device_count()
    mesh = ts.make_mesh((n,), ("x",))
    arrays = {name: ts.asarray(host) if n == 1 else ts.device_put(ts.asarray(host), ts.NamedSharding(mesh, ts.P("x"))) for name, host in hosts.items()}
    kind = "whole" if n == 1 else "split"
    lines = [line.split(" | ", 2) for line in (here / "calls.txt").read_text().split("\n") if line and not line.startswith("#")]
    expected = {name: "gathers" if kinds == "gathers" else "fails" for name, kinds, *_ in lines if kind in kinds or (kinds == "gathers" and n > 1)}
    known, report, bad = names(), [], 0
    for room, calls in rooms.items():
        passed, gathered = 0, 0
        for name, text in calls.items():
            full = f"{room}.{name}"
            if sys.argv[1:] and full not in sys.argv[1:]:
                continue
            problem = problem_of(text, known, {k: ts.copy(v) for k, v in arrays.items()})
            passed += problem is None
            gathered += problem == "gathers"
            found = None if problem is None else "gathers" if problem == "gathers" else "fails"
            if found != expected.get(full):
                bad += 1
                report.append(f"FAILED {full} ({kind}): {' '.join((problem or 'it passes, and is in calls.txt').split())[:230]}")
        report.append(f"{room}: {passed} of {len(calls)} equal{f', {gathered} more within gathering()' if n > 1 else ''} ({kind}, {n} processes)")
    if ts.is_main_process():
        print("\n".join(report))
    raise SystemExit(1 if bad else 0)


main()
