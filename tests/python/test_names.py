"""Functions with names of JAX and of its scipy: the values of names/expressions.tsv, which JAX wrote, on one layout and on others."""
import json
import math
import pathlib
import sys
import unittest

import numpy as np
import tessera as ts

folder = pathlib.Path(__file__).with_name("names")
sys.path.insert(0, str(folder))
from inputs import inputs, leaves  # noqa: E402

expressions = [line.split("\t") for line in (folder / "expressions.tsv").read_text().splitlines()]


def names(array):
    return {"jax": ts, "jnp": ts, "lax": ts.lax, "nn": ts.nn, "random": ts.random, "tree_util": ts.tree_util, "sp": ts.special, "st": ts.stats, "sl": ts.linalg, "sg": ts.signal, "np": np,
            "A": ts.asarray, "key": ts.random.key(7), **inputs(array)}


def differs(got, wanted):
    """What is not alike, or None."""
    if len(got) != len(wanted):
        return f"{len(got)} results instead of {len(wanted)}"
    for a, b in zip(got, wanted):
        if isinstance(a, str) or isinstance(b, str):
            if a != b:
                return f"{a} instead of {b}"
        elif a[:2] != b[:2]:
            return f"{a[0]}{a[1]} instead of {b[0]}{b[1]}"
        else:
            for x, y in zip(a[2], b[2]):
                if not (x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= 3e-5 * (1 + abs(y))):
                    return f"{a[2]} instead of {b[2]}"
    return None


