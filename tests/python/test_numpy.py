"""Python's own functions beyond the standard, results as large as values say, networks, optimizers and pictures, on every layout.

What functions of the library compute stands in tests/catalogue, whose rows run through Python too."""
import os
import unittest

import numpy as np

import tessera as ts
from layouts import assert_same, shardings, spread, values
from test_libraries import Folder

real = np.float32([[-2.5, -1, -0.5, 0], [0.25, 0.5, 1, 2.5], [3, -0.75, 0.125, -3.5], [1.5, 2, -2, 0.875], [4, -4, 0.3, 0.9]])
repeated = np.int32([[3, 1, 3, 0], [1, 1, 7, 0], [3, 9, 9, 1], [7, 7, 7, 7], [0, 3, 5, 5]])
with_nan = np.where(np.abs(real) > 2, np.nan, real).astype(np.float32)


class Sized(unittest.TestCase):
    def test_masks_choose_without_gathering(self):
        for x in spread(real):
            assert_same(x[x > 0.4], real[real > 0.4])
            assert_same(x[ts.asarray(np.array([True, False, True, True, False]))], real[[0, 2, 3]])
            self.assertEqual(x[x > 100].shape, (0,))
            for extents in ((0,), (0, 4), (5, 0)):  # the standard's masks of no elements
                assert_same(x[ts.zeros(extents, ts.bool)], real[np.zeros(extents, bool)])
                assert_same(x.at[ts.zeros(extents, ts.bool)].set(7), real)
        self.assertRaises(IndexError, lambda: ts.asarray(real)[ts.ones((4, 4), ts.bool)])

    def test_the_bytes_of_a_mask_are_not_those_of_the_array(self):
        n = ts.device_count()
        x = ts.device_put(ts.random.normal(ts.random.key(0), (64 * n, 64)), ts.NamedSharding(ts.make_mesh((n,), ("x",)), ts.P("x")))
        mask = x[:, 0] > 2
        ts.block_until_ready((x, mask))
        with ts.CommStats() as stats:
            ts.block_until_ready(x[mask])
        self.assertLess(stats.bytes(), x.nbytes)

    def test_places(self):
        for x in spread(repeated):
            for found, expected in zip(ts.nonzero(x), np.nonzero(repeated)):
                assert_same(found, expected.astype(np.int32))
            assert_same(ts.flatnonzero(x), np.flatnonzero(repeated).astype(np.int32))
            assert_same(ts.argwhere(x), np.argwhere(repeated).astype(np.int32))
            assert_same(ts.nonzero(x, size=3)[0], np.nonzero(repeated)[0][:3].astype(np.int32))
            assert_same(ts.compress([True, False, True], x, 1), np.compress([True, False, True], repeated, 1))

    def test_what_is_different(self):
        for x in spread(repeated):
            for found, expected in zip(ts.unique_all(x), np.unique(repeated, True, True, True)):
                assert_same(found, expected.reshape(found.shape).astype(found.dtype.name))
            assert_same(ts.unique(x), np.unique(repeated))
            assert_same(ts.union1d(x, [4, 3]), np.union1d(repeated, [4, 3]).astype(np.int32))
            assert_same(ts.setdiff1d(x, [3, 9]), np.setdiff1d(repeated, [3, 9]).astype(np.int32))
            assert_same(ts.isin(x, [3, 9]), np.isin(repeated, [3, 9]))

    def test_each_nan_is_different_by_the_standard(self):
        for x in spread(with_nan):
            found, expected = ts.unique_all(x), np.unique(with_nan, True, True, True, equal_nan=False)
            self.assertEqual(found.values.shape, expected[0].shape)
            np.testing.assert_array_equal(values(found.values), expected[0])
            assert_same(found.counts, expected[3].astype(found.counts.dtype.name))
            np.testing.assert_array_equal(values(found.values)[values(found.inverse_indices)], with_nan)
            np.testing.assert_array_equal(with_nan.ravel()[values(found.indices)], expected[0])
            self.assertEqual(ts.unique(x).size, np.unique(with_nan).size)

    def test_complex_values_are_different_too(self):
        host = (repeated + 1j * repeated[::-1]).astype(np.complex64)
        for x in spread(host):
            np.testing.assert_array_equal(values(ts.unique_values(x)), np.unique(host))
            assert_same(ts.unique_counts(x).counts, np.unique(host, return_counts=True)[1].astype(np.int32), dtype=False)

    def test_sizes_are_said_in_jit(self):
        for x in spread(repeated):
            found = ts.jit(lambda v: ts.nonzero(v > 4, size=8, fill_value=-1))(x)
            expected = [np.pad(p, (0, 8 - p.size), constant_values=-1) if p.size < 8 else p[:8] for p in np.nonzero(repeated > 4)]
            for a, b in zip(found, expected):
                assert_same(a, b.astype(np.int32))
        self.assertRaises(ts.ArgumentError, lambda: ts.jit(lambda v: ts.nonzero(v))(ts.arange(3)))


