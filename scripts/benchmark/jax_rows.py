"""The benchmark's rows in JAX: {row: a function that does it once}, made when they are asked for. Runs in a process of its own.

The same values lie over the same devices by the same specs; JAX's arrays are committed by device_put, its functions jitted. Names are those of apps/bench.
"""
import functools
import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_enable_x64", True)

SIZES, BATCH, DRAWS = [784, 2048, 2048, 2048, 10], 2048, 64 << 20
CALLS = 1000
SECONDS = 4  # of a row's repetitions, but two

RANKS = len(jax.devices())
mesh = Mesh(jax.devices(), ("x",))
whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))


def put(x, spec=P("x")):
    return jax.device_put(x, NamedSharding(mesh, spec))


def full(shape, value, dtype=jnp.float32, spec=P("x")):
    return jax.jit(lambda: jnp.full(shape, value, dtype), out_shardings=NamedSharding(mesh, spec))()


ROWS = {}


def row(name, only=None):
    """Adds make() -> a function as the row; only: on so many devices, a test of their number."""

    def add(make):
        if only is None or only(RANKS):
            ROWS[name] = make
        return make

    return add


def alone(n):
    return n == 1


def several(n):
    return n > 1


def keys(n):
    return jax.random.split(jax.random.key(0), n)