class Names(unittest.TestCase):
    def check(self, array):
        table, wrong = names(array), []
        for expression, wanted in expressions:
            try:
                reason = differs(leaves(eval(expression, dict(table)), lambda x: ts.device_get(x) if isinstance(x, ts.Array) else np.asarray(x)), json.loads(wanted))
            except Exception as error:  # noqa: BLE001  all of them are listed
                reason = f"{type(error).__name__}: {error}"
            if reason:
                wrong.append(f"{expression}: {reason}")
        self.assertEqual(wrong, [], "\n".join(["", *wrong]))

    def test_they_have_jaxs_values(self):
        self.check(ts.asarray)

    def test_they_have_them_on_split_arrays(self):
        mesh = ts.make_mesh((ts.process_count(),), ("x",))
        self.check(lambda host: ts.device_put(host, ts.NamedSharding(mesh, ts.P(*[None] * (host.ndim - 1), "x"))))

    def test_halves_are_rounded_away_from_zero_and_quotients_towards_it(self):
        self.assertEqual(ts.lax.round(ts.asarray([0.5, -1.5, 2.5])).tolist(), [1.0, -2.0, 3.0])
        self.assertEqual(ts.round(ts.asarray([0.5, -1.5, 2.5])).tolist(), [0.0, -2.0, 2.0])
        self.assertEqual((ts.lax.div(ts.asarray([-7]), 2).tolist(), ts.lax.rem(ts.asarray([-7]), 2).tolist()), ([-3], [-1]))
        self.assertEqual(ts.lax.div(ts.asarray([5, -5]), 0).tolist(), [-1, -1])

    def test_the_mistakes_are_named(self):
        v = ts.asarray([1.0, 2.0, 3.0])
        for call, error, text in ((lambda: ts.lax.split(v, (1, 1)), ts.ShapeError, "the sizes add up to 2, but dimension 0 has the extent 3"),
                                  (lambda: ts.lax.index_in_dim(v, 3), IndexError, r"index 3 is out of bounds for dimension 0 of shape \(3,\)"),
                                  (lambda: ts.lax.select_n(v > 1, v, v, v), ts.ArgumentError, "a bool chooses among two cases, not 3"),
                                  (lambda: ts.lax.reduce_window(v, 0.0, ts.lax.add, (2,), (1,), "FULL"), ts.ArgumentError, "there is no padding 'FULL'; take SAME"),
                                  (lambda: ts.lax.div(ts.asarray([7]), 2.5), ts.DtypeError, "the number 2.5 does not fit int32; give the array a floating dtype"),
                                  (lambda: ts.lax.pad(ts.asarray([7]), 0.5, ((1, 1, 0),)), ts.DtypeError, "the number 0.5 does not fit int32"),
                                  (lambda: ts.linalg.hadamard(6), ts.ArgumentError, "n is 6; it must be a power of two"),
                                  (lambda: ts.signal.convolve(v, v, "wrap"), ts.ArgumentError, "there is no mode 'wrap'; the modes are full, same, valid"),
                                  (lambda: ts.tree_util.tree_unflatten(ts.tree_util.tree_structure([0, 0]), [v]), ValueError, "the tree has 2 leaves, and 1 were given"),
                                  (lambda: ts.tree_map(lambda a, b: a, [v, (v,)], [v, v, v], is_leaf=lambda n: isinstance(n, tuple)), ValueError, "the trees differ in structure")):
            with self.assertRaisesRegex(error, text):
                call()

    def test_trees_with_texts_and_other_containers(self):
        import collections
        v = ts.asarray([1.0, 2.0])
        tree = {"name": "a text", "x": v, "z": [v, "another"]}
        tree_util = ts.tree_util
        self.assertEqual(tree_util.tree_map_with_path(lambda path, _: tree_util.keystr(path), tree), {"name": "a text", "x": "['x']", "z": ["['z'][0]", "another"]})
        pairs = collections.defaultdict(list, {"k": (v, v)})
        self.assertIs(type(ts.tree_map(lambda pair: pair[0], pairs, is_leaf=lambda node: isinstance(node, tuple))), collections.defaultdict)

    def test_masks_beside_index_arrays_that_are_out_of_range(self):
        host = np.arange(24.0).reshape(2, 3, 4)
        mask = np.array([[True, False, True], [False, True, False]])
        found = ts.asarray(host).at[ts.asarray(mask), ts.asarray([0, 9, 1])].get(mode="fill", fill_value=-1)
        self.assertEqual(found.tolist(), [host[0, 0, 0], -1, host[1, 1, 1]])

    def test_sylvesters_equation(self):
        rng = np.random.default_rng(3)
        for m, n, dtype in ((5, 3, np.float32), (40, 31, np.float64), (1, 4, np.complex128)):
            a, b, c = (rng.normal(size=shape).astype(dtype) for shape in ((m, m), (n, n), (m, n)))
            x = ts.device_get(ts.linalg.solve_sylvester(a, b, c))
            self.assertEqual(x.dtype, dtype)
            np.testing.assert_allclose(a @ x + x @ b, c, atol=1e-4 if dtype == np.float32 else 1e-10)

    def test_numbers_take_the_precision_of_the_arrays_beside_them(self):
        x = ts.asarray(np.array([0.3, 1.5]))
        for found, expected in ((ts.stats.t.logpdf(x, 4.0), -1.0364557753487755), (ts.stats.beta.logpdf(x, 2.0, 3.0), 0.5675839575845993),
                                (ts.stats.chi2.logpdf(x[1:], 3.0), -1.4662059791505904)):
            np.testing.assert_allclose(float(found[0]), expected, rtol=1e-12)

    def test_correlate2d_is_centred_as_scipys(self):
        a, b = ts.asarray(np.arange(6).reshape(2, 3)), ts.asarray(np.array([[1, 2], [3, 4]]))
        self.assertEqual(ts.signal.correlate2d(a, b, "same").tolist(), [[27, 37, 17], [11, 14, 5]])
        self.assertEqual(ts.signal.correlate2d(a, b).tolist(), [[0, 4, 11, 6], [12, 27, 37, 17], [6, 11, 14, 5]])

    def test_triangular_systems_may_be_conjugate_transposed(self):
        a, b = np.array([[2.0 + 1j, 0], [1.0, 1 - 3j]]), np.array([1j, 2.0])
        for trans, matrix in ((0, a), ("N", a), (1, a.T), ("T", a.T), (2, a.conj().T), ("C", a.conj().T)):
            x = ts.device_get(ts.linalg.solve_triangular(a, b, lower=True, trans=trans))
            np.testing.assert_allclose(matrix @ x, b, atol=1e-14)
        with self.assertRaisesRegex(ts.ArgumentError, "there is no trans='H'; it is 0, 1, 2, 'N', 'T' or 'C'"):
            ts.linalg.solve_triangular(a, b, trans="H")

    def test_gradients_go_through_them(self):
        v = ts.asarray([0.3, 0.6])
        for f, slope in ((lambda x: ts.sum(ts.special.ndtr(x)), np.exp(-np.array([0.3, 0.6]) ** 2 / 2) / math.sqrt(2 * math.pi)),
                         (lambda x: ts.sum(ts.special.xlogy(x, x)), np.log([0.3, 0.6]) + 1),
                         (lambda x: ts.sum(ts.special.xlogy(x - v, 3.0)), [np.log(3.0)] * 2),
                         (lambda x: ts.sum(ts.special.xlog1py(x - v, 3.0)), [np.log(4.0)] * 2),
                         (lambda x: ts.sum(ts.special.log_ndtr(x - v)), [np.sqrt(2 / np.pi)] * 2),
                         (lambda x: ts.sum(ts.special.poch(2.0, x - v)), [0.42278433509846714] * 2),
                         (lambda x: ts.sum(ts.nn.log1mexp((x - v) * 1e-3 + 1e-30)), [1e27] * 2),
                         (lambda x: ts.sum(ts.stats.norm.logpdf(x, 1.0, 2.0)), (1 - np.array([0.3, 0.6])) / 4),
                         (lambda x: ts.lax.custom_root(lambda y: y * y - ts.sum(x), 1.0, lambda f, y: ts.sqrt(ts.sum(x)), lambda g, y: y / g(1.0)), 0.5 / math.sqrt(0.9) * np.ones(2))):
            np.testing.assert_allclose(ts.device_get(ts.grad(f)(v)), slope, rtol=1e-4)


