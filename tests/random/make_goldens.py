#!/usr/bin/env python3
"""Writes golden/*.json: what JAX draws for a table of keys, shapes and parameters. Run it where `import jax` works; the tests only read the files.

One case per line: {"draw": name, "key": [high, low], "shape": [...], "dtype": ..., "args": [number or {"shape", "values"}, ...], "values": [...]}.
Complex values stand as re, im, re, im, ...; a digest stands for arrays too large to list: their xor, their sum modulo 2^64, and samples.
"""
import json
import pathlib

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
r = jax.random
folder = pathlib.Path(__file__).parent / "golden"

SEEDS = [0, 42, -1, (7 << 40) + 12345]
SHAPES = [(), (5,), (3, 7), (2, 3, 4)]


def number(x, dtype):
    if np.issubdtype(dtype, np.bool_):
        return int(x)
    if np.issubdtype(dtype, np.integer):
        return int(x)
    return float(str(x)) if np.isfinite(x) else str(x)  # the shortest text that gives the value back; "inf", "-inf", "nan"


def listed(values):
    values = np.asarray(values)
    if np.iscomplexobj(values):
        values = np.stack([values.real, values.imag], -1)
    return [number(x, values.dtype) for x in values.ravel()]


def argument(x):
    if isinstance(x, np.ndarray):
        return {"shape": list(x.shape), "dtype": str(x.dtype), "values": listed(x)}
    return x


class File:
    def __init__(self, name):
        self.name, self.lines = name, []

    # 32-bit results are drawn as JAX draws them by default, 64-bit ones as with jax_enable_x64.
    def add(self, draw, key, shape, dtype, args, values, x64=False):
        with jax.enable_x64(x64 or np.dtype(dtype).name.endswith(("64", "128")) and np.dtype(dtype) != np.complex64):
            values = values()
        case = {"draw": draw, "key": [int(w) for w in r.key_data(key)], "shape": list(shape), "dtype": np.dtype(dtype).name,
                "args": [argument(a) for a in args], "values": values if isinstance(values, dict) else listed(values)}
        self.lines.append(json.dumps(case, separators=(",", ":")))

    def write(self):
        (folder / (self.name + ".json")).write_text("[\n" + ",\n".join(self.lines) + "\n]\n")


