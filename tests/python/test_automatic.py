"""ts.auto: layouts that jit's planner chooses; checkpoint's policies; what explain tells of both."""
import unittest

import numpy as np

import tessera as ts


class Automatic(unittest.TestCase):
    def test_arguments_get_what_advise_finds_best(self):
        mesh = ts.abstract_mesh((4, 2), ("x", "y"))
        a, b = ts.zeros((512, 2048)), ts.zeros((2048, 64))
        plan = ts.explain(ts.jit(ts.matmul, in_shardings=ts.NamedSharding(mesh, ts.auto)), a, b)
        self.assertEqual(plan.predicted_seconds, ts.advise(ts.matmul, a, b, meshes=mesh).best[0].predicted_seconds)
        self.assertEqual([chosen.what for chosen in plan.layouts], ["argument 0", "argument 1"])
        self.assertIn("automatic argument 0: ", str(plan))

    def test_a_program_runs(self):
        a, b = ts.arange(48.0), ts.arange(6.0)
        step = lambda v, w: {"y": ts.with_sharding_constraint(ts.matmul(ts.reshape(v, (8, 6)), w), ts.auto) + 1}
        g = ts.jit(step, in_shardings=ts.auto, out_shardings={"y": ts.P.automatic})
        wanted = np.arange(48.0, dtype="f").reshape(8, 6) @ np.arange(6.0, dtype="f") + 1
        for _ in range(2):
            np.testing.assert_array_equal(ts.device_get(g(a, b)["y"]), wanted)

    def test_refused_outside_of_jit(self):
        for call in (lambda: ts.device_put(ts.zeros(4), ts.auto), lambda: ts.with_sharding_constraint(ts.zeros(4), ts.auto)):
            with self.assertRaisesRegex(ts.ShardingError, "planner of jit"):
                call()
        self.assertNotEqual(ts.auto, ts.P())
        self.assertTrue(ts.auto.is_automatic)


class Policies(unittest.TestCase):
    @staticmethod
    def block(x, w):
        scores = ts.checkpoint_name(ts.matmul(ts.tanh(ts.matmul(x, w)), w), "scores")
        return ts.sum(ts.exp(ts.sin(scores)))

    def test_gradients_and_what_is_kept(self):
        x = ts.sin(ts.reshape(ts.arange(64.0), (8, 8)))
        w = ts.cos(x)
        wanted = np.asarray(ts.grad(self.block)(x, w))
        p = ts.checkpoint_policies
        kept = {}
        for name, policy in (("nothing", p.nothing_saveable), ("everything", p.everything_saveable), ("dots", p.dots_saveable),
                             ("no batch", p.dots_with_no_batch_dims_saveable), ("names", p.save_only_these_names("scores")),
                             ("others", p.save_anything_except_these_names("scores"))):
            f = ts.checkpoint(self.block, policy=policy)
            np.testing.assert_allclose(np.asarray(ts.grad(f)(x, w)), wanted, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(np.asarray(ts.jit(ts.grad(f))(x, w)), wanted, rtol=1e-4, atol=1e-5)
            kept[name] = ts.explain(ts.grad(f), x, w).kept_bytes()
        self.assertEqual(kept["nothing"], 0)
        self.assertEqual(kept["names"], 256)
        self.assertEqual(kept["dots"], 512)
        self.assertEqual(kept["no batch"], 512)
        self.assertGreater(kept["everything"], 512)
        self.assertIn("kept for the backward pass", str(ts.explain(ts.grad(self.block), x, w)))

    def test_refusals(self):
        with self.assertRaisesRegex(TypeError, "checkpoint_policies"):
            ts.checkpoint(self.block, policy="dots")
