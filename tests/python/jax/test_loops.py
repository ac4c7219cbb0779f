"""Scans whose products leave the loop: JAX's values, one product for all steps, and loops again where the memory would be too large."""
import unittest
from unittest import mock

import numpy as np
import tessera as ts

try:
    import tessera.jax as tj
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.extend.core import Primitive
    from tessera.jax import _loops
except ImportError:
    raise unittest.SkipTest("JAX is not installed") from None

rng = np.random.RandomState(1)


def f32(*shape):
    return rng.standard_normal(shape).astype("f")


x, w, u = f32(7, 4, 3), f32(3, 5), f32(5, 5) * 0.3
batches, weights, integers = f32(7, 2, 4, 3), f32(2, 3, 5), rng.randint(0, 9, (7, 4, 3))
square = np.ones((3, 3), "f")


def recurrent(w, u):
    def step(h, t):
        gate = jax.nn.sigmoid(t @ w + h @ u)
        return (1 - gate) * h + gate * jnp.tanh(2 * (t @ w) + (h * gate) @ u), h
    last, all_of_them = lax.scan(step, jnp.zeros((4, 5)), x)
    return jnp.sum(jnp.sin(last)) + jnp.sum(all_of_them ** 2)


def simple(w, u):
    return jnp.sum(lax.scan(lambda h, t: (jnp.tanh(t @ w + h @ u), None), jnp.zeros((4, 5)), x)[0])


functions = {
    "a constant from the left": (lambda x, w: lax.scan(lambda c, t: (c + jnp.sum(w.T @ t.T), w.T @ t.T), 0.0, x), (x, w)),
    "batches": (lambda x, w: lax.scan(lambda c, t: (c + 1, jnp.einsum("bij,bjk->bik", t, w)), 0.0, x, reverse=True), (batches, weights)),
    "batches from the left": (lambda x, w: lax.scan(lambda c, t: (c + 1, jnp.einsum("bjk,bij->bki", w, t)), 0.0, x), (batches, weights)),
    "a sum of squares": (lambda x: lax.scan(lambda c, t: (c + t.T @ t, None), square, x), (x,)),
    "a sum of integers": (lambda x: lax.scan(lambda c, t: (c + t.T @ t, t[0]), jnp.ones((3, 3), int), x, reverse=True), (integers,)),
    "a carried factor": (lambda x, u: lax.scan(lambda c, t: ((c[0] + t[:, :1].T @ c[1], jnp.tanh(c[1] @ u)), None), (jnp.ones((1, 5)), jnp.ones((4, 5))), x), (x, u)),
    "two sums of one factor": (lambda x: lax.scan(lambda c, t: ((c[0] + t.T @ (2 * t), c[1] + (2 * t).T @ t), None), (square, square), x), (x,)),
    "a sum that is read": (lambda x: lax.scan(lambda c, t: (c + t.T @ t, c + 1), square, x), (x,)),
    "a sum of constants": (lambda x, u: lax.scan(lambda c, t: (c + u @ u, t), jnp.ones((5, 5)), x), (x, u)),
    "gradients": (jax.grad(recurrent, (0, 1)), (w, u)),
    "gradients of a map": (jax.vmap(jax.grad(recurrent, (0, 1)), (0, None)), (np.stack([w, 2 * w]), u)),
    "a derivative of a gradient": (jax.jacfwd(jax.grad(simple, 1), 0), (w, u)),
}


def products_in(equations):
    return sum(e.primitive.name == "dot_general" for e in equations)


def splits_of(function, *arguments):
    found = []
    for e in jax.make_jaxpr(function)(*arguments).jaxpr.eqns:
        if e.primitive.name == "scan":
            p = e.params
            found.append((products_in(p["jaxpr"].jaxpr.eqns), _loops.Split(p["jaxpr"].jaxpr, p["num_consts"], p["num_carry"], p["length"])))
    return found


