"""Everyday calls beside NumPy's and SciPy's, on one rank: {row: a function that makes the two calls}. Runs in a process of its own.

    python3 scripts/benchmark/numpy_rows.py [ROW ...]      (PYTHONPATH: the folder of tessera's package; $ROW_SECONDS: of a row's repetitions)

Prints a line of JSON per row, as scripts/bench keeps them: {"name", "ranks", "ours_s", "ours", "peer", "peer_s", "peer_samples", "ratio", "goal"}, or
{"name", "error"}. Both are given the same values, and their results are compared before anything is timed. Repetitions alternate. What counts is the
process's own time, and the least of it: other programs on the machine lengthen every other figure.
"""
import json
import os
import sys
import time

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # NumPy's BLAS takes what the CPU has
    os.environ.pop(name, None)
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402  its BLAS reads the environment before tessera's does

try:
    import scipy
    import scipy.linalg
    import scipy.signal
except ImportError:
    scipy = None
import tessera as ts  # noqa: E402

N = 1 << 24  # elements of a vector
SIDE = 4096  # of a square matrix
SECONDS = float(os.environ.get("ROW_SECONDS", "2"))  # of a row's repetitions, but three
GOAL = 1 / 1.1  # no more than 1.1 of the better peer's time
ROWS = {}


def row(name):
    """Adds make() -> (ours, {peer: its call}) as the row; the calls return what they compute."""

    def add(make):
        ROWS[name] = make
        return make

    return add


class Values:
    """Operands, each as NumPy's and as tessera's, made when they are asked for."""

    def __init__(self):
        self.kept = {}

    def get(self, name):
        if name not in self.kept:
            theirs = getattr(self, name)()
            self.kept[name] = (theirs, ts.asarray(theirs).block_until_ready())
        return self.kept[name]

    rng = staticmethod(lambda: np.random.default_rng(7))

    def v(self):
        return self.rng().standard_normal(N, dtype=np.float32)

    def w(self):
        return self.rng().random(N, dtype=np.float32)

    def m(self):
        return self.v().reshape(SIDE, SIDE)

    def d(self):
        return self.rng().standard_normal(N)

    def z(self):
        return self.v() + 1j * self.w()

    def i(self):
        return self.rng().integers(-1000, 1000, N, dtype=np.int32)

    def few(self):
        return self.rng().integers(0, 1000, N, dtype=np.int64)

    def places(self):
        return self.rng().integers(0, N, N, dtype=np.int64)

    def mask(self):
        return self.w() < 0.5

    def false_first(self):
        mask = np.ones(N, bool)
        mask[0] = False
        return mask


values = Values()


def both(*names):
    """NumPy's operands, then tessera's."""
    pairs = [values.get(name) for name in names]
    return [p[0] for p in pairs], [p[1] for p in pairs]


def same(name, call, *operands):
    """A row whose call is the same in both: call(namespace, *operands)."""

    @row(name)
    def make():
        theirs, ours = both(*operands)
        return lambda: call(ts, *ours), {"NumPy": lambda: call(np, *theirs)}


