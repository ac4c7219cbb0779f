"""Elementwise primitives."""
import numpy as np

from ... import _core as c, _primitives
from .._interpret import rule
from .._values import dtype, number_like

_same = {
    "add": c.add, "add_any": c.add, "sub": c.subtract, "mul": c.multiply, "max": c.maximum, "min": c.minimum, "atan2": c.atan2, "nextafter": c.nextafter,
    "lt": c.less, "le": c.less_equal, "gt": c.greater, "ge": c.greater_equal, "and": c.bitwise_and, "or": c.bitwise_or,
    "xor": c.bitwise_xor, "not": c.bitwise_invert, "neg": c.negative, "abs": c.abs, "sign": c.sign, "floor": c.floor, "ceil": c.ceil, "is_finite": c.isfinite,
    "exp": c.exp, "exp2": c.exp2, "expm1": c.expm1, "log": c.log, "log1p": c.log1p, "sin": c.sin, "cos": c.cos, "tan": c.tan, "asin": c.asin, "acos": c.acos,
    "atan": c.atan, "sinh": c.sinh, "cosh": c.cosh, "tanh": c.tanh, "asinh": c.asinh, "acosh": c.acosh, "atanh": c.atanh, "logistic": c.sigmoid,
    "sqrt": c.sqrt, "rsqrt": c.rsqrt, "cbrt": c.cbrt, "square": c.square, "real": c.real, "imag": c.imag, "erf": c.erf, "erfc": c.erfc, "erf_inv": c.erf_inv,
    "complex": c.make_complex, "lgamma": c.lgamma, "digamma": c.digamma, "polygamma": c.polygamma, "zeta": c.zeta, "igamma": c.igamma, "igammac": c.igammac,
    "regularized_incomplete_beta": c.betainc, "bessel_i0e": c.i0e, "bessel_i1e": c.i1e,
}


def _register(name, op):
    """The primitive's parameters (accuracy) choose among implementations of XLA; tessera has one."""
    rule(name)(lambda *operands, **_: op(*operands))


for _name, _op in _same.items():
    _register(_name, _op)
for _name in ("div", "rem", "round"):
    rule(_name)(getattr(_primitives, _name))


def is_complex(x):
    return x.dtype.kind == "c"


def is_float(x):
    return x.dtype.kind in "fV" or x.dtype.name == "bfloat16"


def is_integer(x):
    return x.dtype.kind in "iu"


def both(condition, other):
    return c.bitwise_and(condition, other)


@rule("logistic")
def logistic(x, **_):
    return c.sigmoid(x) if not is_complex(x) else c.divide(number_like(1, x), c.add(number_like(1, x), c.exp(c.negative(x))))


@rule("rsqrt")
def rsqrt(x, **_):
    return c.divide(number_like(1, x), c.sqrt(x)) if is_complex(x) else c.rsqrt(x)


@rule("exp2")
def exp2(x, **_):
    return c.exp(c.multiply(x, number_like(float(np.log(2)), x))) if is_complex(x) else c.exp2(x)


@rule("pow")
def pow(a, b):  # noqa: A001
    return c.power(a, c.astype(b, a.dtype)) if is_integer(b) and not is_integer(a) else c.power(a, b)


@rule("integer_pow")
def integer_pow(x, y, **_):
    """By repeated squaring, as XLA has it."""
    if y == 0:
        return c.where(c.equal(x, x), number_like(1, x), number_like(1, x))
    result, square, n = None, x, abs(y)
    while n:
        if n & 1:
            result = square if result is None else c.multiply(result, square)
        n >>= 1
        if n:
            square = c.multiply(square, square)
    return result if y > 0 else c.divide(number_like(1, x), result)


@rule("max")
def maximum(a, b):
    return c.where(_complex_less(a, b), b, a) if is_complex(a) else c.maximum(a, b)


@rule("min")
def minimum(a, b):
    return c.where(_complex_less(b, a), b, a) if is_complex(a) else c.minimum(a, b)