class Polynomials(unittest.TestCase):
    def test_coefficients_of_roots_and_back(self):
        host = np.float32([1.5, -2, 0.25, 3])
        for x in spread(host):
            assert_same(ts.poly(x), np.poly(host), 1e-4, dtype=False)
        for p in ([1, -6, 11, -6], [0, 0, 2, 0, -8, 0, 0], [1, 0, 1], [3.0], [0.0, 0.0], []):
            for x in spread(np.float32(p)):
                found, expected = ts.roots(x), np.roots(p)
                self.assertEqual((found.shape, found.dtype), (expected.shape, ts.complex64))
                np.testing.assert_allclose(np.sort_complex(values(found).round(4)), np.sort_complex(expected.astype(np.complex64).round(4)), atol=1e-3)
        assert_same(ts.poly(ts.array([[2.0, 1.0], [0.0, 3.0]])), np.complex64([1, -5, 6]), 1e-4)
        assert_same(ts.poly(ts.zeros((0,))), np.ones(1), dtype=False)
        self.assertEqual(ts.jit(lambda p: ts.roots(p, strip_zeros=False))(ts.array([1.0, 0, -4])).shape, (2,))

    def test_division(self):
        for u, v in (([3.0, 5, 2], [2.0, 1]), ([1.0, 0, 0, -1], [1.0, -1]), ([1.0, 2], [4.0, 5, 6]), ([2.0, 4, 6], [2.0])):
            for x in spread(np.float32(u)):
                quotient, rest = ts.polydiv(x, np.float32(v))
                expected, left = np.polydiv(np.float32(u), np.float32(v))
                if len(v) <= len(u):
                    assert_same(quotient, expected, dtype=False)
                    assert_same(rest, np.pad(left, (len(v) - 1 - left.size, 0)) if len(v) > 1 else left[:0], dtype=False)
                else:
                    self.assertEqual(quotient.size, 0)
                    assert_same(rest, u, dtype=False)


class Vectorized(unittest.TestCase):
    def test_shapes_are_broadcast(self):
        host = real[:, :1]
        for x in spread(real):
            for y in spread(host):
                calls = []
                f = ts.vectorize(lambda a, b: (calls.append(1), ts.where(a > b, a - b, a + b))[1])
                assert_same(f(x, y), np.where(real > host, real - host, real + host))
                self.assertEqual(len(calls), 1)  # traced once, for all elements
                assert_same(f(ts.expand_dims(x, 1), 2.0), np.where(real > 2, real - 2, real + 2)[:, None])

    def test_signatures(self):
        norms = ts.vectorize(lambda v: ts.sqrt(ts.sum(v * v)), signature="(n)->()")
        products = ts.vectorize(ts.matmul, signature="(n,m),(m)->(n)")
        both = ts.vectorize(lambda v: (ts.sum(v), v * 2), signature="(n)->(),(n)")
        stack = np.stack([real, real * 2, real + 1])
        for x in spread(stack):
            assert_same(norms(x), np.linalg.norm(stack, axis=-1))
            assert_same(products(x, real[0]), stack @ real[0])
            assert_same(products(ts.expand_dims(x, 1), real[:3]), np.einsum("aijk,bk->abj", stack[:, None], real[:3]))
            total, double = both(x)
            assert_same(total, stack.sum(-1))
            assert_same(double, stack * 2)

    def test_excluded_arguments_are_handed_on(self):
        f = ts.vectorize(lambda a, n, flip=False: (-a if flip else a) * n, excluded={1, "flip"})
        assert_same(f(ts.asarray(real), 3, flip=True), -3 * real)
        assert_same(ts.vectorize(lambda a, b: a * b)(ts.asarray(real), b=2.0), 2 * real)
        decorated = ts.vectorize(excluded=(0,))(lambda text, a: a + len(text))
        assert_same(decorated("four", ts.asarray(real)), real + 4)

    def test_what_disagrees_with_the_signature_is_refused(self):
        twice = ts.vectorize(lambda a, b: a + b, signature="(n),(n)->(n)")
        for call, words in ((lambda: twice(ts.ones(3), ts.ones(4)), "argument 1 has extent 4 for n, which is 3 elsewhere"), (lambda: twice(ts.ones(3)), "1 arguments for the 2 of the signature"),
                            (lambda: twice(ts.ones(3), 1.0), "argument 1 has 0 dimensions"), (lambda: ts.vectorize(ts.sum, signature="n->()"), "is no signature"),
                            (lambda: ts.vectorize(lambda a: a, signature="(n)->()")(ts.ones(3)), "result 0 has 1 dimensions"),
                            (lambda: ts.vectorize(lambda a: (a, a), signature="(n)->(n)")(ts.ones(3)), "2 results for the 1 of the signature")):
            with self.assertRaisesRegex(ts.ArgumentError, words):
                call()


