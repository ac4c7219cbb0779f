"""Random programs: one number gives the same program on every rank, as calls of tessera and as NumPy's on the host."""
import math

import numpy as np

import tessera as ts

FLOATS = ["float32", "float32", "float64", "float64", "float16"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
# Elements of one array: most programs are small, some cross every threshold of the library up to 16 MiB.
SIZES = [(0.55, 1, 64), (0.25, 64, 5_000), (0.14, 5_000, 80_000), (0.05, 80_000, 400_000), (0.01, 400_000, 2_200_000)]
LARGEST = 10_000_000  # of any operand


class Mismatch(Exception):
    """tessera and NumPy differ."""


class TooLarge(Exception):
    """A step's operand would have more than LARGEST elements."""


class Value:
    """One name of the program: tessera's array, the host's value, and the dtypes that it was rounded to on the way."""

    def __init__(self, name, array, host, dtypes):
        self.name, self.array, self.host, self.dtypes = name, array, host, dtypes

    @property
    def dtype(self):
        return str(self.array.dtype)

    @property
    def kind(self):
        return self.host.dtype.kind


class Builder:
    """Draws the operands and the steps of program `number`."""

    def __init__(self, number):
        self.draw = np.random.default_rng(number)
        self.lines, self.values, self.names = [], [], 0

    # ---- texts ----

    def text(self):
        return "\n".join(f"    {line}" for line in self.lines)

    # ---- draws ----

    def new_name(self):
        self.names += 1
        return f"v{self.names}"

    def pick(self, choices):
        return choices[int(self.draw.integers(len(choices)))]

    def size(self):
        part = self.draw.random()
        for share, low, high in SIZES:
            if part < share:
                return int(self.draw.integers(low, high + 1))
            part -= share
        return 1

    def shape(self):
        """Odd extents, now and then one of 0."""
        ndim = int(self.draw.integers(1, 5))
        total, extents = self.size(), []
        for _ in range(ndim - 1):
            extent = int(np.ceil(total ** self.draw.random()))
            extents.append(max(1, extent))
            total = max(1, total // max(1, extent))
        extents.append(total)
        self.draw.shuffle(extents)
        if self.draw.random() < 0.03:
            extents[int(self.draw.integers(ndim))] = 0
        return tuple(int(extent) for extent in extents)

    def dtype(self):
        return self.pick(self.pick([FLOATS, FLOATS, FLOATS, INTEGERS, COMPLEX]))

    def numbers(self, shape, dtype):
        kind = np.dtype(dtype).kind
        if kind in "iu":
            limits = np.iinfo(dtype)
            return self.draw.integers(max(-100, limits.min), min(100, limits.max), shape, dtype=dtype, endpoint=True)
        real = self.draw.uniform(-1, 1, shape)
        return (real + 1j * self.draw.uniform(-1, 1, shape) if kind == "c" else real).astype(dtype)

    def sharding(self, ndim):
        """None: nobody places it. Else replicated, split by one dim, or by two over a grid."""
        ranks = ts.device_count()
        way = int(self.draw.integers(4))
        if way == 0:
            return None
        row = ts.make_mesh((ranks,), ("x",))
        if way == 1 or ndim == 0:
            return ts.NamedSharding(row, ts.P())
        if way == 2 or ranks < 4 or ndim < 2:
            dim = int(self.draw.integers(ndim))
            return ts.NamedSharding(row, ts.P(*[None] * dim, "x"))
        if ranks % 2 == 0:
            grid = ts.make_mesh((2, ranks // 2), ("y", "z"))
            return ts.NamedSharding(grid, ts.P(*self.pick([("y", "z"), (("y", "z"),), (None, ("z", "y"))])))
        return ts.NamedSharding(row, ts.P("x"))

    # ---- the program ----

    def operand(self, shape=None, dtype=None):
        shape = self.shape() if shape is None else shape
        if math.prod(shape) > LARGEST:
            raise TooLarge
        dtype = dtype or self.dtype()
        host = self.numbers(shape, dtype)
        sharding = self.sharding(len(shape))
        name = self.new_name()
        self.lines.append(f"{name} = operand({shape}, {dtype!r}, {'uncommitted' if sharding is None else sharding.spec})")
        value = Value(name, ts.asarray(host, sharding=sharding), host, {dtype})
        self.values.append(value)
        return value

    def result(self, text, array, host, operands):
        """A new name. The host's value takes the dtype that the array has, so that promotion is the library's."""
        name = self.new_name()
        self.lines.append(f"{name} = {text}")
        dtypes = set().union(*(operand.dtypes for operand in operands)) | {str(array.dtype)}
        with np.errstate(all="ignore"):
            host = np.asarray(host).astype(str(array.dtype), copy=False)
        value = Value(name, array, host, dtypes)
        self.values.append(value)
        return value

    def in_dtype_of(self, array, *hosts):
        """Operands as the op computes them: converted to its result's dtype (large integers to infinite halves), halves then to float32."""
        name = str(array.dtype)
        with np.errstate(over="ignore"):
            converted = [host.astype(name, copy=False) for host in hosts]
        return [host.astype("float32") for host in converted] if name in ("float16", "bfloat16") else converted

    def steps(self):
        import steps
        import wide_steps

        return steps.STEPS + wide_steps.STEPS

    def read(self, value):
        """The result's value on every rank, or None."""
        return ts.device_get(value.array)

    @staticmethod
    def check_all(count):
        """Called behind the last of `count` programs."""

    def results(self):
        """(name, tessera's value, NumPy's, dtypes) of what the program asks for, in a random order of evaluation."""
        all_steps = self.steps()
        start = self.operand()
        current = start
        for _ in range(int(self.draw.integers(2, 9))):
            step = self.pick(all_steps)
            try:
                current = step(self, current) or current
            except TooLarge:
                continue
            if current.host.size > 3_000_000:
                break
        chosen = [current] + [value for value in self.values if self.draw.random() < 0.2]
        self.draw.shuffle(chosen)
        for value in chosen:
            self.lines.append(f"read {value.name}")
            found = self.read(value)
            if found is not None:
                yield value.name, found, value.host, value.dtypes
