"""Arguments at the edge: integers beyond 32 bits, axes out of range, nested blocks, places beyond the ends, and what each error says."""
import operator
import unittest

import numpy as np
from layouts import spread, values

import tessera as ts

BEYOND = 2 ** 40  # no int32
FINE = 2 ** 53 + 1  # no float64


def vector():
    return ts.asarray(np.arange(5, dtype=np.float32))


class LargeIntegers(unittest.TestCase):
    def test_plain_numbers_do_not_wrap_around(self):
        mask = ts.asarray([True, False])
        for found, expected in ((ts.where(mask, BEYOND, 0), [BEYOND, 0]), (ts.equal(2 ** 32, 0), False), (ts.sum(BEYOND), BEYOND), (ts.abs(-BEYOND), BEYOND),
                                (ts.maximum(BEYOND, 1), BEYOND), (ts.broadcast_to(BEYOND, (2,)), [BEYOND] * 2), (ts.one_hot(2 ** 32, 2), [0, 0])):
            np.testing.assert_array_equal(values(found), expected)
        self.assertEqual(int(ts.jit(lambda n: ts.where(n < BEYOND, 1, 0))(3)), 1)
        with self.assertRaisesRegex(ts.ArgumentError, "does not fit int32"):
            ts.asarray([1]) + BEYOND

    def test_unsigned_integers_of_64_bits_meet_plain_ones(self):
        big = 0xbf58476d1ce4e5b9
        host = np.array([0, 1, 2 ** 63, 2 ** 64 - 1], np.uint64)
        for x in spread(host):
            for found, expected in ((x ^ big, host ^ np.uint64(big)), (x > 2 ** 63, host > np.uint64(2 ** 63)), (2 ** 64 - 1 == x, host == np.uint64(2 ** 64 - 1)), (x.at[0].set(big), [big, *host.tolist()[1:]])):
                np.testing.assert_array_equal(values(found), expected)
        self.assertEqual(values(ts.asarray([1.5]) * 2 ** 63), np.float32(1.5 * 2 ** 63))
        for call, text in ((lambda: ts.asarray([1]) + big, f"{big} does not fit int32"), (lambda: ts.full((2,), 1, dtype=ts.uint64) + -1, "-1 does not fit uint64, which holds 0 to 18446744073709551615")):
            self.assertRaisesRegex(ts.ArgumentError, text, call)

    def test_comparisons_with_numbers_beyond_the_dtype_are_those_of_numbers(self):
        compare = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
        for dtype in (np.uint8, np.int8, np.int32, np.uint64):
            host = np.array([0, 5, np.iinfo(dtype).max], dtype)
            for number in (-2 ** 40, -1, 300, 2 ** 40, 2 ** 64 - 1):
                for op in compare:
                    for x in spread(host):
                        self.assertEqual(values(op(x, number)).tolist(), [op(v, number) for v in host.tolist()], (op, dtype, number))
                        self.assertEqual(values(op(number, x)).tolist(), [op(number, v) for v in host.tolist()], (op, dtype, number))
                    self.assertEqual(values(ts.jit(lambda v: op(v, number))(ts.asarray(host))).tolist(), [op(v, number) for v in host.tolist()])

    def test_what_no_integer_is_is_refused(self):
        for call, text in ((lambda: ts.arange(3) ** -1, r"power at .*: int32 to the power -1 is no integer; take power\(astype\(x, float32\), -1\)"), (lambda: ts.ones(2, dtype=bool) - ts.ones(2, dtype=bool), r"subtract at .*: bool - bool"),
                           (lambda: -ts.ones(2, dtype=bool), "negative at .*: a bool has no negative")):
            self.assertRaisesRegex(ts.UserError, text, call)
        self.assertEqual(values(ts.asarray([1, -1, 2]) ** ts.asarray([-1, -1, -1])).tolist(), [1, -1, 0])  # of an array each element says

    def test_numbers_around_an_array_keep_their_digits(self):
        x = ts.asarray(np.array([1, 2]))
        self.assertEqual(values(ts.pad(x, 1, constant_values=FINE)).tolist(), [FINE, 1, 2, FINE])
        with self.assertRaisesRegex(OverflowError, "does not fit int32"):
            ts.pad(ts.asarray([1]), 1, constant_values=BEYOND)

    def test_numbers_that_a_parameter_does_not_take_are_named(self):
        for call, name in ((lambda: ts.tile(vector(), BEYOND), "'repeats'"), (lambda: ts.repeat(vector(), BEYOND), "'n'"), (lambda: ts.tril(ts.eye(2), BEYOND), "'k'"), (lambda: ts.top_k(vector(), BEYOND), "'k'")):
            with self.assertRaisesRegex(TypeError, f"{name} is .*{BEYOND}.* beyond the integers"):
                call()
        np.testing.assert_array_equal(values(ts.roll(vector(), BEYOND)), np.roll(np.arange(5), BEYOND))


