"""Explicit axis types: an array's type says where it is, and results follow JAX's rules of types."""
import unittest

import numpy as np
import tessera as ts

try:
    import tessera.jax as tj
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
except ImportError:
    raise unittest.SkipTest("JAX is not installed") from None
try:
    from jax.sharding import reshard
except ImportError:  # until 0.6
    from jax.experimental.shard import reshard

n = len(jax.devices())
mesh = jax.make_mesh((n,), ("x",), axis_types=(AxisType.Explicit,))
rng = np.random.RandomState(0)
rows, weights = rng.standard_normal((4 * n, 6)).astype("f"), rng.standard_normal((6, 2 * n)).astype("f")


def put(host, *spec):
    return tj.device_put(host, NamedSharding(mesh, P(*spec)))


def shard_shape(x):
    return x.sharding.shard_shape(x.shape)


def spec_of(x):
    """The spec of a traced value's type, without the Nones behind."""
    parts = list(jax.typeof(x).sharding.spec)
    while parts and parts[-1] is None:
        parts.pop()
    return tuple(parts)


class Types(unittest.TestCase):
    def setUp(self):
        scope = jax.set_mesh(mesh) if hasattr(jax, "set_mesh") else jax.sharding.use_mesh(mesh)
        scope.__enter__()
        self.addCleanup(scope.__exit__, None, None, None)

    def run_typed(self, function, *arguments):
        """(the results, the specs that their types had in the trace)"""
        specs = []

        def traced(*values):
            results = function(*values)
            specs.extend(spec_of(r) for r in jax.tree_util.tree_leaves(results))
            return results

        return tj.jit(traced)(*arguments), specs

    def test_arguments_have_their_sharding_as_type(self):
        found, specs = self.run_typed(lambda x: x * 2, put(rows, "x"))
        self.assertEqual(specs, [("x",)])
        np.testing.assert_array_equal(ts.device_get(found), rows * 2)
        self.assertEqual(shard_shape(found), (4, 6))

    def test_a_product_keeps_the_split_rows(self):
        found, specs = self.run_typed(lambda x, w: jnp.tanh(x @ w), put(rows, "x"), put(weights))
        self.assertEqual(specs, [("x",)])
        self.assertEqual(shard_shape(found), (4, 2 * n))
        np.testing.assert_allclose(ts.device_get(found), np.tanh(rows @ weights), rtol=1e-5, atol=1e-5)

    def test_reshard_moves_and_its_result_lies_there(self):
        found, specs = self.run_typed(lambda w: reshard(w, P(None, "x")) + 1, put(weights))
        self.assertEqual(specs, [(None, "x")])
        self.assertEqual(shard_shape(found), (6, 2))
        np.testing.assert_array_equal(ts.device_get(found), weights + 1)

    def test_reshard_of_split_rows_to_columns(self):
        found, _ = self.run_typed(lambda x: reshard(x.T @ x, P("x") if 6 % n == 0 else P()), put(rows)) if n > 1 else (None, None)
        if n > 1:
            np.testing.assert_allclose(ts.device_get(found), rows.T @ rows, rtol=1e-4, atol=1e-4)

    def test_a_sum_over_the_split_dim_is_whole(self):
        found, specs = self.run_typed(lambda x: (x.sum(0), x.sum(1)), put(rows, "x"))
        self.assertEqual(specs, [(), ("x",)])
        np.testing.assert_allclose(ts.device_get(found[0]), rows.sum(0), rtol=1e-5, atol=1e-5)
        self.assertEqual(shard_shape(found[1]), (4,))

    def test_a_contraction_of_split_dims_wants_its_result_s_place(self):
        if n == 1:
            self.skipTest("one rank splits nothing")
        with self.assertRaisesRegex(Exception, "[Cc]ontracting dimensions are sharded|out_sharding"):
            tj.jit(lambda x, y: x.T @ y)(put(rows, "x"), put(rows, "x"))
        found = tj.jit(lambda x, y: jnp.einsum("ki,kj->ij", x, y, out_sharding=P()))(put(rows, "x"), put(rows, "x"))
        np.testing.assert_allclose(ts.device_get(found), rows.T @ rows, rtol=1e-4, atol=1e-4)

    def test_two_arrays_that_lie_otherwise_are_an_error_of_types(self):
        if n == 1:
            self.skipTest("one rank splits nothing")
        square = np.ones((2 * n, 2 * n), "f")
        with self.assertRaises(Exception) as told:
            tj.jit(lambda a, b: a + b)(put(square, "x"), put(square, None, "x"))
        self.assertIn("x", str(told.exception))
        self.assertIn("Sharding", type(told.exception).__name__)

    def test_gradients_lie_as_their_arguments(self):
        loss = lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2)  # noqa: E731
        found = tj.jit(jax.grad(loss))(put(weights, None, "x"), put(rows))
        self.assertEqual(shard_shape(found), (6, 2))
        x, w = rows, weights
        t = np.tanh(x @ w)
        np.testing.assert_allclose(ts.device_get(found), x.T @ (2 * t * (1 - t ** 2) / t.size), rtol=1e-4, atol=1e-5)

    def test_loops_keep_their_carry_s_place(self):
        found, specs = self.run_typed(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3)[0], put(rows, "x"))
        self.assertEqual(specs, [("x",)])
        np.testing.assert_allclose(ts.device_get(found), np.sin(np.sin(np.sin(rows))), rtol=1e-5, atol=1e-5)

    def test_automatic_axes_inside_of_explicit_ones(self):
        if not hasattr(jax.sharding, "auto_axes"):
            self.skipTest("before auto_axes")
        part = jax.sharding.auto_axes(lambda x, y: x.T @ y, axes="x", out_sharding=P())
        found = tj.jit(part)(put(rows, "x"), put(rows, "x"))
        np.testing.assert_allclose(ts.device_get(found), rows.T @ rows, rtol=1e-4, atol=1e-4)

    def test_collectives_of_shard_map_in_an_explicit_mesh(self):
        found = tj.jit(jax.shard_map(lambda x: lax.psum(x.sum(0), "x"), in_specs=P("x"), out_specs=P()))(put(rows, "x"))
        np.testing.assert_allclose(ts.device_get(found), rows.sum(0), rtol=1e-4, atol=1e-4)

    def test_outside_of_jit_results_stay_where_types_say(self):
        found = jnp.sin(put(rows, "x"))
        self.assertEqual(shard_shape(found.__tessera_array__), (4, 6))
        moved = reshard(put(weights), P(None, "x"))
        np.testing.assert_array_equal(np.asarray(moved), weights)

    def test_a_mesh_of_the_same_form_without_explicit_axes_is_another(self):
        if n == 1:
            self.skipTest("extents of one device are divided")
        with jax.set_mesh(jax.make_mesh((n,), ("x",), axis_types=(AxisType.Auto,))) if hasattr(jax, "set_mesh") else self.skipTest("before set_mesh"):
            automatic = jax.make_mesh((n,), ("x",), axis_types=(AxisType.Auto,))
            odd = tj.device_put(np.arange(4.0 * n + 1, dtype="f"), NamedSharding(automatic, P("x")))  # no explicit axes could split it
            found = tj.jit(lambda x: jnp.sin(x) + 1)(odd)
            np.testing.assert_allclose(ts.device_get(found), np.sin(np.arange(4.0 * n + 1)) + 1, rtol=1e-5, atol=1e-5)

    def test_new_arrays_take_the_place_that_is_named(self):
        found, specs = self.run_typed(lambda: jnp.zeros((2 * n, 3), out_sharding=P("x")) + 1) if "out_sharding" in jnp.zeros.__code__.co_varnames else (None, [("x",)])
        self.assertEqual(specs, [("x",)])


if __name__ == "__main__":
    unittest.main()