same("repeat", lambda xp, v: xp.repeat(v, 2, axis=0), "v")
same("repeat_rows", lambda xp, m: xp.repeat(m, 2, axis=0), "m")
same("repeat_columns", lambda xp, m: xp.repeat(m, 2, axis=1), "m")
same("floor_divide_i32", lambda xp, i: i // 7, "i")
same("remainder_i32", lambda xp, i: i % 7, "i")
same("floor_divide_i32_arrays", lambda xp, i, few: i // (few.astype(xp.int32) + 1), "i", "few")
same("abs_c64", lambda xp, z: xp.abs(z), "z")
same("multiply_c64", lambda xp, z: z * z, "z")
same("count_nonzero", lambda xp, mask: xp.count_nonzero(mask), "mask")
same("take_few", lambda xp, v, few: xp.take(v, few, axis=0), "v", "few")
same("take_random", lambda xp, v, places: xp.take(v, places, axis=0), "v", "places")
same("argmax_rows", lambda xp, m: xp.argmax(m, axis=1), "m")
same("argmax_all", lambda xp, v: xp.argmax(v), "v")
same("argmax_columns", lambda xp, m: xp.argmax(m, axis=0), "m")
same("ptp_rows", lambda xp, m: xp.max(m, axis=1) - xp.min(m, axis=1), "m")
same("sum_columns", lambda xp, m: xp.sum(m, axis=0), "m")
same("nonzero", lambda xp, mask: xp.nonzero(mask)[0], "mask")
same("reverse", lambda xp, v: xp.flip(v).copy() if xp is np else xp.flip(v), "v")
same("stride_2", lambda xp, v: v[::2].copy() if xp is np else v[::2], "v")
same("tile_rows", lambda xp, m: xp.tile(m[0], (SIDE, 1)), "m")
same("any_greater", lambda xp, v: xp.any(v > 100), "v")
same("any_isnan", lambda xp, v: xp.any(xp.isnan(v)), "v")
same("all_false_first", lambda xp, mask: xp.all(mask), "false_first")
same("logical_and", lambda xp, mask, w: xp.logical_and(mask, w > 0), "mask", "w")
same("clip", lambda xp, v: xp.clip(v, -1, 1), "v")
same("maximum", lambda xp, v, w: xp.maximum(v, w), "v", "w")
same("fmax", lambda xp, v, w: xp.fmax(v, w), "v", "w")
same("nanmax_columns", lambda xp, m: xp.nanmax(m, axis=0), "m")
same("log10", lambda xp, w: xp.log10(w + 1), "w")
same("power_f64", lambda xp, d: xp.power(d * d, d), "d")
same("i0", lambda xp, v: xp.i0(v[: 1 << 20]), "v")
same("sort_rows", lambda xp, m: xp.sort(m[:, :1024], axis=1), "m")
same("cross", lambda xp, v, w: xp.cross(v[: 3 << 20].reshape(-1, 3), w[: 3 << 20].reshape(-1, 3)), "v", "w")
same("equal_i32", lambda xp, i: i == 5, "i")
same("and_i32", lambda xp, i: i & 255, "i")
same("pad_1", lambda xp, m: xp.pad(m, 1), "m")
same("take_along_axis", lambda xp, m, i: xp.take_along_axis(m, xp.reshape(i & 1023, (SIDE, SIDE)), axis=1), "m", "i")
same("interp", lambda xp, w: xp.interp(w, xp.linspace(0, 1, 1000), xp.linspace(0, 1, 1000) ** 2), "w")
same("median_f64", lambda xp, d: xp.median(d), "d")
same("unique_ints", lambda xp, i: xp.unique(i[: 1 << 20]), "i")
same("unique_counts", lambda xp, i: xp.unique(i[: 1 << 20], return_counts=True)[1], "i")
same("packbits", lambda xp, mask: xp.packbits(mask), "mask")
same("zeros", lambda xp: xp.zeros(N), *())
same("linspace", lambda xp: xp.linspace(0, 1, N), *())
same("copy_transposed", lambda xp, m: m.T.copy() if xp is np else xp.copy(m.T), "m")


@row("one_op_on_16_floats_x1000")
def one_op():
    x, t = np.ones(16, np.float32), ts.ones(16).block_until_ready()
    return lambda: [done(t + 1) for _ in range(1000)][-1], {"NumPy": lambda: [x + 1 for _ in range(1000)][-1]}


@row("convolve_long")
def convolve_long():
    (v,), (tv,) = both("v")
    a, b, ta, tb = v[:4096], v[4096:8192], tv[:4096], tv[4096:8192]
    peers = {"NumPy": lambda: np.convolve(a, b)}
    if scipy:
        peers["SciPy"] = lambda: scipy.signal.fftconvolve(a, b)
    return lambda: ts.convolve(ta, tb), peers


@row("bincount")
def bincount():
    (few,), (t,) = both("few")
    return lambda: ts.bincount(t, length=1000), {"NumPy": lambda: np.bincount(few, minlength=1000)}


def scatter_add(bins, of):
    def make():
        (v, at), (tv, tat) = both("v", of)

        def theirs():
            out = np.zeros(bins, np.float32)
            np.add.at(out, at, v)
            return out

        return lambda: ts.zeros(bins).at[tat].add(tv), {"NumPy": theirs}

    return make


row("scatter_add_1000")(scatter_add(1000, "few"))
row("scatter_add_16M")(scatter_add(N, "places"))


@row("lstsq_200000x64")
def lstsq():
    a, b = values.d()[: 200000 * 64].reshape(200000, 64), values.d()[:200000]
    ta, tb = ts.asarray(a), ts.asarray(b)
    return lambda: solution(ts.linalg.lstsq(ta, tb)), {"NumPy": lambda: solution(np.linalg.lstsq(a, b))}


@row("isin_500")
def isin():
    (i,), (ti,) = both("i")
    few = np.arange(-1000, 1000, 4, dtype=np.int32)
    tfew = ts.asarray(few)
    return lambda: ts.isin(ti, tfew), {"NumPy": lambda: np.isin(i, few)}


@row("expm_512")
def expm():
    a = values.d()[: 512 * 512].reshape(512, 512) / 20
    ta = ts.asarray(a)
    return lambda: ts.linalg.expm(ta), {"SciPy": lambda: scipy.linalg.expm(a)}


@row("norm")
def norm():
    (v,), (tv,) = both("v")
    return lambda: ts.linalg.vector_norm(tv), {"NumPy": lambda: np.linalg.norm(v)}


@row("digitize_50")
def digitize():
    (w,), (tw,) = both("w")
    edges = np.linspace(0, 1, 50, dtype=np.float32)
    te = ts.asarray(edges)
    return lambda: ts.digitize(tw, te), {"NumPy": lambda: np.digitize(w, edges)}


@row("eig_512")
def eig():
    a = values.d()[: 512 * 512].reshape(512, 512)
    ta = ts.asarray(a)
    return lambda: ts.abs(ts.linalg.eig(ta)[0]), {"NumPy": lambda: np.abs(np.linalg.eig(a)[0])}


@row("astype_f32_i32")
def astype():
    (v,), (tv,) = both("v")
    return lambda: ts.astype(tv, ts.int32), {"NumPy": lambda: v.astype(np.int32)}


@row("permutation_1M")
def permutation():
    key, rng = ts.random.key(1), np.random.default_rng(1)
    return lambda: ts.random.permutation(key, 1 << 20), {"NumPy": lambda: rng.permutation(1 << 20)}


@row("randint")
def randint():
    key, rng = ts.random.key(1), np.random.default_rng(1)
    return lambda: ts.random.randint(key, (N,), 0, 1000), {"NumPy": lambda: rng.integers(0, 1000, N, dtype=np.int32)}


RANDOM = ("permutation_1M", "randint")  # their values are their own
UNORDERED = ("eig_512",)


def solution(found):
    """Of lstsq, which may tell residuals and ranks too."""
    return found[0] if isinstance(found, tuple) else found


def done(result):
    return result.block_until_ready() if hasattr(result, "block_until_ready") else result


def check(name, ours, peers):
    mine = np.asarray(ts.copy_to_numpy(done(ours())))
    for peer, call in peers.items():
        theirs = np.asarray(call())
        if mine.shape != theirs.shape:
            raise ValueError(f"shape {mine.shape}, {peer} gives {theirs.shape}")
        if name in RANDOM:
            continue
        if name in UNORDERED:
            mine, theirs = np.sort(mine), np.sort(theirs)
        tolerance = 1e-3 * max(1.0, float(np.max(np.abs(theirs)))) if theirs.dtype.kind in "fc" else 0
        if not np.allclose(mine, theirs, rtol=1e-3, atol=tolerance):
            raise ValueError(f"other values than {peer}'s")


def seconds(call):
    start = time.process_time()
    done(call())
    return time.process_time() - start


def measure(name):
    ours, peers = ROWS[name]()
    check(name, ours, peers)
    samples, end = {key: [] for key in ("ours", *peers)}, time.monotonic() + SECONDS
    while len(samples["ours"]) < 3 or (time.monotonic() < end and len(samples["ours"]) < 200):
        samples["ours"].append(seconds(ours))
        for peer, call in peers.items():
            samples[peer].append(seconds(call))
    peer = min(peers, key=lambda key: min(samples[key]))
    ours_s, peer_s = min(samples["ours"]), min(samples[peer])
    line = {"name": f"numpy_{name}", "ranks": 1, "ours_s": ours_s, "ours": samples["ours"], "peer": peer, "peer_s": peer_s}
    return line | {"peer_samples": samples[peer], "ratio": peer_s / ours_s, "goal": GOAL}


def main():
    for name in sys.argv[1:] or ROWS:
        try:
            line = measure(name)
        except Exception as error:  # the others are measured nevertheless
            line = {"name": f"numpy_{name}", "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
