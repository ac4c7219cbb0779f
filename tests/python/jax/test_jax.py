"""tessera.jax: functions that JAX traces, run by all ranks. Skipped where JAX is not installed."""
import contextlib
import io
import pathlib
import re
import time
import unittest

import numpy as np
import tessera as ts

try:
    import tessera.jax as tj
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
except ImportError:
    raise unittest.SkipTest("JAX is not installed") from None

mesh = Mesh(np.array(jax.devices()), ("x",))
rng = np.random.RandomState(0)
rows = rng.standard_normal((12, 5)).astype("f")


def split(host):
    return tj.device_put(host, NamedSharding(mesh, P("x")))


def is_split_by_columns(x):
    wanted = ts.NamedSharding(tj._layouts.mesh_of(mesh), ts.P(None, "x"))
    return x.sharding.shard_shape(x.shape) == wanted.shard_shape(x.shape)


def same(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(ts.device_get(found), np.asarray(expected), rtol=tolerance, atol=tolerance)


class Jit(unittest.TestCase):
    def test_results_are_arrays_of_tessera_with_jax_s_values(self):
        found = tj.jit(lambda x: jnp.tanh(x) @ x.T)(split(rows))
        self.assertIsInstance(found, ts.Array)
        same(found, np.tanh(rows) @ rows.T)

    def test_a_gradient_is_jax_s(self):
        loss = lambda x: jnp.sum(jnp.sin(x) ** 2)  # noqa: E731
        same(tj.jit(jax.grad(loss))(split(rows)), jax.grad(loss)(rows))

    def test_a_signature_is_traced_once(self):
        traces = []
        f = tj.jit(lambda x: traces.append(1) or x * 2)
        f(split(rows))
        f(split(rows))
        self.assertEqual(len(traces), 1)
        f(split(rows[:, :2]))
        self.assertEqual(len(traces), 2)

    def test_an_array_of_jax_is_copied_at_its_first_call_alone(self):
        copied, of_numpy = [], tj._values.of_numpy
        tj._values.of_numpy = lambda host: copied.append(1) or of_numpy(host)
        self.addCleanup(setattr, tj._values, "of_numpy", of_numpy)
        x, f = jnp.asarray(rows), tj.jit(lambda x: x * 2)
        for _ in range(3):
            same(f(x), rows * 2)
        same(tj.jit(lambda x: x + 1)(x), rows + 1)
        self.assertEqual(len(copied), 1)
        same(f(jnp.asarray(rows)), rows * 2)  # another array of the same values
        self.assertEqual(len(copied), 2)
        x.delete()
        self.assertRaises(RuntimeError, f, x)

    def test_a_donated_array_of_jax_is_copied_each_time(self):
        x, f = jnp.asarray(rows), tj.jit(lambda x: x * 2, donate_argnums=0)
        for _ in range(3):
            same(f(x), rows * 2)
        kept = tj.jit(lambda x: x)(x)
        same(ts.jit(lambda y: y + 1, donate_argnums=0)(kept), rows + 1)
        same(tj.jit(lambda x: x)(x), rows)

    def test_an_array_under_the_id_of_a_dropped_one_is_not_taken_for_it(self):
        f, kept = tj.jit(lambda x: x * 1), tj._values._converted
        for n in range(100):
            same(f(jnp.full((7,), float(n), jnp.float32)), np.full(7, n, "f"))
        self.assertLess(len(kept), 50)  # what was dropped is forgotten
        x, y = jnp.zeros(7, jnp.float32), jnp.ones(7, jnp.float32)
        f(x)
        kept[id(y)] = kept[id(x)]
        del x
        same(f(y), np.ones(7, "f"))
        same(f(y), np.ones(7, "f"))

    def test_a_compiled_function_is_called_with_arguments_of_its_types_alone(self):
        lowered = tj.jit(lambda x, n: x * n, static_argnums=1).lower(jax.ShapeDtypeStruct((12, 5), np.float32), 3)
        compiled = lowered.compile()
        same(compiled(split(rows)), rows * 3)
        self.assertEqual(lowered.out_info.shape, (12, 5))
        with self.assertRaisesRegex(TypeError, r"Argument 'x' compiled with float32\[12,5\] and called with float32\[6,5\]"):
            compiled(rows[:6])
        with self.assertRaisesRegex(TypeError, "does not match the input pytree"):
            compiled(rows, rows)

    def test_checkpoint_computes_again_what_its_policy_does_not_keep(self):
        layer = lambda x, w: jnp.sin(jnp.tanh(x @ w))  # noqa: E731
        weights = [rng.standard_normal((32, 32)).astype("f") * 0.1 for _ in range(8)]
        x = rng.standard_normal((4096, 32)).astype("f")

        def gradient(kept):
            def loss(ws, v):
                for w in ws:
                    v = kept(v, w)
                return jnp.sum(v ** 2)
            return jax.grad(loss)

        policies = jax.checkpoint_policies
        variants = {"none": layer, "nothing": jax.checkpoint(layer), "dots": jax.checkpoint(layer, policy=policies.dots_saveable), "all": jax.checkpoint(layer, policy=policies.everything_saveable)}
        needed = {}
        for name, kept in variants.items():
            lowered = tj.jit(gradient(kept)).lower(weights, split(x))
            needed[name] = lowered.compile().memory_analysis().temp_size_in_bytes
            same(tj.jit(gradient(kept))(weights, split(x))[0], gradient(layer)(weights, x)[0], 1e-3)
        if mesh.size == 1:  # the blocks of many ranks are too small here for a difference
            self.assertLess(needed["nothing"], 0.75 * needed["none"])
            self.assertLess(needed["nothing"], needed["dots"])
            self.assertLessEqual(needed["dots"], needed["all"])

    def test_programs_are_exported_by_jax_and_run_here(self):
        import jax.export
        function = lambda x, w, unread: {"y": jnp.tanh(x @ w), "s": jnp.sort(x, 0)}  # noqa: E731
        w = rng.standard_normal((5, 3)).astype("f")
        for made in (tj.jit(function), jax.jit(function)):
            exported = jax.export.export(made)(*[jax.ShapeDtypeStruct(s, "float32") for s in ((12, 5), (5, 3), (4,))])
            self.assertIn("stablehlo.dot_general", exported.mlir_module())
            found = tj.jit(lambda x, w, call=exported.call: call(x, w, jnp.zeros(4)))(split(rows), w)
            same(found["y"], np.tanh(rows @ w))
            np.testing.assert_array_equal(ts.device_get(found["s"]), np.sort(rows, 0))

    def test_shapes_are_evaluated_with_static_arguments(self):
        self.assertEqual(tj.jit(lambda x, kind: x.astype(kind), static_argnames="kind").eval_shape(rows, kind=np.dtype("int8")).dtype, np.int8)

    def test_a_static_argument_without_hash_is_named(self):
        with self.assertRaisesRegex(ValueError, "Non-hashable static arguments .* of type <class 'list'>(.|\n)* argument 1"):
            tj.jit(lambda x, n: x, static_argnums=1)(rows, [3])

    def test_static_arguments_by_number_are_static_by_name_too(self):
        f = tj.jit(lambda x, n: x[:n], static_argnums=1)
        self.assertEqual(f(split(rows), 3).shape, (3, 5))
        self.assertEqual(f(split(rows), n=2).shape, (2, 5))

    def test_a_donated_argument_is_deleted(self):
        x = split(rows)
        x.block_until_ready()
        tj.jit(lambda v: v + 1, donate_argnums=0)(x).block_until_ready()
        self.assertTrue(x.is_deleted())

    def test_out_shardings_are_jax_s(self):
        found = tj.jit(lambda x: x * 2, out_shardings=NamedSharding(mesh, P(None, "x")))(split(rows))
        self.assertTrue(is_split_by_columns(found))

    def test_trees_of_keys_and_numbers_pass(self):
        key = jax.random.key(3)
        found = tj.jit(lambda k, t: {"a": jax.random.normal(k, (4,)) * t[0], "b": None})(key, (2.0, None))
        same(found["a"], jax.random.normal(key, (4,)) * 2, 1e-6)
        self.assertIsNone(found["b"])

    def test_a_weak_number_keeps_the_dtype_of_what_it_meets(self):
        self.assertEqual(tj.jit(lambda x, s: x * s)(ts.ones((3,), "bfloat16"), 2.0).dtype, ts.bfloat16)

    def test_float64_of_numpy_is_float32_unless_x64_is_on(self):
        self.assertEqual(tj.jit(lambda x: x + 1)(np.ones(3)).dtype, ts.float32)


class Dispatch(unittest.TestCase):
    """Calls after the first one."""

    tree = {f"layer {n}": {"w": rows[:n + 1], "b": rows[0]} for n in range(10)}

    def test_a_tree_that_was_seen_before_goes_straight_to_its_program(self):
        f = tj.jit(lambda t: jax.tree_util.tree_map(lambda x: x * 2, t))
        placed = tj.array(self.tree)
        f(placed)
        f._program = None  # the way of a new signature
        found = f(placed)
        for name, part in self.tree.items():
            same(found[name]["w"], part["w"] * 2)
        del f._program
        same(f(self.tree)["layer 3"]["w"], self.tree["layer 3"]["w"] * 2)  # leaves of NumPy

    def test_results_of_jax_numpy_are_found_as_arrays_are(self):
        made = [jnp.sin(split(rows)) for _ in range(3)]
        f = tj.jit(lambda t, batch: [x + batch for x in t])
        expected = np.sin(rows) + rows
        for batch in (rows, split(rows), jnp.asarray(rows)):
            for found in f(made, batch):
                same(found, expected)
        f._program = None  # from the second call on all leaves are known
        for found in f(made, split(rows)):
            same(found, expected)

    def test_settings_of_the_trace_are_part_of_the_signature(self):
        f = tj.jit(lambda x: x + jnp.zeros(3))
        x = ts.ones((3,), "float32")
        self.assertEqual(f(x).dtype, ts.float32)
        scope = jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()
        with scope:
            self.assertEqual(f(x).dtype, ts.float64)
        self.assertEqual(f(x).dtype, ts.float32)

    def test_twenty_leaves_cost_at_most_20_us_more_than_without_jax(self):
        placed = tj.array(self.tree)
        ours = tj.jit(lambda t: jax.tree_util.tree_map(lambda x: x + 1, t))
        plain = ts.jit(lambda t: {name: {key: x + 1 for key, x in part.items()} for name, part in t.items()})

        def seconds_of(f):
            before = time.process_time()
            for _ in range(200):
                f(placed)
            return (time.process_time() - before) / 200

        for f in (ours, plain):
            ts.block_until_ready(f(placed))
        pairs = [(seconds_of(ours), seconds_of(plain)) for _ in range(7)]
        over = min(a for a, _ in pairs) - min(b for _, b in pairs)
        if mesh.size == 1:  # on more ranks the time of waiting is counted, too
            self.assertLess(over, 20e-6)


class Primitives(unittest.TestCase):
    def compare(self, function, *arguments, tolerance=1e-4):
        expected = jax.tree_util.tree_leaves(jax.jit(function)(*arguments))
        found = jax.tree_util.tree_leaves(tj.jit(function)(*[split(a) if isinstance(a, np.ndarray) and a.ndim else a for a in arguments]))
        for ours, theirs in zip(found, expected):
            self.assertEqual(str(ours.dtype), str(theirs.dtype))
            same(ours, theirs, tolerance)

    def test_loops_and_branches_are_those_of_jax(self):
        self.compare(lambda x: lax.scan(lambda c, t: (c * 0.5 + t, c.sum()), jnp.zeros(5), x), rows)
        self.compare(lambda x: lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] * 2), (0, x)), rows)
        self.compare(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), rows)
        self.compare(jax.vmap(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * 2 + 1, jnp.abs(x))), rows[:, 0].copy())

    def test_indices_out_of_range_are_filled_clipped_or_dropped(self):
        far = np.array([0, 3, 50, -1])
        self.compare(lambda x, i: (x[i], x.at[i].get(mode="fill", fill_value=7.0), x.at[i].get(mode="clip")), rows, far)
        self.compare(lambda x, i: (x.at[i].add(1.0), x.at[i].set(0.0, mode="drop"), x.at[i, 1:3].mul(2.0)), rows, far)
        self.compare(lambda x: x.at[jnp.array([2, 2])].apply(jnp.sin), rows)

    def test_integers_divide_and_overflow_as_for_xla(self):
        numbers = np.array([-7, 7, 0, -2147483648], "i")
        self.compare(lambda i: (lax.div(i, i * 0 - 2), lax.rem(i, i * 0 + 3), lax.div(i, i * 0), i * i, lax.clz(i)), numbers)

    def test_linear_algebra_is_the_distributed_one(self):
        square = rng.standard_normal((12, 12)).astype("f")
        positive = square @ square.T + 12 * np.eye(12, dtype="f")
        self.compare(lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.slogdet(a)[1], jnp.linalg.inv(a)), positive, rows)
        self.compare(jax.grad(lambda a: jnp.linalg.slogdet(a)[1]), positive)

    def test_cholesky_of_an_indefinite_matrix_is_nan(self):
        self.assertTrue(np.isnan(ts.device_get(tj.jit(jnp.linalg.cholesky)(split(-np.eye(12, dtype="f"))))[3, 3]))

    def test_pooling_has_jax_s_gradient(self):
        images = rng.standard_normal((4, 2, 8, 8)).astype("f")
        pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")  # noqa: E731
        self.compare(jax.grad(lambda x: jnp.sum(pool(x) ** 2)), images)

    def test_random_bits_are_jax_s(self):
        for draw in (jax.random.normal, jax.random.uniform, jax.random.gumbel):
            key = jax.random.PRNGKey(5)
            same(tj.jit(lambda k, d=draw: d(k, (6, 3)))(key), draw(key, (6, 3)), 1e-6)