class Axes(unittest.TestCase):
    def test_an_axis_out_of_range_is_none(self):
        x, bits = ts.eye(2, 3), ts.asarray([1, 0, 1])
        for call in (lambda: ts.sum(x, 2 ** 45), lambda: ts.rollaxis(x, 5), lambda: ts.rollaxis(x, 0, 4), lambda: ts.packbits(bits, axis=1), lambda: ts.unpackbits(ts.packbits(bits), axis=1), lambda: ts.insert(x, 0, 1.0, axis=2), lambda: ts.delete(x, 0, axis=2),
                     lambda: ts.array_split(x, 2, axis=2), lambda: ts.apply_over_axes(ts.sum, x, 2), lambda: ts.lax.slice_in_dim(x, 0, 1, axis=2), lambda: ts.lax.dynamic_slice_in_dim(x, 0, 1, axis=2),
                     lambda: ts.linalg.vector_norm(x, axis=(0, 2)), lambda: ts.rollaxis(ts.asarray(1.0), 0), lambda: ts.take(x, ts.asarray([0]), 2, mode="fill", fill_value=0)):
            with self.assertRaisesRegex(IndexError, "axis 2|axis 5|axis 1|start 4|axis 35184372088832|axis 0"):
                call()
        with self.assertRaisesRegex(ts.ShapeError, "twice"):
            ts.expand_dims(x, (0, 0))
        with self.assertRaisesRegex(ValueError, "twice"):
            ts.gradient(x, axis=(0, 0))
        for call in (lambda: ts.vsplit(vector(), 1), lambda: ts.diag_indices_from(x), lambda: ts.tril_indices_from(vector()), lambda: ts.resize(vector(), -1)):
            with self.assertRaises(ts.ShapeError):
                call()
        with self.assertRaisesRegex(ts.ArgumentError, "0 parts"):
            ts.array_split(vector(), 0)