class Modules(unittest.TestCase):
    def test_they_are_imported_by_jaxs_names(self):
        import tessera.numpy as jnp
        import tessera.scipy as jsp
        import tessera.scipy.linalg
        from tessera import numpy, tree
        from tessera.nn.initializers import he_normal
        from tessera.ops import segment_sum
        from tessera.scipy.special import expit
        from tessera.scipy.stats import norm
        from tessera.tree import map_with_path
        self.assertTrue(jnp is ts and numpy is ts and jsp.linalg is ts.linalg and tessera.scipy.linalg is ts.linalg and tree is ts.tree_util)
        self.assertTrue(he_normal is ts.nn.initializers.he_normal and segment_sum is ts.segment_sum and expit is ts.special.expit and norm is ts.stats.norm)
        self.assertIs(map_with_path, ts.tree_util.tree_map_with_path)


class NumPys(unittest.TestCase):
    def test_files_have_one_name_for_each_way(self):
        import tempfile
        path = ts.multihost.broadcast_one_to_all(np.frombuffer(tempfile.mkdtemp().ljust(64).encode(), np.uint8)).tobytes().decode().strip() if ts.process_count() > 1 else tempfile.mkdtemp()
        x = ts.asarray(np.arange(6.0).reshape(2, 3))
        ts.save(f"{path}/x", x)
        ts.savez(f"{path}/many", x, y=x + 1)
        self.assertEqual(ts.load(f"{path}/x.npy").tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual({n: a.tolist() for n, a in ts.load(f"{path}/many.npz").items()}, {"arr_0": [[0, 1, 2], [3, 4, 5]], "y": [[1, 2, 3], [4, 5, 6]]})

    def test_rows_and_columns_between_brackets(self):
        v = ts.asarray([1.0, 2.0])
        self.assertEqual(ts.r_[v, 7, v].tolist(), [1, 2, 7, 1, 2])
        self.assertEqual(ts.r_[0:3, 10].tolist(), [0, 1, 2, 10])
        self.assertEqual(ts.c_[v, v * 2].tolist(), [[1, 2], [2, 4]])
        with self.assertRaisesRegex(ts.ArgumentError, "directives in strings"):
            ts.r_["0,2", v, v]

    def test_kinds_of_dtypes(self):
        for dtype, kind in ((ts.float32, ts.floating), (ts.bfloat16, ts.inexact), (ts.int8, ts.integer), (ts.complex64, ts.complexfloating), (ts.uint8, ts.number), (ts.float64, ts.float64)):
            self.assertTrue(ts.issubdtype(dtype, kind), f"{dtype} {kind}")
        for dtype, kind in ((ts.int32, ts.floating), (ts.bfloat16, ts.float16), (ts.bool, ts.number)):
            self.assertFalse(ts.issubdtype(dtype, kind), f"{dtype} {kind}")

    def test_host_data(self):
        self.assertEqual(ts.frombuffer(np.int32([1, 2, 3]).tobytes(), ts.int32, offset=4).tolist(), [2, 3])
        self.assertEqual(ts.fromiter((k * k for k in range(4)), ts.float32).tolist(), [0, 1, 4, 9])
        path, text = ts.einsum_path("ij,jk,kl->il", *[ts.ones((4, 4))] * 3)
        self.assertEqual((path[0], "Complete contraction" in text), ("einsum_path", True))


if __name__ == "__main__":
    unittest.main()
