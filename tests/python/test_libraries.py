"""Files, checkpoints, debugging, random draws, networks' functions, other processes."""
import contextlib
import io
import os
import tempfile
import unittest

import numpy as np

import tessera as ts
from layouts import assert_same, spread, values

rows = np.arange(42, dtype=np.float32).reshape(7, 6)


class Folder(unittest.TestCase):
    """A folder that all processes share: the first one makes it."""

    def setUp(self):
        name = tempfile.mkdtemp() if ts.is_main_process() else ""
        letters = np.frombuffer(name.encode().ljust(200), np.uint8)
        self.folder = bytes(ts.multihost.broadcast_one_to_all(letters)).decode().strip()

    def tearDown(self):
        ts.multihost.sync_global_devices("done")
        if ts.is_main_process():
            import shutil
            shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)


class Files(Folder):
    def test_npy_from_every_layout_to_every_layout(self):
        for x in spread(rows):
            ts.io.save_npy(self.path("a.npy"), x)
            np.testing.assert_array_equal(np.load(self.path("a.npy")), rows)
            if x.committed:
                again = ts.io.load_npy(self.path("a.npy"), x.sharding)
                self.assertEqual(again.sharding, x.sharding)
                assert_same(again, rows)
        assert_same(ts.io.load_npy(self.path("a.npy")), rows)
        info = ts.io.npy_info(self.path("a.npy"))
        self.assertEqual((info.shape, info.dtype), ((7, 6), ts.float32))

    def test_hdf5(self):
        for x in spread(rows):
            ts.io.save_hdf5(self.path("a.h5"), "group/a", x, mode="replace")
        assert_same(ts.io.load_hdf5(self.path("a.h5"), "group/a"), rows)
        self.assertEqual([n.strip("/") for n in ts.io.hdf5_datasets(self.path("a.h5"))], ["group/a"])
        self.assertRaises(OSError, lambda: ts.io.save_hdf5(self.path("a.h5"), "group/a", ts.ones(1), mode="append"))
        self.assertRaises(ValueError, lambda: ts.io.save_hdf5(self.path("a.h5"), "b", ts.ones(1), mode="rub out"))

    def test_checkpoints_of_trees(self):
        for x in spread(rows):
            tree = {"layers": [(x, x * 2)], "step": ts.array(3), "none": None}
            directory = self.path(f"checkpoints{len(os.listdir(self.folder))}")
            ts.multihost.sync_global_devices("named")
            ts.checkpoint.save(directory, 3, tree)
            self.assertEqual(ts.checkpoint.latest_step(directory), 3)
            again = ts.checkpoint.restore(directory, ts.tree_map(lambda a: a * 0, tree))
            assert_same(again["layers"][0][1], rows * 2)
            self.assertEqual(again["layers"][0][0].sharding, x.sharding)
            self.assertIsNone(again["none"])
        self.assertRaises(OSError, lambda: ts.io.checkpoint.restore(directory, {"other": x}))