@row("gradient_784x2048x3x10")
def training():
    k = keys(len(SIZES) + 1)
    network = [(jax.random.normal(key, (m, n), jnp.float32) * jnp.float32((2 / m) ** 0.5), jnp.zeros(n, jnp.float32)) for key, m, n in zip(k, SIZES, SIZES[1:])]
    network = jax.device_put(network, whole)
    x, y = (put(jax.random.normal(key, (BATCH, n), jnp.float32)) for key, n in ((k[-2], SIZES[0]), (k[-1], SIZES[-1])))

    def loss(network, x, y):
        for w, b in network[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = network[-1]
        return jnp.mean(jnp.sum((x @ w + b - y) ** 2, axis=1))

    gradient = jax.jit(jax.value_and_grad(loss))
    return lambda: gradient(network, x, y)


def product(n):
    a, b = full((n, n), 1.25), full((n, n), 0.75)
    f = jax.jit(jnp.matmul)
    return lambda: f(a, b)


for size in (512, 2048):
    row(f"matmul_local_f32_{size}", alone)(functools.partial(product, size))
row("matmul_rows_f32_2048", several)(functools.partial(product, 2048))


def grid():
    first = max(d for d in range(1, int(RANKS**0.5) + 1) if RANKS % d == 0)
    return Mesh(np.array(jax.devices()).reshape(first, RANKS // first), ("x", "y"))


LAYOUTS = {"row": P(("x", "y"), None), "column": P(None, ("x", "y")), "block": P("x", "y"), "replicated": P()}


def laid_out_product(n, of_a, of_b):
    a, b = (jax.device_put(jnp.full((n, n), v), NamedSharding(grid(), LAYOUTS[of])) for v, of in ((0.5, of_a), (0.25, of_b)))
    f = jax.jit(jnp.matmul)
    return lambda: f(a, b)


for size in (2048, 4096):
    for of_a in LAYOUTS:
        for of_b in LAYOUTS:
            row(f"product_f64_{size}_{of_a}_{of_b}", several)(functools.partial(laid_out_product, size, of_a, of_b))


@row("product_batch_f32_8x4096")
def batched_product():
    a, b = full((8, 4096, 4096), 0.5), full((8, 4096, 4096), 0.25)
    f = jax.jit(jnp.matmul)
    return lambda: f(a, b)


def draw(make):
    f = jax.jit(lambda key: make(key), out_shardings=rows)
    return lambda: f(keys(1)[0])


for name, make in [
    ("random_bits_u32_64Mi", lambda key: jax.random.bits(key, (DRAWS,), jnp.uint32)),
    ("random_uniform_f32_64Mi", lambda key: jax.random.uniform(key, (DRAWS,), jnp.float32)),
    ("random_normal_f32_64Mi", lambda key: jax.random.normal(key, (DRAWS,), jnp.float32)),
]:
    row(name)(functools.partial(draw, make))


def applied(f, make_x, times=1):
    f, x = jax.jit(f), make_x()

    def call():
        for _ in range(times):
            y = f(x)
        return y

    return call


def chain_of_8(x):
    return jnp.abs((((x + 1) * 0.5 - 2) * x + 3) * 0.25 - x)


def chain_of_16(x):
    a = ((x + 1) * 0.5 - 2) * x
    b = jnp.abs(a + 3) * 0.25 - x
    c = jnp.minimum(jnp.maximum(b, -1) * 1.5, 2) + a
    return (c * x - b) * 0.125 + 7


def counting(scale):
    return put(jnp.arange(8192 * 8192, dtype=jnp.float32).reshape(8192, 8192) * jnp.float32(scale))


row("chain_of_8_f32_64Mi")(functools.partial(applied, chain_of_8, lambda: full((64 << 20,), 1)))
row("chain_of_16_f32_16Mi", alone)(functools.partial(applied, chain_of_16, lambda: full((16 << 20,), 0.75)))
row("chain_of_16_f32_256Ki", alone)(functools.partial(applied, chain_of_16, lambda: full((256 << 10,), 0.75), 64))
row("sin_f32_8192x8192", several)(functools.partial(applied, jnp.sin, lambda: counting(1e-4)))
row("tanh_exp_chain_f32_8192x8192")(functools.partial(applied, lambda x: jnp.tanh(2 * x + 1) * x - jnp.exp(-x * x) + jnp.abs(x) / 2, lambda: counting(1e-7)))
row("one_op_on_4_floats_x1000", alone)(functools.partial(applied, lambda x: x + 1, lambda: full((4,), 1), CALLS))
row("first_eval_f32_300MB")(functools.partial(applied, lambda x: x * 2 + 1, lambda: full((75000000,), 1)))


MANY = 16 << 20


def random_floats(*shape):
    return jax.jit(lambda: jax.random.uniform(jax.random.key(1), shape, jnp.float32), out_shardings=rows)()


def sweep(u):
    return u + jnp.float32(0.2) * (jnp.roll(u, -1, 0) + jnp.roll(u, 1, 0) + jnp.roll(u, -1, 1) + jnp.roll(u, 1, 1) - 4 * u)


def convolved(x):
    return jnp.convolve(x, jax.random.uniform(jax.random.key(1), (15,), jnp.float32), "same")


for name, f in [
    ("cumsum", jnp.cumsum),
    ("roll_by_1", lambda x: jnp.roll(x, 1, 0)),
    ("convolve", convolved),
    ("argsort", jnp.argsort),
    ("sort", jnp.sort),
    ("histogram", lambda x: jnp.histogram(x, 256, (0, 1))[0]),
    ("any", lambda x: jnp.any(x > 2)),
    ("all", lambda x: jnp.all(x < 2)),
]:
    row(f"{name}_f32_16Mi")(functools.partial(applied, f, functools.partial(random_floats, MANY)))
row("stencil_f32_4096x4096")(functools.partial(applied, sweep, functools.partial(random_floats, 4096, 4096)))


def calls(f, *operands):
    f = jax.jit(f)

    def call():
        for _ in range(CALLS):
            y = f(*operands)
            jax.block_until_ready(y)

    return call


@row("jit_call_of_10_ops_x1000", lambda n: n <= 4)  # (4, 4) by rows: JAX wants dims that divide
def dispatch():
    def ten_ops(x, w):
        t = jnp.tanh(x @ w + 1) * 0.5
        return (jnp.abs(t - jnp.sum(t, 0)) + x * w).T

    return calls(ten_ops, full((4, 4), 0.5), full((4, 4), 0.25, spec=P()))


@row("jit_call_of_10_local_ops_x1000")
def local_dispatch():
    def ten_ops(x, w):
        h = x @ w + 1
        return (jnp.abs(jnp.tanh(h) * 0.5 - h) + x * 3) @ w * 2 + h

    return calls(ten_ops, full((4 * RANKS, 4), 0.5), full((4, 4), 0.25, spec=P()))


@row("fori_10000_steps")
def loop():
    return applied(lambda x: jax.lax.fori_loop(0, 10000, lambda _, v: v * jnp.float32(0.999) + jnp.float32(0.001) * jnp.sum(v), x), lambda: full((1 << 14,), 1))


@row("reshard_f64_8192x8192", several)
def reshard():
    x = full((8192, 8192), 1, jnp.float64)
    f = jax.jit(lambda x: x, out_shardings=NamedSharding(mesh, P(None, "x")))
    return lambda: f(x)


@row("einsum_bqhd_bkhd_f32_16x512x8x64")
def attention():
    q, k = full((16, 512, 8, 64), 0.5), full((16, 512, 8, 64), 0.25)
    f = jax.jit(lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return lambda: f(q, k)


@row("einsum_ij_jk_kl_f32_2048_64_2048")
def product_of_three():
    a, b, c = full((2048, 2048), 0.5), full((2048, 64), 0.25, spec=P()), full((64, 2048), 0.125, spec=P())
    f = jax.jit(lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c))
    return lambda: f(a, b, c)


def transform(f, shape, dtype):
    return applied(f, lambda: full(shape, 0.5, dtype))


def add_cube(n, dtype, f):
    name = f"fft_{n}^3_{jnp.dtype(dtype).name}"
    make = functools.partial(transform, f, (n, n, n), dtype)
    row(name, alone)(make)
    row(f"{name}_natural", several)(make)


add_cube(256, jnp.complex128, jnp.fft.fftn)
add_cube(128, jnp.complex64, jnp.fft.fftn)
add_cube(128, jnp.float32, jnp.fft.rfftn)
row("fft_1d_2^24_complex128", several)(functools.partial(transform, jnp.fft.fft, (1 << 24,), jnp.complex128))
row("fft_batch_256x256^2_complex128", several)(functools.partial(transform, jnp.fft.fft2, (256, 256, 256), jnp.complex128))


def noise(n, seed=1):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (n, n))


def solve(n):
    a, b = put(noise(n)), full((n,), 1, jnp.float64)
    f = jax.jit(jnp.linalg.solve)
    return lambda: f(a, b)


def cholesky(n):
    x = noise(n)
    return applied(jnp.linalg.cholesky, lambda: put(x + x.T + n * np.eye(n)))


def qr(n):
    return applied(jnp.linalg.qr, lambda: put(noise(n)))


for size in (2048, 4096):
    row(f"linalg_solve_f64_{size}")(functools.partial(solve, size))
    row(f"linalg_cholesky_f64_{size}")(functools.partial(cholesky, size))
row("linalg_qr_f64_2048")(functools.partial(qr, 2048))


@row("linalg_solve_f64_10000x16x16")
def many_systems():
    bits = np.random.default_rng(1)
    a, b = put(bits.normal(size=(10000, 16, 16))), put(bits.normal(size=(10000, 16, 1)))
    f = jax.jit(jnp.linalg.solve)
    return lambda: f(a, b)


def collective(f, out, bytes_of_all):
    """As the benchmark's: a rank gives or has bytes_of_all; as many calls as make 16 MiB, 500 at most."""
    block = max(bytes_of_all // RANKS, 8) // 4
    x = full((RANKS * block * RANKS,), 1)
    g = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=out))
    times = min(max((16 << 20) // bytes_of_all, 1), 500)

    def call():
        for _ in range(times):
            jax.block_until_ready(g(x))

    return call


def ring(x):
    return jax.lax.ppermute(x, "x", [(i, (i + 1) % RANKS) for i in range(RANKS)])


COLLECTIVES = {
    "all_reduce": (lambda x: jax.lax.psum(x, "x"), P()),
    "reduce_scatter": (lambda x: jax.lax.psum_scatter(x, "x", tiled=True), P("x")),
    "all_to_all": (lambda x: jax.lax.all_to_all(x, "x", 0, 0, tiled=True), P("x")),
    "permute": (ring, P("x")),
}
for kind, (f, out) in COLLECTIVES.items():
    for size, text in [(8, "8B"), (4 << 10, "4KiB"), (64 << 10, "64KiB"), (1 << 20, "1MiB"), (16 << 20, "16MiB"), (64 << 20, "64MiB")]:
        row(f"{kind}_{text}", several)(functools.partial(collective, f, out, size))


def measure(name):
    """Seconds, one per repetition after the first, which compiles."""
    call = ROWS[name]()
    samples, start = [], time.perf_counter()
    for repetition in range(8):
        before = time.perf_counter()
        jax.block_until_ready(call())
        if repetition > 0:
            samples.append(time.perf_counter() - before)
        if len(samples) >= 2 and time.perf_counter() - start > SECONDS:
            break
    return samples


def main(names):
    """First which of the names are rows here, then a line per row as it is measured: whoever ends this early keeps the others."""
    names = [name for name in names or ROWS if name in ROWS]
    print(json.dumps({"rows": names}), flush=True)
    for name in names:
        try:
            samples = measure(name)
            print(json.dumps({"row": name, "seconds": statistics.median(samples), "samples": samples}), flush=True)
        except Exception as error:  # a row that JAX cannot do here
            print(json.dumps({"row": name, "error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
