"""The array API standard 2024.12, function by function: each against NumPy, on every layout of its operands."""
import inspect
import math
import unittest

import numpy as np

import tessera as ts
from layouts import assert_same, pairs, spread, values

real = np.float32([[-2.5, -1, -0.5, 0], [0.25, 0.5, 1, 2.5], [3, -0.75, 0.125, -3.5], [1.5, 2, -2, 0.875], [4, -4, 0.3, 0.9]])
unit = real / 5
positive = np.abs(real) + 0.5
above_one = np.abs(real) + 1
whole = np.int32([[-7, 2, 3], [0, 5, -1], [4, 4, 9], [1, -3, 6], [8, 0, 2]])
truth = whole % 2 == 0
compound = (real + 1j * real[::-1]).astype(np.complex64)

# Elementwise functions of one operand: operands, and NumPy's function where it has another name.
unary = {
    "abs": [real, whole, compound], "acos": [unit], "acosh": [above_one], "asin": [unit], "asinh": [real], "atan": [real], "atanh": [unit], "bitwise_invert": [whole, truth],
    "ceil": [real, whole], "conj": [real, compound], "cos": [real, compound], "cosh": [real], "exp": [real, compound], "expm1": [real], "floor": [real, whole], "imag": [compound], "isfinite": [real],
    "isinf": [real], "isnan": [real], "log": [positive], "log1p": [positive], "log2": [positive], "log10": [positive], "logical_not": [truth], "negative": [real, whole], "positive": [real],
    "real": [compound], "reciprocal": [positive], "round": [real, whole], "sign": [real, whole], "signbit": [real], "sin": [real], "sinh": [real], "square": [real, whole], "sqrt": [positive],
    "tan": [real], "tanh": [real], "trunc": [real, whole],
}
numpy_names = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh", "atan2": "arctan2", "bitwise_invert": "invert", "pow": "power",
               "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}
shifts = np.int32([1, 0, 3])
binary = {
    "add": [(real, real[::-1]), (whole, whole[0])], "atan2": [(real, positive)], "bitwise_and": [(whole, shifts), (truth, truth[::-1])], "bitwise_left_shift": [(whole, shifts)],
    "bitwise_or": [(whole, shifts)], "bitwise_right_shift": [(whole, shifts)], "bitwise_xor": [(whole, shifts), (truth, truth[::-1])], "copysign": [(real, real[::-1])],
    "divide": [(real, positive)], "equal": [(whole, whole[::-1]), (real, real[0])], "floor_divide": [(real, positive), (whole, np.int32([2, -3, 5]))], "greater": [(real, real[::-1])],
    "greater_equal": [(real, real[::-1])], "hypot": [(real, real[::-1])], "less": [(real, real[::-1])], "less_equal": [(real, real[::-1])], "logaddexp": [(real, real[::-1])],
    "logical_and": [(truth, truth[::-1])], "logical_or": [(truth, truth[::-1])], "logical_xor": [(truth, truth[::-1])], "maximum": [(real, real[::-1])], "minimum": [(real, real[::-1])],
    "multiply": [(real, real[0]), (whole, whole[::-1])], "nextafter": [(real, real[::-1])], "not_equal": [(whole, whole[::-1])], "pow": [(positive, real[0]), (whole, np.int32([2, 3, 1]))],
    "remainder": [(real, positive), (whole, np.int32([2, -3, 5]))], "subtract": [(real, real[::-1]), (whole, whole[0])],
}


class Elementwise(unittest.TestCase):
    def test_functions_of_one_operand(self):
        for name, samples in unary.items():
            for host in samples:
                is_whole = name in ("ceil", "floor", "round", "trunc") and host.dtype.kind == "i"  # integers come back as they are
                expected = host if is_whole else getattr(np, numpy_names.get(name, name))(host)
                for x in spread(host):
                    with self.subTest(name, dtype=host.dtype):
                        assert_same(getattr(ts, name)(x), expected, 2e-5)

    def test_functions_of_two_operands(self):
        for name, samples in binary.items():
            for a, b in samples:
                a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
                expected = getattr(np, numpy_names.get(name, name))(a, b)
                for x, y in pairs(a, b):
                    with self.subTest(name, dtype=a.dtype):
                        assert_same(getattr(ts, name)(x, y), expected, 2e-5)

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

    def test_cumulative(self):
        for x in spread(real):
            assert_same(ts.cumulative_sum(x, axis=0), np.cumsum(real, 0), 1e-4)
            assert_same(ts.cumulative_prod(x, axis=1), np.cumprod(real, 1), 1e-4)
            initial = np.concatenate([np.zeros((5, 1), np.float32), np.cumsum(real, 1)], 1)
            assert_same(ts.cumulative_sum(x, axis=1, include_initial=True), initial, 1e-4)
        self.assertRaises(ValueError, lambda: ts.cumulative_sum(ts.asarray(real)))

    def test_diff_and_quantiles(self):
        for x in spread(real):
            assert_same(ts.diff(x, axis=0), np.diff(real, axis=0))
            assert_same(ts.diff(x, n=2, prepend=ts.zeros((5, 1))), np.diff(real, 2, prepend=np.zeros((5, 1), np.float32)))
            assert_same(ts.quantile(x, 0.3, axis=0), np.quantile(real, 0.3, axis=0).astype(np.float32), 1e-4)
            assert_same(ts.percentile(x, [25, 50]), np.percentile(real, [25, 50]).astype(np.float32), 1e-4)
            assert_same(ts.median(x, 1), np.median(real, 1))


