"""Primitives on the bits of numbers."""
from ... import _core as c
from .._interpret import refuse, rule
from .._values import dtype, number_like


def _unsigned(x):
    return c.bitcast_convert_type(x, f"uint{x.dtype.itemsize * 8}")


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


@rule("shift_right_logical")
def shift_right_logical(a, b):
    if a.dtype.kind == "u":
        return c.bitwise_right_shift(a, b)
    return c.bitcast_convert_type(c.bitwise_right_shift(_unsigned(a), _unsigned(b)), a.dtype)


@rule("population_count")
def population_count(x):
    return c.astype(c.population_count(x), x.dtype)


@rule("clz")
def clz(x):
    """Zeros in front: every bit behind the first one is set, and the rest counted."""
    bits = _unsigned(x)
    size, step = x.dtype.itemsize * 8, 1
    while step < size:
        bits = c.bitwise_or(bits, c.bitwise_right_shift(bits, number_like(step, bits)))
        step *= 2
    return c.bitcast_convert_type(c.subtract(number_like(size, bits), c.astype(c.population_count(bits), bits.dtype)), x.dtype)


@rule("bitcast_convert_type")
def bitcast_convert_type(x, new_dtype):
    to = dtype(new_dtype)
    if x.dtype.name == "bool" or to.name == "bool":
        return c.astype(x, to) if x.dtype.itemsize == to.itemsize else refuse("bitcast of bool to another width")
    return x if x.dtype == to else c.bitcast_convert_type(x, to)


_formats = {"float32": (8, 23, "uint32"), "float64": (11, 52, "uint64"), "bfloat16": (8, 7, "uint16"), "float16": (5, 10, "uint16")}


@rule("reduce_precision")
def reduce_precision(x, exponent_bits, mantissa_bits):
    """Rounded to nearest even as a format of that many bits would hold it: XLA's steps on the bits."""
    exponent, mantissa, name = _formats[x.dtype.name]
    if (exponent_bits, mantissa_bits) == (exponent, mantissa):
        return x
    bits = c.bitcast_convert_type(x, name)
    one = number_like(1, bits)
    if mantissa_bits < mantissa:
        cut = mantissa - mantissa_bits
        last = c.bitwise_and(c.bitwise_right_shift(bits, number_like(cut, bits)), one)
        bits = c.add(bits, c.add(last, number_like(2 ** (cut - 1) - 1, bits)))
        bits = c.bitwise_and(bits, number_like((2 ** (exponent + mantissa + 1) - 1) ^ (2 ** cut - 1), bits))
    if exponent_bits < exponent:
        bias, small = 2 ** (exponent - 1) - 1, 2 ** (exponent_bits - 1) - 1
        sign = c.bitwise_and(bits, number_like(2 ** (exponent + mantissa), bits))
        size = c.bitwise_and(bits, number_like((2 ** exponent - 1) << mantissa, bits))
        infinite = c.bitwise_or(sign, number_like((2 ** exponent - 1) << mantissa, bits))
        bits = c.where(c.greater(size, number_like((bias + small) << mantissa, bits)), infinite,
                       c.where(c.less_equal(size, number_like((bias - small) << mantissa, bits)), sign, bits))
    return c.where(c.isnan(x), x, c.bitcast_convert_type(bits, x.dtype))
