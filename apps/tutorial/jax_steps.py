"""jax_steps.py NAME SIZE...: the steps of a tutorial in JAX with eight devices of the CPU, for scripts/compare_jax.

Prints a line "step kind JSON" per fact, as a tutorial's --facts does: values, layouts (who has which part), collectives, milliseconds.
What JAX cannot do any more or cannot do at all has no line.
"""
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_cpu_enable_async_dispatch", False)  # or collectives of eight devices wait for each other for ever on two cores
now = ""


def step(number):
    global now
    now = number


def record(kind, value):
    print(now, kind, json.dumps(value), flush=True)


def values(x):
    record("values", np.asarray(x, dtype=np.float64).ravel().tolist())


def layout(x):
    boxes = x.sharding.devices_indices_map(x.shape)
    ranges = lambda index: [[s.indices(n)[0], s.indices(n)[1]] for s, n in zip(index, x.shape)]
    record("layout", {str(device.id): ranges(index) for device, index in boxes.items()})


def ms(f):
    best, total = float("inf"), 0.0
    for i in range(6):
        if i >= 2 and total >= 2000:
            break
        start = time.perf_counter()
        jax.block_until_ready(f())
        passed = (time.perf_counter() - start) * 1e3
        best, total = (min(best, passed) if i else best), total + passed
    record("ms", best)


def gathers(f, *x):
    record("collective", "all-gather" in jax.jit(f).lower(*x).compile().as_text())


def make_mesh(sizes, names):
    return jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(sizes))


