"""What everybody writes who comes from NumPy, and what clients of the array API standard do."""
import copy
import pickle
import tempfile
import unittest

import numpy as np

import tessera as ts
from layouts import assert_same, shardings, spread, values

rows = np.arange(35, dtype=np.float32).reshape(7, 5)


class Assignment(unittest.TestCase):
    def test_x_i_is_v_changes_the_array_on_every_layout(self):
        for x in spread(rows):
            expected = rows.copy()
            for index, value in ((3, 1.0), ((slice(None), 2), np.float32([1, 2, 3, 4, 5, 6, 7])), ((Ellipsis, slice(None, None, 2)), 0), ((slice(5, 1, -2), -1), 8), (np.array([0, 6, 0]), -1.0)):
                x[index] = value
                expected[index] = value
                assert_same(x, expected)

    def test_the_sharding_stays(self):
        for sharding in shardings(2):
            x = ts.asarray(rows, sharding=sharding)
            before = x.sharding
            x[1:3] = 5
            self.assertEqual(x.sharding, before)

    def test_values_go_to_the_places_of_a_mask_in_their_order(self):
        for x in spread(rows):
            expected = rows.copy()
            mask = rows % 3 == 1
            new = np.arange(mask.sum(), dtype=np.float32) - 100
            x[ts.asarray(mask)] = new
            expected[mask] = new
            assert_same(x, expected)
            x[:, ts.asarray(mask[0])] = 3
            expected[:, mask[0]] = 3
            assert_same(x, expected)

    def test_at_mask_set_takes_as_many_values(self):
        for x in spread(rows):
            mask = rows > 20
            new = np.arange(mask.sum(), dtype=np.float32)
            expected = rows.copy()
            expected[mask] = new
            assert_same(x.at[ts.asarray(mask)].set(new), expected)
            assert_same(x, rows)
            with self.assertRaisesRegex(ValueError, r"the mask chooses 14 of \(7, 5\), but there are 3 values; give one for each"):
                x.at[ts.asarray(mask)].set(np.zeros(3, np.float32))

    def test_in_a_trace_a_mask_has_no_number_of_places(self):
        with self.assertRaisesRegex(ts.ArgumentError, "write where"):
            ts.jit(lambda x: x.at[x > 1].set(ts.asarray([1.0, 2.0])))(ts.arange(4.0))

    def test_other_handles_keep_the_value(self):
        x = ts.arange(4.0)
        same, other = x, copy.copy(x)
        x[0] = 7
        self.assertEqual((x.tolist(), same.tolist(), other.tolist()), ([7, 1, 2, 3], [7, 1, 2, 3], [0, 1, 2, 3]))

    def test_writing_through_views_is_refused(self):
        x = ts.asarray(rows)
        for view in (x[1:3], x[0], x.T, x.reshape(-1), ts.reshape(x, (5, 7)), ts.flip(x), ts.split(x, [2])[0], ts.moveaxis(x, 0, 1), ts.real(x), next(iter(x))):
            with self.assertRaisesRegex(TypeError, r"x is a view.*x = x.at\[i\].set\(v\)"):
                view[0] = 1
            with self.assertRaisesRegex(TypeError, "such a view of x is"):
                x[0] = 1
            del view
        assert_same(x, rows)

    def test_a_view_whose_array_is_gone_is_an_array(self):
        x = ts.asarray(rows)[2:4]
        x[0] = 1
        assert_same(x, np.stack([np.ones(5, np.float32), rows[3]]))
        y = ts.asarray(rows)
        y = ts.reshape(y, (5, 7))
        y[0, 0] = 9
        self.assertEqual(float(y[0, 0]), 9)

    def test_adding_through_a_named_view_is_refused_as_scipys_oaconvolve_would_be_wrong(self):
        x = ts.asarray(rows)
        part = x[2:4]
        with self.assertRaisesRegex(TypeError, r"x \+= v at test_everyday.py:\d+: x is a view"):
            part += 1
        del part
        x[2:4] += 1
        expected = rows.copy()
        expected[2:4] += 1
        assert_same(x, expected)

    def test_x_plus_is_v_binds_the_name_to_a_new_array(self):
        x = same = ts.arange(3.0)
        x += 1
        self.assertEqual((x.tolist(), same.tolist()), ([1, 2, 3], [0, 1, 2]))
        self.assertEqual(ts.jit(lambda a: self.add_to_part(a))(ts.arange(3.0)).tolist(), [2, 3])

    @staticmethod
    def add_to_part(a):
        part = a[1:]
        part += 1
        return part

    def test_a_part_keeps_the_dtype(self):
        x = ts.arange(3)
        with self.assertRaisesRegex(TypeError, "does not fit into y, which has the dtype int32"):
            x[:2] += 1.5
        self.assertRaises(TypeError, lambda: x.__setitem__(0, 1j))
        x[0] = 2.0
        self.assertEqual(x.tolist(), [2, 1, 2])

    def test_an_array_from_outside_of_a_trace_is_not_changed_by_it(self):
        outside = ts.zeros(3)

        def function(v):
            outside[0] = v
            return v

        with self.assertRaisesRegex(ts.ArgumentError, "from outside of the function"):
            ts.jit(function)(1.0)
        self.assertEqual(outside.tolist(), [0, 0, 0])

        def inside(v):
            v[0] = 5
            return v

        x = ts.zeros(3)
        self.assertEqual((ts.jit(inside)(x).tolist(), x.tolist()), ([5, 0, 0], [0, 0, 0]))


