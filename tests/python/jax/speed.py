"""Twenty programs of JAX, by JAX with its threads and by tj.jit on the ranks of this job, in turns: speed.py [--rounds 7] [--seconds 0] [--json FILE] [name ...].

The first rank runs JAX, while the others sleep, and its threads are idle before the ranks' turn. Medians of the rounds; the ratio is the median
of the rounds' own ratios, so that a load from outside falls on both. Minima are over all rounds: on a loaded machine they are closest to the
times of an idle one, if a program has rounds enough (--seconds: more rounds than --rounds until that much time has passed). CPU seconds are the medians of those of all threads (JAX), and of all
ranks (tessera; what waits for messages polls, and is counted).
"""
import argparse
import contextlib
import ctypes
import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import tessera as ts
import tessera.jax as tj
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("x",))
rng = np.random.RandomState(0)
programs = {}


def f32(*shape):
    return rng.standard_normal(shape).astype("f")


def program(*arguments, specs=None):
    """Arguments are split by rows unless specs says otherwise: "r" rows, "-" replicated."""
    def keep(function):
        programs[function.__name__] = (function, arguments, specs or "r" * len(arguments))
        return function
    return keep


def positive(n):
    m = f32(n, n)
    return m @ m.T / n + np.eye(n, dtype="f")


_layers = [f32(784, 1024) * 0.03, f32(1024, 1024) * 0.03, f32(1024, 10) * 0.03]


@program(_layers, f32(2048, 784), np.arange(2048) % 10, specs="-rr")
def mlp_step(weights, x, y):
    def loss(ws):
        v = x
        for w in ws[:-1]:
            v = jax.nn.relu(v @ w)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(v @ ws[-1]), y[:, None], 1))
    value, gradient = jax.value_and_grad(loss)(weights)
    return value, [w - 0.1 * g for w, g in zip(weights, gradient)]


def _attention(q, k, v):
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8), v)


@program(f32(4, 256, 8, 64), f32(4, 256, 8, 64), f32(4, 256, 8, 64))
def attention(q, k, v):
    return _attention(q, k, v)


@program(f32(4, 256, 8, 64), f32(4, 256, 8, 64), f32(4, 256, 8, 64))
def attention_gradient(q, k, v):
    return jax.grad(lambda *t: jnp.sum(_attention(*t) ** 2), (0, 1, 2))(q, k, v)


@program(f32(1024, 1024))
def fft_poisson(f):
    k = jnp.fft.fftfreq(1024) * 1024
    k2 = k[:, None] ** 2 + k[None] ** 2
    return jnp.fft.ifft2(jnp.fft.fft2(f) / jnp.where(k2 == 0, 1.0, -k2)).real


@program(f32(64, 256, 64), f32(64, 128) * 0.1, f32(128, 128) * 0.1, specs="r--")
def recurrent_gradient(x, w, u):
    def last(w, u):
        return jnp.sum(lax.scan(lambda h, t: (jnp.tanh(t @ w + h @ u), None), jnp.zeros((x.shape[0], 128)), jnp.swapaxes(x, 0, 1))[0] ** 2)
    return jax.grad(last, (0, 1))(w, u)


@program(positive(1024))
def cholesky(m):
    return jnp.linalg.cholesky(m)


@program(positive(512))
def logdet_gradient(m):
    return jax.grad(lambda x: jnp.linalg.slogdet(x)[1])(m)


@program(f32(1024, 1024) + 30 * np.eye(1024, dtype="f"), f32(1024, 16))
def solve(m, b):
    return jnp.linalg.solve(m, b)


@program(f32(384, 384))
def svd(m):
    return jnp.linalg.svd(m)[1]


@program(f32(8192, 128))
def qr(m):
    return jnp.linalg.qr(m)


@program(positive(384))
def eigh(m):
    return jnp.linalg.eigh(m)[0]