class DoublePrecision(Primitives):
    """The same with 64 bits, and what only they have."""

    def setUp(self):
        scope = jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()
        scope.__enter__()
        self.addCleanup(scope.__exit__, None, None, None)

    def test_float64_complex128_and_int64_stay(self):
        host = rows.astype(float)
        self.compare(lambda x: (x.sum(0), jnp.exp(x).mean(), jnp.fft.fft(x, axis=0), x @ x.T, jnp.round(x * 1e9).astype(jnp.int64) % 1000003), host, tolerance=1e-12)
        self.compare(lambda x: (lax.reduce_precision(x, 8, 23), x + 1j, jnp.arange(5) * 2 ** 40, jnp.linspace(0, 1, 7), x.astype(jnp.float32) * 2), host, tolerance=1e-12)
        self.compare(jax.grad(lambda x: jnp.sum(jnp.linalg.inv(x.T @ x + jnp.eye(5)))), host, tolerance=1e-10)
        self.compare(lambda x: lax.fori_loop(0, 5, lambda i, v: v * 0.9 + i, x), host, tolerance=1e-12)

    def test_random_numbers_of_64_bits_are_jax_s(self):
        self.compare(lambda k: (jax.random.normal(k, (5, 3)), jax.random.bits(k, (4,), "uint64"), jax.random.randint(k, (6,), 0, 2 ** 40)), jax.random.PRNGKey(2), tolerance=1e-12)


