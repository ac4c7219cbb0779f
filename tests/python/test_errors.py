"""Errors are Python's types, and cite the line of the Python program."""
import inspect
import os
import sys
import threading
import time
import unittest

import numpy as np

import tessera as ts


def line():
    """file:line of the caller, as errors cite it."""
    frame = inspect.currentframe().f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


class Types(unittest.TestCase):
    def test_each_is_also_of_a_built_in_type(self):
        for kind, built_in in ((ts.ShapeError, ValueError), (ts.DtypeError, TypeError), (ts.ShardingError, ValueError), (ts.TesseraIndexError, IndexError), (ts.ArgumentError, ValueError),
                               (ts.AxisNameError, NameError), (ts.IoError, OSError), (ts.LinAlgError, ArithmeticError), (ts.TesseraMemoryError, MemoryError)):
            self.assertTrue(issubclass(kind, built_in) and issubclass(kind, ts.Error), kind)

    def test_the_names_that_errors_print_are_attributes(self):
        for kind in (getattr(ts, name) for name in dir(ts) if isinstance(getattr(ts, name), type) and issubclass(getattr(ts, name), ts.Error)):
            self.assertEqual(kind.__module__, "tessera")
            self.assertIs(getattr(ts, kind.__name__), kind)
        self.assertIs(ts.MemoryError, ts.TesseraMemoryError)
        self.assertFalse({"MemoryError", "IndexError", "SystemError"} & set(ts.__all__))  # `from tessera import *` hides none of Python's

    def test_texts_are_in_python_s_spelling(self):
        with self.assertRaisesRegex(ts.ArgumentError, r"Say how large it may get, size=n, or"):
            ts.jit(lambda x: ts.nonzero(x))(ts.ones(3))
        with self.assertRaisesRegex(ts.UserError, r"Pass full_matrices=False"):
            ts.device_get(ts.grad(lambda x: ts.sum(ts.linalg.svd(x, full_matrices=True)[0]))(ts.ones((4, 2))))
        with self.assertRaisesRegex(ts.ShapeError, r"^viz\.plot at test_errors.py:"):
            ts.viz.plot("a.svg", ts.ones((3, 4)))

    @unittest.skipIf(ts.process_count() == 1, "one rank agrees with itself")
    def test_ranks_that_disagree_are_told_the_difference_and_what_is_around_it(self):
        x = ts.ones(3)
        for n in range(40):
            x = ts.sin(x) * (n + (0.5 if n == 20 and ts.process_index() == 1 else 0.0))
        with self.assertRaises(ts.DisagreementError) as raised:
            ts.device_get(x)
        text = str(raised.exception)
        self.assertRegex(text, r"^the ranks disagree on what comes next, first in line \d+:\n  ranks? 0[^:]*: .* = 20(\.0)?\b.*\n  rank 1: .* = 20\.5\n")
        self.assertIn("The lines around it:", text)
        self.assertLess(text.count("\n"), 40)  # the program has 120 lines

    def test_a_plan_is_printed_without_an_empty_line(self):
        self.assertFalse(str(ts.explain(lambda x: x + 1, ts.ones(3))).endswith("\n"))

    def test_shapes(self):
        with self.assertRaisesRegex(ts.ShapeError, r"add at test_errors.py:\d+.*\(2,\).*\(3,\)|\(2\).*\(3\)"):
            ts.ones(2) + ts.ones(3)
        self.assertRaises(ValueError, lambda: ts.reshape(ts.ones(6), (4, 2)))

    def test_dtypes(self):
        self.assertRaises(TypeError, lambda: ts.ones(2) & ts.ones(2))
        self.assertRaises(TypeError, lambda: ts.grad(lambda x: ts.sum(x))(ts.arange(3)))
        self.assertRaises(TypeError, lambda: ts.zeros(2, dtype="float8"))
        with self.assertRaisesRegex(TypeError, r"zeros at test_errors.py:\d+: 'dtype' is 4 \(int\)"):
            ts.zeros(3, 4)

    def test_a_keyword_that_a_reduction_lacks(self):
        for name in ("sum", "max", "all", "cumulative_sum"):
            with self.assertRaisesRegex(TypeError, rf"^{name}\(\) got an unexpected keyword argument 'dim'"):
                getattr(ts, name)(ts.ones(2), dim=0)

    def test_a_condition_on_an_array_of_several_elements(self):
        with self.assertRaisesRegex(ts.ShapeError, "Use all or any for a condition"):
            bool(ts.ones(2) > 0)

    def test_a_singular_matrix(self):
        with self.assertRaises(ts.LinAlgError) as raised:
            ts.device_get(ts.linalg.inv(ts.zeros((3, 3))))
        self.assertIn("inv at test_errors.py", str(raised.exception))

    def test_files(self):
        self.assertRaises(OSError, lambda: ts.io.load_npy("/nowhere/at/all.npy"))

    def test_meshes(self):
        self.assertRaisesRegex(ValueError, r"^make_mesh at test_errors.py:\d+: ", lambda: ts.make_mesh((ts.device_count() + 1,), ("x",)))
        mesh = ts.make_mesh((ts.device_count(),), ("x",))
        self.assertRaisesRegex(ValueError, r"^NamedSharding at test_errors.py:\d+: P\('y'\) over ", lambda: ts.NamedSharding(mesh, ts.P("y")))
        self.assertRaises(NameError, lambda: ts.lax.psum(ts.ones(2), "nobody"))

    def test_a_plain_number_of_more_than_64_bits(self):
        with self.assertRaisesRegex(OverflowError, rf"^test_errors.py:\d+: the number {2 ** 70} does not fit 64 bits"):
            ts.ones(2, dtype=ts.int64) + 2 ** 70