def put(x, mesh, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def attempt(f):
    """Runs what this version may refuse."""
    try:
        return f()
    except Exception as error:
        print(f"step {now}: {type(error).__name__}: {str(error).splitlines()[0][:160]}", file=sys.stderr)


# ---- parallel_evaluation ----
def convolve(x, w):
    return jnp.stack([x[i - 1 : i + 2] @ w for i in range(1, x.shape[0] - 1)])


def parallel_evaluation():
    w, xs = jnp.array([2.0, 3.0, 4.0]), jnp.arange(40).reshape(8, 5)
    ws = jnp.stack([w] * 8)
    for number, make in [("2", lambda: convolve(jnp.arange(5), w)), ("3", lambda: xs), ("4", lambda: ws), ("5", lambda: jax.vmap(convolve)(xs, ws))]:
        step(number), values(make())
    y = jax.pmap(convolve)(xs, ws)
    step("6"), values(y), layout(y)
    step("7"), values(jax.pmap(convolve)(xs, y))
    step("8"), values(jax.pmap(convolve, in_axes=(0, None))(xs, w))

    def normalized(x, w):
        out = convolve(x, w)
        return out / lax.psum(out, "p")

    step("9"), values(jax.pmap(normalized, axis_name="p")(xs, ws))
    step("10"), values(jax.vmap(normalized, axis_name="p")(xs, ws))
    nested(), regression()


def nested():
    parts = lambda v: (v / lax.psum(v, "i"), v / lax.psum(v, "j"))

    def sums(pair):
        values(pair[0].sum(0)), values(pair[1].sum(1))

    x = jnp.arange(24.0).reshape(8, 3) + 1
    step("12"), attempt(lambda: sums(jax.vmap(jax.pmap(parts, axis_name="i"), in_axes=1, out_axes=1, axis_name="j")(x)))
    step("13"), attempt(lambda: sums(jax.pmap(jax.vmap(parts, axis_name="j"), axis_name="i")(x)))

    def both():
        pair = jax.pmap(jax.pmap(parts, axis_name="j"), axis_name="i")(jnp.arange(8.0).reshape(2, 4) + 1)
        layout(pair[0]), sums(pair)

    step("14"), attempt(both)


def regression():
    x = jax.random.normal(jax.random.key(0), (128, 1))
    y = x * 2 - 1 + jax.random.normal(jax.random.key(1), (128, 1)) * 0.5
    params = [jnp.broadcast_to(jax.random.normal(k), (8,)) for k in jax.random.split(jax.random.key(123))]
    loss_fn = lambda params, x, y: jnp.mean((params[0] * x + params[1] - y) ** 2)

    def update(params, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        grads = lax.pmean(grads, "d")
        return [p - 0.005 * g for p, g in zip(params, grads)], lax.pmean(loss, "d")

    step("17")
    mapped, xs, ys = jax.pmap(update, axis_name="d"), x.reshape(8, 16, 1), y.reshape(8, 16, 1)
    for i in range(1000):
        params, loss = mapped(params, xs, ys)
        if i % 100 == 0:
            values(loss[0])
    step("18"), values([params[0][0], params[1][0]])


# ---- distributed arrays ----
def predict(params, x):
    for w, b in params:
        out = x @ w + b
        x = jnp.maximum(out, 0)
    return out


def loss_of(params, batch):
    return jnp.mean(jnp.sum((predict(params, batch[0]) - batch[1]) ** 2, axis=-1))


def init_model(sizes, rows):
    keys = jax.random.split(jax.random.key(0), len(sizes))
    params = []
    for key, m, n in zip(keys[1:], sizes, sizes[1:]):
        k1, k2 = jax.random.split(key)
        params.append((jax.random.normal(k1, (m, n)) / jnp.sqrt(m), jax.random.normal(k2, (n,))))
    keys = jax.random.split(keys[0], 3)
    return params, (jax.random.normal(keys[1], (rows, sizes[0])), jax.random.normal(keys[2], (rows, sizes[-1])))


class Training:
    def __init__(self, width, rows, steps):
        self.params, self.batch = init_model([784, width, width, width, 10], rows)
        self.steps, self.loss, self.gradient = steps, jax.jit(loss_of), jax.jit(jax.grad(loss_of))

    def loss_now(self):
        values(self.loss(self.params, self.batch))

    def descend(self):
        self.loss_now()
        for _ in range(self.steps):
            self.params = jax.tree.map(lambda p, g: p - 1e-5 * g, self.params, self.gradient(self.params, self.batch))
        self.loss_now()

    def time_gradient(self):
        ms(lambda: self.gradient(self.params, self.batch)[0][0])


def sin_times(numbers, x, y):
    single = jax.device_put(x, jax.devices()[0])
    step(numbers[0]), ms(lambda: jnp.sin(single))
    step(numbers[1]), ms(lambda: jnp.sin(y))


def computation(first, x, mesh):
    number = lambda i: str(first + i)
    x = put(x, mesh, "a", "b")
    step(number(0)), layout(x), layout(jnp.sin(x))
    y, z = put(x, mesh, "a", None), put(x, mesh, None, "b")
    w = y @ z
    step(number(1)), layout(y), layout(z), layout(w)
    single = jax.device_put(x, jax.devices()[0])
    step(number(2)), layout(single), ms(lambda: single @ single), ms(lambda: y @ z)
    step(number(3)), layout(jnp.copy(w))


def constraint(number, x, sharding):
    step(number), layout(x)
    layout(jax.jit(lambda v: lax.with_sharding_constraint(v + 1, sharding))(x))


def network(first, width, rows, steps):
    number = lambda i: str(first + i)
    t = Training(width, rows, steps)
    line = make_mesh((8,), ("batch",))
    t.batch, t.params = jax.device_put(t.batch, NamedSharding(line, P("batch"))), jax.device_put(t.params, NamedSharding(line, P()))
    step(number(0)), t.loss_now()
    step(number(1)), t.descend()
    step(number(2)), t.time_gradient()
    here = t.params, t.batch
    t.params, t.batch = jax.device_put(here, jax.devices()[0])
    step(number(3)), t.time_gradient()
    t.params, t.batch = here
    mesh = make_mesh((4, 2), ("batch", "model"))
    t.batch = jax.device_put(t.batch, NamedSharding(mesh, P("batch", None)))
    step(number(4)), layout(t.batch[0]), layout(t.batch[1])
    everywhere = NamedSharding(mesh, P())
    (w1, w2, w3, w4) = t.params
    t.params = [
        jax.device_put(w1, everywhere),
        (put(w2[0], mesh, None, "model"), put(w2[1], mesh, "model")),
        (put(w3[0], mesh, "model", None), jax.device_put(w3[1], everywhere)),
        jax.device_put(w4, everywhere),
    ]
    weights = lambda: (layout(t.params[1][0]), layout(t.params[2][0]))
    step(number(5)), weights()
    step(number(6)), t.loss_now()
    step(number(7)), t.descend()
    step(number(8)), weights()
    step(number(9)), t.time_gradient()


SPECS = [("a", "b"), ("b", "a"), ("a", None), (None, "b"), (None, "a"), (("a", "b"), None)]


def distributed_arrays_2022(n, width, rows, steps):
    x = jax.random.normal(jax.random.key(0), (n, n))
    grid = make_mesh((4, 2), ("a", "b"))
    y = put(x, grid, "a", "b")
    for number, array in [("1", x), ("2", y), ("3", jnp.sin(y))]:
        step(number), layout(array)
    sin_times(("4", "5"), x, y)
    for number, spec in [("6", (("a", "b"), None)), ("10", ("a", "b")), ("11", (None, ("a", "b"))), ("12", (None, "b")), ("14", ("a", None)), ("15", ("a", "b"))]:
        step(number), layout(put(x, grid, *spec))
    for i, spec in enumerate(SPECS):
        step(f"16.{i + 1}"), layout(put(x, grid, *spec))
    computation(17, x, grid)
    wide = make_mesh((2, 4), ("a", "b"))
    constraint("22", y, NamedSharding(wide, P("a", "b")))
    constraint("23", y, NamedSharding(grid, P()))
    network(24, width, rows, steps)


def distributed_arrays_2024(n, width, rows, steps):
    x = jax.random.normal(jax.random.key(0), (n, n))
    grid = make_mesh((4, 2), ("a", "b"))
    y = put(x, grid, "a", "b")
    for number, array in [("1", y), ("2", jnp.sin(y)), ("5", x), ("6", y)]:
        step(number), layout(array)
    sin_times(("3", "4"), x, y)
    for i, spec in enumerate(SPECS):
        step(f"7.{i + 1}"), layout(put(x, grid, *spec))
    computation(8, x, grid)
    constraint("13", y, NamedSharding(grid, P("b", "a")))
    constraint("14", y, NamedSharding(grid, P()))
    network(15, width, rows, steps)
    drawn = []
    x = put(jnp.arange(24), make_mesh((8,), ("x",)), "x")
    for number, partitionable in [("25", False), ("26", True)]:
        with jax.threefry_partitionable(partitionable):
            f = jax.jit(lambda key, x: x + jax.random.uniform(key, x.shape))
            key = jax.random.key(42)
            y = f(key, x)
            step(number + "a"), layout(y)
            step(number + "b"), record("collective", "collective-permute" in f.lower(key, x).compile().as_text())
            drawn.append(y)
    step("27"), values(drawn[0]), values(drawn[1])


# ---- parallelism ----
def parallelism(size):
    x = jax.device_put(jnp.ones((8, size, size)), jax.devices()[0])
    step("3"), layout(x @ x), ms(lambda: jnp.matmul(x, x))
    jitted = jax.jit(jnp.matmul)
    ms(lambda: jitted(x, x))
    xd = jax.pmap(lambda _: jnp.ones((size, size)))(np.arange(8))
    step("4"), layout(xd)
    product = jax.pmap(jnp.matmul)
    step("7"), ms(lambda: product(xd, xd))
    step("8"), values(jax.pmap(lambda x: x / lax.psum(x, "p"), axis_name="p")(jnp.arange(8)))
    step("9"), values(jnp.ones(8)), values(jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.ones(8)))


# ---- workshop ----
def matrix(seed):
    return jax.random.normal(jax.random.key(seed), (16, 16))


def workshop():
    pictures(), batches(), products(), fourier(), solver()


def pictures():
    a, devices = matrix(0), np.array(jax.devices())
    over = lambda ids, names, *spec: jax.device_put(a, NamedSharding(Mesh(devices[np.array(ids)], names), P(*spec)))
    grid = np.arange(8).reshape(2, 4)
    step("3"), layout(over(range(8), ("x",), "x"))
    step("4"), layout(over(range(4), ("x",), "x"))
    step("5"), layout(over(range(8), ("x",), None, "x"))
    step("6"), layout(over(grid, ("x", "y"), "x", "y")), layout(over(grid, ("x", "y"), "y", "x"))
    step("7"), layout(over([[0, 2], [4, 6]], ("x", "y"), "x", "y"))
    step("8"), layout(over([[0, 2], [4, 6], [1, 3], [5, 7]], ("x", "y"), "x", "y"))


def batches():
    mesh = make_mesh((8,), ("x",))
    a = put(jnp.stack([matrix(i) for i in range(8)]), mesh, "x")
    b = put(jnp.stack([jax.random.normal(jax.random.key(i + 8), (16,)) for i in range(8)]), mesh, "x")
    solve = jax.shard_map(lambda a, b: jnp.linalg.solve(a[0], b[0])[None], mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    step("9"), attempt(lambda: layout(solve(a, b)))


def products():
    mesh, a, b = make_mesh((4, 2), ("x", "y")), matrix(0), matrix(1)
    one = jax.device_put(a, jax.devices()[0]) @ jax.device_put(b, jax.devices()[0])
    step("10"), layout(a @ b), layout(one)
    cases = [("11", ("x",), (None, "y")), ("12", ("x",), ()), ("13", (), (None, "y")), ("15a", ("x", "y"), ("y", None))]
    for number, spec_a, spec_b in cases:
        x, y = put(a, mesh, *spec_a), put(b, mesh, *spec_b)
        step(number), layout(x), layout(y), layout(x @ y)


def fourier():
    local = jax.random.normal(jax.random.key(0), (16, 16, 16))
    split = put(local, make_mesh((4, 2), ("x", "y")), "x", "y")
    step("21"), layout(split[..., 0]), layout(jnp.fft.fftn(split)[..., 0])
    step("22"), gathers(jnp.fft.fftn, local), gathers(jnp.fft.fftn, split)


def solver():
    a, b = matrix(0), jax.random.normal(jax.random.key(1), (16,))
    split = put(a, make_mesh((8, 1), ("x", "y")), "x", None)
    step("26"), layout(split)
    step("27"), layout(jnp.linalg.solve(split, b))
    step("28"), gathers(jnp.linalg.solve, split, b), gathers(lax.linalg.lu, split)
    step("29"), values(lax.linalg.lu(a)[2])
    x = jnp.linalg.solve(a, b)
    for number in ["30", "31", "32"]:
        step(number), values(x)


globals()[sys.argv[1]](*map(int, sys.argv[2:]))