class Values(unittest.TestCase):
    def test_blocks(self):
        a, b, c = np.ones((2, 3)), np.zeros((2, 1)), np.arange(4.0)
        on = lambda nested: [on(n) for n in nested] if isinstance(nested, list) else ts.asarray(nested)  # noqa: E731
        for nested in ([a, a], [[a, b], [c]], a, [c, 1.0], [[[a]], [[a]]], np.ones((2, 2, 2)), [[np.ones((2, 2, 2))] * 2]):
            np.testing.assert_array_equal(values(ts.block(on(nested))), np.block(nested))
        for wrong, words in (([a, [b]], "nested 1 and 2 deep"), ([], "empty")):
            with self.assertRaisesRegex(ts.ArgumentError, words):
                ts.block(on(wrong))
        with self.assertRaisesRegex(TypeError, "tuple"):
            ts.block((ts.asarray(a), ts.asarray(a)))

    def test_rounding_of_integers(self):
        for x in (np.array([-128, -50, -15, -5, 0, 5, 15, 25, 49, 51, 127], np.int8), np.array([FINE, -FINE, 2 ** 53 + 5]), np.array([0, 250, 255], np.uint8)):
            for decimals in (-1, -2, 1, -30):
                expected = x if decimals > 0 else np.zeros_like(x) if decimals == -30 else np.array([int(round(int(v), decimals)) for v in x])
                inside = (expected >= np.iinfo(x.dtype).min) & (expected <= np.iinfo(x.dtype).max)
                found = values(ts.round(ts.asarray(x), decimals))
                self.assertEqual(found.dtype, x.dtype)
                np.testing.assert_array_equal(found[inside], expected[inside])
        np.testing.assert_array_equal(values(ts.round(vector(), 400)), np.arange(5))
        with self.assertRaisesRegex(TypeError, "'decimals' is 0.5"):
            ts.round(vector(), 0.5)

    def test_small_corners(self):
        one = np.array([[2.0]])
        np.testing.assert_allclose(values(ts.geomspace(1.0, 1j, 3)), np.geomspace(1.0, 1j, 3), atol=1e-6)
        start, stop = np.array([1 + 1j, 2.0]), np.array([-1j, 8.0])
        np.testing.assert_allclose(values(ts.geomspace(ts.asarray(start), ts.asarray(stop), 4)), np.geomspace(start, stop, 4))
        self.assertEqual(ts.cov(ts.asarray(2.0), ts.asarray(3.0)).shape, (2, 2))
        self.assertEqual((ts.cov(ts.asarray(one)).shape, ts.corrcoef(ts.asarray(np.arange(4.0).reshape(1, 4))).shape), ((), ()))
        self.assertEqual(ts.max(ts.asarray([True]), where=ts.asarray([False]), initial=0).dtype, ts.bool_)
        self.assertEqual(ts.einsum_path(ts.eye(2), [0, 1], ts.eye(2), [1, 2])[0], np.einsum_path(np.eye(2), [0, 1], np.eye(2), [1, 2])[0])
        np.testing.assert_array_equal(values(ts.delete(vector(), [1, -1])), [0, 2, 3])
        for call, kind, words in ((lambda: ts.insert(vector(), -9, 1), IndexError, "place -9 of an axis of 5"), (lambda: ts.delete(ts.zeros(0), [3]), IndexError, "index 3"), (lambda: ts.random.key(1.5), TypeError, "'seed' is 1.5"),
                                  (lambda: ts.roll(vector(), 1.5), TypeError, "'shift' is 1.5"), (lambda: ts.repeat(vector(), 1.5), TypeError, "'repeats' is 1.5"), (lambda: ts.quantile(vector(), float("nan")), ts.ArgumentError, "nan is no part")):
            with self.assertRaisesRegex(kind, words):
                call()

    def test_places_may_be_split(self):
        on = ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x"))
        places, mask = np.array([0, 3, 1]), np.array([True, False, True, False, False])
        np.testing.assert_array_equal(values(ts.delete(vector(), ts.asarray(places, device=on))), np.delete(np.arange(5), places))
        np.testing.assert_array_equal(values(ts.delete(vector(), ts.asarray(mask, device=on))), np.delete(np.arange(5), mask))
        np.testing.assert_array_equal(values(ts.insert(vector(), ts.asarray(places, device=on), 9)), np.insert(np.arange(5), places, 9))

    def test_nan_to_num_takes_numpys_order_and_the_numbers_alone(self):
        x = np.array([np.nan, np.inf, -np.inf])
        for order in ((), (True,), (True, 7.0), (False, 7.0, 8.0, 9.0)):
            np.testing.assert_array_equal(values(ts.nan_to_num(ts.asarray(x), *order)), np.nan_to_num(x, *order))
        np.testing.assert_array_equal(values(ts.nan_to_num(ts.asarray(x), 7.0, 8.0, neginf=9.0)), [7, 8, 9])

    def test_special_functions_of_negative_and_of_large_numbers(self):
        # SciPy's and mpmath's values.
        for found, expected in ((ts.special.log_ndtr(np.float64(7)), -1.2798125438866539e-12), (ts.special.betaln(np.float64(-0.5), np.float64(2)), 1.3862943611198906), (ts.special.beta(np.float64(-0.5), np.float64(2)), -4.0),
                                (ts.special.poch(np.float64(-0.5), np.float64(1)), -0.5), (ts.special.poch(np.float64(0), np.float64(0)), 1.0), (ts.special.gammasgn(np.float64("nan")), np.nan), (ts.zeta(np.float64(170), np.float64(20)), 6.683582402684207e-222)):
            np.testing.assert_allclose(values(found), expected, rtol=1e-12)


