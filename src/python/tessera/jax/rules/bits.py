"""Primitives on the bits of numbers."""
from ... import _core as c, _primitives
from .._interpret import refuse, rule
from .._values import dtype

for _name in ("shift_right_logical", "clz", "reduce_precision"):
    rule(_name)(getattr(_primitives, _name))


@rule("shift_left")
def shift_left(a, b):
    return c.bitwise_left_shift(a, b)


@rule("shift_right_arithmetic")
def shift_right_arithmetic(a, b):
    """Of unsigned integers the sign is their highest bit, as for XLA."""
    if a.dtype.kind == "i":
        return c.bitwise_right_shift(a, b)
    signed = f"int{a.dtype.itemsize * 8}"
    return c.bitcast_convert_type(c.bitwise_right_shift(c.bitcast_convert_type(a, signed), c.bitcast_convert_type(b, signed)), a.dtype)


@rule("population_count")
def population_count(x):
    return c.astype(c.population_count(x), x.dtype)


@rule("bitcast_convert_type")
def bitcast_convert_type(x, new_dtype):
    to = dtype(new_dtype)
    if x.dtype.name == "bool" or to.name == "bool":
        return c.astype(x, to) if x.dtype.itemsize == to.itemsize else refuse("bitcast of bool to another width")
    return x if x.dtype == to else c.bitcast_convert_type(x, to)
