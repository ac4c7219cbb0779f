"""Arrays as Python sees them: making, looking, operators, indices, NumPy in and out."""
import copy
import pickle
import unittest

import numpy as np

import tessera as ts
from layouts import assert_same, pairs, shardings, spread, values

rows = np.arange(35, dtype=np.float32).reshape(7, 5)
ints = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)


class Methods(unittest.TestCase):
    def test_functions_of_the_binding_take_the_array_as_methods(self):
        complexes = rows[:, :2] + 1j * rows[:, 2:4]
        for x in spread(rows):
            assert_same(x.dot(np.float32([1, 0, 2, 0, 3])), rows.dot(np.float32([1, 0, 2, 0, 3])))
        for z in spread(complexes):
            assert_same(z.conj(), complexes.conj())
            assert_same(z.conjugate(), complexes.conj())
        self.assertEqual([name for name, value in vars(ts.Array).items() if type(value).__name__ == "builtin_function_or_method" and name != "__new__"], [])


class Halves(unittest.TestCase):
    def test_float16_is_numpys(self):
        host = np.float16([1, 0.1, -2.5])
        for x in spread(host):
            self.assertEqual(x.dtype, "float16")
            assert_same(x * 2, host * np.float16(2))
        assert_same(ts.array([1, 0.1, -2.5], dtype=ts.float16), host)
        self.assertEqual(repr(ts.asarray(host)), "Array([ 1. ,  0.1, -2.5], dtype=float16)")
        self.assertEqual((ts.finfo(ts.float16).eps, ts.finfo(ts.float16).max), (2.0 ** -10, 65504.0))

    def test_bfloat16_keeps_eight_digits(self):
        x = ts.array([1, 0.1, -2.5, 257], dtype="bfloat16")
        self.assertEqual(x.tolist(), [1, 0.10009765625, -2.5, 256])
        self.assertEqual((x.itemsize, x.dtype.kind, str(x.dtype), ts.sum(x).dtype), (2, "f", "bfloat16", ts.bfloat16))
        self.assertEqual(repr(x[:2]), "Array([1.        , 0.10009766], dtype=bfloat16)")
        self.assertEqual(ts.promote_types("bfloat16", "float16"), ts.float32)
        self.assertEqual(ts.from_dlpack(x).dtype, ts.bfloat16)
        self.assertEqual(ts.finfo(ts.bfloat16).max, 2.0 ** 128 - 2.0 ** 120)
        self.assertEqual(ts.matmul(x, x, preferred_element_type=ts.float32).dtype, ts.float32)

    def test_bfloat16_is_that_of_ml_dtypes_or_its_bits(self):
        host = np.asarray(ts.array([1, -2.5], dtype=ts.bfloat16))
        self.assertEqual(host.view(np.uint16).tolist(), [0x3f80, 0xc020])
        try:
            import ml_dtypes
        except ImportError:
            self.assertEqual(host.dtype, np.uint16)
            return
        self.assertEqual(host.dtype, ml_dtypes.bfloat16)
        self.assertEqual(ts.asarray(host).dtype, ts.bfloat16)
        assert_same(ts.astype(ts.asarray(host), ts.float32), np.float32([1, -2.5]))


