"""A program of JAX alone, as its users write it: data split over all devices, training, a transform, a collective. unchanged.py runs it twice."""
import inspect
import os
import random
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

steps = int(sys.argv[1])
mesh = Mesh(np.array(jax.devices()), ("data",))
split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
print("devices", jax.device_count(), jax.local_device_count(), jax.process_count())

key = jax.random.PRNGKey(0)
x = jax.device_put(jax.random.normal(key, (48, 8)), split)
truth = jnp.arange(8.0) / 8
y = jnp.tanh(x @ truth)


@jax.jit
def step(w, x, y):
    value, gradient = jax.value_and_grad(lambda v: jnp.mean((jnp.tanh(x @ v) - y) ** 2))(w)
    return w - 0.5 * gradient, value


w = jax.device_put(jnp.zeros(8), whole)
for n in range(steps):
    w, value = step(w, x, y)
    print(f"step {n}: {value:.4f}")
print("rows of a device", step(w, x, y)[0].shape, {s.data.shape for s in x.addressable_shards})

image = jax.make_array_from_callback((24, 24), split, lambda at: np.arange(576.0, dtype="f").reshape(24, 24)[at] % 7)
spectrum = jnp.abs(jnp.fft.fft2(image))
print("largest", f"{float(spectrum.max()):.0f}, without the mean {float(spectrum.at[0, 0].set(0).max()):.0f}, sorted {jnp.sort(spectrum.ravel())[-4:].astype(int)}")


@partial(jax.shard_map, mesh=mesh, in_specs=P("data"), out_specs=P())
def sum_of_squares(block):
    return lax.psum(jnp.sum(block ** 2), "data")


print("sum of squares", f"{float(sum_of_squares(image)):.1f}", f"{float(jnp.sum(image ** 2)):.1f}")
# Without a seed: the ranks draw what one process would.
drawn = np.random.normal(size=24) + np.random.default_rng().normal(size=24) + random.random()
print("drawn", bool(jnp.all(jnp.isfinite(jax.device_put(drawn, split)))))
doubled = jax.make_array_from_callback((24, 24), split, lambda at: image[at] * 2)  # the callback's blocks are arrays of all devices
print("from arrays", f"{float(doubled.sum()):.0f}", [s.index for s in doubled.addressable_shards])
blocks = [jax.device_put(image[4 * d.id:4 * d.id + 4], d) for d in jax.devices()]
print("from blocks", f"{float(jax.make_array_from_single_device_arrays((4 * len(blocks), 24), split, blocks).sum()):.0f}")
odd = jnp.arange(7.0)
odd = jax.device_put(odd, split) if "tessera" in sys.modules else odd  # JAX asks for an extent that the devices divide
print("odd", odd + 1, jax.jit(jnp.cumsum)(odd))
compiled = jax.jit(lambda x, n: x * n, static_argnums=1).lower(jax.ShapeDtypeStruct((24, 24), jnp.float32), 3).compile()
print("ahead", f"{float(compiled(jnp.ones((24, 24))).sum()):.0f}", jax.jit(jnp.sin).trace(image).lower().compile()(image).shape)
print("trace", jax.make_jaxpr(lambda x: x * 2)(odd))
pairs = {"a": jnp.arange(6.0 * len(blocks)).reshape(-1, 6), "b": jnp.ones(len(blocks))}
mapped = jax.pmap(lambda p, *, by: (p["a"] * by, lax.psum(p["b"], "i")), axis_name="i", out_axes=(1, None))(pairs, by=jnp.arange(1.0 * len(blocks)))
print("mapped", mapped[0].shape, f"{float(mapped[0].sum()):.0f}", mapped[1])


class Cycle:
    """Garbage that holds an array and is collected only by Python's collector."""

    def __init__(self, held):
        self.held, self.itself = held, self


start = jnp.ones(4)
for n in range(40):
    Cycle(held := start * n)
    others = [[] for _ in range(300 * int(os.environ.get("OMPI_COMM_WORLD_RANK", 0)))]  # ranks make different numbers of objects
    start = float((held + start).sum()) / 4 * jnp.ones(4) % 7
print("cycles", start[0])
# Every device's block is this process's: what it prints is the same with one process per device.
print("blocks", [(s.device.id, s.index[0].start or 0, float(s.data[0, 0]), s.replica_id) for s in image.addressable_shards])


def on_host(x):
    return np.sinh(x)


def by_host(x):
    return jax.pure_callback(on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")


print("host calls in a loop", np.round(lax.scan(lambda c, v: (c, by_host(v)), None, jnp.arange(3.0))[1], 4))
if hasattr(jax, "new_ref"):
    total = jax.new_ref(jnp.zeros(3))

    @jax.jit
    def count(at):
        total[at] += 1.0

    count(1), count(1)
    total[...] = total[...] * 2
    print("reference", total)
if hasattr(jax, "set_mesh") and hasattr(jax, "P"):  # axes are explicit: types say where values are
    with jax.set_mesh(jax.make_mesh((jax.device_count(),), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))):
        rows = jax.device_put(jnp.arange(48.0).reshape(24, 2), jax.P("i", None))
        print("types", jax.typeof(rows), jax.typeof(jnp.sin(rows).T), jax.typeof(rows.sum(0)))
        if jax.device_count() > 1:
            columns = jax.device_put(jnp.arange(48.0).reshape(2, 24), jax.P(None, "i"))
            print("rows of explicit axes", list(rows)[3], [(str(jax.typeof(row)), float(row.sum())) for row in columns])
            try:
                jnp.dot(rows.T, rows)
            except Exception as error:
                print(type(error).__name__)
        if hasattr(rows.sharding.spec, "unreduced"):
            partial_sums = jnp.einsum("ki,kj->ij", rows, rows, out_sharding=jax.P(None, None, unreduced={"i"}))
            print(jax.typeof(partial_sums), np.asarray(jax.reshard(partial_sums, jax.P())))
        if hasattr(rows.sharding.spec, "unreduced") and jax.device_count() > 1:  # JAX itself fails on one
            of = jax.P(None, unreduced={"i"})
            mapped = jax.shard_map(lambda x: x.sum(0), in_specs=jax.P("i", None), out_specs=of)(rows)
            summed = jax.shard_map(lambda x: jax.lax.psum(x, "i"), in_specs=of, out_specs=jax.P())(mapped)
            placed = jax.device_put(jnp.ones(2), of)
            joined = jax.make_array_from_single_device_arrays((2,), placed.sharding, [jax.device_put(jnp.ones(2) * k, d) for k, d in enumerate(jax.devices())])
            print("partial sums", jax.typeof(mapped), *[np.asarray(jax.reshard(x, jax.P())) for x in (mapped, joined)], summed, [shard.data for shard in placed.addressable_shards], mapped.is_fully_replicated, mapped)
    if "out_sharding" in inspect.signature(jax.random.normal).parameters:
        for devices in (jax.devices(), jax.devices()[::-1]):  # each draw has the layout of the mesh that is set then
            with jax.set_mesh(jax.make_mesh((len(devices),), ("i",), axis_types=(jax.sharding.AxisType.Explicit,), devices=devices)):
                drawn = jax.random.normal(jax.random.key(0), (24, 2), out_sharding=jax.P("i"))
                print("drawn there", drawn.sharding.spec, drawn.sharding.mesh.axis_types, drawn.sharding.mesh.devices, f"{np.asarray(drawn)[0, 0]:.4f}")
print(jax.tree.map(jnp.shape, {"w": w, "pair": (x, y)}))