class Devices(unittest.TestCase):
    def test_it_is_one_value_for_arrays_of_any_shape(self):
        found = {x.device for shape in ((), (6,), (6, 4)) for x in spread(np.zeros(shape, np.float32))}
        self.assertEqual(found, {ts.all_devices()})

    def test_it_is_accepted_back(self):
        for x in spread(rows):
            for y in (ts.asarray(0., device=x.device), ts.zeros(3, device=x.device), ts.arange(4, device=x.device), ts.ones_like(x, device=x.device), x.to_device(x.device)):
                self.assertEqual(y.device, x.device)
                ts.device_get(x * ts.sum(y))
        self.assertEqual(ts.__array_namespace_info__().default_device(), ts.zeros(2).device)

    def test_one_of_several_devices_is_itself(self):
        last = ts.devices()[-1]
        x = ts.device_put(ts.arange(3.0), last)
        self.assertEqual(x.device, last)
        self.assertEqual(last, x.device)
        self.assertEqual({x.device}, {last})
        self.assertEqual(ts.from_dlpack(np.zeros(0), device=last).device, last)
        self.assertEqual(ts.all_devices() == last, ts.device_count() == 1)
        self.assertNotEqual(last, 3)
        assert_same(x.to_device(ts.all_devices()), np.arange(3, dtype=np.float32))

    def test_from_dlpack_takes_one(self):
        target = ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x"))
        self.assertEqual(ts.from_dlpack(np.arange(6.0), device=target).sharding, target)


class Reductions(unittest.TestCase):
    def test_they_take_numpys_arguments(self):
        mask = rows % 2 == 0
        for x in spread(rows):
            where = ts.asarray(mask)
            for name in ("sum", "prod", "mean", "std", "var", "all", "any", "nansum"):
                own, numpys = getattr(ts, name), getattr(np, name)
                assert_same(own(x, axis=0, out=None, where=True), numpys(rows, axis=0), 1e-4, dtype=False)
                assert_same(own(x, axis=0, where=where), numpys(rows, axis=0, where=mask), 1e-4, dtype=False)
            for name in ("max", "min"):
                assert_same(getattr(ts, name)(x, axis=1, where=where, initial=3, out=None), getattr(np, name)(rows, axis=1, where=mask, initial=3))
            self.assertEqual(ts.mean(x, dtype=ts.float64, out=None).dtype, "float64")
            assert_same(ts.cumsum(x, 0, out=None), np.cumsum(rows, 0))
            assert_same(ts.sum(x, initial=10), rows.sum() + np.float32(10))

    def test_an_out_that_is_an_array_is_refused(self):
        with self.assertRaisesRegex(TypeError, r"sum at test_everyday.py:\d+: there is no memory of an array to write into"):
            ts.sum(ts.ones(3), out=ts.ones(()))