class Manipulation(unittest.TestCase):
    def test_shapes(self):
        for x in spread(real):
            assert_same(ts.reshape(x, (2, 10)), real.reshape(2, 10))
            assert_same(ts.reshape(x, (-1,)), real.reshape(-1))
            assert_same(ts.permute_dims(x, (1, 0)), real.T)
            assert_same(ts.matrix_transpose(x), real.T)
            assert_same(x.mT, real.T)
            assert_same(ts.expand_dims(x, axis=1), real[:, None])
            assert_same(ts.squeeze(ts.expand_dims(x, axis=(0, 3)), axis=(0, 3)), real)
            assert_same(ts.broadcast_to(x, (2, 5, 4)), np.broadcast_to(real, (2, 5, 4)))
            assert_same(ts.moveaxis(ts.expand_dims(x, axis=0), 0, 2), real[:, :, None])
            assert_same(ts.flip(x), real[::-1, ::-1])
            assert_same(ts.flip(x, axis=1), real[:, ::-1])
            assert_same(ts.roll(x, 3), np.roll(real, 3))
            assert_same(ts.roll(x, (1, -1), axis=(0, 1)), np.roll(real, (1, -1), (0, 1)))
            assert_same(ts.tile(x, (2, 1, 2)), np.tile(real, (2, 1, 2)))
            assert_same(ts.repeat(x, 2, axis=1), np.repeat(real, 2, 1))
            assert_same(ts.repeat(x, np.array([0, 1, 2, 0, 1]), axis=0), np.repeat(real, [0, 1, 2, 0, 1], 0))
            assert_same(ts.tril(x, k=1), np.tril(real, 1))
            assert_same(ts.triu(x, k=-1), np.triu(real, -1))
            assert_same(ts.rot90(x), np.rot90(real))
            assert_same(ts.pad(x, 1, mode="edge"), np.pad(real, 1, mode="edge"))

    def test_joining_and_splitting(self):
        for x, y in pairs(real, np.ascontiguousarray(real[::-1])):
            assert_same(ts.concat([x, y], axis=1), np.concatenate([real, real[::-1]], 1))
            assert_same(ts.concat([x, y], axis=None), np.concatenate([real, real[::-1]], None))
            assert_same(ts.stack([x, y], axis=1), np.stack([real, real[::-1]], 1))
            parts = ts.unstack(x, axis=1)
            self.assertIs(type(parts), tuple)
            assert_same(parts[2], real[:, 2])
            assert_same(ts.split(y, 2, axis=1)[1], real[::-1, 2:])
            assert_same(ts.array_split(y, 3)[0], real[::-1][:2])
            assert_same(ts.hstack([x, y]), np.hstack([real, real[::-1]]))
            assert_same(ts.vstack([x, y]), np.vstack([real, real[::-1]]))
        assert_same(ts.broadcast_arrays(ts.ones((3, 1)), ts.ones(4))[1], np.ones((3, 4), np.float32))

    def test_grids_and_diagonals(self):
        a, b = ts.meshgrid(ts.arange(3), ts.arange(2), indexing="ij")
        assert_same(a, np.meshgrid(np.arange(3, dtype=np.int32), np.arange(2), indexing="ij")[0])
        for x in spread(real):
            assert_same(ts.diag(ts.diag(x)), np.diag(np.diag(real)))
            assert_same(ts.diag(x[0], 1), np.diag(real[0], 1))
            assert_same(ts.diag(x[0], -2), np.diag(real[0], -2))
            assert_same(ts.trace(x, 1), np.trace(real, 1), 1e-5)