class Ranks(unittest.TestCase):
    def test_collectives_of_shard_map_know_the_ranks(self):
        n = mesh.size
        host = np.arange(12.0 * n, dtype="f").reshape(n * 4, 3)
        mapped = jax.shard_map(lambda x: (lax.psum(x, "x"), lax.ppermute(x, "x", [(i, (i + 1) % n) for i in range(n)])), mesh=mesh, in_specs=P("x"), out_specs=(P(), P("x")))
        total, moved = tj.jit(mapped)(split(host))
        same(total, host.reshape(n, 4, 3).sum(0))
        same(moved, np.roll(host, 4, 0))

    def test_a_constraint_places_what_is_computed(self):
        found = tj.jit(lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P(None, "x"))))(split(rows))
        self.assertTrue(is_split_by_columns(found))


class Eager(unittest.TestCase):
    def test_jax_numpy_takes_arrays_of_tessera(self):
        found = jnp.sin(split(rows)) + 1
        self.assertIsInstance(found, jax.Array)
        np.testing.assert_allclose(np.asarray(found), np.sin(rows) + 1, rtol=1e-5, atol=1e-6)

    def test_arrays_like_those_of_tessera_are_made(self):
        x = split(rows)
        for found, expected in ((jnp.zeros_like(x), 0), (jnp.full_like(x, 3), 3), (jnp.ones_like(x, dtype="int32"), 1), (jnp.empty_like(x, shape=(2,)), 0)):
            self.assertTrue((np.asarray(found) == expected).all())

    def test_results_stay_split(self):
        placed = split(rows)
        self.assertEqual(jnp.sin(placed).__tessera_array__.sharding.spec, placed.sharding.spec)