class NumPysFunctions(unittest.TestCase):
    def test_they_work_on_every_layout_and_give_arrays_of_tessera(self):
        for x in spread(rows):
            for found, expected in ((np.mean(x), np.mean(rows)), (np.mean(x, axis=0, keepdims=True), np.mean(rows, axis=0, keepdims=True)), (np.sin(x), np.sin(rows)), (np.add(x, 1), rows + 1),
                                    (np.sum(x, 1), np.sum(rows, 1)), (np.add.reduce(x), np.add.reduce(rows)), (np.maximum.reduce(x, axis=1), rows.max(1)), (np.linalg.norm(x), np.linalg.norm(rows)),
                                    (np.concatenate([x, x]), np.concatenate([rows, rows])), (np.where(x > 3, x, 0), np.where(rows > 3, rows, 0)), (np.std(x, ddof=1), np.std(rows, ddof=1)),
                                    (np.add.outer(x[0], x[1]), np.add.outer(rows[0], rows[1])), (rows + x, rows + rows), (np.float32(2) * x, 2 * rows), (np.cumsum(x, axis=0), np.cumsum(rows, axis=0)),
                                    (np.median(x), np.median(rows)), (np.clip(x, 2, 9), np.clip(rows, 2, 9)), (np.multiply.accumulate(x), np.multiply.accumulate(rows))):
                assert_same(found, expected, 1e-4)
            self.assertTrue(np.allclose(x, rows))

    def test_what_tessera_has_not_takes_memory_or_says_how(self):
        for x in spread(rows):
            if x.is_fully_replicated:
                self.assertEqual(np.array2string(x[0], precision=1), np.array2string(rows[0], precision=1))
            elif x.sharding.num_devices > 1:
                with self.assertRaisesRegex(TypeError, r"numpy.array2string at test_everyday.py:\d+: tessera has no function of this name.*device_get"):
                    np.array2string(x)

    def test_an_out_of_numpys_is_refused(self):
        with self.assertRaisesRegex(TypeError, "numpy.sin at"):
            np.sin(ts.ones(3), out=np.zeros(3))