class Loops(unittest.TestCase):
    def check(self, function, arguments):
        for ours, theirs in zip(jax.tree_util.tree_leaves(tj.jit(function)(*arguments)), jax.tree_util.tree_leaves(jax.jit(function)(*arguments))):
            ours, theirs = ts.device_get(ours), np.asarray(theirs)
            self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape))
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)

    def test_values_are_jaxs(self):
        for name, (function, arguments) in functions.items():
            with self.subTest(name):
                self.check(function, arguments)

    def test_a_gradient_keeps_one_product_in_each_loop(self):
        (before, forward), (of_gradient, backward) = splits_of(jax.grad(simple, (0, 1)), w, u)
        self.assertEqual((before, len(forward.before), products_in(forward.body.eqns)), (2, 1, 1))
        self.assertEqual((of_gradient, len(backward.sums), products_in(backward.body.eqns)), (3, 2, 1))
        self.assertEqual(len(backward.stacked), 1)  # the one factor that no input of the loop is

    def test_a_while_loop_of_known_values_is_an_op_of_the_program(self):
        """Nothing of it is computed while the program is traced, however many steps it has."""
        calls = []
        primitive = Primitive("counted_increment")
        primitive.def_abstract_eval(lambda x: x)

        @primitive.def_impl
        def increment(x):
            calls.append(x)
            return x + 1

        def program(x):
            count, total = lax.while_loop(lambda s: s[0] < 500, lambda s: (primitive.bind(s[0]), s[1] + 0.5), (0, 1.0))
            return count + lax.while_loop(lambda s: s < 7, primitive.bind, 0) + total * x

        self.assertEqual(ts.device_get(tj.jit(program)(np.float32(2.0))), 500 + 7 + 2 * 251)
        self.assertLessEqual(len(calls), 1)  # its meaning is traced once for the same types
        self.assertEqual(tj.jit(program).lower(np.float32(2.0)).as_text().count("while_loop"), 2)

    def test_a_jitted_loop_within_a_jitted_function_is_recorded_once(self):
        from tessera.jax import _interpret
        inner = jax.jit(lambda x: lax.fori_loop(0, 5, lambda n, v: jnp.sin(v) + n, x))
        gradient = jax.grad(jax.jit(lambda x: jnp.sum(inner(x) ** 2)))
        host = np.linspace(0, 1, 12, dtype="f")
        x, counted, rules = ts.asarray(host), [], {}
        for name in ("scan", "while"):
            rule, takes_context = _interpret._rules[name]
            rules[name] = (lambda *args, rule=rule, **params: (counted.append(1), rule(*args, **params))[1], takes_context)
        with mock.patch.dict(_interpret._rules, rules):
            first = np.asarray(gradient(x))
            self.assertGreater(len(counted), 0)
            counted.clear()
            second = np.asarray(gradient(x))
        self.assertEqual(counted, [])
        for found in (first, second):
            np.testing.assert_allclose(found, gradient(jnp.asarray(host)), rtol=1e-5, atol=1e-6)

    def test_a_body_calls_mapped_functions_that_read_what_does_not_change(self):
        """More steps than are written out: entries of m into the two calls are the body's own."""
        mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
        rows = jax.sharding.PartitionSpec("i")
        n = ts.process_count()
        pull = jax.shard_map(lambda x, m: lax.fori_loop(0, 2, lambda _, a: 0.5 * a + m * lax.psum(jnp.sum(x), "i"), x), mesh=mesh, in_specs=(rows, rows), out_specs=rows)

        def steps(x, m):
            def step(v, _):
                v = v + 0.01 * pull(v, m)
                return v + 0.01 * pull(2 * v, m), None
            return lax.scan(step, x, None, 10)[0]

        def plain(x, m):
            for _ in range(10):
                for factor in (1, 2):
                    a, total = factor * x, np.sum(factor * x)
                    for _ in range(2):
                        a = 0.5 * a + m * total
                    x = x + 0.01 * a
            return x

        x, m = np.linspace(0, 1, 3 * n), np.linspace(0.1, 0.2, 3 * n)
        placed = [tj.device_put(v.astype("f"), jax.sharding.NamedSharding(mesh, rows)) for v in (x, m)]
        np.testing.assert_allclose(ts.device_get(tj.jit(steps)(*placed)), plain(x, m), rtol=1e-4)

    def test_without_room_the_loop_stays_as_it_is(self):
        with mock.patch.object(_loops, "most_bytes", 0):
            for count, split in splits_of(jax.grad(simple, (0, 1)), w, u):
                self.assertEqual((products_in(split.body.eqns), split.stacked), (count, []))
            self.check(*functions["gradients"])
