"""JAX's two tutorials of distributed arrays at 8 processes, with `jax` and `jax.numpy` imported from here, and smaller sizes.

The other tutorials' cells and outputs are those of their notebooks, which tests/tutorials/notebooks.py runs and compares.
"""
import contextlib
import io
import unittest

import numpy as np

import tessera as jax
import tessera as jnp
from layouts import values
from tessera.sharding import Mesh, NamedSharding, PartitionSpec as P, PositionalSharding

process_allgather = jax.device_get


def same(found, expected, tolerance=1e-4):
    np.testing.assert_allclose(values(found), expected, rtol=tolerance, atol=tolerance)


def picture(x):
    """What visualize_array_sharding prints: on the first process alone."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        jax.debug.visualize_array_sharding(x, use_color=False)
    return out.getvalue()


# The network of both tutorials about distributed arrays.
def predict(params, inputs):
    for W, b in params:
        outputs = jnp.dot(inputs, W) + b
        inputs = jnp.maximum(outputs, 0)
    return outputs


def loss(params, batch):
    inputs, targets = batch
    predictions = predict(params, inputs)
    return jnp.mean(jnp.sum((predictions - targets) ** 2, axis=-1))


loss_jit = jax.jit(loss)
gradfun = jax.jit(jax.grad(loss))


def init_layer(key, n_in, n_out):
    k1, k2 = jax.random.split(key)
    W = jax.random.normal(k1, (n_in, n_out)) / jnp.sqrt(n_in)
    b = jax.random.normal(k2, (n_out,))
    return W, b


def init_model(key, layer_sizes, batch_size):
    key, *keys = jax.random.split(key, len(layer_sizes))
    params = list(map(init_layer, keys, layer_sizes[:-1], layer_sizes[1:]))
    key, *keys = jax.random.split(key, 3)
    inputs = jax.random.normal(keys[0], (batch_size, layer_sizes[0]))
    targets = jax.random.normal(keys[1], (batch_size, layer_sizes[-1]))
    return params, (inputs, targets)


class DistributedArrays(unittest.TestCase):
    """Distributed arrays and automatic parallelization."""

    n = 64

    def test_layouts_and_their_pictures(self):
        mesh = jax.make_mesh((4, 2), ("a", "b"))
        x = jax.random.normal(jax.random.key(0), (self.n, self.n))
        for spec, blocks in ((P("a", "b"), 8), (P("b", "a"), 8), (P("a", None), 4), (P(None, "b"), 2), (P(None, "a"), 4), (P(("a", "b"), None), 8)):
            y = jax.device_put(x, NamedSharding(mesh, spec))
            shown = picture(y)
            if jax.is_main_process():
                self.assertEqual(shown.count("CPU"), blocks, shown)
            else:
                self.assertEqual(shown, "")
            self.assertEqual(jnp.sin(y).sharding, y.sharding)

    def test_a_product_follows_its_operands(self):
        mesh = jax.make_mesh((4, 2), ("a", "b"))
        x = jax.random.normal(jax.random.key(0), (self.n, self.n))
        y = jax.device_put(x, NamedSharding(mesh, P("a", None)))
        z = jax.device_put(x, NamedSharding(mesh, P(None, "b")))
        w = jnp.dot(y, z)
        self.assertEqual(w.sharding, NamedSharding(mesh, P("a", "b")))
        x_single = jax.device_put(x, jax.devices()[0])
        same(w, process_allgather(jnp.dot(x_single, x_single)), 1e-3)
        self.assertEqual(jnp.copy(w).sharding, w.sharding)

    def test_explicit_layouts_do_not_mix(self):
        x = jax.random.normal(jax.random.key(0), (self.n, self.n))
        y = jax.device_put(x, NamedSharding(Mesh(jax.devices()[:4], "x"), P("x")))
        z = jax.device_put(x, NamedSharding(Mesh(jax.devices()[4:], "x"), P("x")))
        self.assertRaises(ValueError, lambda: y + z)
        devices = jax.devices()
        permuted_devices = [devices[i] for i in [0, 1, 2, 3, 6, 7, 4, 5]]
        y = jax.device_put(x, NamedSharding(Mesh(devices, "x"), P("x")))
        z = jax.device_put(x, NamedSharding(Mesh(permuted_devices, "x"), P("x")))
        self.assertRaises(ValueError, lambda: y + z)
        y + jnp.ones_like(y)
        y + jnp.arange(y.size).reshape(y.shape)

    def test_constraints_inside_jit(self):
        mesh = jax.make_mesh((4, 2), ("x", "y"))
        x = jax.device_put(jax.random.normal(jax.random.key(0), (self.n, self.n)), NamedSharding(mesh, P("x", "y")))
        for spec in (P("y", "x"), P()):
            @jax.jit
            def f(x):
                x = x + 1
                y = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))  # noqa: B023
                return y

            self.assertEqual(f(x).sharding, NamedSharding(mesh, spec))

    def test_a_network_with_batch_and_model_parallelism(self):
        params0, batch0 = init_model(jax.random.key(0), [20, 64, 64, 64, 10], 64)
        first = float(loss_jit(params0, batch0))
        finals = []

        def train(params, batch):
            step_size = 1e-3
            for _ in range(5):
                grads = gradfun(params, batch)
                params = [(W - step_size * dW, b - step_size * db) for (W, b), (dW, db) in zip(params, grads)]
            finals.append(float(loss_jit(params, batch)))
            return params

        train(params0, batch0)
        mesh = jax.make_mesh((8,), ("batch",))
        batch = jax.device_put(batch0, NamedSharding(mesh, P("batch")))
        params = jax.device_put(params0, NamedSharding(mesh, P()))
        self.assertAlmostEqual(float(loss_jit(params, batch)), first, places=2)
        train(params, batch)

        mesh = jax.make_mesh((4, 2), ("batch", "model"))
        batch = jax.device_put(batch0, NamedSharding(mesh, P("batch", None)))
        replicated = NamedSharding(mesh, P())
        (W1, b1), (W2, b2), (W3, b3), (W4, b4) = params0
        W1, b1, b3, W4, b4 = jax.device_put((W1, b1, b3, W4, b4), replicated)
        W2 = jax.device_put(W2, NamedSharding(mesh, P(None, "model")))
        b2 = jax.device_put(b2, NamedSharding(mesh, P("model")))
        W3 = jax.device_put(W3, NamedSharding(mesh, P("model", None)))
        params = train(((W1, b1), (W2, b2), (W3, b3), (W4, b4)), batch)
        self.assertEqual(params[1][0].sharding, W2.sharding)
        self.assertEqual(params[2][0].sharding, W3.sharding)
        self.assertLess(finals[0], first)
        np.testing.assert_allclose(finals, finals[0], rtol=1e-4)

    def test_random_draws_send_nothing(self):
        @jax.jit
        def f(key, x):
            numbers = jax.random.uniform(key, x.shape)
            return x + numbers

        key = jax.random.key(42)
        x = jax.device_put(jnp.arange(24), NamedSharding(Mesh(jax.devices(), "x"), P("x")))
        f_exe = f.lower(key, x).compile()
        self.assertNotIn("collective-permute", f_exe.as_text())
        try:
            jax.config.update("jax_threefry_partitionable", False)
            stable = values(f(key, x))
        finally:
            jax.config.update("jax_threefry_partitionable", True)
        self.assertFalse(np.array_equal(stable, values(f(key, x))))
        np.testing.assert_array_equal(np.floor(stable), np.arange(24))
        same(f(key, x), np.arange(24) + values(jax.random.uniform(key, (24,))))


class DistributedArraysOf2022(unittest.TestCase):
    """jax.Array migration: the first tutorial on distributed arrays, with PositionalSharding. Values kept from JAX 0.10.2."""
    n = 64

    def setUp(self):
        self.x = jax.random.normal(jax.random.PRNGKey(0), (self.n, self.n))

    def assertShows(self, x, blocks):
        shown = picture(x)
        if jax.is_main_process():
            self.assertEqual(shown.count("CPU"), blocks, shown)

    def test_positional_shardings(self):
        same(self.x[0, :4], [1.6226422, 2.0252647, -0.43359444, -0.07861735], 1e-6)
        sharding = PositionalSharding(jax.create_device_mesh((8,)))
        y = jax.device_put(self.x, sharding.reshape(4, 2))
        self.assertShows(y, 8)
        z = jnp.sin(y)
        self.assertEqual(z.sharding, y.sharding)
        same(z[63, 60:], [-0.12418269, 0.81610084, -0.6113759, 0.5820493], 1e-6)
        x = jax.device_put(self.x, sharding.reshape(8, 1))
        self.assertEqual(x.sharding.shard_shape(x.shape), (8, 64))
        sharding = sharding.reshape(4, 2)
        self.assertEqual(str(sharding).count("{"), 8, str(sharding))
        self.assertEqual(jax.device_put(x, sharding).sharding.shard_shape(x.shape), (16, 32))
        self.assertEqual(jax.device_put(x, sharding.reshape(1, 8)).sharding.shard_shape(x.shape), (64, 8))
        sharding = sharding.reshape(4, 2)
        y = jax.device_put(x, sharding.replicate(axis=0, keepdims=True))
        self.assertEqual(y.sharding.shard_shape(x.shape), (64, 32))
        self.assertShows(y, 2)
        self.assertEqual(sharding.replicate(0).shape, (1, 2))
        self.assertEqual(sharding.replicate(1).shape, (4, 1))
        self.assertShows(jax.device_put(x, sharding.replicate(1)), 4)

    def test_named_shardings(self):
        devices = jax.create_device_mesh((4, 2))
        default_mesh = Mesh(devices, axis_names=("a", "b"))

        def mesh_sharding(pspec, mesh=None):
            if mesh is None:
                mesh = default_mesh
            return NamedSharding(mesh, pspec)

        for spec, block, shown in ((P("a", "b"), (16, 32), 8), (P("b", "a"), (32, 16), 8), (P("a", None), (16, 64), 4), (P(None, "b"), (64, 32), 2), (P(None, "a"), (64, 16), 4),
                                   (P(("a", "b"), None), (8, 64), 8)):
            y = jax.device_put(self.x, mesh_sharding(spec))
            self.assertEqual(y.sharding.shard_shape(y.shape), block)
            self.assertShows(y, shown)

    def test_computation_follows_data(self):
        sharding = PositionalSharding(jax.create_device_mesh((8,)))
        y = jax.device_put(self.x, sharding.reshape(4, 2).replicate(1))
        z = jax.device_put(self.x, sharding.reshape(4, 2).replicate(0))
        w = jnp.dot(y, z)
        self.assertEqual(w.sharding.shard_shape(w.shape), (16, 32))
        same(w[5, :4], [-1.4773912, 2.9305034, 10.229235, 12.293449], 1e-4)
        x_single = jax.device_put(self.x, jax.devices()[0])
        self.assertTrue(np.allclose(jax.device_get(jnp.dot(x_single, x_single)), jax.device_get(jnp.dot(y, z)), atol=1e-4))
        self.assertEqual(jnp.copy(w).sharding, w.sharding)

    def test_layouts_that_disagree(self):
        x = self.x
        sharding1 = PositionalSharding(jax.devices()[:4])
        sharding2 = PositionalSharding(jax.devices()[4:])
        y = jax.device_put(x, sharding1.reshape(2, 2))
        z = jax.device_put(x, sharding2.reshape(2, 2))
        self.assertRaises(ValueError, lambda: y + z)
        devices = jax.devices()
        permuted_devices = [devices[i] for i in [0, 1, 2, 3, 6, 7, 4, 5]]
        sharding1 = PositionalSharding(devices)
        sharding2 = PositionalSharding(permuted_devices)
        y = jax.device_put(x, sharding1.reshape(4, 2))
        z = jax.device_put(x, sharding2.reshape(4, 2))
        self.assertRaises(ValueError, lambda: y + z)
        y = jax.device_put(x, sharding1.reshape(4, 2))
        same(y + jnp.ones_like(y), values(x) + 1)
        same(y + jnp.arange(y.size).reshape(y.shape), values(x) + np.arange(64 * 64, dtype=np.float32).reshape(64, 64), 1e-3)

    def test_constraints_inside_jit(self):
        sharding = PositionalSharding(jax.create_device_mesh((8,)))
        x = jax.device_put(self.x, sharding.reshape(4, 2))
        for target, block in ((sharding.reshape(2, 4), (32, 16)), (sharding.replicate(), (64, 64))):
            @jax.jit
            def f(x):
                x = x + 1
                y = jax.lax.with_sharding_constraint(x, target)  # noqa: B023
                return y

            y = f(x)
            self.assertEqual(y.sharding.shard_shape(y.shape), block)
            same(y, values(x) + 1)

    def test_a_network(self):
        def train(params):
            step_size = 1e-3
            for _ in range(30):
                grads = gradfun(params, batch)
                params = [(W - step_size * dW, b - step_size * db) for (W, b), (dW, db) in zip(params, grads)]
            return params

        params, batch = init_model(jax.random.PRNGKey(0), [20, 64, 64, 64, 10], 64)
        sharding = PositionalSharding(jax.devices()).reshape(8, 1)
        batch = jax.device_put(batch, sharding)
        params = jax.device_put(params, sharding.replicate())
        same(loss_jit(params, batch), 19.603124618530273, 1e-5)
        params = train(params)
        same(loss_jit(params, batch), 11.12802505493164, 1e-4)

        sharding = sharding.reshape(4, 2)
        batch = jax.device_put(batch, sharding.replicate(1))
        (W1, b1), (W2, b2), (W3, b3), (W4, b4) = params
        W1 = jax.device_put(W1, sharding.replicate())
        b1 = jax.device_put(b1, sharding.replicate())
        W2 = jax.device_put(W2, sharding.replicate(0))
        b2 = jax.device_put(b2, sharding.replicate(0))
        W3 = jax.device_put(W3, sharding.replicate(0).T)
        b3 = jax.device_put(b3, sharding.replicate())
        W4 = jax.device_put(W4, sharding.replicate())
        b4 = jax.device_put(b4, sharding.replicate())
        params = (W1, b1), (W2, b2), (W3, b3), (W4, b4)
        self.assertShows(W2, 2)
        self.assertShows(W3, 2)
        same(loss_jit(params, batch), 11.12802505493164, 1e-4)
        params = train(params)
        same(loss_jit(params, batch), 10.707817077636719, 1e-4)
        (W1, b1), (W2, b2), (W3, b3), (W4, b4) = params
        self.assertEqual(W2.sharding.shard_shape(W2.shape), (64, 32))
        self.assertEqual(W3.sharding.shard_shape(W3.shape), (32, 64))


if __name__ == "__main__":
    unittest.main()
