"""Every way to look at an array's memory from Python, beside everything that writes to memory or frees it: the value seen stays."""
import gc
import os
import unittest

import numpy as np

import tessera as ts

mesh = ts.make_mesh((ts.device_count(),), ("x",))
replicated = ts.NamedSharding(mesh, ts.P())
sizes = (1000, 16387, (1 << 20) + 3, (2 << 20) + 5)  # around those from which memory is shared, mapped by itself, written past the cache


def counted(n):
    return np.arange(1, n + 1, dtype=np.float32)


def placed(n, sharding=replicated):
    return ts.device_put(ts.asarray(counted(n)), sharding)


class Capsule:
    """What a consumer does with a capsule: here NumPy's own reader, of either kind."""

    def __init__(self, x, **asked):
        self.x, self.asked = x, asked

    def __dlpack__(self, **_):
        return self.x.__dlpack__(**self.asked)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class Address:
    """The first value behind a capsule of DLPack 1.0, which this NumPy cannot read."""

    def __init__(self, x):
        import ctypes
        self.capsule = x.__dlpack__(max_version=(1, 0))
        name = b"dltensor_versioned"
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        words = ctypes.cast(pointer(self.capsule, name), ctypes.POINTER(ctypes.c_uint64))
        self.version, self.flags = words[0], words[3]
        self.address = words[4]
        data = ctypes.cast(self.address, ctypes.POINTER(ctypes.c_float))
        self.values = np.ctypeslib.as_array(data, (x.size,))


looks = {
    "np.asarray": np.asarray,
    "memoryview": lambda x: np.frombuffer(memoryview(x._local()), np.float32),
    "DLPack": lambda x: np.from_dlpack(Capsule(x)),
    "DLPack 1.0": lambda x: (lambda seen: np.asarray(Kept(seen)))(Address(x)),
    "the shard's data": lambda x: np.asarray(x.addressable_shards[0].data),
    "a view of a view": lambda x: np.asarray(x)[::3],
}


class Kept:
    """An array that keeps the capsule of its memory."""

    def __init__(self, seen):
        self.seen = seen
        self.__array_interface__ = dict(seen.values.__array_interface__)


def donate(f):
    def act(x):
        ts.jit(f, donate_argnums=0)(x).block_until_ready()
    return act


acts = {
    "donated to a chain": donate(lambda x: x * 2 + 1),
    "donated to a sum": donate(lambda x: ts.sum(x)),
    "donated to a sort": donate(lambda x: ts.sort(-x)),
    "donated to a loop": donate(lambda x: ts.lax.fori_loop(0, 3, lambda _, a: a * 2, x)),
    "deleted": lambda x: x.delete(),
}


def use_again(n):
    for _ in range(3):
        ts.device_put(ts.full((n,), -7.0), replicated).block_until_ready()


class Views(unittest.TestCase):
    def test_show_the_same_value_whatever_becomes_of_the_array(self):
        for n in sizes:
            for how, look in looks.items():
                for what, act in acts.items():
                    with self.subTest(n=n, look=how, act=what):
                        x = placed(n)
                        seen = look(x)
                        expected = seen.copy()
                        act(x)
                        ts._core.release_memory()
                        use_again(n)
                        np.testing.assert_array_equal(seen, expected)

    def test_outlive_the_handle(self):
        for how, look in looks.items():
            x = placed(1 << 20)
            seen = look(x)
            expected = seen.copy()
            del x
            gc.collect()
            ts._core.release_memory()
            use_again(1 << 20)
            np.testing.assert_array_equal(seen, expected, how)

    def test_of_uncommitted_arrays_stay_too(self):
        x = ts.asarray(counted(5000))
        seen = np.asarray(x)
        ts.jit(lambda a: a * 2, donate_argnums=0)(x).block_until_ready()
        np.testing.assert_array_equal(seen, counted(5000))

    def test_of_numpys_memory_are_not_written(self):
        mine = counted(70001)
        x = ts.device_put(ts.asarray(mine), replicated)
        ts.jit(lambda a: a * 2, donate_argnums=0)(x).block_until_ready()
        np.testing.assert_array_equal(mine, counted(70001))

    def test_of_a_child_after_a_fork_stay_when_it_uses_the_memory_again(self):
        x, y = placed(70001), placed(70001) + 1
        y.block_until_ready()
        seen = np.asarray(x)
        child = os.fork()
        if child == 0:
            right = np.array_equal(seen, counted(70001))
            del x, y
            gc.collect()
            os._exit(0 if right else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        np.testing.assert_array_equal(seen, counted(70001))
        np.testing.assert_array_equal(np.asarray(y), counted(70001) + 1)


class DLPack(unittest.TestCase):
    def test_of_1_0_says_that_the_memory_must_not_be_written(self):
        x = placed(100)
        seen = Address(x)
        self.assertEqual((seen.version, seen.flags), (1, 1))
        self.assertEqual(seen.address, np.asarray(x).ctypes.data)

    def test_of_older_consumers_is_a_copy_that_they_may_write(self):
        x = placed(100)
        for asked in ({}, {"max_version": (0, 8)}, {"max_version": None}):
            got = np.from_dlpack(Capsule(x, **asked))
            self.assertNotEqual(got.ctypes.data, np.asarray(x).ctypes.data)
            np.testing.assert_array_equal(got, counted(100))
        self.assertRaisesRegex(BufferError, "max_version", lambda: x.__dlpack__(copy=False))
        self.assertIn("dltensor_versioned", repr(x.__dlpack__(max_version=(1, 1), copy=False)))

    def test_of_read_only_memory_and_of_1_0_are_taken(self):
        class Foreign:  # as NumPy 2: no capsule without the flag
            def __init__(self, x):
                self.x = x

            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, *, max_version=None, **_):
                if max_version is None or max_version < (1, 0):
                    raise BufferError("Cannot export readonly array")
                return self.x.__dlpack__(max_version=max_version)

        np.testing.assert_array_equal(np.asarray(ts.from_dlpack(Foreign(placed(100)))), counted(100))
        capsule = placed(4).__dlpack__(max_version=(1, 0))
        ts._core.from_dlpack_capsule(capsule)
        self.assertRaises(ValueError, lambda: ts._core.from_dlpack_capsule(capsule))


if __name__ == "__main__":
    unittest.main()