class Lines(unittest.TestCase):
    def text_of(self, call):
        with self.assertRaises(ts.Error) as raised:
            call()
        return str(raised.exception)

    def test_of_an_operator_a_function_and_a_method(self):
        a, b = ts.ones(2), ts.ones(3)
        self.assertIn(line(), self.text_of(lambda: a + b))
        self.assertIn(line(), self.text_of(lambda: ts.matmul(a, b)))
        self.assertIn(line(), self.text_of(lambda: a.reshape(5)))
        self.assertIn(line(), self.text_of(lambda: a[7]))
        self.assertIn(line(), self.text_of(lambda: ts.sum(a, axis=3)))

    def test_several_on_one_function_cite_their_own(self):
        def first():
            return ts.ones(2) + ts.ones(3)

        def second():
            return ts.ones(2) - ts.ones(3)

        start = first.__code__.co_firstlineno
        self.assertIn(f"add at test_errors.py:{start + 1}", self.text_of(first))
        self.assertIn(f"subtract at test_errors.py:{start + 4}", self.text_of(second))
        self.assertIn(f"add at test_errors.py:{start + 1}", self.text_of(first))

    def test_inside_a_traced_function_it_is_the_body(self):
        def body(x):
            return x + ts.ones(7)

        where = f"test_errors.py:{body.__code__.co_firstlineno + 1}"
        self.assertIn(where, self.text_of(lambda: ts.jit(body)(ts.ones(3))))
        self.assertIn(where, self.text_of(lambda: ts.grad(body)(ts.ones(3))))
        self.assertIn(where, self.text_of(lambda: ts.vmap(body)(ts.ones((2, 3)))))

    def test_explain_and_the_compiled_text_cite_them(self):
        def body(x):
            return ts.sin(x) @ x

        where = f"test_errors.py:{body.__code__.co_firstlineno + 1}"
        self.assertIn(where, ts.jit(body).lower(ts.ones((3, 3))).compile().as_text())
        if ts.device_count() > 1:
            x = ts.device_put(ts.ones((6, 6)), ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x")))
            self.assertIn(where, str(ts.explain(body, x)))

    def test_a_value_asked_for_in_a_trace(self):
        def body(x):
            return x if x[0] > 0 else -x

        text = self.text_of(lambda: ts.jit(body)(ts.ones(3)))
        self.assertIn(f"test_errors.py:{body.__code__.co_firstlineno + 1}", text)
        self.assertRaises(ts.ArgumentError, lambda: ts.jit(lambda x: np.asarray(x))(ts.ones(2)))


class BadInput(unittest.TestCase):
    def setUp(self):
        self.mesh = ts.make_mesh((ts.device_count(),), ("x",))
        self.x = ts.device_put(ts.arange(12.0), ts.NamedSharding(self.mesh, ts.P("x")))

    def assertRefused(self, kind, *calls):
        for call in calls:
            with self.subTest(inspect.getsource(call).strip()[:60]), self.assertRaises(kind):
                call()

    def test_what_holds_no_numbers(self):
        self.assertRefused(ValueError, lambda: ts.array([[1, 2], [3]]), lambda: ts.array([[1.0], [2.0, 3.0]], dtype=ts.float32), lambda: ts.array([[1], 2]))
        self.assertRefused(TypeError, lambda: ts.array(None), lambda: ts.array([object()]), lambda: ts.array("text"), lambda: ts.array({"a": 1}), lambda: ts.array([None, 1]),
                           lambda: ts.asarray(np.array([1, "a"], dtype=object)), lambda: ts.array(b"bytes"))

    def test_dtypes_that_are_not_there(self):
        self.assertRefused(TypeError, lambda: ts.asarray(np.zeros(2, "datetime64[s]")), lambda: ts.asarray(np.zeros(2, np.longdouble)),
                           lambda: ts.asarray(np.zeros(2, [("a", "f4")])), lambda: ts.asarray(np.zeros(2, "U3")), lambda: ts.zeros(2, dtype="float8"), lambda: ts.zeros(2, dtype=object),
                           lambda: self.x.astype("S4"))

    def test_the_line_and_what_was_given_are_named(self):
        at = r"test_errors.py:\d+"
        for kind, text, call in ((TypeError, rf"^{at}: an index is an integer, .*; not 'a'$", lambda: self.x["a"]), (TypeError, rf"^{at}: unknown dtype 'float8'", lambda: ts.zeros(2, dtype="float8")),
                                 (OverflowError, rf"^array at {at}: the number -5 does not fit uint8, which holds 0 to 255$", lambda: ts.array([3, -5], dtype=ts.uint8)),
                                 (TypeError, rf"^arange at {at}: '5' \(str\) is no number", lambda: ts.arange("5")), (TypeError, rf"^set at {at}: 'values' is 'a'", lambda: self.x.at[0].set("a")),
                                 (TypeError, rf"^{at}: the function of scan must return \(carry, y\), not None", lambda: ts.lax.scan(lambda c, y: None, 0, self.x)),
                                 (ValueError, rf"^grad at {at}: argnum 1 is named", lambda: ts.grad(ts.sum, argnums=1)(self.x)),
                                 (AttributeError, r"^tessera.random has no rand: there is no hidden state, draws take a key", lambda: ts.random.rand(3)),
                                 (TypeError, rf"^{at}: a key is no array of numbers; random.key_data", lambda: np.asarray(ts.random.key(0)))):
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                call()

    def test_numbers_that_do_not_fit(self):
        self.assertRefused(OverflowError, lambda: ts.array(2 ** 40), lambda: ts.array(300, dtype=ts.uint8), lambda: ts.array([2 ** 70]), lambda: self.x + 2 ** 80)

    def test_shapes_that_are_none(self):
        self.assertRefused(ValueError, lambda: ts.zeros((-1,)), lambda: ts.reshape(self.x, (5, 5)), lambda: ts.arange(0, 10, 0))
        self.assertRefused(TypeError, lambda: ts.zeros("a"), lambda: ts.zeros((1.5,)), lambda: ts.reshape(self.x, "b"), lambda: ts.sum(self.x, axis="x"), lambda: ts.sum("a"))

    def test_arrays_of_another_mesh(self):
        if ts.device_count() > 1:
            other = ts.device_put(ts.arange(12.0), ts.devices()[0])
            turned = ts.device_put(ts.arange(12.0), ts.NamedSharding(ts.Mesh(ts.devices()[::-1], "x"), ts.P("x")))
            self.assertRefused(ValueError, lambda: self.x + other, lambda: ts.matmul(self.x, turned), lambda: ts.concatenate([self.x, other]))

    def test_memory_is_only_read(self):
        whole = ts.device_put(ts.ones(4), ts.NamedSharding(self.mesh, ts.P()))
        host = np.asarray(whole)
        with self.assertRaises(ValueError):
            host[0] = 2
        with self.assertRaises(ValueError):
            np.asarray(self.x.addressable_shards[0].data)[0] = 2
        self.assertRefused(TypeError, lambda: hash(self.x), lambda: len(ts.array(1.0)), lambda: iter(ts.array(1.0)))

    def test_use_after_donation_and_deletion(self):
        step = ts.jit(lambda x: x + 1, donate_argnums=0)
        x = self.x * 1
        after = step(x)
        self.assertRefused(ts.ArgumentError, lambda: x + 1, lambda: float(x[0]), lambda: np.asarray(x), lambda: x.block_until_ready(), lambda: step(x))
        self.assertIn("deleted", repr(x))
        self.assertEqual(float(after[0]), 1.0)
        y = self.x * 2
        y.delete()
        self.assertRefused(ts.ArgumentError, lambda: y + 1, lambda: ts.device_get(y))

    def test_a_mistyped_option_of_a_transform_names_the_nearest(self):
        for call, near in ((lambda: ts.jit(abs, donate_argnum=0), "jit.*'donate_argnum'.*'donate_argnums'"), (lambda: ts.jit(static_argnames_="n"), "'static_argnames'"),
                           (lambda: ts.vmap(abs, in_axis=1), "vmap.*'in_axes'"), (lambda: ts.pmap(abs, outaxes=0), "'out_axes'"), (lambda: ts.shard_map(abs, in_spec=ts.P()), "'in_specs'"),
                           (lambda: ts.jit(abs, backend="gpu"), "'backend'; its options are in_shardings, ")):
            with self.assertRaisesRegex(TypeError, near):
                call()
        self.assertIn("donate_argnums", inspect.signature(ts.jit).parameters)

    def test_a_layout_of_the_wrong_kind_names_the_function_that_was_called(self):
        for call, text in ((lambda: ts.device_put(self.x, ts.P("x")), "device_put at .*a mesh and a spec belong together"), (lambda: ts.device_put(self.x, self.mesh), "a mesh and a spec belong together"),
                           (lambda: ts.device_put(self.x, "cpu"), "^device_put at .*'device' is 'cpu' .*a sharding or a device"),
                           (lambda: ts.lax.with_sharding_constraint(self.x, ts.P("x")), "^with_sharding_constraint at .*'shardings' is P")):
            with self.assertRaisesRegex(TypeError, text):
                call()

    def test_arguments_of_the_wrong_kind(self):
        self.assertRefused(TypeError, lambda: ts.jit(3), lambda: ts.grad(lambda x: (x, x))(1.0), lambda: ts.device_put(self.x, "cpu"),
                           lambda: ts.make_mesh((1,), 5), lambda: self.x["a"])
        self.assertRefused(IndexError, lambda: self.x[0, 0], lambda: self.x[1.5], lambda: ts.sum(self.x, axis=4), lambda: ts.zeros((2, 2))[5])
        self.assertRefused(ValueError, lambda: ts.make_mesh((0,), ("x",)), lambda: ts.einsum("ij,jk", self.x, self.x),
                           lambda: ts.linalg.cholesky(ts.ones((2, 3))), lambda: ts.pad(self.x, 1, mode="nowhere"))


class Threads(unittest.TestCase):
    def test_another_thread_is_refused(self):
        raised = []

        def work():
            try:
                ts.ones(2) + 1
            except RuntimeError as error:
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertIsInstance(raised[0], ts.ThreadError)

    def test_other_threads_run_while_a_value_is_computed(self):
        count, stop = [0], threading.Event()

        def work():
            while not stop.is_set():
                count[0] += 1
                time.sleep(0)

        before = sys.getswitchinterval()
        sys.setswitchinterval(60)  # nobody is interrupted: who runs was let in
        thread = threading.Thread(target=work)
        try:
            thread.start()
            x = ts.random.normal(ts.random.key(0), (400, 400))
            f = ts.jit(lambda y: y @ y)
            ways = {"block_until_ready": lambda: (x @ x / 400).block_until_ready(), "device_get": lambda: ts.device_get(x @ x), "jit": lambda: f(x)}

            def lets_others_run(way):
                counted = count[0]
                for _ in range(30):  # on a busy machine the other thread may not get a core each time
                    way()
                return count[0] > counted
            kept = [name for name, way in ways.items() if not lets_others_run(way)]
        finally:
            stop.set()
            thread.join()
            sys.setswitchinterval(before)
        self.assertEqual(kept, [])


if __name__ == "__main__":
    unittest.main()