class Numeric(unittest.TestCase):
    # Written from other functions.
    more = {
        "around": lambda m, x: m.around(x * 1.234, 1), "round": lambda m, x: m.round(x), "fabs": lambda m, x: m.fabs(x), "fix": lambda m, x: m.fix(x), "modf": lambda m, x: m.modf(x * 1.5)[0],
        "whole part": lambda m, x: m.modf(x * 1.5)[1], "isposinf": lambda m, x: m.isposinf(m.where(x > 2, np.float32(np.inf), x)), "degrees": lambda m, x: m.degrees(x), "rint": lambda m, x: m.rint(x),
        "ediff1d": lambda m, x: m.ediff1d(x, to_end=9, to_begin=[7, 8]), "unwrap": lambda m, x: m.unwrap(x * 3, axis=0), "delete": lambda m, x: m.delete(x, [0, -1], axis=1),
        "delete a slice": lambda m, x: m.delete(x, slice(1, 4), axis=0), "delete flat": lambda m, x: m.delete(x, 3), "insert": lambda m, x: m.insert(x, 2, 7.0, axis=1),
        "insert rows": lambda m, x: m.insert(x, [1, 3], x[:2], axis=0), "insert flat": lambda m, x: m.insert(x, [2, 2, 5], [1.0, 2.0, 3.0]), "insert a row": lambda m, x: m.insert(x, -1, x[0], axis=0),
        "resize": lambda m, x: m.resize(x, (3, 11)), "fromfunction": lambda m, x: m.fromfunction(lambda i, j: i * 10 + j, (3, 4)),
        "piecewise": lambda m, x: m.piecewise(x, [x < -1, x > 1], [lambda v: -v, 3, lambda v: v * 2]), "apply_over_axes": lambda m, x: m.apply_over_axes(m.sum, x, [0, 1]),
        "diag_indices": lambda m, x: x[m.diag_indices(4)], "tril_indices_from": lambda m, x: x[m.tril_indices_from(x, -1)], "triu_indices_from": lambda m, x: x[m.triu_indices_from(x, 1)],
        "ix_": lambda m, x: x[m.ix_(np.array([0, 4]), np.array([3, 1]))], "mgrid": lambda m, x: m.mgrid[0:3, 0:2], "ogrid": lambda m, x: m.ogrid[0:1:5j, 0:2][0],
        "bitwise_count": lambda m, x: m.bitwise_count(m.asarray(repeated)) if m is ts else np.vectorize(lambda v: int(v).bit_count())(repeated),
    }

    def test_functions_made_of_others(self):
        for name, call in self.more.items():
            expected = np.asarray(call(np, real))
            for x in spread(real):
                with self.subTest(name):
                    found = call(ts, x)
                    assert_same(found if isinstance(found, ts.Array) else ts.stack(found), expected, 2e-5, dtype=False)
        expected = real.copy()
        np.put_along_axis(expected, np.int64([[1], [0], [3], [2], [1]]), 9, axis=1)
        for x in spread(real):
            assert_same(ts.put_along_axis(x, np.int32([[1], [0], [3], [2], [1]]), 9, axis=1, inplace=False), expected)
        self.assertTrue(ts.isrealobj(real) and ts.isscalar(3.0) and not ts.isscalar(ts.ones(1)))
        self.assertRaises(IndexError, lambda: ts.insert(ts.ones(3), 5, 1.0))

    def test_results_of_a_name_have_one_type(self):
        s = ts.array([[2.0, 1.0], [1.0, 3.0]])
        self.assertIs(type(ts.linalg.svd(s, hermitian=True)), type(ts.linalg.svd(s)))

    def test_functions_of_lax_and_nn(self):
        for x in spread(real):
            assert_same(ts.lax.slice(x, (1, 0), (5, 3), (2, 1)), real[1:5:2, :3])
            assert_same(ts.lax.collapse(x, 0, 2), real.reshape(-1))
            assert_same(ts.lax.broadcast_in_dim(x[0], (2, 4), (1,)), np.broadcast_to(real[0], (2, 4)))
            assert_same(ts.lax.rev(x, (0,)), real[::-1])
            assert_same(ts.lax.argmax(x, 1), real.argmax(1).astype(np.int32))
            assert_same(ts.lax.dynamic_update_index_in_dim(x, ts.zeros(4), 2, 0), np.concatenate([real[:2], np.zeros((1, 4), np.float32), real[3:]]))
            assert_same(ts.nn.celu(x, 2.0), np.where(real > 0, real, 2 * np.expm1(real / 2)), 1e-5)
            assert_same(ts.nn.hard_silu(x), real * np.clip(real + 3, 0, 6) / 6, 1e-5)
            assert_same(ts.nn.squareplus(x), (real + np.sqrt(real ** 2 + 4)) / 2, 1e-5)
        assert_same(ts.lax.broadcasted_iota(ts.int32, (2, 3), 1), np.int32([[0, 1, 2]] * 2))
        q, k, v = (values(ts.random.normal(ts.random.key(i), (2, 5, 3, 4))) for i in range(3))
        weights = np.einsum("bqhd,bkhd->bhqk", q, k) / 2
        weights = np.where(np.tril(np.ones((5, 5), bool)), weights, -np.inf)
        weights = np.exp(weights - weights.max(-1, keepdims=True))
        expected = np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)
        for x in spread(q):
            assert_same(ts.nn.dot_product_attention(x, ts.asarray(k), ts.asarray(v), is_causal=True), expected, 1e-4)

    def test_stencils(self):
        expected = np.roll(real, -1, 0) + np.roll(real, 1, 0) + np.roll(real, 1, 1) + np.roll(real, -1, 1) - 4 * real
        for x in spread(real):
            assert_same(ts.stencil(lambda u: u(1, 0) + u(-1, 0) + u(0, -1) + u(0, 1) - 4 * u(), x), expected, 1e-5)
        self.assertRaises(ValueError, lambda: ts.stencil(lambda u: u(1), ts.asarray(real)))

    def test_einsum_takes_numpys_optimize(self):
        for x in spread(real):
            for order in (True, False, "optimal"):
                assert_same(ts.einsum("ij,kj->ik", x, x, optimize=order), real @ real.T, 1e-5)

    def test_windows(self):
        for x in spread(real):
            assert_same(ts.reduce_window(x, "max", [2, 2]), np.max([real[:-1, :-1], real[1:, :-1], real[:-1, 1:], real[1:, 1:]], 0))


