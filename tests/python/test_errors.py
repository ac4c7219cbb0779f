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

    def test_shapes(self):
        with self.assertRaisesRegex(ts.ShapeError, r"add at test_errors.py:\d+.*\(2,\).*\(3,\)|\(2\).*\(3\)"):
            ts.ones(2) + ts.ones(3)
        self.assertRaises(ValueError, lambda: ts.reshape(ts.ones(6), (4, 2)))

    def test_dtypes(self):
        self.assertRaises(TypeError, lambda: ts.ones(2) & ts.ones(2))
        self.assertRaises(TypeError, lambda: ts.grad(lambda x: ts.sum(x))(ts.arange(3)))
        self.assertRaises(TypeError, lambda: ts.zeros(2, dtype="float16"))

    def test_a_singular_matrix(self):
        with self.assertRaises(ts.LinAlgError) as raised:
            ts.device_get(ts.linalg.inv(ts.zeros((3, 3))))
        self.assertIn("inv at test_errors.py", str(raised.exception))

    def test_files(self):
        self.assertRaises(OSError, lambda: ts.io.load_npy("/nowhere/at/all.npy"))

    def test_meshes(self):
        self.assertRaises(ValueError, lambda: ts.make_mesh((ts.device_count() + 1,), ("x",)))
        mesh = ts.make_mesh((ts.device_count(),), ("x",))
        self.assertRaises(ValueError, lambda: ts.device_put(ts.ones(4), ts.NamedSharding(mesh, ts.P("y"))))
        self.assertRaises(NameError, lambda: ts.lax.psum(ts.ones(2), "nobody"))

    def test_a_plain_number_of_more_than_64_bits(self):
        self.assertRaises(OverflowError, lambda: ts.ones(2, dtype=ts.int64) + 2 ** 70)


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
            counted = [count[0]]
            for _ in range(5):
                x = x @ x / 400
            x.block_until_ready()
            counted.append(count[0])
            ts.device_get(x)
            ts.jit(lambda y: y @ y)(x)
            counted.append(count[0])
        finally:
            stop.set()
            thread.join()
            sys.setswitchinterval(before)
        self.assertGreater(counted[1], counted[0])
        self.assertGreater(counted[2], counted[1])


if __name__ == "__main__":
    unittest.main()