class Searching(unittest.TestCase):
    def test_sorting(self):
        for x in spread(real):
            assert_same(ts.sort(x, axis=0), np.sort(real, 0))
            assert_same(ts.sort(x, descending=True), -np.sort(-real))
            assert_same(ts.argsort(x, axis=1), np.argsort(real, 1, kind="stable").astype(np.int32))
            assert_same(ts.take(x, ts.array([2, 0]), axis=1), np.take(real, [2, 0], 1))
            assert_same(ts.take_along_axis(x, ts.argsort(x, axis=1), axis=1), np.sort(real, 1))
            assert_same(ts.searchsorted(ts.sort(x[:, 0]), x[:, 1]), np.searchsorted(np.sort(real[:, 0]), real[:, 1]).astype(np.int32))

    def test_places_and_sets(self):
        for x in spread(whole):
            for found, expected in zip(ts.nonzero(x), np.nonzero(whole)):
                assert_same(found, expected.astype(np.int32))
            assert_same(ts.where(x)[1], np.nonzero(whole)[1].astype(np.int32))
            everything = ts.unique_all(x)
            assert_same(everything.values, np.unique(whole))
            assert_same(everything.values[everything.inverse_indices], whole)
            assert_same(ts.unique_counts(x).counts, np.unique(whole, return_counts=True)[1].astype(np.int32))
            assert_same(ts.unique_values(x), np.unique(whole))
            assert_same(ts.where(x > 2, x, 0), np.where(whole > 2, whole, 0))
            assert_same(ts.isin(x, ts.array([4, 9])), np.isin(whole, [4, 9]))
            self.assertEqual(ts.unique_values(ts.array([np.nan, 1, np.nan])).shape, (3,))
            assert_same(ts.bincount(ts.abs(x)), np.bincount(np.abs(whole).ravel()).astype(np.int32))


matrix = np.float32([[4, 1, 0.5], [1, 5, -1], [0.5, -1, 3]])


class LinearAlgebra(unittest.TestCase):
    def test_products(self):
        for x, y in pairs(real, np.ascontiguousarray(real[::-1])):
            assert_same(ts.matmul(x, y.mT), real @ real[::-1].T, 1e-4)
            assert_same(ts.tensordot(x, y, axes=((0,), (0,))), np.tensordot(real, real[::-1], ((0,), (0,))), 1e-4)
            assert_same(ts.vecdot(x, y), (real * real[::-1]).sum(-1), 1e-4)
            assert_same(ts.linalg.outer(x[0], y[:, 0]), np.outer(real[0], real[::-1][:, 0]), 1e-4)
            assert_same(ts.einsum("ij,kj->ik", x, y), real @ real[::-1].T, 1e-4)
            assert_same(ts.kron(x[:2], y[:1]), np.kron(real[:2], real[::-1][:1]), 1e-4)
        a, b = real[:, :3], real[:, 1:]
        assert_same(ts.linalg.cross(ts.asarray(a), ts.asarray(b)), np.cross(a, b), 1e-4)

    def test_decompositions_and_systems(self):
        for x in spread(matrix):
            assert_same(ts.linalg.solve(x, ts.asarray(matrix[0])), np.linalg.solve(matrix, matrix[0]), 1e-4)
            assert_same(ts.linalg.inv(x), np.linalg.inv(matrix), 1e-4)
            assert_same(ts.linalg.det(x), np.linalg.det(matrix), 1e-3)
            assert_same(ts.linalg.cholesky(x, upper=True), np.linalg.cholesky(matrix).T, 1e-4)
            q, r = ts.linalg.qr(x)
            assert_same(q @ r, matrix, 1e-4)
            u, s, vh = ts.linalg.svd(x)
            assert_same(u * s @ vh, matrix, 1e-4)
            w = ts.linalg.eigh(x)
            assert_same(w.eigenvalues, np.linalg.eigvalsh(matrix), 1e-4)
            assert_same(ts.linalg.matrix_power(x, 3), np.linalg.matrix_power(matrix, 3), 1e-3)
            self.assertEqual(int(ts.linalg.matrix_rank(x)), 3)
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


class Fourier(unittest.TestCase):
    def test_transforms(self):
        wave = np.sin(np.arange(24, dtype=np.float32)).reshape(6, 4)
        for x in spread(wave):
            for name in ("fft", "ifft", "rfft", "ihfft"):
                for axis in (0, -1):
                    assert_same(getattr(ts.fft, name)(x, axis=axis), getattr(np.fft, name)(wave, axis=axis).astype(np.complex64), 1e-4)
            assert_same(ts.fft.fft(x, n=5, axis=0, norm="ortho"), np.fft.fft(wave, 5, 0, "ortho").astype(np.complex64), 1e-4)
            for name in ("fftn", "ifftn", "rfftn"):
                assert_same(getattr(ts.fft, name)(x), getattr(np.fft, name)(wave).astype(np.complex64), 1e-4)
            assert_same(ts.fft.irfftn(ts.fft.rfftn(x)), wave, 1e-4)
            assert_same(ts.fft.fftshift(x, axes=0), np.fft.fftshift(wave, 0))
        assert_same(ts.fft.fftfreq(5, d=0.5), np.fft.fftfreq(5, 0.5).astype(np.float32))
        assert_same(ts.fft.rfftfreq(6), np.fft.rfftfreq(6).astype(np.float32))


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
