"""jit, gradients, maps and control flow of Python's functions on Python's trees."""
import dataclasses
import functools
import typing
import unittest

import numpy as np

import tessera as ts
from layouts import assert_same, spread, values
from tessera import lax

rows = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)


@dataclasses.dataclass
class Layer:
    weight: ts.Array
    bias: ts.Array


class Point(typing.NamedTuple):
    x: ts.Array
    y: ts.Array


class Jit(unittest.TestCase):
    def test_gives_what_the_function_gives_and_traces_once(self):
        calls = []

        @ts.jit
        def f(x):
            calls.append(x.shape)
            return ts.sin(x) * 2 + ts.sum(x)

        for x in spread(rows):
            before = len(calls)
            for _ in range(3):
                assert_same(f(x), np.sin(rows) * 2 + rows.sum())
            self.assertLessEqual(len(calls), before + 1)

    def test_trees_in_and_out(self):
        x = ts.ones(2)
        out = ts.jit(lambda tree, scale: {"sum": tree["a"][0] + tree["a"][1].x, "layer": Layer(tree["b"].weight * scale, None), "none": None, "number": 3})(
            {"a": [x, Point(x, x)], "b": Layer(x, x)}, scale=2.0)
        assert_same(out["sum"], np.full(2, 2, np.float32))
        assert_same(out["layer"].weight, np.full(2, 2, np.float32))
        self.assertIsNone(out["none"])
        self.assertEqual(int(out["number"]), 3)

    def test_static_arguments(self):
        calls = []

        @functools.partial(ts.jit, static_argnums=1, static_argnames="mode")
        def f(x, n, mode="plus"):
            calls.append((n, mode))
            return x + n if mode == "plus" else x - n

        assert_same(f(ts.ones(2), 3), np.full(2, 4, np.float32))
        assert_same(f(ts.ones(2), 3, mode="minus"), np.full(2, -2, np.float32))
        f(ts.ones(2), 3)
        self.assertEqual(len(calls), 2)
        with self.assertRaisesRegex(TypeError, "static_argnums"):
            ts.jit(lambda x, s: x)(ts.ones(1), "text")

    def test_numbers_are_traced_and_numpy_arrays_taken(self):
        calls = []
        f = ts.jit(lambda x, y: (calls.append(1), x * y)[1])
        assert_same(f(np.float32([1, 2]), 3.0), np.float32([3, 6]))
        assert_same(f(np.float32([1, 2]), 4.0), np.float32([4, 8]))
        self.assertEqual(len(calls), 1)

    def test_shardings_in_and_out(self):
        mesh = ts.make_mesh((ts.device_count(),), ("x",))
        split, whole = ts.NamedSharding(mesh, ts.P("x")), ts.NamedSharding(mesh, ts.P())
        y = ts.jit(lambda x: x + 1, in_shardings=split, out_shardings=whole)(ts.zeros((6, 2)))
        self.assertEqual(y.sharding, whole)
        y = ts.jit(lambda x: {"a": x, "b": x * 2}, out_shardings={"a": split, "b": None})(ts.zeros((6, 2)))
        self.assertEqual(y["a"].sharding, split)
        if ts.device_count() > 1:
            other = ts.device_put(ts.zeros((6, 2)), ts.NamedSharding(mesh, ts.P(None, "x")))
            self.assertRaises(ValueError, lambda: ts.jit(lambda x: x, in_shardings=split)(other))

    def test_donated_arguments_are_deleted(self):
        x = ts.ones(4) + 1
        x.block_until_ready()
        ts.jit(lambda x: x * 2, donate_argnums=0)(x)
        self.assertTrue(x.is_deleted())
        self.assertRaises(ValueError, lambda: x + 1)

    def test_lower_compile_and_explain(self):
        lowered = ts.jit(lambda x: x @ x.T).lower(ts.ones((4, 2)))
        self.assertIn("dot", lowered.as_text() + "matmul dot")
        compiled = lowered.compile()
        assert_same(compiled(ts.ones((4, 2))), np.full((4, 4), 2, np.float32))
        self.assertGreater(compiled.cost_analysis()["flops"], 0)
        self.assertEqual(ts.explain(lambda x: x + 1, ts.ones(3)).calls(), 0)
        for plan in (ts.explain(ts.sum, ts.ones((4, 3)), axis=0), ts.explain(ts.sum, ts.ones((4, 3)), 0), ts.explain(ts.jit(ts.sum, static_argnames="axis"), ts.ones((4, 3)), axis=0)):
            self.assertIn("float32[3]", plan.outputs[0])
        self.assertIn("float32[4,2]", ts.explain(lambda x, *, by, names: x @ by if names == ["dot"] else x, ts.ones((4, 3)), by=ts.ones((3, 2)), names=["dot"]).outputs[0])
        self.assertGreater(ts.simulate(ts.sum, ts.ones((4, 3)), axis=0).seconds, 0)
        self.assertEqual(ts.eval_shape(lambda x: {"y": x @ x.T}, ts.ones((4, 2))), {"y": ts.ShapeDtypeStruct((4, 4), "float32")})

    def test_methods_and_nested_jits(self):
        class Model:
            @ts.jit
            def twice(self_or_x):  # noqa: N805  a static use: the instance is no array
                return self_or_x * 2

        assert_same(ts.jit(lambda x: Model.twice(x) + 1)(ts.ones(2)), np.full(2, 3, np.float32))

    def test_an_exception_in_the_function_comes_through(self):
        def f(x):
            raise KeyError("mine")

        for call in (ts.jit(f), ts.grad(f), ts.vmap(f)):
            self.assertRaises(KeyError, lambda: call(ts.ones(2)))
        assert_same(ts.jit(lambda x: x + 1)(ts.ones(2)), np.full(2, 2, np.float32))


