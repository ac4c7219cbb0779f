"""The array API standard 2024.12: names, parameters and dtypes of its own. What functions compute stands in tests/catalogue."""
import inspect
import math
import unittest
import warnings

import numpy as np

import tessera as ts
from layouts import assert_same, pairs, spread, values

real = np.float32([[-2.5, -1, -0.5, 0], [0.25, 0.5, 1, 2.5], [3, -0.75, 0.125, -3.5], [1.5, 2, -2, 0.875], [4, -4, 0.3, 0.9]])
positive = np.abs(real) + 0.5
whole = np.int32([[-7, 2, 3], [0, 5, -1], [4, 4, 9], [1, -3, 6], [8, 0, 2]])
truth = whole % 2 == 0
numpy_names = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh", "atan2": "arctan2", "bitwise_invert": "invert", "pow": "power",
               "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}


class Elementwise(unittest.TestCase):
    def test_other_names_are_the_same_functions(self):
        for name, numpys in numpy_names.items():
            self.assertIs(getattr(ts, name), getattr(ts, numpys), name)

    def test_integers_and_bools(self):
        for names, a, b in (("abs negative sign square", whole, None), ("bitwise_invert", truth, None), ("add equal floor_divide maximum multiply remainder subtract", whole, np.int32([2, -3, 5])),
                            ("pow bitwise_left_shift", whole, np.int32([2, 3, 1])), ("bitwise_and bitwise_or bitwise_xor logical_and", truth, truth[::-1].copy())):
            for name in names.split():
                numpys = getattr(np, numpy_names.get(name, name))
                for x, y in pairs(a, a if b is None else b):
                    with self.subTest(name, dtype=a.dtype):
                        assert_same(getattr(ts, name)(x) if b is None else getattr(ts, name)(x, y), numpys(a) if b is None else numpys(a, b))
        for name in ("ceil", "floor", "round", "trunc"):  # integers come back as they are
            assert_same(getattr(ts, name)(ts.asarray(whole)), whole)

    def test_functions_of_an_array_and_a_plain_number(self):
        for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "equal", "pow", "remainder", "floor_divide", "atan2", "hypot", "copysign"):
            function, reference = getattr(ts, name), getattr(np, numpy_names.get(name, name))
            assert_same(function(ts.asarray(positive), 2.0), reference(positive, np.float32(2)), 2e-5)
            assert_same(function(2.0, ts.asarray(positive)), reference(np.float32(2), positive), 2e-5)

    def test_special_values(self):
        special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1])
        for name in ("isnan", "isinf", "isfinite", "signbit", "sign", "exp", "sqrt", "floor", "trunc", "abs", "tanh"):
            with np.errstate(all="ignore"):
                expected = getattr(np, name)(special)
            np.testing.assert_allclose(values(getattr(ts, name)(ts.asarray(special))), expected, rtol=1e-6, err_msg=name)

    def test_clip(self):
        for x in spread(real):
            assert_same(ts.clip(x, -1, 1), np.clip(real, -1, 1))
            assert_same(ts.clip(x, min=0.5), np.clip(real, 0.5, None))
            assert_same(ts.clip(x, max=ts.asarray(real[0])), np.minimum(real, real[0]))
            assert_same(ts.clip(x), real)