def _complex_less(a, b):
    return c.bitwise_or(c.less(c.real(a), c.real(b)), both(c.equal(c.real(a), c.real(b)), c.less(c.imag(a), c.imag(b))))


@rule("sign")
def sign(x):
    return c.sign(x) if not is_float(x) else c.where(c.equal(x, number_like(0, x)), x, c.sign(x))


@rule("conj")
def conj(x, input_dtype):
    return c.conj(x) if is_complex(x) else c.make_complex(x, number_like(0, x))


@rule("clamp")
def clamp(low, x, high):
    """NaN of x is kept; so is NaN of a bound."""
    low, high = (c.broadcast_to(b, x.shape) if b.ndim != x.ndim else b for b in (low, high))
    return minimum(maximum(x, low), high)


@rule("select_n")
def select_n(which, *cases):
    if len(cases) == 1:
        return cases[0]
    if which.ndim != cases[0].ndim:  # one for all, or of keys, whose bits are a dim more
        which = c.reshape(which, [*which.shape, *[1] * (cases[0].ndim - which.ndim)])
    if which.dtype.name == "bool":
        return c.where(which, cases[1], cases[0])
    result = cases[-1]
    for n in reversed(range(len(cases) - 1)):
        result = c.where(c.less_equal(which, number_like(n, which)), cases[n], result)
    return result


@rule("convert_element_type")
def convert_element_type(x, new_dtype, eqn, **_):
    to = dtype(new_dtype)
    if is_complex(x) and to.kind != "c" and to.name != "bool":
        x = c.real(x)
    return c.astype(x, to)


@rule("copy", "copy_p", "optimization_barrier", "stop_gradient", "pvary", "pbroadcast_invariant", "reduced_vary_cast", "reduced_vary_cast_p", "xla_metadata_value", "name", "tie_in", "tie", "layout_constraint",
      "copy_to_host_async", "global_array_to_host_local_array", "stage")
def same(*operands, **_):
    return list(operands)


def _total_order_key(x):
    """Integers that are ordered as IEEE's total order of the floats is."""
    size = x.dtype.itemsize * 8
    bits = c.bitcast_convert_type(x, f"int{size}")
    return c.where(c.less(bits, number_like(0, bits)), c.bitwise_xor(bits, number_like(2 ** (size - 1) - 1, bits)), bits)


def _total(name, op):
    def compare(a, b):
        return op(_total_order_key(a), _total_order_key(b)) if is_float(a) else op(a, b)
    rule(name)(compare)


for _name, _op in (("eq_to", c.equal), ("lt_to", c.less), ("le_to", c.less_equal)):
    _total(_name, _op)


@rule("mulhi")
def mulhi(a, b):
    size = a.dtype.itemsize * 8
    if size > 32:
        return _mulhi_64(a, b)
    wide = a.dtype.kind == "u" and "uint64" or "int64"
    return c.astype(c.bitwise_right_shift(c.multiply(c.astype(a, wide), c.astype(b, wide)), size), a.dtype)


def _mulhi_64(a, b):
    """By halves of 32 bits; a negative factor stands for itself plus 2^64."""
    x, y = (c.bitcast_convert_type(v, "uint64") for v in (a, b))
    low, half = number_like(2 ** 32 - 1, x), number_like(32, x)
    (x1, x0), (y1, y0) = ((c.bitwise_right_shift(v, half), c.bitwise_and(v, low)) for v in (x, y))
    middle = c.add(c.multiply(x1, y0), c.bitwise_right_shift(c.multiply(x0, y0), half))
    other = c.add(c.multiply(x0, y1), c.bitwise_and(middle, low))
    high = c.add(c.add(c.multiply(x1, y1), c.bitwise_right_shift(middle, half)), c.bitwise_right_shift(other, half))
    if a.dtype.kind == "i":
        zero, none = number_like(0, a), number_like(0, x)
        high = c.subtract(c.subtract(high, c.where(c.less(a, zero), y, none)), c.where(c.less(b, zero), x, none))
    return c.bitcast_convert_type(high, a.dtype)
