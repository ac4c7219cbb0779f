"""Every primitive of JAX's own modules has a rule or a reason; and the rarer ones have JAX's values."""
import functools
import importlib.util
import inspect
import pathlib
import pkgutil
import unittest
import warnings

import numpy as np
import tessera as ts

try:
    import tessera.jax as tj
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import Mesh, PartitionSpec as P
except ImportError:
    raise unittest.SkipTest("JAX is not installed") from None

from tessera.jax._versions import version
from tessera.jax.rules.left_out import reasons

mesh = Mesh(np.array(jax.devices()), ("x",))
rng = np.random.RandomState(0)
# Kernels for accelerators, and bridges to other packages: nothing in them belongs to a program for CPUs.
_elsewhere = ("pallas", "mosaic", "test", "cuda", "rocm", "tpu", "tools", "triton", "export", "jax2tf", "backend")


def primitives_of_jax():
    """Name -> module, of all primitives that a module below jax._src defines."""
    import jax._src
    from jax._src import core
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(jax._src.__path__, "jax._src."):
            if any(word in module.name for word in _elsewhere):
                continue
            try:
                members = vars(importlib.import_module(module.name))
            except Exception:  # needs a package that is not here
                continue
            found.update({p.name: module.name for p in members.values() if isinstance(p, core.Primitive)})
    return found


def same(found, expected, tolerance=1e-5):
    for ours, theirs in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True):
        ours, theirs = ts.device_get(ours), np.asarray(theirs)
        assert ours.dtype == theirs.dtype, f"{ours.dtype} instead of {theirs.dtype}"
        np.testing.assert_allclose(ours.astype("f") if ours.dtype.name == "bfloat16" else ours, theirs.astype("f") if theirs.dtype.name == "bfloat16" else theirs, rtol=tolerance, atol=tolerance)


class Table(unittest.TestCase):
    def test_every_primitive_has_a_rule_or_a_reason(self):
        found = primitives_of_jax()
        self.assertGreater(len(found), 200)
        rules = set(tj.known_primitives())
        self.assertEqual({n: m for n, m in sorted(found.items()) if n not in rules and n not in reasons}, {})
        self.assertEqual(sorted(set(reasons) & rules), [])

    def test_the_list_of_reasons_names_primitives_that_exist(self):
        if version < (0, 10, 0):
            self.skipTest("the list is that of the newest version")
        # Of older versions, and of packages.
        gone = {"mutable_array", "triton_kernel_call", "eigh_jacobi", "bias_fwd", "bias_bwd", "full_to_shard", "shard_to_full", "xla_pmap", "pgather", "dce_sential", "infeed", "outfeed", "for", "spsolve"}
        self.assertEqual(sorted(set(reasons) - set(primitives_of_jax()) - gone), [])

    def test_a_reason_is_told_with_the_line(self):
        if not hasattr(jax, "new_ref"):
            self.skipTest("before jax.new_ref")
        from jax.experimental import checkify
        with self.assertRaisesRegex(Exception, "checkify"):
            tj.jit(lambda x: (checkify.check(x.sum() > 0, "none"), x)[1])(np.ones(3, "f"))