class Networks(unittest.TestCase):
    def test_a_network_learns(self):
        keys = ts.random.split(ts.random.key(1), 3)
        x = ts.random.normal(keys[0], (24, 4))
        y = ts.sum(x * x, axis=1, keepdims=True)

        def loss(network, x, y):
            return ts.mean(ts.nn.squared_error(ts.nn.apply(network, x), y))

        ends = []
        for sharding in [s for s in shardings(1) if s is None or s.spec == ts.P("x")]:
            network = ts.nn.mlp(keys[1], (4, 16, 1))
            self.assertIsInstance(network[0], ts.nn.Dense)
            data = (x, y) if sharding is None else ts.device_put((x, y), sharding)
            optimizer = ts.optim.Adam(rate=ts.optim.cosine_decay(0.03, 60))
            state, step = optimizer.start(network), ts.jit(ts.optim.train_step(optimizer, loss, largest_norm=5.0), donate_argnums=(0, 1))
            losses = []
            for _ in range(30):
                network, state, value = step(network, state, *data)
                losses.append(float(value))
            self.assertLess(losses[-1], losses[0] / 2)
            self.assertEqual(int(state.steps), 30)
            ends.append(losses[-1])
        np.testing.assert_allclose(ends, ends[0], rtol=1e-3)

    def test_rules_by_hand(self):
        p, g = {"w": ts.array([1.0, -2.0])}, {"w": ts.array([0.5, 0.25])}
        sgd = ts.optim.Sgd(rate=0.1, momentum=0.9)
        state = sgd.start(p)
        once, state = sgd.update(g, state, p)
        twice, state = sgd.update(g, state, once)
        assert_same(twice["w"], np.float32([1 - 0.05 - 0.095, -2 - 0.025 - 0.0475]), 1e-6)
        adam = ts.optim.Adam(rate=lambda steps: 0.1 / (steps + 1))
        after, _ = adam.update(g, adam.start(p), p)
        assert_same(after["w"], np.float32([0.9, -2.1]), 1e-6)
        assert_same(ts.optim.clip_by_global_norm(g, 0.1)["w"], np.float32(np.float32([0.5, 0.25]) * 0.1 / np.hypot(0.5, 0.25)), 1e-6)
        self.assertAlmostEqual(float(ts.optim.warmup_cosine_decay(0, 1.0, 10, 100)(5)), 0.5, places=6)
        self.assertRaises(ValueError, lambda: adam.update({"v": g["w"]}, adam.start(p), p))

    def test_layers(self):
        key = ts.random.key(0)
        layer = ts.nn.layer_norm(4)
        expected = (real - real.mean(1, keepdims=True)) / np.sqrt(real.var(1, keepdims=True) + 1e-6)
        for x in spread(real):
            assert_same(layer(x), expected, 1e-4)
            assert_same(ts.nn.one_hot(ts.array([2, 0, 5]), 3), np.float32([[0, 0, 1], [1, 0, 0], [0, 0, 0]]))
            assert_same(ts.nn.relu6(x), np.clip(real, 0, 6))
        table = ts.nn.embedding(key, 5, 3)
        assert_same(table(ts.array([4, 1])), values(table.table)[[4, 1]])
        drawn = ts.nn.dense(key, 2, 3, initializer=lambda key, shape, dtype: ts.full(shape, 2.0, dtype))
        assert_same(drawn(ts.ones((1, 2))), np.full((1, 3), 4, np.float32))
        self.assertEqual(len(ts.tree_util.tree_leaves(drawn)), 2)

    def test_batches_are_the_examples_once(self):
        n = ts.device_count()
        mesh = ts.make_mesh((n,), ("data",))
        x = ts.arange(10 * n)
        batches = ts.nn.shuffled_batches(ts.random.key(3), (x, -x), 2 * n, mesh, ts.P("data"))
        self.assertEqual(len(batches), 5)
        seen = np.concatenate([values(a) for a, b in batches])
        self.assertEqual(sorted(seen.tolist()), list(range(10 * n)))
        self.assertEqual(batches[0][0].sharding, ts.NamedSharding(mesh, ts.P("data")))