class Managers(Folder):
    def steps(self):
        ts.multihost.sync_global_devices("looked")
        return sorted(n for n in os.listdir(self.folder) if n.startswith("step_") and ".tmp" not in n)  # the next save clears those

    def tree(self, x, step):
        return {"layers": [(x + step, x * 2)], "rate": 0.5, "none": None}

    def test_the_newest_steps_stay_and_the_latest_is_restored(self):
        for x in spread(rows):
            with ts.checkpoint.Manager(self.folder, keep=2, every=2) as saves:
                self.assertEqual([saves.save(step, self.tree(x, step)) for step in range(1, 8)], [False, True] * 3 + [False])
                saves.wait()
                self.assertEqual(self.steps(), ["step_00000004", "step_00000006"])
                saves.save_now(7, self.tree(x, 7))
                step, tree = saves.restore(ts.tree_map(lambda a: a * 0, self.tree(x, 0)))
            self.assertEqual(step, 7)
            assert_same(tree["layers"][0][0], rows + 7)
            self.assertEqual(tree["layers"][0][0].sharding, x.sharding)
            self.assertEqual(float(tree["rate"]), 0.5)
            assert_same(ts.checkpoint.restore(self.folder, self.tree(x, 0))["layers"][0][1], rows * 2)
            self.tearDown()
            self.setUp()

    def test_an_empty_folder_gives_back_what_is_given(self):
        like = {"x": ts.ones(3)}
        with ts.io.checkpoint.Manager(self.path("none")) as saves:
            step, tree = saves.restore(like)
        self.assertIsNone(step)
        self.assertIs(tree, like)

    def test_an_exception_leaves_whole_steps_alone(self):
        x = ts.arange(6)
        with self.assertRaises(ZeroDivisionError):
            with ts.checkpoint.Manager(self.folder) as saves:
                saves.save_now(1, x)
                saves.save(2, x)
                raise ZeroDivisionError
        self.assertIn(self.steps(), (["step_00000001"], ["step_00000001", "step_00000002"]))  # whether the second was written by then

    def test_a_closed_one_says_so(self):
        saves = ts.checkpoint.Manager(self.folder)
        saves.save(1, ts.arange(3))
        saves.close()
        saves.close()
        self.assertEqual(self.steps(), ["step_00000001"])
        with self.assertRaisesRegex(ts.ArgumentError, r"test_libraries.py:\d+: it is closed; make another one"):
            saves.save(2, ts.arange(3))

    def test_what_cannot_be_kept_is_refused(self):
        self.assertRaisesRegex(ValueError, "keep is -1", lambda: ts.checkpoint.Manager(self.folder, keep=-1))
        saves = ts.checkpoint.Manager(self.folder)
        self.assertRaisesRegex(ValueError, "step -1 is negative", lambda: saves.save(-1, ts.ones(2)))
        saves.save_now(3, {"a": ts.ones(2)})
        self.assertRaises(OSError, lambda: saves.restore({"b": ts.ones(2)}))
        saves.close()