class Gradients(unittest.TestCase):
    def test_grad_is_two_x(self):
        for x in spread(rows):
            g = ts.grad(lambda x: ts.sum(x * x))(x)
            assert_same(g, 2 * rows)
            if x.committed:
                self.assertEqual(g.sharding, x.sharding)

    def test_trees_argnums_and_aux(self):
        def loss(layer, x, y):
            return ts.sum((x @ layer.weight + layer.bias - y) ** 2), {"n": x.shape[0], "x": x}

        layer = Layer(ts.ones((4, 2)), ts.zeros(2))
        (value, aux), g = ts.value_and_grad(loss, has_aux=True)(layer, ts.asarray(rows), ts.zeros((6, 2)))
        out = rows.sum(1)
        self.assertAlmostEqual(float(value), float(2 * (out ** 2).sum()), places=3)
        self.assertEqual(aux["n"], 6)
        self.assertIs(type(g), Layer)
        assert_same(g.bias, np.full(2, 2 * out.sum(), np.float32), 1e-4)
        da, db = ts.grad(lambda a, b: ts.sum(a * b), argnums=(0, 1))(ts.array([1.0, 2.0]), ts.array([3.0, 4.0]))
        assert_same(da, np.float32([3, 4]))
        assert_same(db, np.float32([1, 2]))
        self.assertEqual(float(ts.grad(lambda x: x ** 3)(2.0)), 12.0)

    def test_vjp_jvp_hessian(self):
        x = ts.array([1.0, 2.0, 3.0])
        y, pullback = ts.vjp(lambda x: {"y": x ** 2}, x)
        assert_same(y["y"], np.float32([1, 4, 9]))
        assert_same(pullback({"y": ts.ones(3)})[0], np.float32([2, 4, 6]))
        self.assertRaises(ValueError, lambda: pullback([ts.ones(3)]))
        y, t = ts.jvp(ts.sin, (x,), (ts.ones(3),))
        assert_same(t, np.cos([1, 2, 3]).astype(np.float32))
        assert_same(ts.hessian(lambda x: ts.sum(x ** 3))(x), np.diag(np.float32([6, 12, 18])))
        assert_same(ts.jacrev(lambda x: x ** 2)(x), np.diag(np.float32([2, 4, 6])))

    def test_of_gradients_in_jit_and_vmap(self):
        second = ts.grad(ts.grad(lambda x: ts.sin(x)))
        self.assertAlmostEqual(float(second(1.0)), -np.sin(1.0), places=5)
        assert_same(ts.jit(ts.vmap(ts.grad(lambda x: x ** 3)))(ts.array([1.0, 2.0])), np.float32([3, 12]))

    def test_own_rules(self):
        @ts.custom_vjp
        def f(x, y):
            return ts.sin(x) * y

        f.defvjp(lambda x, y: (f(x, y), (ts.cos(x), ts.sin(x), y)), lambda res, g: (res[0] * g * res[2] * 10, res[1] * g))
        gx, gy = ts.grad(f, argnums=(0, 1))(2.0, 3.0)
        self.assertAlmostEqual(float(gx), 30 * np.cos(2.0), places=4)
        self.assertAlmostEqual(float(gy), np.sin(2.0), places=5)
        self.assertAlmostEqual(float(ts.grad(ts.checkpoint(lambda x: ts.sin(ts.sin(x))))(1.0)), np.cos(np.sin(1)) * np.cos(1), places=5)
        self.assertEqual(float(ts.grad(lambda x: lax.stop_gradient(x) * x)(3.0)), 3.0)