@program(f32(16, 32, 64, 64), f32(32, 32, 3, 3) * 0.1, specs="r-")
def convolution_gradient(x, w):
    return jax.grad(lambda v: jnp.sum(jax.nn.relu(lax.conv(x, v, (1, 1), "SAME")) ** 2))(w)


@program(f32(4 * 1024 * 1024))
def sort(x):
    return jnp.sort(x)


@program(f32(4096, 1024))
def top_k(x):
    return lax.top_k(x, 16)


@program(f32(1 << 18, 16), rng.randint(0, 4096, 1 << 18))
def segment_sums(x, where):
    return jax.ops.segment_sum(x, where, num_segments=4096)[where]


@program(f32(1 << 20))
def ode(y):
    """Twenty steps of Heun's rule."""
    slope = lambda u: -u * jnp.sin(u)  # noqa: E731

    def step(u, _):
        first = slope(u)
        return u + 0.05 * (first + slope(u + 0.1 * first)), None
    return lax.scan(step, y, None, length=20)[0]


@program(positive(2048), f32(2048))
def conjugate_gradients(m, b):
    return jax.scipy.sparse.linalg.cg(m, b, maxiter=40)[0]


@program(f32(256, 24))
def hessians(x):
    return jax.vmap(jax.hessian(lambda v: jnp.sum(jnp.tanh(jnp.outer(v, v))) + jnp.sum(v ** 4)))(x)


@program(f32(2048, 2048))
def heat_steps(u):
    return lax.fori_loop(0, 10, lambda _, v: v + 0.1 * (jnp.roll(v, 1, 0) + jnp.roll(v, -1, 0) + jnp.roll(v, 1, 1) + jnp.roll(v, -1, 1) - 4 * v), u)


@program(np.abs(f32(1 << 21)) + 0.5, np.abs(f32(1 << 21)) + 0.5)
def options_and_greeks(s, k):
    """Black and Scholes, with the gradient."""
    def price(s):
        d1 = (jnp.log(s / k) + 0.06) / 0.2
        return s * jax.scipy.stats.norm.cdf(d1) - k * 0.95 * jax.scipy.stats.norm.cdf(d1 - 0.2)
    return price(s), jax.grad(lambda v: jnp.sum(price(v)))(s)


def set_blas_threads(count):
    """Of SciPy's own OpenBLAS, which JAX's factorizations call: one for tessera's turn, all for JAX's."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "openblas" in line}
    for path in paths:
        for name in ("scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_", "openblas_set_num_threads"):
            function = getattr(ctypes.CDLL(path), name, None)
            if function is not None and "scipy" in path:
                function(count)


_turns = [0, os.path.join(tempfile.gettempdir(), f"tessera_speed_{os.getppid()}")]


def alone(work):
    """The first rank's turn: the others sleep until it is over, which a file says."""
    path = f"{_turns[1]}_{_turns[0]}"
    _turns[0] += 1
    ts.multihost.sync_global_devices(path)
    if not ts.is_main_process():
        while not os.path.exists(path):
            time.sleep(0.002)
        return None
    with contextlib.suppress(FileNotFoundError):  # all have seen it, or they would not be here
        os.unlink(f"{_turns[1]}_{_turns[0] - 2}")
    try:
        return work()
    finally:
        until_idle()
        with open(path, "w"):
            pass


def until_idle(limit_s=2.0):
    """Until no thread of this process computes: OpenBLAS's poll for up to 90 ms after their last call, on a core that the next turn needs."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        used = time.process_time()
        time.sleep(0.01)
        if time.process_time() - used < 0.001:
            return


def timed(call, arguments, wait):
    """(seconds, CPU seconds of this process) of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    wait(call(*arguments))
    return time.perf_counter() - wall, time.process_time() - cpu


def wait_ours(tree):
    ts.block_until_ready(tree)


def place(x, spec):
    return jax.tree_util.tree_map(lambda v: tj.device_put(v, NamedSharding(mesh, P("x") if spec == "r" else P())), x)