class Edges(unittest.TestCase):
    def test_counts_refuse_what_numpy_refuses(self):
        for call in (lambda: ts.bincount(ts.array([1, -2, 3])), lambda: ts.bincount(ts.array([1, -2, 3]), minlength=9), lambda: ts.bincount(ts.array([1, -2, 3]), weights=ts.ones(3))):
            with self.assertRaisesRegex(ValueError, r"bincount at test_odd_arguments.py:\d+: the values begin at -2; counted are numbers from 0 up"):
                call()
        np.testing.assert_array_equal(values(ts.bincount(ts.array([1, -2, 3]), length=5)), [0, 1, 0, 1, 0])
        np.testing.assert_array_equal(values(ts.bincount(ts.arange(5), minlength=7)), np.bincount(np.arange(5), minlength=7))
        for call in (lambda: ts.histogram(vector(), bins=[3, 2, 1]), lambda: ts.histogram(vector(), ts.array([0.0, 2, 1])), lambda: ts.histogram(vector(), bins=[3, 1, 2], weights=vector()),
                     lambda: ts.histogram_bin_edges(vector(), [1, 0]), lambda: ts.histogram2d(vector(), vector(), bins=[[0, 1], [2, 1]])):
            with self.assertRaisesRegex(ValueError, "the edges descend somewhere"):
                call()
        np.testing.assert_array_equal(values(ts.histogram(vector(), bins=[0, 2, 2, 9])[0]), np.histogram(np.arange(5), bins=[0, 2, 2, 9])[0])

    def test_places_of_a_number_have_no_numbers(self):
        for number in (3.0, 0.0, True):
            self.assertEqual(ts.argwhere(ts.array(number)).shape, np.argwhere(np.array(number)).shape)

    def test_an_infinity_reaches_the_sums_that_hold_it_and_no_other(self):
        numbers = np.random.default_rng(3)
        for n, k in ((40, 7), (9, 50), (300, 400)):
            for of_a, of_b in ((1, 0), (1, 1), (0, 1)):
                for bad in (np.inf, np.nan):
                    a, b = numbers.normal(size=n) + 1j * of_a * numbers.normal(size=n), numbers.normal(size=k) + 1j * of_b * numbers.normal(size=k)
                    a[n // 2] = bad
                    a, b = a if of_a else a.real, b if of_b else b.real
                    for call in ("convolve", "correlate"):
                        found, expected = values(getattr(ts, call)(ts.asarray(a), ts.asarray(b), "full")), getattr(np, call)(a, b, "full")
                        fine = np.isfinite(expected)
                        np.testing.assert_array_equal(np.isfinite(found), fine)
                        np.testing.assert_allclose(found[fine], expected[fine], rtol=1e-10, atol=1e-12)

    def test_least_squares_without_rows_or_columns(self):
        for m, n, right in ((0, 3, ()), (0, 3, (2,)), (3, 0, ()), (3, 0, (2,)), (0, 0, (1,))):
            with self.subTest(m=m, n=n, right=right):
                found = ts.linalg.lstsq(ts.zeros((m, n), dtype="float64"), ts.zeros((m, *right), dtype="float64"))
                expected = np.linalg.lstsq(np.zeros((m, n)), np.zeros((m, *right)), rcond=None)
                np.testing.assert_array_equal(values(found[0]), expected[0])
                self.assertEqual(int(found[2]), 0)
                self.assertEqual(found[3].shape, (0,))


class Lifetimes(unittest.TestCase):
    def test_a_factor_has_two_parts(self):
        for factor in (np.zeros((0, 0)), np.eye(3), [np.eye(2)]):
            with self.assertRaisesRegex(ts.ArgumentError, f"factor, a LuFactor, has 2 arrays, not {len(factor)}"):
                ts.linalg.lu_solve(factor, np.ones(2))

    def test_what_was_not_computed_before_its_operand_went_keeps_its_value_as_in_jax(self):
        x = ts.device_put(vector(), ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x")))
        kept, late = ts.block_until_ready(ts.copy(x)), x * 2
        ts.jit(lambda tree: tree["a"] + 1, donate_argnums=0)({"a": x})
        np.testing.assert_array_equal(values(kept), np.arange(5))
        np.testing.assert_array_equal(values(late), 2 * np.arange(5))
        with self.assertRaisesRegex(ts.ArgumentError, "Keep a copy that is computed before"):
            x + 1

    def test_a_leaf_without_a_text_of_its_own_is_no_part_of_a_checkpoint(self):
        manager = ts.checkpoint.Manager("no-folder-is-made")
        with self.assertRaisesRegex(TypeError, "the tree holds <object object>.*keep it out of the tree"):
            manager.save(1, {"x": vector(), "leaf": object()})


if __name__ == "__main__":
    unittest.main()