class Debugging(unittest.TestCase):
    def printed(self, call):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            call()
        return out.getvalue()

    def test_what_is_printed_is_printed_once(self):
        text = self.printed(lambda: ts.debug.print("loss {} of {name}", ts.array(2.5), name="x"))
        self.assertEqual(text, "loss 2.5 of x\n" if ts.is_main_process() else "")
        text = self.printed(lambda: ts.debug.visualize_sharding((8, 8), ts.SingleDeviceSharding(ts.devices()[0]), use_color=False))
        self.assertEqual("CPU 0" in text, ts.is_main_process())

    def test_communication_is_counted_and_explained(self):
        n = ts.device_count()
        x = ts.device_put(ts.ones((n, 4)), ts.NamedSharding(ts.make_mesh((n,), ("x",)), ts.P("x")))
        x.block_until_ready()
        with ts.CommStats() as stats:
            ts.sum(x, axis=0).block_until_ready()
        self.assertEqual(stats.calls("all-reduce"), 1 if n > 1 else 0)
        self.assertRegex(repr(stats), r"^CommStats\(all-reduce: 1 call, [\d.]+ \w+\)$" if n > 1 else r"^CommStats\(no collectives\)$")
        explained = ts.explain(lambda a: ts.sum(a, axis=0), x)
        self.assertEqual(explained.calls("all-reduce"), stats.calls("all-reduce"))
        jitted = ts.jit(lambda a: ts.sum(a, axis=0), in_shardings=x.sharding)  # its options count
        self.assertEqual(ts.explain(jitted, ts.zeros(x.shape)).calls("all-reduce"), explained.calls("all-reduce"))
        if n > 1:
            self.assertRaises(ValueError, lambda: explained.forbid("all-reduce"))
            self.assertEqual(explained.collectives[0].axes, "x")
        self.assertIs(explained.forbid("all-to-all"), explained)
        self.assertEqual(explained.cost.communication_calls, explained.calls())
        self.assertEqual(explained.host_crossing_bytes(), 0)

    def test_reproducible_keeps_to_one_order(self):
        mesh = ts.make_mesh((ts.device_count(),), ("x",))
        values = np.random.default_rng(3).uniform(-1, 1, (1000, 7)).astype(np.float32)
        x = ts.device_put(values, ts.NamedSharding(mesh, ts.P("x")))

        def loss(v):
            return ts.mean(ts.exp(v) @ ts.ones((7, 3), ts.float32))

        self.assertFalse(ts.is_reproducible())
        with ts.reproducible():
            self.assertTrue(ts.is_reproducible())
            alone, split = loss(ts.asarray(values)), loss(x)
            with ts.reproducible(False):
                self.assertFalse(ts.is_reproducible())
        self.assertEqual(np.asarray(alone).tobytes(), np.asarray(split).tobytes())
        compiled = ts.jit(loss, reproducible=True)
        self.assertEqual(np.asarray(compiled(x)).tobytes(), np.asarray(alone).tobytes())
        self.assertIn("tree_sum", compiled.lower(ts.asarray(values)).compile().as_text())
        self.assertIn("the same bits on every number of ranks", str(ts.explain(compiled, x)))

    def test_a_split_system_is_solved_in_the_scope(self):
        values = np.random.default_rng(4).standard_normal((90, 5)).astype(np.float32)
        split = ts.device_put(values, ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x")))
        with ts.reproducible():
            for alone, shared in zip(ts.linalg.lstsq(values, values[:, 0]), ts.linalg.lstsq(split, values[:, 0])):
                self.assertEqual(ts.device_get(alone).tobytes(), ts.device_get(shared).tobytes())
        assert_same(ts.linalg.lstsq(split, values[:, 0])[3], np.linalg.svd(values)[1])

    def test_products_are_computed_as_the_scope_says(self):
        n = ts.device_count()
        grid = ts.NamedSharding(ts.make_mesh((n,), ("x",)), ts.P(None, "x"))
        a, b = ts.device_put(ts.ones((8, 8 * n)), grid), ts.device_put(ts.ones((8 * n, 8 * n)), ts.NamedSharding(grid.mesh, ts.P("x", None)))
        with ts.MatmulScope(memory_limit_bytes=1 << 20):
            assert_same(a @ b, np.full((8, 8 * n), 8 * n, np.float32))
        assert_same(ts.matmul(a, b, algorithm="whole"), np.full((8, 8 * n), 8 * n, np.float32))
        self.assertRaises(ValueError, lambda: ts.MatmulScope("by magic"))
        self.assertRaises(ValueError, lambda: ts.MatmulScope(memory_limit_bytes=-1).__enter__())

    def test_profiles_and_nan_checks(self):
        with ts.debug.profile() as scope:
            ts.sum(ts.ones(3) + 1).block_until_ready()
        self.assertGreater(scope.steps(), 0)
        self.assertIn("least, mean, most", scope.report())
        bar = ts.Progress("steps", 3)
        bar.advance(2, "note")
        self.assertEqual(bar.done(), 2)
        with ts.debug.debug_nans():
            self.assertRaises(FloatingPointError, lambda: ts.log(ts.array([-1.0])).block_until_ready())
        self.assertTrue(np.isnan(float(ts.log(ts.array(-1.0)))))


class Random(unittest.TestCase):
    def test_keys_are_the_words_of_their_seed(self):
        self.assertEqual(ts.random.key_data(ts.random.key(7)).tolist(), [0, 7])
        self.assertEqual(ts.random.key_data(ts.random.PRNGKey(2 ** 32 + 5)).tolist(), [1, 5])

    def test_draws(self):
        key = ts.random.key(1)
        for draw, shape in ((ts.random.uniform(key, (40, 5), minval=2.0, maxval=3.0), (40, 5)), (ts.random.normal(key, (50,), dtype=ts.float64), (50,)), (ts.random.randint(key, (30,), 5, 9), (30,)),
                            (ts.random.bernoulli(key, 0.5, (20,)), (20,)), (ts.random.permutation(key, 10), (10,)), (ts.random.choice(key, 5, (4,), replace=False), (4,)),
                            (ts.random.categorical(key, ts.zeros((3, 4))), (3,)), (ts.random.gamma(key, 2.0, (6,)), (6,)), (ts.random.truncated_normal(key, -1.0, 1.0, (9,)), (9,))):
            self.assertEqual(draw.shape, shape)
        uniform = values(ts.random.uniform(key, (1000,), minval=2.0, maxval=3.0))
        self.assertTrue(((uniform >= 2) & (uniform < 3)).all() and abs(uniform.mean() - 2.5) < 0.05)
        self.assertEqual(sorted(values(ts.random.permutation(key, 10))), list(range(10)))
        keys = ts.random.split(key, 3)
        self.assertEqual(len(keys), 3)
        many = ts.vmap(lambda k: ts.random.normal(k, (2,)))(ts.random.split(key, (4,)))
        self.assertEqual(many.shape, (4, 2))

    def test_split_keys_are_unpacked_or_mapped_over(self):
        key = ts.random.key(5)
        draw = lambda k: ts.random.normal(k, (3,))  # noqa: E731
        expected = np.stack([values(draw(k)) for k in ts.random.split(key, 4)])
        first, *rest = ts.random.split(key, 4)
        self.assertEqual(values(draw(first)).tolist(), expected[0].tolist())
        keys = ts.random.split(key, 4)
        ts.block_until_ready(keys.data)  # computed ones are taken from their values
        for found in (ts.vmap(draw)(keys), ts.lax.scan(lambda c, k: (c, draw(k)), 0, keys)[1], ts.lax.map(draw, keys), np.stack([values(draw(keys[i])) for i in (0, -3, 2, 3)]),
                      ts.vmap(draw)(ts.jit(lambda k: ts.random.split(k, 4))(key)), ts.jit(lambda k: ts.stack([draw(i) for i in ts.random.split(k, 4)]))(key)):
            np.testing.assert_array_equal(values(found), expected)
        self.assertEqual((keys[1:].shape, keys[ts.asarray([0, 2])].shape, len(rest), repr(keys), repr(first)), ((3,), (2,), 3, "Key(shape=(4,))", "Key(shape=())"))
        many = ts.vmap(lambda k: ts.stack([draw(i) for i in ts.random.split(k)]))(keys)
        np.testing.assert_array_equal(values(many[2]), np.stack([values(draw(k)) for k in ts.random.split(keys[2])]))
        with self.assertRaisesRegex(ts.IndexError, r"keys\[i\] at .*: index 4 is out of range for 4 keys"):
            keys[4]
        with self.assertRaisesRegex(ts.ArgumentError, "a single key has no elements; split"):
            a, b = key


class Networks(unittest.TestCase):
    def test_functions(self):
        host = rows / 10 - 2
        for x in spread(host):
            assert_same(ts.nn.relu(x), np.maximum(host, 0))
            assert_same(ts.nn.softmax(x), np.exp(host) / np.exp(host).sum(-1, keepdims=True))
            assert_same(ts.nn.logsumexp(x, axis=0), np.log(np.exp(host).sum(0)))
            assert_same(ts.nn.leaky_relu(x), np.where(host >= 0, host, 0.01 * host))
            assert_same(ts.nn.elu(x), np.where(host > 0, host, np.expm1(host)))
            assert_same(ts.nn.silu(x), host / (1 + np.exp(-host)))
        assert_same(ts.nn.one_hot(ts.array([2, 0]), 3), np.eye(3, dtype=np.float32)[[2, 0]])


    def attention(self, q, k, v, bias=0.0, mask=True):
        scores = np.einsum("bqhf,bkhf->bhqk", q, k) / q.shape[-1] ** 0.5 + bias
        scores = np.where(mask, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("bhqk,bkhf->bqhf", weights / weights.sum(-1, keepdims=True), v)

    def test_attention_is_the_librarys(self):
        draw = np.random.default_rng(0)
        q, k, v = (draw.standard_normal(shape).astype(np.float32) for shape in ((2, 5, 3, 4), (2, 7, 3, 4), (2, 7, 3, 4)))
        bias, mask = draw.standard_normal((3, 5, 7)).astype(np.float32), draw.random((5, 7)) < 0.7
        mask[:, 0] = True
        for x in spread(q):
            assert_same(ts.nn.dot_product_attention(x, k, v), self.attention(q, k, v), 1e-4)
            assert_same(ts.nn.dot_product_attention(x, k, v, bias, ts.asarray(mask)), self.attention(q, k, v, bias, mask), 1e-4)
            assert_same(ts.nn.dot_product_attention(x, k, v, is_causal=True, key_block=3), self.attention(q, k, v, mask=np.arange(7) <= np.arange(5)[:, None]), 1e-4)
        self.assertIn("online softmax", ts.nn.dot_product_attention.__doc__)
        self.assertRaises(TypeError, lambda: ts.nn.dot_product_attention(q, k, v, mask=ts.ones((5, 7))))


class Processes(unittest.TestCase):
    def test_gathering_and_agreeing(self):
        mine = np.full((2,), ts.process_index(), np.int32)
        np.testing.assert_array_equal(ts.multihost.process_allgather(mine), np.repeat(np.arange(ts.process_count(), dtype=np.int32), 2).reshape(-1, 2))
        np.testing.assert_array_equal(ts.multihost.broadcast_one_to_all(mine), [0, 0])
        ts.multihost.assert_equal(np.ones(2))
        ts.multihost.assert_equal(ts.ones(2))
        if ts.process_count() > 1:
            self.assertRaises(ValueError, lambda: ts.multihost.assert_equal(mine))


if __name__ == "__main__":
    unittest.main()
