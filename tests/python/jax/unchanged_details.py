"""What programs of JAX do beside computing: prints, checks, keys, texts, memories and primitives of their own. unchanged.py runs it twice."""
import collections.abc
import contextlib
import copy
import functools
import io
import pickle
import sys
import zlib

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import checkify, io_callback, pjit
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("x",))
split = NamedSharding(mesh, P("x"))
numbers = jnp.arange(24.0)


def told(function, *arguments):
    """What a call prints, by lines in order, and what it raises: devices print in any order."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        try:
            jax.block_until_ready(function(*arguments))
        except Exception as error:
            print(type(error).__name__, str(error).split("\n")[0][:60])
        jax.effects_barrier()
    return sorted(line for line in written.getvalue().splitlines() if line)


print("terminal", sys.stdout.isatty())
# ---- arrays ----
print("with NumPy's", (np.ones(3) * numbers[:3]).dtype, (np.float64(2) * numbers[:3]).dtype, isinstance(np.ones(3) + numbers[:3], jax.Array))
print("shapes that differ", told(lambda: np.ones(4) * jnp.ones((4, 3))))
print("no points", jnp.fft.fft(jnp.zeros((0,), complex)).shape, jnp.fft.ifft2(jnp.zeros((3, 0, 2))).dtype)
print("as numbers of Python", [told(f, numbers.reshape(12, 2)) for f in (int, float, complex, bool, range)], told(range, numbers[0]), f"{numbers[3]:.2f}")
print("rows", next(iter(jnp.arange(2000000.0))), sum(jnp.arange(250.0)), [x.shape for x in jnp.ones((3, 2))], list(jnp.ones((0, 2))))
print("hashes", isinstance(numbers, collections.abc.Hashable))
print("pickled", [(repr(x), x.weak_type) for x in pickle.loads(pickle.dumps([jnp.asarray(2.5), jnp.arange(3) * 1.5, numbers[:2]]))])
tenths = (numbers - 9) * 1.2345
of_sums = tenths.reshape(4, 6) + 3
for divided in (jnp.round(tenths, 3), tenths / 10, jax.jit(lambda x: (x + 1) / 7)(tenths), tenths / numbers[3], numbers[5] / numbers[7], jnp.arange(24) / 7, of_sums / of_sums.sum(1, keepdims=True), jax.jit(lambda x: x / x[0])(of_sums),
                of_sums / (of_sums + 1), *[jax.jit(lambda x: x / 3)(tenths.astype(t)) for t in (jnp.bfloat16, jnp.float16, jnp.complex64)]):
    print("divided", zlib.crc32(np.asarray(divided).tobytes()))  # to the last digit
of_integers = jax.vjp(lambda x, i: x * i, 2.0, 3)[1]
print("cotangents of integers", [(isinstance(x, jax.Array), x.dtype, x.shape, np.asarray(x)) for x in (of_integers(1.0)[1], jax.jit(of_integers)(1.0)[1], jax.grad(lambda x, i: x * i, 1, allow_int=True)(2.0, 3))])
print("ready", numbers.is_ready(), numbers.unsafe_buffer_pointer() == numbers.unsafe_buffer_pointer())
donated = jnp.ones(5)
jax.jit(lambda x: x * 2, donate_argnums=0)(donated)
print("donated", [told(f) for f in (lambda: donated + 1, lambda: np.asarray(donated), lambda: jnp.sin(donated))])

before = len(jax.live_arrays())
several = [numbers + n for n in range(4)]
several[0].delete()
print("live", len(jax.live_arrays()) - before, len(several))
del several
given = [jax.device_put(jnp.ones(shape, of), split) for shape, of in (((24, 2), "f"), ((24,), "f"), ((24, 2), "f"), ((48,), "i"), ((24, 2), "f"))]
jax.jit(lambda a, b, c, d, unread: (a + c, (b.sum() + d)), donate_argnums=range(5))(*given)
jax.jit(lambda x: x.sum(), donate_argnums=0)(given[1])
print("donated what no result takes", [x.is_deleted() for x in given])
given = [jnp.ones(6) for _ in range(2)]
jax.jit(lambda x: x + 1, donate_argnames="x")(given[0])
jax.jit(lambda x: x + 1, donate_argnums=0)(x=given[1])
print("donated by name and by number", [x.is_deleted() for x in given])

# ---- places ----
from jax.experimental.layout import Format, Layout
from jax.experimental.shard_alike import shard_alike

placed = jax.device_put(numbers, split)
print("alike", [x.sharding.is_equivalent_to(split, 1) for x in (*shard_alike(placed, numbers + 1), *jax.jit(lambda x: shard_alike(x, jnp.arange(24.0)))(placed))])
columns = jax.device_put(np.ones((24, 2)), Format(Layout((1, 0)), NamedSharding(mesh, P("x"))))
print("layouts", columns.format.layout.major_to_minor, (columns + 1).format.layout.major_to_minor, jax.jit(lambda x: x * 2, out_shardings=columns.format)(columns).format == columns.format)
print("layouts that do not fit", [told(f)[0].split()[0] for f in (lambda: jax.device_put(numbers, columns.format), lambda: jax.device_put(numbers, Format(Layout.AUTO, split)))])
inner = jax.jit(lambda x: x * 2, out_shardings=split)
print("nested", jax.jit(lambda x: inner(x))(numbers).sharding, jax.jit(lambda x: inner(x) + 1)(numbers).sharding)
print("gradients go back", [x.devices() for x in jax.value_and_grad(lambda x: jax.device_put(x, jax.devices()[-1]))(jax.device_put(2.0, jax.devices()[0]))])
print("shards", [s.data.committed for s in numbers.addressable_shards], {s.data.committed for s in placed.addressable_shards})
last = jax.devices()[-1]
with jax.default_device(last):
    there = jnp.arange(3)
    print("default device", [x.devices() for x in (there, there * 2, jax.jit(jnp.sin)(there), jnp.asarray(np.ones(3)), jax.device_put(1.0), numbers * there[0])], there.sharding, there.committed, there.addressable_shards)
print("default device left", there.devices(), (there + 1).devices(), [x.devices() for x in (numbers + 1, jnp.zeros(2))], placed.addressable_shards[-1])
counted = jax.jit(lambda x, n=1: x * n, static_argnums=1)
counts = [counted._cache_size()]
for arguments in ((numbers,), (numbers + 1,), (numbers, 2), (numbers[:3],), (2.0,), (3.0,)):
    counted(*arguments)
    counts.append(counted._cache_size())
print("static arguments of pmap", told(lambda: jax.pmap(lambda a, b: a + b, static_broadcasted_argnums=(1,))(jnp.ones((1, 1)), b=1)))
print("compiled", counts, counted.clear_cache(), counted._cache_size())
print("wrong blocks", [told(f) for f in (lambda: jax.make_array_from_single_device_arrays((24,), split, [s.data for s in placed.addressable_shards], dtype="int32"),
                                         lambda: jax.make_array_from_process_local_data(split, np.ones(24), (48,)))])
if hasattr(jax, "set_mesh"):
    with jax.set_mesh(mesh):
        print("specs alone", [x.sharding for x in jax.jit(lambda x: (x, x.sum()), in_shardings=P("x"), out_shardings=(P("x"), P()))(np.ones(24, "f"))])


# ---- functions of the program that fail ----
def failing(x):
    raise ValueError("no such number")


for function in (failing, lambda x: np.ones(3)):  # the program goes on after each
    for call in (lambda: jax.jit(lambda x: jax.pure_callback(function, x, x))(1.0), lambda: jax.pure_callback(function, jax.ShapeDtypeStruct((), "f"), 1.0),
                 lambda: io_callback(function, jax.ShapeDtypeStruct((), "f"), 1.0, ordered=True)):
        try:
            jax.block_until_ready(call())
        except jax.errors.JaxRuntimeError as error:
            print("failed", function is not failing or "no such number" in str(error), jnp.sum(placed))

def asked(x):
    jax.debug.print("asked {}", x)
    return x < 2


called = []
jitted = jax.jit(lambda x: jnp.cumsum(x) + jax.random.uniform(jax.random.key(0), x.shape))


def computing(x):
    """What JAX computes in a function of the program, with arrays of its own."""
    called.append(x)
    return (jitted(x) + jax.vmap(jnp.sin)(x) + jax.grad(lambda x: jnp.sum(x ** 2))(x) + lax.scan(lambda c, v: (c + v, c), 0.0, x)[1]).at[0].set(len(called))


print("on arrays of JAX", np.asarray(jax.jit(lambda x: jax.pure_callback(computing, x, x))(placed))[:3], jax.pure_callback(computing, numbers[:5], numbers[:5]))
print("on arrays of JAX", io_callback(lambda x: (called.append(x), np.float32(x.mean()))[1], jax.ShapeDtypeStruct((), "f"), placed),
      told(jax.jit(lambda x: jax.debug.print("{} {k}", {"two": x[:2]}, k=(x[1],))), placed))
first = jax.shard_map(lambda x: io_callback(called.append, None, x, ordered=True), mesh=Mesh(np.array(jax.devices()[:1]), ("x",)), in_specs=P("x"), out_specs=None)
jax.jit(first, in_shardings=NamedSharding(Mesh(np.array(jax.devices()[:1]), ("x",)), P("x")))(np.arange(5.0))
jax.effects_barrier()
print("kept by functions", [(repr(x[:2] + 1), type(x), x.devices(), jnp.sum(x)) for x in called])  # of the one device perhaps on its rank alone
print("types of results", jax.eval_shape(jax.jit(lambda x: (x * 2, x.sum()), out_shardings=(split, NamedSharding(mesh, P()))), placed))
squared = jax.custom_vjp(lambda x: x * x)
squared.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,), optimize_remat=True)
print("optimized rules", [jax.jit(f)(placed) for f in (jax.vmap(squared), jax.grad(lambda x: squared(x).sum()))], jnp.zeros((2,), jax.dtypes.float0).dtype,
      told(lambda: print(jax.shard_map(lambda of, x: x + len(of), mesh=mesh, in_specs=(None, P("x")), out_specs=P("x"))(object.__name__, placed))), told(lambda: lax.pcast(numbers, "x", to="varying")))
by_pjit = pjit.pjit(lambda x: x * 2, in_shardings=split, out_shardings=split).lower(placed)
print("pjit ahead", by_pjit.as_text().count("stablehlo.multiply"), by_pjit.compile()(placed).sharding.spec)
print("conditions that print", told(lambda: lax.while_loop(asked, lambda x: x + 1, 0)), told(jax.jit(lambda x: lax.while_loop(asked, lambda x: x + 1, x)), 1))

# ---- keys ----
keys, others, chosen = jax.random.split(jax.random.key(0), 4), jax.random.split(jax.random.key(1), 4), jnp.arange(4) % 2 == 0
print("equal keys", keys[0] == keys[0], keys == keys[1], keys != others)
print("folded", jax.random.key_data(jax.vmap(jax.random.fold_in, (0, None))(keys, 3))[1], jax.random.key_data(jax.vmap(jax.random.fold_in, (None, 0))(keys[0], chosen))[1])
print("chosen keys", jax.random.key_data(jnp.where(chosen, keys, others)), jax.random.key_data(jnp.tile(keys[:2], 2)))

spread = jax.device_put(jax.random.split(jax.random.key(0), 4 * jax.device_count()), split)
print("keys as placed", spread.sharding.spec, jax.jit(lambda k: k)(spread).sharding.spec,
      [f(lambda k: jax.random.normal(k, ()))(spread).sharding.spec for f in (jax.vmap, lambda f: jax.jit(jax.vmap(f)))])
print("one key", spread[3].shape, jax.random.key_data(spread[3]), spread[3] == spread[3], jax.jit(lambda k: k[3])(spread) == spread[3])
print("blocks of keys", [(s.index, s.data.shape, s.data.dtype, jax.random.key_data(s.data)[0]) for s in spread.addressable_shards], jax.vmap(jax.random.uniform)(spread).sharding.spec)
print("keys on the host", jax.tree.map(lambda x: (x.dtype, x.shape), jax.device_get({"key": keys, "x": numbers})))

# ---- callbacks and prints ----
seen = []
io_callback(lambda: seen.append("called"), None)
io_callback(lambda x: seen.append(float(x)), None, 3.0)
jax.grad(lambda x: (io_callback(lambda: seen.append("forward"), None), x)[1])(1.0)
jax.grad(jax.jit(lambda x: (io_callback(lambda: seen.append("forward in jit"), None), x)[1]))(1.0)
jax.vmap(jax.jit(lambda x: (io_callback(lambda k: seen.append(int(k)), None, 7), x)[1]))(numbers)
jax.effects_barrier()
print("callbacks outside of jit", seen)
history = []  # what callbacks keep enters the computation again
kept = jax.jit(lambda x: (jax.debug.callback(lambda k: history.append(float(k)), x.sum()), x * io_callback(lambda k: (history.append(float(k)), k + 1)[1], x[0], x[0]))[1])
print("of callbacks", kept(kept(jnp.ones(3))), len(history), jnp.array(history).sum())
jax.debug.callback(lambda k: history.append(float(k)), 7.0)
jax.lax.custom_linear_solve(lambda x: (jax.debug.callback(lambda: history.append(1.0)), x)[1], jnp.ones(3), lambda matvec, b: matvec(b))
jax.checkpoint(lambda x: (jax.debug.callback(lambda: history.append(2.0)), x)[1])(jnp.ones(3))
jax.effects_barrier()
print("outside of jit", history[-3:])
with open("told.txt", "w"):
    pass
def tell(x):
    with open("told.txt", "a") as told_file:
        told_file.write(f"{float(x):.1f} ")
for n in range(3):
    jax.jit(lambda x: (jax.debug.callback(tell, x[0]), x)[1])(jnp.ones(3) * n)
jax.effects_barrier()
print("written by callbacks", open("told.txt").read())


@jax.jit
def of_blocks(x):
    def body(block):
        jax.debug.print("sum of a block {}", block.sum())
        jax.debug.callback(lambda x: print("block of", x.shape), block)
        return block + io_callback(lambda x: x * 2, jax.ShapeDtypeStruct(block.shape, block.dtype), block)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


if hasattr(jax, "shard_map"):
    sums = []
    print("blocks", told(lambda: sums.append(of_blocks(numbers))), sums)
    looks = jax.shard_map(lambda block: (print("block", block), lax.psum(block, "x"))[1], mesh=mesh, in_specs=P("x"), out_specs=P())
    print("named", jax.shard_map(failing, mesh=mesh, in_specs=P(), out_specs=P()).__name__ if hasattr(jax, "shard_map") else failing.__name__)
print("a body that prints", told(looks, numbers), looks(numbers))
print("examples", told(jax.pmap(lambda x: jax.debug.print("example {}", x)), jnp.arange(float(jax.device_count()))))


# ---- checks ----
def checked(x):
    checkify.check(x > 0, "must be positive: {}", x)
    return x


print("checks", told(checked, jnp.float32(-1.0)), told(jax.jit(checked), jnp.float32(1.0)), checkify.checkify(checked)(jnp.float32(-1.0))[0].get().split(" (")[0])
print("checks of jitted functions", checkify.checkify(jax.jit(checked))(jnp.float32(-1.0))[0].get().split(" (")[0])
prints = jax.jit(lambda x: (jax.debug.print("told {}", x), x)[1])
with np.printoptions(precision=2):
    shortly = [jax.debug.print, jax.jit(lambda f, x: jax.debug.print(f, x), static_argnums=0)]
    print("options of NumPy", [told(f, "{}", jnp.array([1.23456, 2.0])) for f in shortly])
print("without placeholders", told(jax.debug.print, "done"), told(lambda x: jax.debug.print("block", x), numbers[:3]))
print("what was printed is computed with", told(jax.debug.print, "{}", 1), float(jnp.ones(len(told(prints, numbers[:2])) + len(told(jax.debug.print, "{}", 1))).sum()))
outer = jax.jit(lambda x: x + prints(2.0))
print("prints in a trace", [told(outer, 1.0) for _ in range(2)])
with jax.debug_nans(True):
    print("NaN", told(jnp.log, -numbers), told(jax.jit(lambda x: jnp.sqrt(x) + 1), -1.0), told(jax.jit(lambda x: jnp.sqrt(x) + 1), 4.0), told(jax.grad(lambda x: jnp.sqrt(x) * 0), 0.0))
with jax.debug_infs(True):
    print("infinities", told(lambda: 1 / (numbers * 0)))
with jax.disable_jit():
    print("without jit", told(jax.jit(lambda x: (print("value", x), -x if x < 0 else x)[1]), -2.0))

# ---- donated arguments: what was made of them stays, evaluated or not ----
halve = jax.jit(lambda x: x / 2, donate_argnums=0)
for name, keep in {"copy": lambda x: x.copy(), "jnp.copy": jnp.copy, "jnp.array": jnp.array, "copy.copy": copy.copy, "deepcopy": copy.deepcopy, "plus": lambda x: x + 0, "sums": lambda x: x.sum(),
                   "columns": lambda x: x.reshape(2, 12).T, "jit": jax.jit(lambda x: x * 3)}.items():
    for x in (numbers + 0, jax.device_put(numbers, split) + 0):
        kept = keep(x)
        print(name, halve(x).sum(), x.is_deleted(), kept.is_deleted(), kept.sum())
params = {"w": jnp.ones((8, 3)), "b": jnp.zeros(3)}
target, norms = jax.tree.map(jnp.copy, params), []
step = jax.jit(lambda p, t: jax.tree.map(lambda a, b: a / 2 + b, p, t), donate_argnums=0)
for _ in range(4):
    norms.append(sum(jnp.sum(x ** 2) for x in jax.tree.leaves(params)))
    params = step(params, target)
print("norms", *norms, jax.tree.map(jnp.sum, target))
placed = jax.jit(lambda x, y: (x * 2, y, jnp.ones((3, 3)), y + 1))(jax.device_put(numbers, split), jnp.int32(2))
print("placed", [x.committed for x in placed], [x.sharding.spec for x in placed], jax.device_put(1, jax.devices()[-1]).device, repr(halve).split(" at ")[0])
rows = jax.device_put(numbers.reshape(12, 2), NamedSharding(mesh, P("x", None)))
many = jnp.ones((12, 2))
print("as written", [x.sharding.spec for x in (2 * rows, rows * 2, jnp.where(rows > 1, rows, 0), jnp.where(many > 0, rows, 0), jax.jit(lambda a, x: x + a)(1, rows), jax.jit(lambda a, x: x)(1, rows),
                                               jax.grad(lambda x: jnp.sum(x ** 2))(rows), jax.grad(lambda x: jnp.sum(jnp.sin(x)))(rows))], told(jax.jit(abs), "word"))

# ---- texts and places ----
print(jax.jit(lambda x, y: 2 * x + y).lower(3, 4).as_text())
print(jax.jit(lambda x: x + numbers).lower(3.0).as_text().count("dense<"))  # what it captures
print("errors of calls", [told(f) for f in (lambda: jax.jit(abs, static_argnums=0)([1, 2]), lambda: jax.jit(lambda few, n: few * n).lower(numbers, 2).compile()(numbers[:3], 2))])
print("ahead", jax.jit(lambda x: x + 1).lower(np.arange(4)).compile()(jnp.arange(4)), type(jax.jit(jnp.sin).lower(1.0).compiler_ir()).__name__)
summed = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i").lower(np.ones((jax.device_count(), 2))).compile()
print("ahead, mapped", summed(np.full((jax.device_count(), 2), 2, np.float32)))
halves = jax.jit(lambda x, n: {"half": x / n["two"], "two": n["two"]}, out_shardings={"half": split, "two": None}).lower(jax.device_put(numbers, split), {"two": 2.0}).compile()
grid = Mesh(np.array(jax.devices()).reshape(-1, 1), ("x", "one"))
ahead = jax.jit(lambda a, b: (a * 2, b)).lower(jax.device_put(jnp.ones((24, 4)), NamedSharding(grid, P("x", "one"))), 1.0).compile()
print("axes of one device", ahead.input_shardings, ahead.output_shardings)
if hasattr(halves, "input_formats"):
    print("formats", halves.input_formats[0][0], halves.output_formats["half"], halves.input_formats[0][1]["two"].layout, halves.output_shardings["half"] == split)
if hasattr(split, "with_memory_kind") and hasattr(jax, "memory"):
    on_host = split.with_memory_kind("pinned_host")
    x = jax.device_put(numbers, on_host)
    y = jax.device_put(x, split)
    there = jax.jit(lambda x: x * 2, out_shardings=on_host)(y)
    print("memories", x.sharding == on_host, y.sharding.memory_kind, there.sharding.memory_kind, there, jax.device_put(y, jax.memory.Space.Host).sharding.memory_kind)

if hasattr(jax, "P"):
    whole = jnp.arange(576.0).reshape(24, 24)
    of = lambda *spec: jax.NamedSharding(split.mesh, jax.P(*spec))  # noqa: E731
    axis = split.mesh.axis_names[0]
    double, ones = jax.jit(lambda x: x * 2), np.ones((24, 24), np.float32)
    spelled = {"sin": jnp.sin, "sums": lambda x: (x.sum(0), x.sum(1), x.sum(0, keepdims=True), x.sum()), "T": lambda x: x.T, "dot": lambda x: (x @ ones, x @ x, x @ x.T), "rank": lambda x: (x[:, None], x[..., None], jnp.stack([x, x])),
               "rest": lambda x: (x + 1, x.astype(int), jnp.sort(x), jnp.argmax(x, 1), jax.nn.softmax(x), x.reshape(24, 12, 2), x.mean(-1, keepdims=True))}
    for spec in ((axis,), (axis, None), (None, axis), (None,), (None, None), ()):
        x = jax.device_put(whole, of(*spec))
        made = (x, jnp.zeros((24, 24), device=of(*spec)), jax.make_array_from_callback((24, 24), of(*spec), lambda at: ones[at]), jax.lax.with_sharding_constraint(whole, of(*spec)),
                jax.jit(jnp.sin, out_shardings=of(*spec))(whole), jax.jit(jnp.sin, in_shardings=of(*spec))(ones), double(jax.lax.with_sharding_constraint(whole, of(*spec))))
        mapped = jax.shard_map(lambda x: x * 2, mesh=split.mesh, in_specs=jax.P(*spec), out_specs=jax.P(*spec))
        print("made", spec, [a.sharding.spec for a in (*made, mapped(x), jax.jit(mapped)(x))], double.lower(x).compile().output_shardings.spec)
        for name, function in spelled.items():
            print(name, spec, *[[a.sharding.spec for a in jax.tree.leaves(f(x)) if a.committed] for f in (function, jax.jit(function))])
    with jax.set_mesh(split.mesh):
        print("explicit within", jax.sharding.explicit_axes(lambda x: x.T)(whole, in_sharding=jax.P(axis, None)).sharding.spec)
    with jax.set_mesh(jax.make_mesh((jax.device_count(),), (axis,), axis_types=(jax.sharding.AxisType.Explicit,))):
        for spec in ((axis,), (axis, None), (None,), ()):
            x = jax.device_put(whole, jax.P(*spec))
            print("explicit", spec, [(a.sharding.spec, jax.typeof(a)) for f in (spelled["sums"], jax.jit(spelled["sums"]), double, lambda x: x) for a in jax.tree.leaves(f(x))])
            parts = x.at[2].get(out_sharding=jax.P(axis)), x.at[1:5].get(out_sharding=jax.P(None, axis)), x.at[:, jnp.array([7, 3])].get(out_sharding=jax.P(axis))
            print("indexed", spec, [(a.sharding.spec, float(a.sum())) for a in parts], *[told(lambda: print(jax.typeof(x[index]))) for index in (2, slice(1, 5), (Ellipsis, None))])


# ---- primitives of the program ----
try:
    from jax.extend.core import Primitive
    from jax.interpreters import mlir
    from jax._src import dispatch
    from jax._src.lib.mlir.dialects import hlo
except ImportError:
    Primitive = None
if Primitive is not None:
    product = Primitive("product_and_sum")
    product.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    print("by NumPy", product.bind(2.0, 3.0, numbers[:3]))
    product.def_abstract_eval(lambda x, y, z: jax.core.ShapedArray(x.shape, x.dtype))
    print("not lowered", [line.split(" ")[0].replace("NotCarried", "NotImplementedError") for line in told(jax.jit(product.bind), numbers, numbers, numbers)])
    mlir.register_lowering(product, lambda context, x, y, z: [hlo.AddOp(hlo.multiply(x, y), z).result], platform="cpu")
    print("lowered", jax.jit(product.bind)(numbers, numbers, numbers))
    doubled = Primitive("doubled")  # its implementation is JAX's compilation of it
    doubled.def_impl(functools.partial(dispatch.apply_primitive, doubled))
    doubled.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(doubled, lambda context, x: [hlo.AddOp(x, x).result], platform="cpu")
    print("compiled by itself", doubled.bind(numbers), jax.jit(doubled.bind)(numbers))

# ---- exported programs ----
if hasattr(jax, "export"):
    several = jax.export.export(jax.jit(jnp.cos), platforms=("tpu", "cpu"))(1.0)
    other = jax.export.export(jax.jit(jnp.cos), platforms=("tpu",))(1.0)
    rows, columns = jax.export.symbolic_shape("rows, columns")
    symbolic = jax.export.export(jax.jit(lambda x: (x @ x.T).sum(0) / x.shape[1]))(jax.ShapeDtypeStruct((rows, columns), jnp.float32))
    print("exported", several.call(1.0), told(other.call, 1.0), symbolic.call(numbers.reshape(6, 4)), jax.jit(symbolic.call)(jnp.ones((2, 5))), jax.export.export(jax.jit(symbolic.call))(numbers.reshape(6, 4)).call(numbers.reshape(6, 4)), type(numbers))

# ---- eigenvectors and singular vectors have LAPACK's signs, as JAX calls it ----
for shape in ((6, 6), (30, 30), (7, 4), (4, 7)):
    a = jax.random.normal(jax.random.key(shape[0]), shape)
    u, _, vh = jnp.linalg.svd(a)
    print("signs", shape, jnp.sign(u[0]).astype(int)[:4], jnp.sign(vh[:, 0]).astype(int), jnp.sign(jnp.linalg.eigh(a @ a.T)[1][0, -4:]).astype(int))

# ---- a second mesh of the same form, with explicit axes ----
if hasattr(jax, "set_mesh"):
    with jax.set_mesh(Mesh(np.array(jax.devices()), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))):
        key = jax.random.key(5)
        print("keys of both", jax.random.randint(key, (2, 2), 0, 9), jax.typeof(jax.random.split(key)), jax.random.fold_in(key, 1), jax.jit(jax.random.uniform)(jax.random.split(key, 3)[1]))


# ---- arguments that are no arrays ----
class Uncompared:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise NotImplementedError("no comparison")


class AsArray:
    def __jax_array__(self):
        return numbers


print("no arrays", [told(jax.jit(lambda x: x), x) for x in (object(), "word", np.array([None]), AsArray())], told(jax.make_array_from_single_device_arrays, (24,), numbers.sharding, numbers))
by_static = jax.jit(lambda x, y: x + 3, static_argnums=1)
print("static arguments without ==", [told(by_static, 1, Uncompared()) for _ in range(2)][1][0].split("__eq__")[0])
if hasattr(jax.extend.random, "define_prng_impl"):
    of_two_words = lambda seed: jnp.stack([jax.random.key_data(jax.random.key(seed + n)) for n in range(2)])  # noqa: E731
    each = lambda f, key, *given: jnp.stack([jax.random.key_data(f(jax.random.wrap_key_data(key[n]), *given)) for n in range(2)], -2)  # noqa: E731
    double = jax.extend.random.define_prng_impl(
        key_shape=(2, 2), seed=of_two_words, split=lambda key, shape: each(jax.random.split, key, shape),
        random_bits=lambda key, width, shape: jax.random.bits(jax.random.wrap_key_data(key[0]), shape, f"uint{width}") ^ jax.random.bits(jax.random.wrap_key_data(key[1]), shape, f"uint{width}"),
        fold_in=lambda key, data: each(jax.random.fold_in, key, data), name="double", tag="double")
    key = jax.random.key(3, impl=double)
    drawn = jax.jit(lambda key: (jax.random.bits(key, (3,)), jax.vmap(lambda k: jax.random.bits(jax.random.fold_in(k, 5), (2,)))(jax.random.split(key, 3))))
    print("a generator of two keys", key.shape, drawn(key), jax.random.split(key, (2, 2)).shape, jax.random.uniform(jax.random.split(key)[1], (2,)))