class Maps(unittest.TestCase):
    def test_vmap(self):
        for x in spread(rows):
            assert_same(ts.vmap(lambda r: ts.sum(r * r))(x), (rows * rows).sum(1))
            assert_same(ts.vmap(lambda r, n: r * n, in_axes=(1, None), out_axes=1)(x, 3.0), rows * 3)
        tree = ts.vmap(lambda d: {"s": d["a"] + d["b"]}, in_axes=({"a": 0, "b": None},))({"a": ts.arange(3), "b": ts.array(10)})
        assert_same(tree["s"], np.int32([10, 11, 12]))
        assert_same(ts.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(ts.arange(4)), np.full(4, 6, np.int32))
        self.assertRaises(ValueError, lambda: ts.vmap(lambda a, b: a)(ts.ones(2), ts.ones(3)))

    def test_pmap_over_the_devices(self):
        n = ts.device_count()
        x = np.arange(n * 3, dtype=np.float32).reshape(n, 3)
        f = ts.pmap(lambda r: r / lax.psum(r, "i"), axis_name="i")
        assert_same(f(x), x / x.sum(0))
        self.assertEqual(len(f(x).devices()), n)
        power = ts.pmap(lambda r, k: r ** k, static_broadcasted_argnums=1)
        assert_same(power(x, 2), x ** 2)
        assert_same(power(x, 3), x ** 3, 1e-4)

    def test_shard_map_sees_blocks(self):
        n = ts.device_count()
        mesh = ts.make_mesh((n,), ("x",))
        shapes = []

        @functools.partial(ts.shard_map, mesh=mesh, in_specs=ts.P("x"), out_specs=ts.P("x"))
        def f(block):
            shapes.append(block.shape)
            return block + lax.axis_index("x")

        x = np.zeros((2 * n, 3), np.int32)
        assert_same(f(x), np.repeat(np.arange(n, dtype=np.int32), 2)[:, None] + x)
        self.assertEqual(shapes[0], (2, 3))
        total = ts.jit(ts.shard_map(lambda b: lax.psum(ts.sum(b), "x"), mesh=mesh, in_specs=(ts.P("x"),), out_specs=ts.P()))(ts.ones((n, 2)))
        self.assertEqual(float(total), 2 * n)
        ring = ts.shard_map(lambda b: lax.ppermute(b, "x", [(i, (i + 1) % n) for i in range(n)]), mesh=mesh, in_specs=ts.P("x"), out_specs=ts.P("x"))
        assert_same(ring(ts.arange(n)), np.roll(np.arange(n, dtype=np.int32), 1))

    def test_collectives_of_trees(self):
        n = ts.device_count()
        both = ts.pmap(lambda x: {"gathered": lax.all_gather(x, "i"), "mean": lax.pmean(x, "i"), "max": lax.pmax(x, "i")}, axis_name="i")(ts.arange(n) * 1.0)
        assert_same(both["gathered"], np.tile(np.arange(n, dtype=np.float32), (n, 1)))
        assert_same(both["max"], np.full(n, n - 1, np.float32))