class Statistics(unittest.TestCase):
    def test_reductions(self):
        for name in ("sum", "prod", "max", "min", "mean", "std", "var", "all", "any", "count_nonzero", "argmax", "argmin"):
            for axis in (None, 0, 1, -1) if name.startswith("arg") else (None, 0, -1, (0, 1), (1,)):
                for keepdims in (False, True):
                    expected = np.asarray(getattr(np, name)(real, axis=axis, keepdims=keepdims))
                    for x in spread(real):
                        found = getattr(ts, name)(x, axis=axis, keepdims=keepdims)
                        assert_same(found, expected, 1e-4, dtype=name not in ("argmax", "argmin", "count_nonzero"))

    def test_no_axes_reduce_nothing(self):
        for name in ("sum", "prod", "max", "min", "mean", "all", "any", "std", "var", "count_nonzero"):
            assert_same(getattr(ts, name)(ts.asarray(real), axis=()), getattr(np, name)(real, axis=()), dtype=name != "count_nonzero")

    def test_no_axes_leave_order_statistics_and_flip_alone(self):
        holed = np.where(real > 1, np.nan, real)
        for name in ("median", "nanmedian", "nanvar", "nanstd", "flip", "nanmax"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's about elements that are not numbers
                expected = getattr(np, name)(holed, axis=())
            for x in spread(holed):
                assert_same(getattr(ts, name)(x, axis=()), expected)

    def test_masks_and_first_values_beside_nan(self):
        holed, mask = np.where(real > 1, np.nan, real), real < 0.5
        for x in spread(holed):
            for name in ("nanvar", "nanstd"):
                assert_same(getattr(ts, name)(x, axis=0, where=ts.asarray(mask)), getattr(np, name)(holed, axis=0, where=mask), 1e-4)
            for name, first in (("nanmax", 0.25), ("nanmin", -0.25)):
                assert_same(getattr(ts, name)(x, axis=1, initial=first), getattr(np, name)(holed, axis=1, initial=first))

    def test_means_as_integers(self):
        whole = np.array([[-7, 2, 4], [5, 1, 1]], np.int32)
        for x in spread(whole):
            assert_same(ts.mean(x, axis=1, dtype=ts.int64), np.mean(whole, axis=1, dtype=np.int64))
            assert_same(ts.mean(x, dtype=ts.int16, where=ts.asarray(whole > 0)), np.mean(whole, dtype=np.int16, where=whole > 0))
        for name in ("var", "std", "nanvar", "nanstd", "nanmean"):
            with self.assertRaisesRegex(TypeError, name + r" at .*: dtype=int64 holds no fractions; take a dtype of floating numbers"):
                getattr(ts, name)(ts.asarray(whole), dtype=ts.int64)
        with self.assertRaisesRegex(TypeError, r"var at .*: dtype=float64 would drop the imaginary parts of complex64; take real\(x\) first"):
            ts.var(ts.asarray(np.array([1j, 2], np.complex64)), dtype=ts.float64)

    def test_dtypes_of_sums(self):
        for dtype, expected in (("int8", ts.int32), ("int16", ts.int32), ("int32", ts.int32), ("int64", ts.int64), ("uint8", ts.uint32), ("uint64", ts.uint64), ("float32", ts.float32), ("complex128", ts.complex128)):
            x = ts.ones(3, dtype=dtype)
            self.assertEqual(ts.sum(x).dtype, expected, dtype)
            self.assertEqual(ts.prod(x).dtype, expected, dtype)
            self.assertEqual(ts.cumulative_sum(x).dtype, expected, dtype)
        self.assertEqual(ts.sum(ts.ones(3), dtype=ts.float64).dtype, ts.float64)

    def test_corrections(self):
        for x in spread(real):
            assert_same(ts.var(x, axis=0, correction=1), real.var(0, ddof=1), 1e-4)
            assert_same(ts.std(x, correction=1.0), real.std(ddof=1).astype(np.float32), 1e-4)

    def test_parameters_of_the_standard(self):
        self.assertRaises(ValueError, lambda: ts.cumulative_sum(ts.asarray(real)))
        for x in spread(real):
            assert_same(ts.diff(x, n=2, prepend=ts.zeros((5, 1))), np.diff(real, 2, prepend=np.zeros((5, 1), np.float32)))


class Manipulation(unittest.TestCase):
    def test_parameters_of_the_standard(self):
        for x in spread(real):
            assert_same(x.mT, real.T)
            assert_same(ts.squeeze(ts.expand_dims(x, axis=(0, 3)), axis=(0, 3)), real)
            assert_same(ts.repeat(x, np.array([0, 1, 2, 0, 1]), axis=0), np.repeat(real, [0, 1, 2, 0, 1], 0))
            assert_same(ts.pad(x, 1, mode="edge"), np.pad(real, 1, mode="edge"))
            assert_same(ts.concat([x, x], axis=None), np.concatenate([real, real], None))
            assert_same(ts.trace(x, 1), np.trace(real, 1), 1e-5)
            self.assertIs(type(ts.unstack(x, axis=1)), tuple)

    def test_places_and_sets(self):
        for x in spread(whole):
            assert_same(ts.where(x)[1], np.nonzero(whole)[1].astype(np.int32))
            everything = ts.unique_all(x)
            assert_same(everything.values[everything.inverse_indices], whole)
            self.assertEqual(ts.unique_values(ts.array([np.nan, 1, np.nan])).shape, (3,))
            assert_same(ts.bincount(ts.abs(x)), np.bincount(np.abs(whole).ravel()).astype(np.int32))


matrix = np.float32([[4, 1, 0.5], [1, 5, -1], [0.5, -1, 3]])


class LinearAlgebra(unittest.TestCase):
    def test_parameters_and_names_of_results(self):
        a, b = real[:, :3], real[:, 1:]
        assert_same(ts.linalg.cross(ts.asarray(a), ts.asarray(b)), np.cross(a, b), 1e-4)
        for x in spread(matrix):
            assert_same(ts.linalg.outer(x[0], x[:, 1]), np.outer(matrix[0], matrix[:, 1]), 1e-4)
            assert_same(ts.linalg.cholesky(x, upper=True), np.linalg.cholesky(matrix).T, 1e-4)
            assert_same(ts.linalg.eigh(x).eigenvalues, np.linalg.eigvalsh(matrix), 1e-4)
            self.assertEqual(int(ts.linalg.matrix_rank(x, rtol=0.9)), int((np.linalg.svd(matrix)[1] > 0.9 * np.linalg.svd(matrix)[1][0]).sum()))
            sign, logabs = ts.linalg.slogdet(x)
            assert_same(sign * ts.exp(logabs), np.linalg.det(matrix), 1e-3)
            assert_same(ts.linalg.pinv(x, rtol=1e-6), np.linalg.pinv(matrix), 1e-4)
        tall = ts.linalg.qr(ts.asarray(real), mode="complete")
        assert_same(tall.Q @ tall.R, real, 1e-4)
        self.assertEqual(tall.Q.shape, (5, 5))

    def test_norms(self):
        for x in spread(real):
            for order in (2, 1, 0, math.inf, -math.inf, 3):
                assert_same(ts.linalg.vector_norm(x, axis=0, ord=order), np.linalg.norm(real, order, 0).astype(np.float32), 1e-4)
                assert_same(ts.linalg.vector_norm(x, ord=order), np.float32(np.linalg.norm(real.ravel(), order)), 1e-4)
            for order in ("fro", "nuc", 1, -1, 2, -2, math.inf):
                assert_same(ts.linalg.matrix_norm(x, ord=order), np.float32(np.linalg.norm(real, order)), 1e-4)
            assert_same(ts.linalg.trace(x[:4], offset=1), np.trace(real[:4], 1), 1e-4)
            assert_same(ts.linalg.diagonal(x), np.diagonal(real))


class Namespace(unittest.TestCase):
    def test_an_array_knows_its_namespace(self):
        x = ts.ones(2)
        self.assertIs(x.__array_namespace__(), ts)
        self.assertIs(x.__array_namespace__(api_version="2024.12"), ts)
        self.assertRaises(ValueError, lambda: x.__array_namespace__(api_version="1999.01"))
        self.assertEqual(ts.__array_api_version__, "2024.12")

    def test_all_names_of_the_standard_are_there(self):
        names = """abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
            bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to can_cast ceil clip complex128 complex64 concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum
            diff divide e empty empty_like equal exp expand_dims expm1 eye finfo flip float32 float64 floor floor_divide from_dlpack full full_like greater greater_equal hypot iinfo imag inf
            int16 int32 int64 int8 isdtype isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max
            maximum mean meshgrid min minimum moveaxis multiply nan negative newaxis nextafter nonzero not_equal ones ones_like permute_dims pi positive pow prod real reciprocal remainder repeat
            reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc uint16 uint32
            uint64 uint8 unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like bool __array_namespace_info__""".split()
        self.assertEqual([n for n in names if not hasattr(ts, n)], [])
        linalg = """cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot
            vector_norm""".split()
        self.assertEqual([n for n in linalg if not hasattr(ts.linalg, n)], [])
        self.assertEqual([n for n in "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift".split() if not hasattr(ts.fft, n)], [])

    def test_dtypes(self):
        self.assertEqual((ts.finfo(ts.float32).bits, ts.finfo(ts.complex128).dtype), (32, ts.float64))
        self.assertEqual((ts.iinfo(ts.int8).max, ts.iinfo("uint16").max), (127, 65535))
        self.assertTrue(ts.isdtype(ts.int8, "signed integer") and ts.isdtype(ts.float64, ("integral", "real floating")) and not ts.isdtype(ts.bool, "numeric"))
        self.assertEqual(ts.result_type(ts.int8, ts.uint8), ts.int16)
        self.assertEqual(ts.result_type(ts.float32, ts.ones(1, dtype=ts.float64), 1), ts.float64)
        self.assertEqual(ts.result_type(ts.ones(1), 1j), ts.complex64)
        self.assertTrue(ts.can_cast(ts.int8, ts.int16) and not ts.can_cast(ts.float64, ts.float32))
        info = ts.__array_namespace_info__()
        self.assertEqual(info.default_dtypes()["integral"], ts.int32)
        self.assertEqual(set(info.dtypes(kind="real floating")), {"float32", "float64"})

    def test_positional_only_and_keyword_only_parameters(self):
        for name, keywords in {"sum": "axis dtype keepdims", "concat": "axis", "sort": "axis descending stable", "argsort": "axis descending stable", "take": "axis", "clip": "min max",
                               "cumulative_sum": "axis dtype include_initial", "diff": "axis n prepend append", "searchsorted": "side sorter", "astype": "copy device",
                               "asarray": "dtype device copy", "arange": "stop step dtype device", "full": "dtype device", "linspace": "dtype device endpoint", "var": "axis correction keepdims"}.items():
            parameters = inspect.signature(getattr(ts, name)).parameters
            if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
                continue
            self.assertEqual([k for k in keywords.split() if k not in parameters], [], name)

    def test_random_draws_follow_the_layout(self):
        x = ts.random.normal(ts.random.key(3), (6, 4))
        for sharding in ("x", None):
            mesh = ts.make_mesh((ts.device_count(),), ("x",))
            again = ts.device_put(ts.random.normal(ts.random.key(3), (6, 4)), ts.NamedSharding(mesh, ts.P(sharding)))
            np.testing.assert_array_equal(values(again), values(x))


if __name__ == "__main__":
    unittest.main()