class Values(unittest.TestCase):
    def compare(self, function, *arguments, tolerance=1e-5):
        same(tj.jit(function)(*arguments), jax.jit(function)(*arguments), tolerance)

    def test_references_inside_of_a_jit_are_values(self):
        make = getattr(jax, "new_ref", None) or getattr(jax, "array_ref", None)
        if make is None:
            self.skipTest("before references")

        def program(x):
            total = make(jnp.zeros(3))

            def add(i, _):
                total[...] = total[...] + x[i]
                return _
            lax.fori_loop(0, 4, add, None)
            total[1] = 7.0
            return total[...] * 2

        self.compare(program, np.arange(12, dtype="f").reshape(4, 3))

    def test_run_state_returns_the_last_values(self):
        from jax._src.state import discharge
        if not hasattr(discharge, "run_state"):
            self.skipTest("no run_state")

        def program(x):
            def body(refs):
                a, b = refs
                b[...] = a[...] * 2 + b[...]
                a[...] = b[...] - 1
            return discharge.run_state(body)((x, x + 1))

        self.compare(program, np.arange(5, dtype="f"))

    def test_products_high_words_of_64_bits(self):
        if "mulhi" not in tj.known_primitives() or not hasattr(lax, "mulhi"):
            self.skipTest("before mulhi")
        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
            ends = [-2 ** 63, 2 ** 63 - 1, -1, 0, 1, 2 ** 32, -2 ** 32 + 5, 123456789012345678]
            a, b = (np.array(v) for v in zip(*[(x, y) for x in ends for y in ends]))
            for kind in ("int64", "uint64"):
                self.compare(lax.mulhi, a.astype(kind), b.astype(kind))

    def test_a_system_whose_factor_nothing_else_reads_is_one_op(self):
        draw = np.random.RandomState(1).standard_normal
        a, batch = [(draw(shape) + 7 * np.eye(7)).astype("f") for shape in ((7, 7), (4, 7, 7))]
        square, wide = draw((7, 7)).astype("f"), draw((4, 7, 2)).astype("f")
        solve = jnp.linalg.solve
        for name, function, *arguments in (("vector", solve, a, square[0]), ("square", solve, a, square), ("batch", solve, batch, wide), ("shared", solve, a, wide),
                                           ("mapped", jax.vmap(solve, (2, None)), np.moveaxis(batch, 0, 2), square[1]), ("columns", jax.vmap(solve, (None, 1)), a, square),
                                           ("inverse", jnp.linalg.inv, batch), ("complex", lambda m, b: solve(m * (1 + 0.5j), b), a, square)):
            with self.subTest(name):
                self.compare(function, *arguments)
                self.assertFalse("lu_factor" in tj.jit(function).lower(*arguments).as_text())
        self.compare(jax.grad(lambda m, b: jnp.sum(solve(m, b) ** 2), (0, 1)), a, square, tolerance=1e-4)
        self.compare(lambda m: (jax.scipy.linalg.lu_factor(m)[0], solve(m, m)), a)

    def test_singular_systems_raise_nothing(self):
        for n in (3, 40):  # of small systems, and of LAPACK's
            a = np.ones((n, n), "f")
            b = np.arange(2 * n, dtype="f").reshape(n, 2)
            found = tj.jit(jnp.linalg.solve)(ts.device_put(ts.asarray(a), ts.NamedSharding(tj._layouts.mesh_of(mesh), ts.P("x"))), b)
            self.assertFalse(np.isfinite(ts.device_get(found)[0]).any())
            self.assertFalse(np.isfinite(ts.device_get(found)[-1]).any())
            batch = np.stack([np.eye(n, dtype="f"), a])
            found = ts.device_get(tj.jit(jnp.linalg.solve)(batch, np.stack([b, b])))
            np.testing.assert_array_equal(found[0], b)
            self.assertFalse(np.isfinite(found[1]).any())

    def test_a_subset_of_eigenvalues_is_cut_from_all(self):
        from jax._src.lax import linalg
        m = rng.standard_normal((6, 6)).astype("f")
        m = m + m.T
        values = np.linalg.eigvalsh(m)
        found = tj.jit(lambda x: linalg.eigh(x, subset_by_index=(1, 4))[1])(m)
        np.testing.assert_allclose(ts.device_get(found), values[1:4], rtol=1e-4, atol=1e-4)
        u, s, vh = (ts.device_get(x) for x in tj.jit(lambda x: linalg.svd(x, full_matrices=False, subset_by_index=(0, 2)))(m))
        np.testing.assert_allclose(s, np.linalg.svd(m)[1][:2], rtol=1e-4)
        np.testing.assert_allclose(m @ vh.T, u * s, atol=1e-4)

    def test_tridiagonal_systems_are_solved_with_pivots(self):
        for shape, kind in (((1,), "f"), ((2,), "f"), ((7,), "F"), ((3, 6), "f")):
            lower, middle, upper = (rng.standard_normal(shape).astype(kind) for _ in range(3))
            lower[..., 0] = upper[..., -1] = 0
            middle[..., 1::2] = 0  # a zero on the diagonal asks for an exchange of rows
            if shape[-1] > 1:
                middle[..., 0] = 0
            b = rng.standard_normal((*shape, 2)).astype(kind)
            if "perturb_singular" in inspect.signature(lax.linalg.tridiagonal_solve).parameters:
                self.compare(functools.partial(lax.linalg.tridiagonal_solve, perturb_singular=True), lower, middle, upper, b, tolerance=1e-3)
            self.compare(lax.linalg.tridiagonal_solve, lower, middle, upper, b, tolerance=1e-3)
        singular = tj.jit(lax.linalg.tridiagonal_solve)(np.zeros(3, "f"), np.array([1, 0, 2], "f"), np.zeros(3, "f"), np.ones((3, 1), "f"))
        self.assertTrue(np.isnan(ts.device_get(singular)).all())

    def test_both_triangles_become_tridiagonal(self):
        for shape, kind in (((1, 1), "f"), ((5, 5), "F"), ((2, 6, 6), "f")):
            for lower in (True, False):
                self.compare(functools.partial(lax.linalg.tridiagonal, lower=lower), rng.standard_normal(shape).astype(kind), tolerance=1e-4)

    def test_a_scaled_product_spreads_its_scales(self):
        if not hasattr(lax, "scaled_dot"):
            self.skipTest("before scaled_dot")
        a, b = (rng.standard_normal(s).astype("f").astype(jnp.bfloat16) for s in ((5, 8), (8, 3)))
        scales = np.full((5, 2), 2.0, "f").astype(jnp.bfloat16), np.full((4, 3), 0.5, "f").astype(jnp.bfloat16)
        numbers = (((1,), (0,)), ((), ()))
        self.compare(lambda x, y, s, t: lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t, dimension_numbers=numbers, preferred_element_type=jnp.float32), a, b, *scales, tolerance=1e-2)

    def test_the_largest_are_in_xla_s_order_of_floats(self):
        x = np.array([3.0, np.nan, 1.0, np.inf, -2.0, np.nan, -0.0, 0.0, -np.inf], "f")
        x[5] = -x[5]
        self.compare(lambda v: lax.top_k(v, 9), x)
        self.compare(lambda v: lax.top_k(-v, 4), x)
        self.compare(lambda v: jnp.partition(v, 3, axis=0)[3], np.stack([x, x[::-1]], 1))
        self.compare(lambda v: lax.top_k(v.astype(jnp.bfloat16), 5), x)
        self.compare(lambda v: lax.top_k(v.astype(int), 2), x[6:8])

    def test_keys_of_other_generators_give_jax_s_bits(self):
        for impl in ("rbg", "unsafe_rbg"):
            for kind in ("uint8", "uint16", "uint32"):
                self.compare(lambda s: jax.random.bits(jax.random.key(s, impl=impl), (7,), kind), 5)  # noqa: B023
            self.compare(lambda s: jax.random.normal(jax.random.split(jax.random.key(s, impl=impl), 3)[1], (4, 3)), 5)  # noqa: B023
        for words in ([11, 22, 33, 44], [11, 22, 0xffffffff, 0xffffffff]):  # the counter's carry
            self.compare(lambda k: lax.rng_bit_generator(k, (3, 2)), np.array(words, "uint32"))

    def test_a_function_with_its_own_rule_for_vmap_is_called(self):
        double = jax.custom_batching.custom_vmap(lambda x: x * 2)
        double.def_vmap(lambda size, mapped, x: (x * 3, mapped[0]))
        self.compare(lambda x: (double(x), jax.vmap(double)(x), jax.jit(jax.vmap(lambda v: double(v) + 1))(x)), np.arange(5, dtype="f"))

    def test_sparse_matrices_are_multiplied(self):
        from jax.experimental import sparse
        dense = np.where(rng.uniform(size=(11, 7)) < 0.3, rng.standard_normal((11, 7)), 0).astype("f")
        b = rng.standard_normal((7, 4)).astype("f")
        stored = sparse.BCOO.fromdense(jnp.asarray(dense))
        rows = sparse.BCSR.from_bcoo(stored)
        self.compare(lambda d, y: sparse.BCOO((d, stored.indices), shape=(11, 7)) @ y, np.asarray(stored.data), b)
        self.compare(lambda d, y: sparse.BCSR((d, rows.indices, rows.indptr), shape=(11, 7)) @ y, np.asarray(rows.data), b)
        self.compare(jax.grad(lambda d, y: jnp.sum((sparse.BCOO((d, stored.indices), shape=(11, 7)) @ y) ** 2)), np.asarray(stored.data), b, tolerance=1e-4)
        self.compare(lambda m, y: (sparse.BCOO.fromdense(m, nse=40) @ sparse.BCOO.fromdense(y, nse=28)).todense(), dense, b)

    def test_tokens_order_nothing_and_change_nothing(self):
        self.compare(lambda x: (lax.after_all(lax.create_token()), x * 2)[1], np.ones(3, "f"))

    def test_what_is_sent_arrives_with_its_token(self):
        if not hasattr(lax, "psend"):
            self.skipTest("before psend")
        n = mesh.size
        ring = [(i, (i + 1) % n) for i in range(n)]

        def body(x):
            token = lax.psend(x, "x", ring)
            return lax.precv(token, jax.ShapeDtypeStruct(x.shape, x.dtype), "x", ring)

        host = np.arange(4.0 * n, dtype="f").reshape(n * 2, 2)
        found = tj.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))(host)
        np.testing.assert_array_equal(ts.device_get(found), np.roll(host, 2, 0))

    def test_ragged_slices_go_to_their_ranks(self):
        n = mesh.size
        sizes = np.array([[(i + j) % 3 for j in range(n)] for i in range(n)], "i")  # from rank i to rank j
        rows = 3 * n
        sent = np.array([[1000 * i + k for k in range(rows)] for i in range(n)], "f").reshape(n * rows, 1)
        starts = np.concatenate([np.zeros((n, 1), "i"), np.cumsum(sizes, 1)[:, :-1]], 1).astype("i")
        places = np.concatenate([np.zeros((1, n), "i"), np.cumsum(sizes, 0)[:-1]], 0).astype("i")
        expected = np.full((n, rows, 1), -1.0, "f")
        for i in range(n):
            for j in range(n):
                expected[j, places[i, j]:places[i, j] + sizes[i, j], 0] = 1000 * i + starts[i, j] + np.arange(sizes[i, j])

        def body(x, out, at, size, to, size_in):
            return lax.ragged_all_to_all(x, out, at[0], size[0], to[0], size_in[0], axis_name="x")

        mapped = jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
        found = tj.jit(mapped)(sent, np.full((n * rows, 1), -1.0, "f"), starts, sizes, places, np.ascontiguousarray(sizes.T))
        np.testing.assert_array_equal(ts.device_get(found), expected.reshape(n * rows, 1))

    def test_one_rank_s_value_goes_to_all(self):
        if not hasattr(lax, "pbroadcast"):
            self.skipTest("before lax.pbroadcast")
        n = mesh.size
        host = np.arange(2.0 * n, dtype="f")
        found = tj.jit(jax.shard_map(lambda x: lax.pbroadcast(x, "x", n - 1), mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))(host)
        np.testing.assert_array_equal(ts.device_get(found), np.tile(host[-2:], n))


class Pages(unittest.TestCase):
    def test_the_names_that_the_page_of_functions_gives_are_jax_s(self):
        spec = importlib.util.spec_from_file_location("functions", pathlib.Path(__file__).parents[3] / "scripts/site/functions.py")
        functions = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(functions)
        for name in functions.JAX_NAMES.values():
            module, function = name.rsplit(".", 1)
            self.assertTrue(callable(getattr(importlib.import_module(module), function, None)), name)


if __name__ == "__main__":
    unittest.main()