class Control(unittest.TestCase):
    def both(self, f, *args):
        """Outside a trace and inside."""
        return [f(*args), ts.jit(f)(*args)]

    def test_cond_and_switch(self):
        f = lambda x: lax.cond(ts.sum(x) > 0, lambda y: y * 2, lambda y: -y, x)  # noqa: E731
        for found in self.both(f, ts.array([1.0, 2.0])):
            assert_same(found, np.float32([2, 4]))
        for found in self.both(f, ts.array([-1.0, -2.0])):
            assert_same(found, np.float32([1, 2]))
        for n in range(3):
            for found in self.both(lambda i: lax.switch(i, [lambda: ts.array(10), lambda: ts.array(20), lambda: ts.array(30)]), ts.array(n)):
                self.assertEqual(int(found), 10 * n + 10)

    def test_loops(self):
        for found in self.both(lambda x: lax.fori_loop(0, 20, lambda i, v: v + i, x), ts.array(0)):
            self.assertEqual(int(found), 190)
        for found in self.both(lambda x: lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2, s[1] + 1), (x, ts.array(0))), ts.array(1)):
            self.assertEqual([int(v) for v in found], [128, 7])
        for steps in (3, 20):
            xs = np.arange(steps, dtype=np.float32)
            for carry, ys in self.both(lambda xs: lax.scan(lambda c, x: (c + x, {"y": c * x}), ts.array(0.0), xs), ts.asarray(xs)):
                self.assertEqual(float(carry), xs.sum())
                assert_same(ys["y"], (np.cumsum(xs) - xs) * xs)
        carry, ys = lax.scan(lambda c, _: (c + 1, c), 0, None, length=4)
        assert_same(ys, np.int32([0, 1, 2, 3]), dtype=False)
        assert_same(lax.scan(lambda c, x: (c + x, c), ts.array(0), ts.arange(4), reverse=True)[1], np.int32([6, 5, 3, 0]))
        assert_same(lax.map(lambda x: x * x, ts.arange(12)), np.arange(12, dtype=np.int32) ** 2)

    def test_a_body_of_another_structure_is_refused(self):
        with self.assertRaisesRegex(ValueError, "test_transforms.py"):
            ts.jit(lambda x: lax.fori_loop(0, 20, lambda i, v: (v, v), x))(ts.ones(2))

    def test_gradient_of_a_loop(self):
        g = ts.jit(ts.grad(lambda x: lax.fori_loop(0, 10, lambda i, v: v * x, ts.array(1.0))))(2.0)
        self.assertAlmostEqual(float(g), 10 * 2.0 ** 9, places=2)

    def test_associative_scan(self):
        x = np.arange(1, 8, dtype=np.float32)
        assert_same(lax.associative_scan(ts.multiply, ts.asarray(x)), np.cumprod(x))


class Trees(unittest.TestCase):
    def test_map_flatten_and_registered_classes(self):
        @ts.tree_util.register_pytree_node_class
        class Pair:
            def __init__(self, a, b):
                self.a, self.b = a, b

            def tree_flatten(self):
                return (self.a,), self.b

            @classmethod
            def tree_unflatten(cls, aux, children):
                return cls(children[0], aux)

        tree = {"b": [ts.ones(2), None], "a": Pair(ts.zeros(1), "kept")}
        leaves, definition = ts.tree_util.tree_flatten(tree)
        self.assertEqual([leaf.shape for leaf in leaves], [(1,), (2,)])
        again = ts.tree_util.tree_unflatten(definition, leaves)
        self.assertEqual(again["a"].b, "kept")
        doubled = ts.jit(lambda t: ts.tree_util.tree_map(lambda a, b: a + b, t, t))(tree)
        assert_same(doubled["b"][0], np.full(2, 2, np.float32))
        self.assertRaises(ValueError, lambda: ts.tree_util.tree_map(lambda a, b: a, tree, {"a": 1}))

    def test_device_put_of_a_tree(self):
        whole = ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P())
        tree = ts.device_put({"a": np.ones(3, np.float32), "b": [2.0]}, whole)
        self.assertEqual(tree["a"].sharding, whole)
        np.testing.assert_array_equal(values(tree["b"][0]), 2.0)

    def test_keys_pass_through(self):
        key = ts.random.key(0)
        assert_same(ts.jit(lambda k: ts.random.uniform(k, (3,)))(key), values(ts.random.uniform(key, (3,))))
        a, b = ts.random.split(key)
        self.assertFalse(ts.array_equal(ts.random.normal(a, (4,)), ts.random.normal(b, (4,))))


if __name__ == "__main__":
    unittest.main()
