"""What tessera.jax is bound to beside the public functions; JAX itself is not needed for it."""
import unittest

import numpy as np
import tessera as ts

internals = ts._core.jax
mesh = ts.make_mesh((ts.device_count(),), ("x",))


def split(host):
    return ts.device_put(ts.asarray(host), ts.NamedSharding(mesh, ts.P("x")))


class HostCall(unittest.TestCase):
    def call(self, function, x, shape, callers):
        return ts.jit(lambda v: internals.host_call(lambda host: [function(host)], [v], [(shape, "float32")], callers)[0] + 1)(x)

    def test_a_pure_function_gets_the_whole_array_and_gives_one_back(self):
        host = np.arange(14, dtype="f").reshape(7, 2)
        np.testing.assert_array_equal(ts.device_get(self.call(lambda x: x[:, 0] * 2, split(host), (7,), internals.Callers.all)), host[:, 0] * 2 + 1)

    def test_any_other_function_is_called_by_the_first_rank_alone(self):
        calls = []
        found = self.call(lambda x: calls.append(1) or x.sum(), split(np.ones((7, 2), "f")), (), internals.Callers.one)
        self.assertEqual(float(found), 15)
        self.assertEqual(len(calls), 1 if ts.is_main_process() else 0)

    def test_a_function_that_every_rank_calls_gives_the_first_ranks_result(self):
        calls = []
        found = self.call(lambda x: calls.append(1) or np.float32(x.sum() + ts.process_index()), split(np.ones((7, 2), "f")), (), internals.Callers.each)
        self.assertEqual((float(found), len(calls)), (15, 1))

    def test_a_result_of_another_shape_is_an_error_after_which_the_job_goes_on(self):
        for callers in (internals.Callers.all, internals.Callers.one, internals.Callers.each):
            with self.assertRaisesRegex(ts.UserError, r"result 0 of the function is \(7, 2\) and not \(3,\)|has failed on rank 0"):
                float(ts.sum(self.call(lambda x: x, split(np.ones((7, 2), "f")), (3,), callers)))
            self.assertEqual(float(ts.sum(split(np.ones((7, 2), "f")))), 14)


class Cholesky(unittest.TestCase):
    def test_only_the_matrix_that_is_not_positive_definite_is_nan(self):
        good = np.array([[4, 2], [2, 3]], "f")
        found = ts.device_get(internals.cholesky(ts.asarray(np.stack([good, -good, good]))))
        np.testing.assert_allclose(found[[0, 2]], np.stack([np.linalg.cholesky(good)] * 2), rtol=1e-6)
        np.testing.assert_array_equal(found[1], [[np.nan, 0], [np.nan, np.nan]])

    def test_a_split_matrix_that_is_not_positive_definite_is_nan_below(self):
        found = ts.device_get(internals.cholesky(split(-np.eye(9, dtype="f"))))
        self.assertTrue(np.isnan(found[np.tril_indices(9)]).all())


class Solve(unittest.TestCase):
    def test_a_zero_pivot_is_divided_by(self):
        for n in (3, 40):  # of small systems, and of LAPACK's
            singular, sides = np.ones((n, n), "f"), np.arange(2 * n, dtype="f").reshape(n, 2)
            found = ts.device_get(internals.solve(split(singular), split(sides)))
            self.assertFalse(np.isfinite(found[[0, -1]]).any())
            both = ts.device_get(internals.solve(split(np.stack([2 * np.eye(n, dtype="f"), singular])), split(np.stack([sides, sides]))))
            np.testing.assert_array_equal(both[0], sides / 2)
            self.assertFalse(np.isfinite(both[1, -1]).any())
            with self.assertRaises(ts.LinAlgError):
                ts.block_until_ready(ts.linalg.solve(split(singular), split(sides)))


class Pivots(unittest.TestCase):
    def test_exchanges_are_the_permutation_of_their_rows(self):
        factor, pivots = ts.linalg.lu_factor(ts.asarray(np.array([[1, 2], [3, 4]], "f")))
        np.testing.assert_array_equal(ts.device_get(internals.pivots_to_permutation(pivots, 2)), [1, 0])


if __name__ == "__main__":
    unittest.main()