class Forward(unittest.TestCase):
    def test_jacobians_by_columns_are_those_by_rows(self):
        f = lambda x: ts.sin(x) * ts.sum(x)  # noqa: E731
        for x in spread(real[0]):
            assert_same(ts.jacfwd(f)(x), values(ts.jacrev(f)(x)), 1e-5)

    def test_linearize_is_jvp_for_many_tangents(self):
        f = lambda x, y: {"a": ts.sin(x) @ y}  # noqa: E731
        x, y = ts.asarray(real), ts.asarray(real.T)
        value, tangent_of = ts.linearize(f, x, y)
        for scale in (1.0, -2.0):
            expected = ts.jvp(f, (x, y), (x * scale, y))
            assert_same(value["a"], values(expected[0]["a"]), 1e-6)
            assert_same(tangent_of(x * scale, y)["a"], values(expected[1]["a"]), 1e-5)
        self.assertRaises(TypeError, lambda: tangent_of(x))
        self.assertRaises(ValueError, lambda: tangent_of([x], y))

    def test_own_derivatives(self):
        @ts.custom_jvp
        def f(x, y):
            return ts.sin(x) * y

        @f.defjvp
        def rule(primals, tangents):
            (x, y), (dx, dy) = primals, tangents
            return f(x, y), 10 * ts.cos(x) * dx * y + ts.sin(x) * dy

        x, y = ts.array(0.5), ts.array(3.0)
        dx, dy = ts.grad(f, argnums=(0, 1))(x, y)
        np.testing.assert_allclose([float(dx), float(dy)], [30 * np.cos(0.5), np.sin(0.5)], rtol=1e-6)
        self.assertRaises(AttributeError, lambda: ts.custom_jvp(lambda x: x)(x))