def digest(bits):
    flat = np.asarray(bits).ravel().astype(np.uint64)
    at = [0, 1, flat.size // 3, flat.size // 2, flat.size - 1]
    return {"xor": int(np.bitwise_xor.reduce(flat)), "sum": int(flat.sum(dtype=np.uint64)), "at": at, "samples": [int(flat[i]) for i in at]}


def keys(f):
    for seed in SEEDS + [1, 2**31, 2**32 - 1, -2147483748]:
        key = r.key(np.int64(seed))
        f.add("key", key, (2,), "uint32", [seed], lambda: r.key_data(key))
        for n in (1, 2, 5):
            f.add("split", key, (n, 2), "uint32", [n], lambda: r.key_data(r.split(key, n)))
        for data in (0, 1, 7, 2**31 - 1):
            f.add("fold_in", key, (2,), "uint32", [data], lambda: r.key_data(r.fold_in(key, data)))


def uniform_bits(f):
    for seed in SEEDS:
        key = r.key(np.int64(seed))
        for shape in SHAPES + [(0,), (3, 0, 2)]:
            for dtype in ("uint8", "uint16", "uint32", "uint64"):
                f.add("bits", key, shape, dtype, [], lambda: r.bits(key, shape, dtype))
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        f.add("bits", r.key(3), (1000, 1003), dtype, [], lambda: digest(r.bits(r.key(3), (1000, 1003), dtype)))


def basics(f):
    for seed in SEEDS:
        key = r.key(np.int64(seed))
        for shape in SHAPES if seed in SEEDS[1:3] else SHAPES[1:2]:
            for dtype in ("float32", "float64"):
                f.add("uniform", key, shape, dtype, [0, 1], lambda: r.uniform(key, shape, dtype))
                f.add("uniform", key, shape, dtype, [-3, 5], lambda: r.uniform(key, shape, dtype, -3, 5))
                f.add("uniform", key, shape, dtype, [0.1, 0.7], lambda: r.uniform(key, shape, dtype, 0.1, 0.7))
                f.add("normal", key, shape, dtype, [], lambda: r.normal(key, shape, dtype))
            for dtype in ("complex64", "complex128"):
                f.add("normal", key, shape, dtype, [], lambda: r.normal(key, shape, dtype))
            for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
                for lo, hi in ((0, 100), (-5, 5), (3, 3), (0, 64), (7, 2)):
                    if lo >= 0 or dtype[0] == "i":
                        f.add("randint", key, shape, dtype, [lo, hi], lambda: r.randint(key, shape, np.int64(lo), np.int64(hi), dtype), x64=True)
            f.add("randint", key, shape, "uint8", [0, 256], lambda: r.randint(key, shape, 0, 256, "uint8"), x64=True)
            f.add("randint", key, shape, "int8", [-1000, 1000], lambda: r.randint(key, shape, -1000, 1000, "int8"), x64=True)
            f.add("randint", key, shape, "uint32", [0, 2**32], lambda: r.randint(key, shape, 0, np.int64(2**32), "uint32"), x64=True)
            f.add("randint", key, shape, "int32", [-(2**31), 2**31], lambda: r.randint(key, shape, np.int64(-(2**31)), np.int64(2**31), "int32"), x64=True)
            f.add("randint", key, shape, "int32", [-(2**31), 2**31 - 1], lambda: r.randint(key, shape, np.int64(-(2**31)), np.int64(2**31 - 1), "int32"), x64=True)
            f.add("randint", key, shape, "int64", [0, 10**12], lambda: r.randint(key, shape, np.int64(0), np.int64(10**12), "int64"), x64=True)
            for p in (0.0, 0.3, 0.5, 1.0):
                f.add("bernoulli", key, shape, "bool", [p], lambda: r.bernoulli(key, np.float32(p), shape))
            f.add("bernoulli_high", key, shape, "bool", [0.3], lambda: r.bernoulli(key, np.float32(0.3), shape, mode="high"))
            f.add("rademacher", key, shape, "int32", [], lambda: r.rademacher(key, shape, "int32"))
    key, p = r.key(5), np.linspace(0, 1, 7, dtype=np.float64)
    f.add("bernoulli", key, (3, 7), "bool", [p], lambda: r.bernoulli(key, p, (3, 7)), x64=True)


def continuous(f):
    for seed in SEEDS[1:3]:
        key = r.key(np.int64(seed))
        for shape in ((), (5, 7)):
            for dtype in ("float32", "float64"):
                for name in ("exponential", "gumbel", "laplace", "logistic", "cauchy", "maxwell"):
                    f.add(name, key, shape, dtype, [], lambda: getattr(r, name)(key, shape, dtype))
                for lo, hi in ((-1, 2), (1.5, 1.75), (-3, -1.5)):
                    f.add("truncated_normal", key, shape, dtype, [lo, hi], lambda: r.truncated_normal(key, lo, hi, shape, dtype))
                f.add("pareto", key, shape, dtype, [2.5], lambda: r.pareto(key, 2.5, shape, dtype))
                f.add("weibull_min", key, shape, dtype, [1.5, 0.7], lambda: r.weibull_min(key, 1.5, 0.7, shape, dtype))
                f.add("rayleigh", key, shape, dtype, [1.25], lambda: r.rayleigh(key, 1.25, shape, dtype))
                f.add("lognormal", key, shape, dtype, [0.5], lambda: r.lognormal(key, 0.5, shape, dtype))
                f.add("triangular", key, shape, dtype, [-1, 0.5, 3], lambda: r.triangular(key, -1.0, 0.5, 3.0, shape, dtype))
                f.add("wald", key, shape, dtype, [1.5], lambda: r.wald(key, 1.5, shape, dtype))
                f.add("double_sided_maxwell", key, shape, dtype, [0.5, 2], lambda: r.double_sided_maxwell(key, 0.5, 2.0, shape, dtype))
            f.add("geometric", key, shape, "int32", [0.2], lambda: r.geometric(key, np.float32(0.2), shape, "int32"))
    for dtype in ("float32", "float64"):
        b, key = np.array([0.5, 1, 2, 4, 8], dtype), r.key(9)
        f.add("pareto", key, (3, 5), dtype, [b], lambda: r.pareto(key, b, (3, 5), dtype))
        f.add("truncated_normal", key, (3, 5), dtype, [-b, b], lambda: r.truncated_normal(key, -b, b, (3, 5), dtype))
        f.add("uniform", key, (3, 5), dtype, [-b, b], lambda: r.uniform(key, (3, 5), dtype, -b, b))
        low, high = (np.array([[-0.3], [0.1], [-7]]) * b).astype(dtype), (b * 1.7).astype(dtype)  # spans that are no powers of two
        f.add("uniform", key, (3, 5), dtype, [low, high], lambda: r.uniform(key, (3, 5), dtype, low, high))


def rejection(f):
    alpha32 = np.array([0.01, 0.3, 0.9, 1, 2.5, 10, 1000], np.float32)
    for seed in SEEDS[1:3]:
        key = r.key(np.int64(seed))
        for dtype in ("float32", "float64"):
            alpha = alpha32.astype(dtype)
            for a in (0.25, 1, 7.5):
                f.add("gamma", key, (3, 7), dtype, [a], lambda: r.gamma(key, a, (3, 7), dtype))
            f.add("gamma", key, (5, 7), dtype, [alpha], lambda: r.gamma(key, alpha, (5, 7), dtype))
            f.add("loggamma", key, (5, 7), dtype, [alpha], lambda: r.loggamma(key, alpha, (5, 7), dtype))
            f.add("beta", key, (5, 7), dtype, [alpha, 1.5], lambda: r.beta(key, alpha, 1.5, (5, 7), dtype))
            f.add("dirichlet", key, (4, 7), dtype, [alpha], lambda: r.dirichlet(key, alpha, (4,), dtype))
            f.add("t", key, (5, 7), dtype, [alpha], lambda: r.t(key, alpha, (5, 7), dtype))
            f.add("chisquare", key, (5, 7), dtype, [alpha], lambda: r.chisquare(key, alpha, (5, 7), dtype))
            dfnum, dfden = np.broadcast_to(alpha, (2, 7)).copy(), np.full((2, 7), 3, dtype)
            f.add("f", key, (2, 7), dtype, [dfnum, dfden], lambda: r.f(key, dfnum, dfden, (2, 7), dtype))
            f.add("generalized_normal", key, (3, 7), dtype, [1.5], lambda: r.generalized_normal(key, 1.5, (3, 7), dtype))
            f.add("ball", key, (5, 3), dtype, [3, 2], lambda: r.ball(key, 3, 2, (5,), dtype))
            n, p = np.array([1, 5, 20, 100, 1000], dtype), np.array([[0.01], [0.3], [0.5], [0.95]], dtype)
            f.add("binomial", key, (4, 5), dtype, [n, p], lambda: r.binomial(key, n, p, (4, 5), dtype))
        for lam in (0.0, 0.5, 3.0, 9.99, 10.0, 25.0, 200.0):
            f.add("poisson", key, (6, 7), "int32", [lam], lambda: r.poisson(key, np.float32(lam), (6, 7), "int32"))
        lam = np.array([0, 0.1, 1, 5, 12, 30, 100], np.float32)
        f.add("poisson", key, (6, 7), "int32", [lam], lambda: r.poisson(key, lam, (6, 7), "int32"))


def picking(f):
    for seed in SEEDS[1:3]:
        key = r.key(np.int64(seed))
        for n in (0, 1, 2, 10, 257, 2000):
            f.add("permutation", key, (n,), "int32", [n], lambda: np.asarray(r.permutation(key, n)))
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        for axis in (0, 1):
            f.add("permutation_array", key, (4, 6), "float32", [x, axis, 0], lambda: r.permutation(key, x, axis))
            f.add("permutation_array", key, (4, 6), "float32", [x, axis, 1], lambda: r.permutation(key, x, axis, independent=True))
        f.add("choice", key, (3, 4), "int32", [10, 1], lambda: r.choice(key, 10, (3, 4)))
        f.add("choice", key, (6,), "int32", [10, 0], lambda: r.choice(key, 10, (6,), replace=False))
        values = np.linspace(0, 1, 9, dtype=np.float32) ** 2
        f.add("choice", key, (7,), "float32", [values, 1], lambda: r.choice(key, values, (7,)))
        f.add("choice", key, (7,), "float32", [values, 0], lambda: r.choice(key, values, (7,), replace=False))
        p = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9], np.float32) / 45
        f.add("choice", key, (2, 5), "float32", [values, 1, p], lambda: r.choice(key, values, (2, 5), p=p))
        f.add("choice", key, (5,), "float32", [values, 0, p], lambda: r.choice(key, values, (5,), replace=False, p=p))
        f.add("choice", key, (3, 6), "float32", [x, 1], lambda: r.choice(key, x, (3,)))
        logits = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], np.float32))
        f.add("categorical", key, (2,), "int32", [logits, -1, 1], lambda: r.categorical(key, logits))
        f.add("categorical", key, (3,), "int32", [logits, 0, 1], lambda: r.categorical(key, logits, axis=0))
        f.add("categorical", key, (4, 2), "int32", [logits, -1, 1], lambda: r.categorical(key, logits, shape=(4, 2)))
        f.add("categorical", key, (2, 2), "int32", [logits, -1, 0], lambda: r.categorical(key, logits, shape=(2, 2), replace=False))
        n, p = np.float32(20), np.array([0.1, 0.2, 0.3, 0.4], np.float32)
        f.add("multinomial", key, (4,), "float32", [20, p], lambda: r.multinomial(key, n, p, dtype=np.float32))


def matrices(f):
    for seed in SEEDS[:2]:
        key = r.key(np.int64(seed))
        for dtype in ("float32", "float64"):
            mean, cov = np.array([1, -2, 0.5], dtype), np.array([[4, 1, 0.5], [1, 3, -0.25], [0.5, -0.25, 1]], dtype)
            f.add("multivariate_normal", key, (5, 3), dtype, [mean, cov], lambda: r.multivariate_normal(key, mean, cov, (5,), dtype))
            f.add("orthogonal", key, (5, 5), dtype, [5, 5], lambda: r.orthogonal(key, 5, (), dtype))
            f.add("orthogonal", key, (2, 4, 3), dtype, [4, 3], lambda: r.orthogonal(key, 4, (2,), dtype, m=3))
            f.add("orthogonal", key, (3, 4), dtype, [3, 4], lambda: r.orthogonal(key, 3, (), dtype, m=4))


folder.mkdir(exist_ok=True)
for partitionable in (True, False):
    jax.config.update("jax_threefry_partitionable", partitionable)
    for make in (keys, uniform_bits, basics, continuous, rejection, picking, matrices):
        file = File(make.__name__ + ("" if partitionable else ".original"))
        make(file)
        file.write()
