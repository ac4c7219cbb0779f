"""Ops of one's own with kernels in Python."""
import unittest
import zlib

import numpy as np

import tessera as ts
from layouts import assert_same, spread

rows = np.sin(np.arange(35, dtype=np.float32) * 7).reshape(7, 5)


@ts.custom_op(rule="i j, j k -> i k | sum j")
def product(a, b):
    return a @ b


@ts.custom_op(rule="~i ~j -> i j", halo={"i": 1, "j": (2, 1)}, boundary="edge")
def smooth(u):
    return u[:-2, 2:-1] + u[2:, 2:-1] + u[1:-1, :-3] + u[1:-1, 3:]


class CustomOp(unittest.TestCase):
    def test_blocks_are_what_the_sentence_says(self):
        other = np.cos(rows.T)
        for a in spread(rows):
            for b in spread(other):
                assert_same(product(a, b), rows @ other, 1e-4)

    def test_margins_stand_around_a_block(self):
        padded = np.pad(rows, ((1, 1), (2, 1)), mode="edge")
        wanted = padded[:-2, 2:-1] + padded[2:, 2:-1] + padded[1:-1, :-3] + padded[1:-1, 3:]
        for a in spread(rows):
            assert_same(smooth(a), wanted, 1e-5)
            assert_same(ts.jit(lambda v: smooth(v))(a), wanted, 1e-5)

    def test_a_library_of_c_works_on_each_rank_s_rows(self):
        @ts.custom_op(rule="i j -> i | whole j", result=lambda x: ts.ShapeDtypeStruct(x.shape[:1], ts.uint32))
        def checksums(x):
            return np.array([zlib.crc32(row.tobytes()) for row in x], np.uint32)
        wanted = np.array([zlib.crc32(row.tobytes()) for row in rows], np.uint32)
        for a in spread(rows):
            assert_same(checksums(a), wanted)

    def test_a_kernel_is_told_where_its_block_stands(self):
        @ts.custom_op(rule="i j -> i j, i j", pass_index=True)
        def places(x, index):
            i, j = np.ogrid[index]
            return (i + 0 * j + 0 * x).astype(x.dtype), (0 * i + j + 0 * x).astype(x.dtype)
        for a in spread(rows):
            i, j = places(a)
            assert_same(i, np.broadcast_to(np.arange(7.0, dtype=np.float32)[:, None], (7, 5)))
            assert_same(j, np.broadcast_to(np.arange(5.0, dtype=np.float32), (7, 5)))

    def test_rules_of_transformations(self):
        square = ts.custom_op(lambda x: x * x, "n -> n", name="square", vjp=lambda x, y, g: 2 * x[0] * g[0])
        cube = ts.custom_op(lambda x: x ** 3, "n -> n", name="cube", jvp=lambda x, y, t: (3 * x[0] ** 2 * t[0],))
        x = ts.asarray(rows)
        assert_same(ts.vmap(square)(x), rows * rows, 1e-6)
        for op, slope in ((square, 2 * rows), (cube, 3 * rows * rows)):
            assert_same(ts.vmap(ts.grad(lambda v: ts.sum(op(v))))(x), slope, 1e-5)
            value, tangent = ts.jvp(lambda v: op(v), (x[0],), (ts.ones(5),))
            assert_same(tangent, slope[0], 1e-5)
        batched = ts.custom_op(lambda x: 0 * x, "n -> n", name="batched", batch=lambda x, dims, size: ts.moveaxis(x[0], dims[0], 0) + size)
        assert_same(ts.vmap(batched)(x), rows + 7, 1e-6)
        self.assertIn("square", repr(square))
        self.assertEqual((square.name, square.rule), ("square", "n -> n"))

    def test_what_is_refused(self):
        x = ts.device_put(ts.ones(3 * ts.device_count()), ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x")))

        def refused(kernel, *parts, error=ts.UserError):
            with self.assertRaises(error) as caught:
                ts.block_until_ready(ts.custom_op(kernel, "i -> i", name="mine")(x))
            for part in parts:
                self.assertIn(part, str(caught.exception))

        kept = []
        refused(lambda v: v.astype(np.float64), "rank 0: mine at test_custom_op.py:", "float64 (3,) as result 0, whose block is float32 (3,)")
        refused(lambda v: v[1:], "float32 (2,) as result 0, whose block is float32 (3,)")
        refused(lambda v: None, "result 0")
        refused(lambda v: (v, v), "it gave 2 results, the sharding rule has 1")
        refused(lambda v: kept.append(v) or v.copy(), "it keeps a view of operand 0 beyond the call")
        kept.clear()
        refused(lambda v: v.fill(0), "read-only")
        refused(lambda v: 1 // 0, "ZeroDivisionError")
        last = 3 * ts.device_count() - 1

        def fails_at_the_end(v, index):
            if index[0].stop > last:
                raise ValueError("the last block")
            return v.copy()
        with self.assertRaises(ts.UserError) as caught:
            ts.block_until_ready(ts.custom_op(fails_at_the_end, "i -> i", pass_index=True)(x))
        self.assertIn(f"rank {ts.device_count() - 1}: fails_at_the_end", str(caught.exception))
        self.assertIn("ValueError: the last block", str(caught.exception))
        with self.assertRaisesRegex(ts.ArgumentError, "factor j is in no output"):
            ts.custom_op(lambda v: v, "i j -> i")
        with self.assertRaisesRegex(TypeError, "give it a rule"):
            ts.custom_op(lambda v: v)
        with self.assertRaisesRegex(ValueError, "there is no 'round'"):
            ts.custom_op(lambda v: v, "~i -> i", halo={"i": 1}, boundary="round")
        with self.assertRaisesRegex(ts.ShapeError, "2 dims in the text"):
            product(ts.ones(3), ts.ones((3, 3)))
        assert_same(ts.custom_op(lambda v: v + 1, "i -> i", name="mine")(x), np.full(3 * ts.device_count(), 2, np.float32))


if __name__ == "__main__":
    unittest.main()