class Sparse(unittest.TestCase):
    n = 24

    def setUp(self):
        self.rows = ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x"))
        self.dense = (np.eye(self.n) * 4 - np.eye(self.n, k=1) - np.eye(self.n, k=-1)).astype(np.float32)
        self.b = np.linspace(-1, 1, self.n, dtype=np.float32)

    def test_products(self):
        places = np.nonzero(self.dense)
        made = [ts.sparse.from_dense(ts.asarray(self.dense), self.rows), ts.sparse.from_coordinates(self.dense.shape, *(ts.asarray(p.astype(np.int32)) for p in places), self.dense[places], self.rows)]

        def entries(start, stop):
            rows, columns = np.nonzero(self.dense[start:stop])
            return rows + start, columns, self.dense[start:stop][rows, columns]

        made.append(ts.sparse.from_rows(self.dense.shape, self.rows, entries))
        for a in made:
            self.assertEqual((a.shape, a.dtype, a.entries), ((self.n, self.n), ts.float32, places[0].size))
            for x in spread(self.b):
                if x.committed and x.sharding == self.rows or not x.committed:
                    assert_same(a @ x, self.dense @ self.b, 1e-5)
            assert_same(a.T @ self.b, self.dense.T @ self.b, 1e-5)
            assert_same(ts.sparse.to_dense(a), self.dense)
            assert_same(ts.sparse.diagonal(a), np.diag(self.dense))

    def test_solvers_take_matrices_and_functions(self):
        a = ts.sparse.from_dense(ts.asarray(self.dense), self.rows)
        b = ts.asarray(self.b, sharding=self.rows)
        expected = np.linalg.solve(self.dense.astype(float), self.b)
        for solver in (ts.sparse.cg, ts.sparse.gmres, ts.sparse.bicgstab):
            for linear in (a, lambda x: 4 * x - ts.where(ts.arange(self.n) < self.n - 1, ts.roll(x, -1), 0) - ts.where(ts.arange(self.n) > 0, ts.roll(x, 1), 0)):
                found = solver(linear, b, tol=1e-6)
                self.assertTrue(bool(found.converged))
                np.testing.assert_allclose(values(found.x), expected, rtol=1e-3, atol=1e-4)
        self.assertTrue(bool(ts.sparse.cg(a, b, preconditioner=ts.sparse.jacobi(a)).converged))
        self.assertRaises(TypeError, lambda: ts.sparse.cg("matrix", b))
        pairs_found = ts.sparse.lobpcg(a, ts.random.normal(ts.random.key(0), (self.n, 2)), largest=True, tol=1e-4)
        np.testing.assert_allclose(values(pairs_found.w), np.linalg.eigvalsh(self.dense.astype(float))[:-3:-1], rtol=1e-3)