class Protocols(unittest.TestCase):
    def test_formats_are_those_of_numbers(self):
        for x in spread(np.float32([2.5])):
            self.assertEqual((f"{x[0]:.2f}", f"{ts.sum(x):8.3e}", f"{x}"), ("2.50", "2.500e+00", "[2.5]"))
            with self.assertRaisesRegex(TypeError, r"the array has shape \(1,\)"):
                f"{x:.2f}"

    def test_whole_arrays_and_descriptions_are_pickled(self):
        mesh = ts.make_mesh((ts.device_count(),), ("x",))
        for thing in (mesh, ts.P("x", None), ts.NamedSharding(mesh, ts.P(None, "x")), ts.float16, ts.devices()[-1], ts.all_devices(), ts.abstract_mesh((4, 2), ("a", "b"))):
            self.assertEqual(pickle.loads(pickle.dumps(thing)), thing)
            self.assertEqual(copy.deepcopy(thing), thing)
        self.assertEqual(pickle.loads(pickle.dumps(ts.random.key(3))).data.tolist(), ts.random.key(3).data.tolist())
        for name in ("bool", "int8", "uint64", "float64", "complex64", "bfloat16"):
            x = ts.ones((2, 3), dtype=name)
            y = pickle.loads(pickle.dumps(x))
            self.assertEqual((y.dtype, y.tolist()), (x.dtype, x.tolist()))
        if ts.device_count() > 1:
            with self.assertRaisesRegex(TypeError, "pickle at .*device_get"):
                pickle.dumps(ts.device_put(ts.ones(6), mesh, ts.P("x")))

    def test_memoryview_shows_memory_that_is_only_read(self):
        memory = memoryview(ts.asarray(rows))
        self.assertEqual((memory.shape, memory.readonly, memory.tolist()), (rows.shape, True, rows.tolist()))
        if ts.device_count() > 1:
            with self.assertRaisesRegex(BufferError, "device_get"):
                memoryview(ts.device_put(ts.ones(6), ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x")))

    def test_a_dtype_is_one_to_numpy(self):
        for name in ("bool", "int32", "float64", "complex64"):
            found, numpys = ts.zeros(2, dtype=name).dtype, np.dtype(name)
            self.assertEqual((np.dtype(found), found.type, found.kind, found.itemsize, found.char, found.str), (numpys, numpys.type, numpys.kind, numpys.itemsize, numpys.char, numpys.str))
            self.assertEqual({numpys: 1}[found], 1)
            self.assertTrue(found == numpys and found == numpys.type and numpys == found)
        self.assertTrue(np.issubdtype(ts.ones(2).dtype, np.floating))
        self.assertRaises(AttributeError, lambda: ts.float32.nothing)

    def test_what_has_a_dtype_keeps_it(self):
        class Exporting:
            def __array__(self, dtype=None, copy=None):
                return np.ones(2)

        import array
        for thing in (Exporting(), [np.float64(1)], array.array("d", [1.0]), memoryview(np.ones(2))):
            self.assertEqual(ts.asarray(thing).dtype, "float64")
        for thing in (1.5, [1.5], (1, 2.5)):
            self.assertEqual(ts.asarray(thing).dtype, "float32")
        self.assertEqual(ts.asarray(range(3)).dtype, "int32")

    def test_importing_all_names_hides_none_of_pythons(self):
        import builtins
        taken = {}
        exec("from tessera import *", taken)
        self.assertEqual([n for n in taken if hasattr(builtins, n)], [])
        self.assertIs(taken["concatenate"], ts.concatenate)

    def test_places_are_tuples_which_are_indices(self):
        x = ts.asarray(rows)
        for found in (ts.nonzero(x > 30), ts.where(x > 30), ts.unravel_index(ts.asarray([1, 7]), (7, 5)), ts.diag_indices(4), ts.tril_indices(3), ts.triu_indices(3), ts.ix_([0, 1], [2]), np.nonzero(x)):
            self.assertIs(type(found), tuple)
        assert_same(x[ts.unravel_index(ts.asarray([1, 7]), (7, 5))], rows[np.unravel_index([1, 7], (7, 5))])

    def test_places_beyond_a_shape_are_refused_and_large_ones_do_not_overflow(self):
        for call, text in ((lambda: ts.ravel_multi_index(([1, 2], [1, 5]), (3, 5)), r"the indices go from 1 to 5, but dimension 1 has the extent 5; clip\(indices, 0, 4\)"),
                           (lambda: ts.ravel_multi_index(([-1, 2], [1, 4]), (3, 5)), "the indices go from -1 to 2, but dimension 0 has the extent 3"),
                           (lambda: ts.unravel_index([3, 15], (3, 5)), r"the indices go from 3 to 15, but the shape \(3, 5\) has 15 elements")):
            with self.assertRaisesRegex(IndexError, text):
                call()
        far = ([3, 70000], [5, 99999])
        assert_same(ts.ravel_multi_index(far, (100000, 100000)), np.ravel_multi_index(far, (100000, 100000)))
        small = np.array([3, 100], np.int8)
        assert_same(ts.ravel_multi_index((small, small), (110, 120)), np.ravel_multi_index((small, small), (110, 120)).astype(np.int32))
        assert_same(ts.unravel_index(small, (2, 200))[1], np.unravel_index(small, (2, 200))[1].astype(np.int32))


class Ranges(unittest.TestCase):
    def test_they_have_the_same_bits_however_they_are_split_or_read(self):
        for make in (lambda: ts.linspace(0.1, 1.7, 53, dtype=ts.float64), lambda: ts.arange(0.1, 5, 0.1, dtype=ts.float64), lambda: ts.linspace(-3, 8, 41), lambda: ts.arange(0.3, 9, 0.7)):
            whole = values(make())
            for sharding in shardings(1):
                if sharding is not None:
                    np.testing.assert_array_equal(values(ts.device_put(make(), sharding)), whole)
            for i in range(0, len(whole), 5):
                self.assertEqual(make()[i].item(), whole[i].item())
            np.testing.assert_array_equal(values(make()[3:40:7]), whole[3:40:7])


class Crashes(unittest.TestCase):
    def test_a_container_that_contains_itself(self):
        loop = [ts.ones(2)]
        loop.append(loop)
        ring = {"a": ts.ones(2)}
        ring["b"] = [ring]
        for tree in (loop, ring):
            for call in (lambda: ts.tree_map(lambda x: x, tree), lambda: ts.jit(lambda t: 0)(tree), lambda: ts.device_put(tree, ts.devices()[0]), lambda: ts.block_until_ready(tree)):
                self.assertRaises(RecursionError, call)
        self.assertRaises((RecursionError, ValueError, TypeError), lambda: ts.array(loop))

    def test_objects_that_no_constructor_has_filled(self):
        for kind in (ts.Array, ts.Mesh, ts.random.Key, ts.Sharding, ts.PartitionSpec, ts.dtype):
            with self.assertRaisesRegex(TypeError, f"{kind.__name__}.__new__ makes no {kind.__name__}"):
                kind.__new__(kind)


class Leaks(unittest.TestCase):
    def test_an_array_that_left_its_function_is_an_error_when_printed_or_read(self):
        kept = []
        self.assertEqual(ts.jit(lambda x: (kept.append(x), x + 1)[1])(ts.ones(3)).tolist(), [2, 2, 2])
        for use in (lambda: str(kept[0] + 1), lambda: repr(kept[0]), lambda: np.asarray(kept[0]), lambda: float(kept[0][0]), lambda: f"{kept[0]}", lambda: ts.device_get(kept[0])):
            with self.assertRaisesRegex(ts.ArgumentError, r"was made while jit at test_everyday.py:\d+ traced its function, which has ended"):
                use()


class OutOfRange(unittest.TestCase):
    def test_known_indices_and_parts_are_refused_outside_of_jit_and_clamped_inside(self):
        for x in spread(np.arange(10, dtype=np.float32)):
            with self.assertRaisesRegex(IndexError, "the indices go from 0 to 50, but dimension 0 has the extent 10"):
                ts.take(x, [0, 50])
            assert_same(ts.take(x, [0, 50], mode="clip"), np.float32([0, 9]))
            assert_same(ts.jit(lambda a: ts.take(a, [0, 50]))(x), np.float32([0, 9]))
            with self.assertRaisesRegex(ValueError, "1.5 is no part of the elements, which goes from 0 to 1"):
                ts.quantile(x, 1.5)
            assert_same(ts.jit(lambda a: ts.quantile(a, 1.5))(x), np.float32(9))


class InPlace(unittest.TestCase):
    def test_numpys_functions_that_change_their_argument_do(self):
        mask = rows % 4 == 1
        for x in spread(rows):
            for own, numpys, arguments in ((ts.put, np.put, ([30, 2, -1], [-1.0, -2.0])), (ts.place, np.place, (mask, [-1.0, -2.0, -3.0])), (ts.putmask, np.putmask, (mask, [-5.0, -6.0])), (ts.fill_diagonal, np.fill_diagonal, (4.5,)),
                                           (ts.copyto, np.copyto, (np.float32([1, 2, 3, 4, 5]),)), (ts.put_along_axis, np.put_along_axis, (np.int32([[1], [0], [3], [2], [1], [0], [2]]), 9, 1))):
                y, expected = ts.copy(x), rows.copy()
                self.assertIsNone(own(y, *arguments))
                numpys(expected, *arguments)
                assert_same(y, expected)
            y = ts.put(x, [0], [7.0], inplace=False)
            self.assertEqual((float(y[0, 0]), float(x[0, 0])), (7, 0))
        self.assertRaises(IndexError, lambda: ts.put(ts.ones(3), [3], 0))
        self.assertRaises(TypeError, lambda: ts.put(np.ones(3), [0], 0))

    def test_divmod_of_integers(self):
        for name in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"):
            edge = np.iinfo(name)
            a = np.array([0, 1, 7, 100, edge.max, edge.max - 1, edge.min, edge.min + 1], name)
            b = np.array([0, 1, 3, edge.max, edge.min, 7, edge.max - 1], name)
            if edge.min < 0:
                a, b = np.append(a, np.array([-7, -1], name)), np.append(b, np.array([-3, -1], name))
            for rows_of_a in (a[:, None], np.tile(a, 600)[:, None]):  # many are divided once
                with np.errstate(all="ignore"):
                    expected = np.divmod(rows_of_a, b), np.divmod(rows_of_a, a.dtype.type(3))
                for x in spread(rows_of_a):
                    for found, wanted in zip((*ts.divmod(x, ts.asarray(b)), *divmod(x, 3)), (*expected[0], *expected[1])):
                        assert_same(found, wanted)
            for found, own in zip(ts.divmod(ts.asarray(a), True), (ts.floor_divide(ts.asarray(a), True), ts.remainder(ts.asarray(a), True))):
                assert_same(found, np.asarray(own))
        q, r = ts.jit(lambda x: ts.divmod(x, 4))(ts.arange(-6, 6))
        assert_same(q, np.arange(-6, 6, dtype=np.int32) // 4)
        assert_same(r, np.arange(-6, 6, dtype=np.int32) % 4)

    def test_bits(self):
        bits = rows % 3 == 1
        for x in spread(bits):
            for axis in (None, 0, 1):
                for order in ("big", "little"):
                    packed = np.packbits(bits, axis, order)
                    assert_same(ts.packbits(x, axis, order), packed)
                    assert_same(ts.unpackbits(ts.asarray(packed), axis, None, order), np.unpackbits(packed, axis, None, order))
            assert_same(ts.unpackbits(ts.packbits(x, 1), 1, 5), np.unpackbits(np.packbits(bits, 1), 1, 5))

    def test_lstsq_gives_numpys_four(self):
        a, b = np.float64([[1, 2], [3, 5], [2, 2], [0, 1]]), np.float64([1, 2, 4, 3])
        for x in spread(a):
            found, expected = ts.linalg.lstsq(x, ts.asarray(b)), np.linalg.lstsq(a, b, rcond=None)
            for own, numpys in zip(found, expected):
                assert_same(own, numpys, 1e-9, dtype=False)

    def test_what_needs_memory_gets_it_within_gathering(self):
        for x in spread(rows):
            with ts.gathering():
                np.testing.assert_array_equal(np.asarray(x), rows)
                self.assertEqual(pickle.loads(pickle.dumps(x)).tolist(), rows.tolist())


class NumpysArguments(unittest.TestCase):
    """Positions and keywords that NumPy's signatures have, on every layout."""
    CALLS = (
        "xp.asarray([1, 2], xp.float64)", "xp.array([1.0, 2.0], ndmin=2)", "xp.arange(0, 5, 2, xp.float64)", "xp.empty((2, 3), xp.int8).shape", "xp.zeros_like(x, xp.int32)", "xp.full_like(x, 2, xp.int64)",
        "xp.full_like(x, 2, shape=(2,))", "xp.eye(3, 4, 1, xp.float64)", "xp.linspace(0, 1, 5, False, dtype=xp.float64)", "xp.linspace(0, 3, 7, retstep=True)[1]", "xp.geomspace(1, 100, 7, dtype=xp.float64)",
        "xp.geomspace(2, 50, 5, False, xp.float64)", "xp.geomspace(-2, -50, 5, dtype=xp.float64)", "xp.logspace(0, 2, 5, dtype=xp.float64)", "xp.stack([x, x], 1)", "xp.concatenate([x, x], 1)",
        "xp.tril(x, -1)", "xp.triu(x, 1)", "xp.repeat(x, 2, 1)", "xp.tile(x, reps=(2, 1))", "xp.take(x, [0, 2], 1)", "xp.meshgrid(x[0], x[:, 0], sparse=True)", "xp.meshgrid(x[0], x[:, 0], indexing='ij', sparse=True)",
        "xp.sort(x, 0, 'stable')", "xp.argsort(x, kind='stable')", "xp.clip(x, a_min=3, a_max=None)", "xp.array_equal(x / 0 * 0, x / 0 * 0, equal_nan=True)", "xp.tensordot(x, x.T, 1)", "xp.diff(x, 2, 0)",
        "xp.cov(x[0], x[1])", "xp.corrcoef(x[0], x[1] ** 2)", "xp.corrcoef(x + x * x)", "xp.median(x, axis=(0, 1))", "xp.median(x.reshape(7, 5, 1), (0, 2), keepdims=True)", "xp.gradient(x[:, 0] ** 2, x[:, 1] ** 2)",
        "xp.gradient(x, x[:, 1] ** 2, 0.5)", "xp.quantile(x, [0.1, 0.9], axis=1)", "xp.percentile(x[:, 0], [2.5, 97.5])", "xp.isin(x, [3.0, 4.0], assume_unique=True)", "xp.unique(x % 2, axis=0)",
        "xp.unique(x // 10, True, True, True, axis=0)", "xp.unique(x % 3, axis=1, return_counts=True)", "xp.apply_along_axis(lambda v, k: v.sum() + k, 1, x, 2)", "xp.histogram2d(x[:, 0], x[:, 1], [3, 4], [[0, 20], [1, 30]])",
        "xp.histogram2d(x[:, 0], x[:, 1], bins=[[0, 8, 30], [0, 7, 35]], weights=x[:, 2], density=True)", "xp.fft.fft(x, 4, 0)", "xp.fft.irfft(xp.fft.rfft(x), 5, -1, 'ortho')", "xp.fft.fft2(x, (4, 4))",
        "xp.fft.fftshift(x, 0)", "xp.fft.fftfreq(7, 0.5)", "xp.abs(xp.linalg.qr(x, 'r'))", "xp.linalg.svd(x, False)[1]", "xp.linalg.pinv(x, 1e-3)", "xp.linalg.matrix_rank(x, 1e-3)", "xp.linalg.tensorinv((x[:4, :4] ** 2 + xp.eye(4)).reshape(4, 2, 2), 1)",
        "xp.spacing(x)", "xp.real_if_close(x + 0j)", "xp.sort_complex(xp.asarray([1 + 2j, 0 + 1j, 1 - 1j]))", "xp.trim_zeros(xp.asarray([0, 0, 1, 0, 2, 0]))", "xp.trim_zeros(xp.asarray([0, 1, 0]), 'b')", "xp.mask_indices(3, xp.triu)",
    )

    def test_they_give_numpys_values(self):
        for x in spread(rows.astype(np.float64)):
            for call in self.CALLS:
                with np.errstate(all="ignore"):
                    expected = eval(call, {"xp": np, "x": rows.astype(np.float64)})  # noqa: S307: our own texts
                found = eval(call, {"xp": ts, "x": x})  # noqa: S307
                found, expected = ([*v] if isinstance(v, (tuple, list)) else [v] for v in (found, expected))
                self.assertEqual(len(found), len(expected), call)
                for ours, numpys in zip(found, expected):
                    np.testing.assert_allclose(np.asarray(ts.device_get(ours) if isinstance(ours, ts.Array) else ours), numpys, rtol=1e-6, atol=1e-6, err_msg=call)

    def test_numbers_beside_an_array_of_float64_have_its_precision(self):
        """0.1 and 0.3 are elements of x; rounded to float32 they would be none, and results would be 1e-8 off."""
        x = np.array([0.05, 0.1, 0.2, 0.3, 0.7])
        calls = ["isin(x, [0.3, 0.1])", "digitize(x, [0.1, 0.3])", "histogram(x, bins=[0.05, 0.1, 0.3, 0.7])[0]", "intersect1d(x, [0.1, 0.5])", "insert(x, 1, 0.1)", "append(x, 0.1)",
                 "concatenate([x, [0.1]])", "stack([x, [0.1, 0.2, 0.3, 0.4, 0.5]])", "polyval([0.1, 0.2], x)", "convolve(x, [0.1, 0.3])", "cross(x[:3], [0.1, 0.2, 0.3])",
                 "piecewise(x, [x < 0.2, x >= 0.2], [0.1, 0.3])", "polyfit(x, [0.1, 0.2, 0.3, 0.4, 0.5], 1)", "cov(x, [0.1, 0.2, 0.5, 0.3, 0.1])", "diff(x, prepend=0.3, append=0.1)",
                 "ediff1d(x, 0.1, [0.3])", "gradient(x, [0.1, 0.2, 0.3, 0.4, 0.6])", "linalg.lstsq(stack([x, x ** 2], 1), [0.1, 0.2, 0.3, 0.4, 0.5], rcond=None)[0]"]
        for call in calls:
            with self.subTest(call):
                expected = eval(call, {**vars(np), "x": x})  # noqa: S307: our own texts
                for split in spread(x):
                    found = ts.device_get(eval(call, {**{name: getattr(ts, name) for name in dir(ts)}, "x": split}))  # noqa: S307
                    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(ts.device_get(ts.trapezoid(ts.asarray(x), [0.1, 0.2, 0.3, 0.4, 0.6])), 0.1475, rtol=1e-14)
        for change, index in (([0.1, 0.3], slice(0, 2)), (0.1, 1)):
            changed, wanted = ts.asarray(x), x.copy()
            changed[index] = wanted[index] = change
            np.testing.assert_array_equal(ts.device_get(changed), wanted)
        for change in ("put(x, [1, 2], [0.1, 0.3])", "place(x, x > 0.2, [0.1])", "copyto(x, 0.1)", "fill_diagonal(x, 0.1)"):
            ours, wanted = (ts.zeros((5, 5), dtype=ts.float64), np.zeros((5, 5))) if "diag" in change else (ts.asarray(x), x.copy())
            eval("ts." + change, {"ts": ts, "x": ours})  # noqa: S307
            eval("np." + change, {"np": np, "x": wanted})  # noqa: S307
            np.testing.assert_array_equal(ts.device_get(ours), wanted)
        self.assertEqual(ts.concatenate([ts.asarray(x, dtype=ts.float32), [0.1]]).dtype, ts.float32)
        times = ts.jit(lambda a, b: a["x"] * b)
        for a, b in ((x, 0.1), (x * 1j, 0.1), (x, 0.1j)):
            np.testing.assert_array_equal(ts.device_get(times({"x": ts.asarray(a)}, b)), a * b)
        self.assertEqual(times({"x": ts.asarray(x, dtype=ts.float32)}, 0.1).dtype, ts.float32)
        self.assertEqual(ts.jit(lambda b: b)(0.1).dtype, ts.float32)
        np.testing.assert_array_equal(ts.device_get(ts.asarray([[ts.asarray(x)[1], 0.3], [0.1, 0.2]])), [[0.1, 0.3], [0.1, 0.2]])
        self.assertTrue(ts.array_equal(ts.asarray(x), [0.05, 0.1, 0.2, 0.3, 0.7]))

    def test_integers_beyond_int32_beside_an_array_of_int64(self):
        large = 3_000_000_000
        n = np.array([1, large, 5 * large])
        for call in ("isin(x, [large])", "append(x, large)", "insert(x, 1, [large])", "concatenate([x, [large]])", "digitize(x, [0, large, 4 * large])"):
            found = ts.device_get(eval("ts." + call, {"ts": ts, "x": ts.asarray(n), "large": large}))  # noqa: S307
            np.testing.assert_array_equal(found, eval("np." + call, {"np": np, "x": n, "large": large}), call)  # noqa: S307
        add = ts.jit(lambda a, b: a + b)
        np.testing.assert_array_equal(ts.device_get(add(ts.asarray(n), large)), n + large)
        np.testing.assert_array_equal(ts.device_get(add(ts.asarray([1.0, 2.0], dtype=ts.float64), large)), [large + 1.0, large + 2.0])
        self.assertEqual(int(ts.jit(lambda b: b)(large)), large)
        self.assertEqual(add(ts.arange(3), 1).dtype, ts.int32)
        with self.assertRaisesRegex(ValueError, "does not fit int32"):
            add(ts.arange(3), large)

    def test_lists_of_fractions_and_spaced_numbers_have_the_precision_of_float64(self):
        x = ts.asarray(np.arange(11.0) ** 2)
        tenths = ts.arange(10.0)  # 0.3 of 10 is 3; in float32 it would be more, and the next element
        self.assertEqual([float(q(tenths, part, method="inverted_cdf")) for q, part in ((ts.quantile, 0.3), (ts.percentile, 30.0), (ts.nanquantile, 0.3))], [2, 2, 2])
        np.testing.assert_allclose(ts.device_get(ts.quantile(x, [0.11, 0.97])), np.quantile(np.arange(11.0) ** 2, [0.11, 0.97]), rtol=1e-15)
        np.testing.assert_allclose(ts.device_get(ts.geomspace(1, 100, 7, dtype=ts.float64)), np.geomspace(1, 100, 7), rtol=1e-14)
        np.testing.assert_allclose(ts.device_get(ts.logspace(0, 2, 5, dtype=ts.float64)), np.logspace(0, 2, 5), rtol=1e-14)

    def test_bits_of_negative_numbers_are_counted_as_numpy_does(self):
        for dtype in (np.int8, np.int32, np.int64):
            host = np.array([0, 1, -1, 7, -7, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
            self.assertEqual(ts.device_get(ts.bitwise_count(ts.asarray(host))).tolist(), [bin(abs(int(v))).count("1") for v in host])

    def test_files_are_loaded_by_their_ending_and_archives_whole(self):
        folder = ts.multihost.broadcast_one_to_all(np.frombuffer(tempfile.mkdtemp().encode().ljust(200), np.uint8)).tobytes().decode().strip()
        path = f"{folder}/a.npz"
        ts.io.save_npz(path, {"a": ts.asarray(rows), "b": ts.arange(3)})
        found = ts.io.load_npz(path)
        self.assertEqual(sorted(found), ["a", "b"])
        assert_same(found["a"], rows)
        ts.io.save_npy(f"{folder}/a.npy", ts.asarray(rows))
        assert_same(ts.io.load(f"{folder}/a.npy"), rows)
        with self.assertRaisesRegex(ts.ArgumentError, "ends with no format of one array"):
            ts.io.load(path)
        with self.assertRaises(ts.IoError):
            ts.io.load_npz(f"{folder}/none.npz")

    def test_segments_are_reduced_by_id(self):
        ids = np.array([2, 0, -1, 2, 5, 0, 3])
        for x in spread(rows):
            for name, start, combine in (("sum", 0, np.add), ("prod", 1, np.multiply), ("max", -np.inf, np.maximum), ("min", np.inf, np.minimum)):
                expected = np.full((5, 5), start, np.float32)
                for place, row in zip(ids, rows):
                    if 0 <= place < 5:
                        expected[place] = combine(expected[place], row)
                assert_same(getattr(ts, "segment_" + name)(x, ts.asarray(ids), 5), expected)


class OwnWords(unittest.TestCase):
    def assertSays(self, text, call):
        with self.assertRaises((TypeError, ValueError)) as raised:
            call()
        self.assertRegex(str(raised.exception), text)
        self.assertNotIn("incompatible", str(raised.exception))
        self.assertNotIn("\n", str(raised.exception))

    def test_an_argument_of_another_type(self):
        self.assertSays(r"sum at test_everyday.py:\d+: 'axis' is 1.5 \(float\); it takes None, an integer or a tuple of integers", lambda: ts.sum(ts.ones(3), axis=1.5))
        self.assertSays(r"sin at .*: 'x' is 'a' \(str\); it takes an array or a number", lambda: ts.sin("a"))
        self.assertSays(r"sin at .*: the argument 'x' is missing", lambda: ts.sin())
        self.assertSays(r"sort at .*: 'axis' is 'x' \(str\)", lambda: ts.sort(ts.ones(3), axis="x"))
        self.assertSays(r"Mesh at .*: 'axis_names' is 3 \(int\)", lambda: ts.Mesh(ts.devices(), 3))
        self.assertSays(r"matmul at .*: it has no parameter 'c'; its parameters are a, b", lambda: ts.matmul(ts.ones(3), c=2))

    def test_a_number_of_more_than_64_bits(self):
        self.assertSays("9223372036854775808 in a shape or an axis does not fit 64 bits", lambda: ts.zeros(2 ** 63))