def enough(results, rounds, until):
    """Whether there are rounds enough: the first rank's answer, on all ranks."""
    is_over = len(results) >= rounds and time.monotonic() >= until
    return bool(ts.multihost.broadcast_one_to_all(np.array(is_over)))


def compare(name, rounds, seconds):
    """The rounds' ((JAX's seconds, CPU), (tessera's seconds, CPU of all ranks)), and both first calls."""
    function, arguments, specs = programs[name]
    theirs = jax.jit(function)
    there = alone(lambda: [jax.tree_util.tree_map(jnp.asarray, x) for x in arguments])
    here = [place(x, s) for x, s in zip(arguments, specs)]
    ours = tj.jit(function)
    wait_ours(here)
    first = alone(lambda: timed(theirs, there, jax.block_until_ready)), timed(ours, here, wait_ours)
    results = []
    until = time.monotonic() + seconds
    while not enough(results, rounds, until):
        jax_s = alone(lambda: threaded(theirs, there))
        ts.multihost.sync_global_devices("ours")
        results.append((jax_s, timed(ours, here, wait_ours)))
    cpu = np.asarray(ts.multihost.process_allgather(np.array([ours_s[1] for _, ours_s in results]))).sum(0)
    return first, [(jax_s, (ours_s[0], all_s)) for (jax_s, ours_s), all_s in zip(results, cpu)]


def measured(rounds):
    """Medians and minima of a program's rounds."""
    middle = lambda pick: statistics.median(map(pick, rounds))  # noqa: E731
    least = lambda side: min(r[side][0] for r in rounds)  # noqa: E731
    return {"jax_s": middle(lambda r: r[0][0]), "ranks_s": middle(lambda r: r[1][0]), "ratio": middle(lambda r: r[0][0] / r[1][0]),
            "jax_least_s": least(0), "ranks_least_s": least(1), "least_ratio": least(0) / least(1), "rounds": len(rounds),
            "jax_cpu_s": middle(lambda r: r[0][1]), "ranks_cpu_s": middle(lambda r: r[1][1]), "cpu_ratio": middle(lambda r: r[0][1] / r[1][1])}


def threaded(call, arguments):
    set_blas_threads(os.cpu_count())
    try:
        return timed(call, arguments, jax.block_until_ready)
    finally:
        set_blas_threads(1)


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0, help="more rounds, for this long per program")
    parser.add_argument("--json", default="")
    options = parser.parse_args(arguments)
    say = print if ts.is_main_process() else (lambda *_, **__: None)
    say(f"{'program':22} {'median ms: JAX':>14} {'ranks':>8} {'ratio':>6} {'least ms: JAX':>14} {'ranks':>8} {'ratio':>6} {'CPU ms: JAX':>12} {'ranks':>8} {'ratio':>6} {'first s: JAX':>13} {'ranks':>6}")
    rows = {}
    for name in options.names or programs:
        first, rounds = compare(name, options.rounds, options.seconds)
        if not ts.is_main_process():
            continue
        row = rows[name] = {**measured(rounds), "first_jax_s": first[0][0], "first_ranks_s": first[1][0]}
        say(f"{name:22} {row['jax_s'] * 1e3:14.2f} {row['ranks_s'] * 1e3:8.2f} {row['ratio']:6.2f} {row['jax_least_s'] * 1e3:14.2f} {row['ranks_least_s'] * 1e3:8.2f} {row['least_ratio']:6.2f}"
            f" {row['jax_cpu_s'] * 1e3:12.1f} {row['ranks_cpu_s'] * 1e3:8.1f} {row['cpu_ratio']:6.2f} {row['first_jax_s']:13.2f} {row['first_ranks_s']:6.2f}", flush=True)
    faster, least, cpu = (sum(row[key] > 1 for row in rows.values()) for key in ("ratio", "least_ratio", "cpu_ratio"))
    say(f"of {len(rows)} programs faster: {faster} by medians, {least} by minima, {cpu} by CPU time; {ts.process_count()} ranks, {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}; JAX {jax.__version__}")
    if options.json and ts.is_main_process():
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