class Pictures(Folder):
    def test_are_written(self):
        for x in spread(real):
            ts.viz.image(self.path("a.png"), x, colormap="gray")
            ts.viz.plot(self.path("b.svg"), [x[0], x[1]], labels=["first", "second"], title="rows")
            ts.viz.histogram(self.path("c.svg"), x, bins=3)
            ts.multihost.sync_global_devices("written")
            with open(self.path("b.svg")) as file:
                text = file.read()
            self.assertTrue("second" in text and "rows" in text)
            self.assertTrue(os.path.getsize(self.path("a.png")) > 50 and os.path.getsize(self.path("c.svg")) > 200)
            shown = ts.viz.terminal(x, columns=20, rows=5)
            self.assertEqual(shown != "", ts.is_main_process())
            ts.multihost.sync_global_devices("read")
        self.assertRaises(ValueError, lambda: ts.viz.image(self.path("a.gif"), ts.asarray(real)))
        for arguments, options, wanted in (
                (([1.0, 2.0, ts.ones(3)],), {}, "y is a list of numbers and other values"), ((ts.asarray(real[0]),), {"colour": "red"}, "no option 'colour'; the options are title"),
                ((ts.asarray(real[0]),), {"title": 3}, r"'title' is 3 \(int\); it takes a text"), (([ts.ones(3), ts.ones(3)],), {"labels": ["a"]}, "2 curves, 2 arrays of x and 1 label;")):
            with self.assertRaisesRegex((TypeError, ValueError), rf"^viz\.plot at test_numpy.py:\d+: .*{wanted}"):
                ts.viz.plot(self.path("b.svg"), *arguments, **options)
        with self.assertRaisesRegex(TypeError, "the path of the .svg first"):
            ts.viz.plot(ts.ones(3), ts.ones(3))

    def test_of_lists_of_numbers(self):
        ts.viz.plot(self.path("d.svg"), [1, 4, 9], [0.0, 0.5, 1.0], labels="squares")
        ts.multihost.sync_global_devices("written")
        with open(self.path("d.svg")) as file:
            self.assertIn("squares", file.read())
        ts.multihost.sync_global_devices("read")


class Archives(Folder):
    def test_several_arrays_in_one_file(self):
        for x in spread(real):
            arrays = {"a": x, "b": ts.asarray(repeated)}
            ts.io.save_npz(self.path("a.npz"), arrays)
            ts.io.save_safetensors(self.path("a.safetensors"), arrays, {"made": "here"})
            with np.load(self.path("a.npz")) as file:
                np.testing.assert_array_equal(file["a"], real)
            for load in (lambda: ts.io.load_npz(self.path("a.npz"), "a"), lambda: ts.io.load_safetensors(self.path("a.safetensors"), "a")):
                assert_same(load(), real)
            if x.committed:
                self.assertEqual(ts.io.load_npz(self.path("a.npz"), "a", x.sharding).sharding, x.sharding)
            self.assertEqual({k: v.shape for k, v in ts.io.npz_info(self.path("a.npz")).items()}, {"a": (5, 4), "b": (5, 4)})
            self.assertEqual(ts.io.safetensors_metadata(self.path("a.safetensors")), {"made": "here"})
            for place in ((), (x.sharding,)) if x.committed else ((),):
                whole = ts.io.load_safetensors(self.path("a.safetensors"), None, *place)
                self.assertEqual(list(whole), ["a", "b"])
                assert_same(whole["a"], real)
                assert_same(whole["b"], repeated)
                self.assertEqual(whole["a"].committed, bool(place))
            ts.multihost.sync_global_devices("read")

    def test_tables(self):
        for x in spread(real):
            ts.io.save_csv(self.path("a.csv"), x, header=["p", "q", "r", "s"], delimiter=";")
            assert_same(ts.io.load_csv(self.path("a.csv"), delimiter=";", dtype="float32"), real)
            self.assertEqual(ts.io.csv_header(self.path("a.csv"), delimiter=";"), ["p", "q", "r", "s"])
            ts.multihost.sync_global_devices("read")

    def test_a_file_that_stays_open(self):
        for x in spread(real):
            path = self.path("run.h5")
            with ts.io.Hdf5Writer(path, mode="replace") as out:
                out.attribute("/", "viscosity", 0.5)
                out.append("rows", x)
                out.append("rows", x)
                out.write("group/once", x, compression=4)
            assert_same(ts.io.load_hdf5(path, "rows"), np.concatenate([real, real]))
            self.assertEqual(ts.io.hdf5_attributes(path), {"viscosity": 0.5})
            ts.multihost.sync_global_devices("read")
        self.assertRaises(ValueError, lambda: ts.io.Hdf5Writer(self.path("b.h5"), mode="sometimes"))

    def test_parts_of_hdf5(self):
        ts.io.save_hdf5(self.path("a.h5"), "x", ts.asarray(real))
        assert_same(ts.io.load_hdf5(self.path("a.h5"), "x", slices=[slice(1, 4), slice(0, None, 2)]), real[1:4, ::2])


if __name__ == "__main__":
    unittest.main()