class Making(unittest.TestCase):
    def test_nested_lists_are_float32_and_int32(self):
        assert_same(ts.array([[1.5, 2], [3, 4]]), np.array([[1.5, 2], [3, 4]], np.float32))
        assert_same(ts.array([1, 2]), np.array([1, 2], np.int32))
        assert_same(ts.array([True, False]), np.array([True, False]))
        assert_same(ts.array([1j]), np.array([1j], np.complex64))

    def test_numpy_arrays_keep_their_dtype(self):
        for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split():
            host = np.ones((2, 3), name)
            self.assertEqual(ts.asarray(host).dtype, name)
            assert_same(ts.asarray(host), host)

    def test_strided_and_foreign_order_arrays_are_read_right(self):
        assert_same(ts.asarray(rows.T), rows.T)
        assert_same(ts.asarray(rows[::2, ::-1]), rows[::2, ::-1])
        assert_same(ts.asarray(rows.astype(">f4")), rows)
        assert_same(ts.asarray(np.float32(3)), np.float32(3))

    def test_numbers_of_numpy_of_every_dtype_and_layout(self):
        x = ts.ones(3)
        for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"):
            values = np.arange(12).reshape(3, 4).astype(name)
            for y in (values, values.T, values[::2, 1:], values[:0], values[1, 2], values[1:2, 2:3].reshape(()), np.asfortranarray(values), values.astype(values.dtype.newbyteorder())):
                made = ts.asarray(y)
                self.assertEqual((str(made.dtype), made.shape), (name, y.shape))
                self.assertEqual(np.asarray(made).tolist(), y.tolist())
            self.assertEqual(str(ts.where(ts.asarray(True), values[1, 2], values[2, 1]).dtype), name)
            for kind in (np.dtype(name), np.dtype(name).type, name):
                self.assertEqual(str(x.astype(kind).dtype), name)
                self.assertEqual(str(x.astype(kind).dtype), name)
        for wrong in (np.array(["a"]), np.datetime64("2020-01-01"), np.zeros(2, "i4,f4"), np.longdouble(1)):
            self.assertRaises(TypeError, ts.asarray, wrong)
        self.assertEqual(ts.asarray(np.ma.array([1.0, 2.0])).tolist(), [1, 2])

    def test_a_list_of_arrays_is_stacked(self):
        assert_same(ts.array([ts.array([1.0, 2.0]), ts.array([3.0, 4.0])]), np.array([[1, 2], [3, 4]], np.float32))

    def test_ragged_lists_and_objects_are_refused(self):
        with self.assertRaises(ValueError):
            ts.array([[1, 2], [3]])
        with self.assertRaises(TypeError):
            ts.array(["a"])
        with self.assertRaises(TypeError):
            ts.asarray(np.zeros(2, "datetime64[s]"))
        with self.assertRaises(OverflowError):
            ts.array([2 ** 40])

    def test_ranges(self):
        assert_same(ts.arange(5), np.arange(5, dtype=np.int32))
        assert_same(ts.arange(1, 2, 0.25), np.arange(1, 2, 0.25, dtype=np.float32))
        assert_same(ts.arange(7, 0, -2, dtype=ts.int64), np.arange(7, 0, -2, dtype=np.int64))
        assert_same(ts.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32))

    def test_of_one_value(self):
        assert_same(ts.zeros((2, 3)), np.zeros((2, 3), np.float32))
        assert_same(ts.ones(4, dtype=ts.int8), np.ones(4, np.int8))
        assert_same(ts.full((2,), 7), np.full((2,), 7, np.int32))
        assert_same(ts.full((2,), 1.5, dtype="float64"), np.full((2,), 1.5))
        assert_same(ts.eye(3, 4, k=1), np.eye(3, 4, 1, np.float32))
        assert_same(ts.full_like(ts.ones((2, 2), dtype=ts.int16), 3), np.full((2, 2), 3, np.int16))


