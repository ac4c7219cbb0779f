"""ts.advise: layouts by the planner's model; ts.simulate: a program's run on a machine that is not there."""
import unittest

import tessera as ts


class Advise(unittest.TestCase):
    def test_the_best_is_the_least_of_all(self):
        mesh = ts.abstract_mesh((4, 2), ("x", "y"))
        product = lambda a, b: ts.matmul(a, b)
        advice = ts.advise(product, ts.zeros((512, 2048)), ts.ShapeDtypeStruct((2048, 64), ts.float32), meshes=mesh)
        self.assertTrue(advice.is_exhaustive)
        seconds = [layout.predicted_seconds for layout in advice.best]
        self.assertEqual(seconds, sorted(seconds))
        a, b = advice.best[0].shardings
        put = lambda shape, s: ts.device_put(ts.zeros(shape), s)
        self.assertEqual(ts.explain(product, put((512, 2048), a), put((2048, 64), b)).predicted_seconds, seconds[0])
        replicated = ts.NamedSharding(mesh, ts.P())
        self.assertLessEqual(seconds[0], ts.explain(product, put((512, 2048), replicated), put((2048, 64), replicated)).predicted_seconds)

    def test_trees_numbers_and_meshes(self):
        step = lambda params, x, rate: {"w": params["w"] - rate * ts.matmul(x.T, ts.matmul(x, params["w"]))}
        advice = ts.advise(step, {"w": ts.zeros((64, 8))}, ts.zeros((100000, 64)), 0.1, meshes=ts.meshes_of(8))
        self.assertEqual(len(advice.best[0].shardings), 2)
        self.assertIn("received", str(advice))
        limited = ts.advise(step, {"w": ts.zeros((64, 8))}, ts.zeros((100000, 64)), 0.1, meshes=ts.meshes_of(8), memory_limit_bytes=12 << 20)
        self.assertTrue(limited.best[0].is_within_memory_limit)
        self.assertFalse(limited.best[0].shardings[1].is_fully_replicated)  # 25.6 MB

    def test_refusals(self):
        with self.assertRaisesRegex(ts.ArgumentError, "no array"):
            ts.advise(lambda n: ts.zeros(n), 3)
        with self.assertRaisesRegex(ts.ArgumentError, "keep names leaf 5"):
            ts.advise(lambda a: a, ts.zeros(3), keep=[5])