class Effects(unittest.TestCase):
    def test_pure_callback_gives_values_back(self):
        call = lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2  # noqa: E731
        same(tj.jit(call)(split(rows)), np.sin(rows) * 2)

    def test_io_callback_is_called_by_one_rank(self):
        calls = []
        found = tj.jit(lambda x: jax.experimental.io_callback(lambda v: calls.append(1) or np.float32(v.sum()), jax.ShapeDtypeStruct((), np.float32), x))(split(rows))
        same(found, rows.sum(), 1e-4)
        self.assertEqual(len(calls), 1 if ts.is_main_process() else 0)

    def test_debug_print_prints_once(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            tj.jit(lambda x: (jax.debug.print("sum {s}", s=(x * 0).sum()), x)[1])(split(rows)).block_until_ready()
        self.assertEqual(out.getvalue(), "sum 0.0\n" if ts.is_main_process() else "")


class Lines(unittest.TestCase):
    def test_what_cannot_be_carried_is_told_with_its_line(self):
        with self.assertRaisesRegex(tj.NotCarried, r"at test_jax\.py:\d+.*int4"):
            tj.jit(lambda x: x.astype(jnp.int4) + 1)(split(rows))

    def test_the_recorded_ops_cite_the_program(self):
        text = str(tj.jit(lambda x: jnp.linalg.solve(x, x)).lower(split(np.eye(12, dtype="f"))).compile().as_text())
        self.assertIn("test_jax.py", text)


class Page(unittest.TestCase):
    def test_the_page_s_program_runs_as_it_stands_there(self):
        page = pathlib.Path(__file__).resolve().parents[3] / "scripts/site/pages/from-jax.md"
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)
        self.assertEqual(len(blocks), 1)
        exec(compile(blocks[0], str(page), "exec"), {})


if __name__ == "__main__":
    unittest.main()