class Facts(unittest.TestCase):
    def test_shape_dtype_and_layout(self):
        x = ts.zeros((6, 4))
        self.assertEqual((x.shape, x.ndim, x.size, x.nbytes, len(x)), ((6, 4), 2, 24, 96, 6))
        self.assertFalse(x.committed)
        for sharding in list(shardings(2))[1:]:
            y = ts.device_put(x, sharding)
            self.assertEqual(y.sharding, sharding)
            self.assertTrue(y.committed)

    def test_dtypes_compare_with_names_and_numpy(self):
        self.assertEqual(ts.float32, "float32")
        self.assertEqual(ts.float32, np.float32)
        self.assertEqual(ts.zeros(1).dtype, ts.float32)
        self.assertNotEqual(ts.float32, ts.float64)
        self.assertNotEqual(ts.float32, "no dtype")
        self.assertEqual(np.dtype(ts.int16), np.int16)
        self.assertEqual(len({ts.float32, ts.dtype("float32"), ts.int8}), 2)
        self.assertIs(type(pickle.loads(pickle.dumps(ts.int8))), ts.dtype)

    def test_repr_shows_values_dtype_and_split(self):
        self.assertEqual(repr(ts.array([1.0, 2.0])), "Array([1., 2.], dtype=float32)")
        split = ts.device_put(ts.arange(4), ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x")))
        expected = "Array([0, 1, 2, 3], dtype=int32)"
        if ts.device_count() > 1:
            expected = expected[:-1] + ", sharding=P('x'))"
        self.assertEqual(repr(split), expected)
        self.assertEqual(repr(ts.zeros((2000,))), "Array(shape=(2000,), dtype=float32)")
        self.assertIn("<pre", split._repr_html_())

    def test_in_a_notebook_the_picture_of_the_sharding_stands_above_the_values(self):
        for x in spread(rows):
            shown = x._repr_html_()
            self.assertIn("Array([[ 0.,", shown)
            picture = shown[:shown.index("<pre>")]
            self.assertTrue(picture.startswith("<") and "CPU" in picture, picture[:200])
        self.assertTrue(ts.array(1.0)._repr_html_().startswith("<pre>"))

    def test_numbers(self):
        self.assertEqual((float(ts.array(2.5)), int(ts.array(7)), bool(ts.array(True)), complex(ts.array(1j))), (2.5, 7, True, 1j))
        self.assertIs(type(int(ts.array(True))), int)
        self.assertEqual([10, 20, 30][ts.array(1)], 20)
        self.assertIs(type(ts.array(3).item()), int)
        self.assertEqual(ts.array([[1, 2]]).tolist(), [[1, 2]])
        for wrong in (lambda: bool(ts.ones(2)), lambda: float(ts.ones(3))):
            self.assertRaises(ValueError, wrong)
        self.assertRaises(TypeError, lambda: [1][ts.array(0.0)])
        self.assertRaises(TypeError, lambda: len(ts.array(1)))

    def test_iteration_unpacks_the_first_dim(self):
        a, b, c = spread(ints).__next__()
        assert_same(b, ints[1])
        self.assertRaises(TypeError, lambda: list(ts.array(1)))
        self.assertIs(type(copy.deepcopy(a)), ts.Array)


class Operators(unittest.TestCase):
    def test_of_two_arrays(self):
        a, b = rows + 1, rows[::-1] + 2
        for x, y in pairs(a, b.copy()):
            assert_same(x + y, a + b)
            assert_same(x - y, a - b)
            assert_same(x * y, a * b)
            assert_same(x / y, a / b)
            assert_same(x // y, a // b)
            assert_same(x % y, a % b)
            assert_same((x / 40) ** y, (a / 40) ** b)
            assert_same(x < y, a < b)
            assert_same(x == y, a == b)
            assert_same(x @ y.T, a @ b.T, 1e-4)

    def test_of_floats_and_plain_numbers(self):
        for dtype in (np.float32, np.float64):
            x, t = rows.astype(dtype) / 7, ts.asarray(rows.astype(dtype) / 7)
            for number in (3, -(2**40), 2**24 + 1, 0.1, -0.0, float("inf"), float("nan")):
                for of in (lambda a, b: a + b, lambda a, b: b - a, lambda a, b: a * b, lambda a, b: b / (a + 1), lambda a, b: b // (a + 1), lambda a, b: a < b, lambda a, b: b != a):
                    with np.errstate(invalid="ignore"):
                        got, expected = ts.copy_to_numpy(of(t, number)), of(x, dtype(number))
                    self.assertEqual(got.dtype, expected.dtype)
                    np.testing.assert_array_equal(got, expected)
            self.assertRaisesRegex(TypeError, "bitwise_and.* takes integers or bool", lambda: t & 1)
            self.assertRaisesRegex(OverflowError, "does not fit 64 bits", lambda: t + 2**64)

    def test_of_integers(self):
        b = np.array([1, 2, 3, 1], np.int32)
        for x, y in pairs(ints, b):
            assert_same(x & y, ints & b)
            assert_same(x | y, ints | b)
            assert_same(x ^ y, ints ^ b)
            assert_same(x << y, ints << b)
            assert_same(x >> y, ints >> b)
            assert_same(~x, ~ints)
            assert_same(-x, -ints)
            assert_same(abs(x), abs(ints))

    def test_plain_numbers_keep_the_dtype(self):
        for x in spread(ints):
            self.assertEqual((x + 1).dtype, ts.int32)
            self.assertEqual((x + 1.5).dtype, ts.float32)
            assert_same(1 - x, 1 - ints)
            assert_same(2 * x, 2 * ints)
        self.assertEqual((ts.ones(1, dtype=ts.float64) * 2).dtype, ts.float64)
        self.assertEqual((ts.ones(1, dtype=ts.int8) + True).dtype, ts.int8)

    def test_numpy_on_either_side_gives_tessera(self):
        x = ts.asarray(rows)
        assert_same(rows + x, rows * 2)
        assert_same(x * rows, rows * rows)
        assert_same(np.float32(2) * x, 2 * rows)

    def test_what_is_no_array_is_refused(self):
        for wrong in (lambda: ts.ones(2) + "a", lambda: ts.ones(2) + [1, 2], lambda: ts.ones(2) @ None, lambda: "a" - ts.ones(2)):
            self.assertRaises(TypeError, wrong)

    def test_operators_with_assignment_make_new_arrays(self):
        x = ts.zeros(3)
        y = x
        y += 1
        assert_same(x, np.zeros(3, np.float32))
        assert_same(y, np.ones(3, np.float32))
        self.assertRaises(TypeError, lambda: hash(x))


class Indices(unittest.TestCase):
    def test_slices_numbers_ellipsis_and_new_axes(self):
        for index in (0, -1, slice(1, 5), slice(None, None, -1), slice(6, 0, -2), (slice(None), 2), (slice(1, -1), slice(None, None, 2)), (..., 0), (None, 1), (2, None, slice(1, 3)),
                      (), ..., (slice(0, 0),), (slice(20, 30), 1), (np.int64(3),), (slice(np.int32(1), np.int32(4)),)):
            for x in spread(rows):
                assert_same(x[index], rows[index])

    def test_index_arrays(self):
        at = np.array([[3, 0], [-1, 2]])
        for x in spread(rows):
            for i in (at, ts.asarray(at)):
                assert_same(x[i], rows[at])
                assert_same(x[:, i], rows[:, at])
            assert_same(x[np.array([0, 1]), np.array([2, 3])], rows[[0, 1], [2, 3]])
            assert_same(x[[5, 1], 1:], rows[[5, 1], 1:])
            assert_same(x[[]], rows[[]])

    def test_masks(self):
        mask = rows % 3 == 0
        for x in spread(rows):
            assert_same(x[x % 3 == 0], rows[mask])
            assert_same(x[mask], rows[mask])
            assert_same(x[np.array([True, False] * 3 + [True])], rows[::2])
            assert_same(x[True], rows[None])
            assert_same(x[ts.array(False)], rows[None][:0])

    def test_at_replaces_a_part(self):
        for x in spread(rows):
            expected = rows.copy()
            expected[1:3, ::2] = -1
            assert_same(x.at[1:3, ::2].set(-1), expected)
            assert_same(x, rows)
            expected = rows.copy()
            np.add.at(expected, [0, 0, 6], 10)
            assert_same(x.at[np.array([0, 0, 6])].add(10), expected)
            assert_same(x.at[rows > 20].set(0), np.where(rows > 20, 0, rows))
            assert_same(x.at[0].multiply(2).at[1].max(7).at[2].min(11), np.concatenate([rows[:1] * 2, np.maximum(rows[1:2], 7), np.minimum(rows[2:3], 11), rows[3:]]))

    def test_wrong_indices(self):
        x = ts.asarray(rows)
        for index in (7, -8, (0, 5), (0, 0, 0)):
            self.assertRaises(IndexError, lambda: x[index])
        for index in ("a", 1.5, (True, 0)):
            self.assertRaises((TypeError, IndexError), lambda: x[index])
        self.assertRaises(ValueError, lambda: x[::0])


class Hosts(unittest.TestCase):
    def test_device_get_gathers_every_layout(self):
        for x in spread(rows):
            np.testing.assert_array_equal(values(x), rows)
        tree = ts.device_get({"a": [ts.ones(2)], "b": (ts.zeros(1),)})
        self.assertIs(type(tree["a"][0]), np.ndarray)

    def test_asarray_of_a_replicated_array_is_no_copy(self):
        x = ts.device_put(ts.asarray(rows), ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P()))
        first, second = np.asarray(x), np.asarray(x)
        np.testing.assert_array_equal(first, rows)
        self.assertEqual(first.ctypes.data, second.ctypes.data)
        self.assertFalse(first.flags.writeable)
        del x
        np.testing.assert_array_equal(first, rows)

    def test_asarray_of_a_split_array_says_what_to_do(self):
        if ts.device_count() == 1:
            self.skipTest("nothing is split")
        x = ts.device_put(ts.zeros((6, 2)), ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x")))
        with self.assertRaisesRegex(TypeError, "device_get"):
            np.asarray(x)
        with self.assertRaisesRegex(BufferError, "device_get"):  # the standard's type where memory cannot be handed on
            np.from_dlpack(x)
        block = x.addressable_shards[0]
        self.assertEqual(np.asarray(block.data).shape, x.sharding.local_shape(x.shape, block.device))

    def test_dlpack_hands_values_on(self):
        x = ts.device_put(ts.asarray(rows), ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P()))
        out = np.from_dlpack(x)
        np.testing.assert_array_equal(out, rows)
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        assert_same(ts.from_dlpack(rows), rows)
        assert_same(ts.from_dlpack(rows[::-2, ::2]), rows[::-2, ::2])

    def test_dlpack_of_bools_between_libraries_of_the_protocol(self):
        class Foreign:  # of another library: hands on tessera's capsule
            def __init__(self, x):
                self.x = x

            def __dlpack__(self, **_):
                return self.x.__dlpack__()

            def __dlpack_device__(self):
                return (1, 0)

        for host in (np.array([[True, False, True]]), np.arange(3, dtype=np.uint8), np.array(2.5), np.complex64([1j, 2])):
            x = ts.asarray(host)
            again = ts.from_dlpack(Foreign(x))
            assert_same(again, host)
            self.assertIsNot(again, x)
        capsule = ts.array([1.0]).__dlpack__()
        ts._core.from_dlpack_capsule(capsule)
        self.assertRaises(ValueError, lambda: ts._core.from_dlpack_capsule(capsule))  # it was taken already

    def test_process_local_blocks(self):
        n = ts.device_count()
        sharding = ts.NamedSharding(ts.make_mesh((n,), ("x",)), ts.P("x"))
        x = ts.make_array_from_callback((2 * n, 3), sharding, lambda index: np.full((2, 3), index[0].start, np.int32))
        assert_same(x, np.repeat(np.arange(0, 2 * n, 2, dtype=np.int32), 2)[:, None] * np.ones((1, 3), np.int32))
        y = ts.make_array_from_process_local_data(sharding, np.full((1, 2), ts.process_index(), np.float32))
        assert_same(y, np.arange(n, dtype=np.float32)[:, None] * np.ones((1, 2), np.float32))

    def test_a_deleted_array_is_refused(self):
        x = ts.ones(3) + 1
        x.block_until_ready()
        x.delete()
        self.assertTrue(x.is_deleted())
        self.assertRaises(ts.ArgumentError, lambda: x + 1)


if __name__ == "__main__":
    unittest.main()
