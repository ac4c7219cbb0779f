"""Elementwise functions by the standard's and NumPy's names."""
import builtins
import math

from . import _core
from ._core import Array
from ._create import _array, _arrays, refuse_out
from ._device import placed
from ._views import giving_views
from ._searching import nonzero

__all__ = ["acos", "acosh", "allclose", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "array_equal", "asin", "asinh",
           "astype", "atan", "atan2", "atanh", "bitwise_left_shift", "bitwise_not", "bitwise_right_shift", "clip", "conjugate", "divmod",
           "invert", "iscomplexobj", "left_shift", "logical_not", "pow", "right_shift", "select", "where", "logaddexp2", "float_power", "logical_xor", "true_divide", "mod", "absolute", "is_array", "imag", "real", "isreal", "iscomplex",
           "floor_divide", "exclusive_or"]

acos, acosh, asin, asinh, atan, atan2, atanh = _core.acos, _core.acosh, _core.asin, _core.asinh, _core.atan, _core.atan2, _core.atanh
arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh = acos, acosh, asin, asinh, atan, atan2, atanh
conjugate, pow, true_divide, mod, absolute = _core.conj, _core.power, _core.divide, _core.remainder, _core.abs
bitwise_not = invert = _core.bitwise_invert
left_shift = bitwise_left_shift = _core.bitwise_left_shift
right_shift = bitwise_right_shift = _core.bitwise_right_shift
logical_not, logical_xor, floor_divide = _core.logical_not, _core.logical_xor, _core.floor_divide
imag, real = giving_views(_core.imag), giving_views(_core.real)
exclusive_or = _core.bitwise_xor


def is_array(x):
    """Whether x is one of tessera's arrays."""
    return isinstance(x, Array)


def astype(x, dtype, /, *, copy=True, device=None):
    """x with elements of another dtype; x itself if copy=False and it already has that dtype."""
    if not copy and isinstance(x, Array) and x.dtype == dtype:
        return placed(x, device)
    return placed(_core.astype(x, dtype), device)


def clip(x, /, min=None, max=None, out=None, *, a_min=None, a_max=None):
    """x limited to the bounds, with x's dtype; None: no bound. NumPy calls the bounds a_min and a_max."""
    refuse_out("clip", out)
    min, max = a_min if min is None else min, a_max if max is None else max
    x = _array(x)
    if min is None and max is None:
        return _core.copy(x)
    if min is None:
        bounded = _core.clip_upper(x, max)
    elif max is None:
        bounded = _core.clip_lower(x, min)
    else:
        bounded = _core.clip(x, min, max)
    return bounded


def where(condition, x1=None, x2=None, /, *, size=None, fill_value=None):
    """x1 where the condition holds, else x2; without x1 and x2 the indices at which it holds, nonzero(condition, size, fill_value)."""
    if x1 is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    return _core.where(condition, x1, x2)


def select(conditions, choices, default=0):
    """The first choice whose condition holds."""
    return _core.select([_array(c) for c in conditions], _arrays(choices), default)


def divmod(a, b, /):
    """(floor_divide, remainder)."""
    quotient = _core.floor_divide(a, b)
    few = 4096  # elements for which three more records cost more than another division
    if quotient.dtype.kind not in "iu" or quotient.size < few:
        return quotient, _core.remainder(a, b)
    # One division for both; the remainder of a division by 0 is 0, as NumPy's.
    rest = _core.subtract(a, _core.multiply(quotient, b))
    return quotient, _core.where(_core.equal(b, 0), 0, rest)


def isreal(x):
    """Where the imaginary part is 0."""
    return _core.equal(_core.imag(x), 0)


def iscomplex(x):
    """Where the imaginary part is not 0."""
    return _core.not_equal(_core.imag(x), 0)


def iscomplexobj(x):
    """Whether x has a complex dtype."""
    return _array(x).dtype.kind == "c"


def float_power(a, b):
    """a to the power b; integers become float32."""
    return _core.power(_core.astype(a, _core.float32) if _array(a).dtype.kind in "biu" else a, b)


def logaddexp2(a, b):
    """log2(2^a + 2^b) without overflow."""
    return _core.logaddexp(_core.multiply(a, math.log(2)), _core.multiply(b, math.log(2))) / math.log(2)


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether all elements are close. Collective: reads the answer."""
    return builtins.bool(_core.allclose(a, b, rtol, atol, equal_nan))


def array_equal(a, b, equal_nan=False):
    """Whether shapes and elements are the same, NaN too with equal_nan. Collective: reads the answer."""
    a, b = _arrays([a, b])
    if a.shape != b.shape:
        return False
    same = _core.equal(a, b)
    if equal_nan:
        same = _core.logical_or(same, _core.logical_and(_core.not_equal(a, a), _core.not_equal(b, b)))
    return builtins.bool(_core.all(same))
