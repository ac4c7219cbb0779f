"""JAX's primitives by lax's names and with lax's meaning, where that differs from NumPy's: quotients of integers are truncated, halves are rounded away from zero, scans go along dim 0."""
import builtins
import enum
import functools
import string

from . import _core, _standard
from ._create import _array, axis_of, empty, words_of  # noqa: F401

add, sub, mul, neg = _core.add, _core.subtract, _core.multiply, _core.negative
abs, sign, floor, ceil, exp, exp2, log, log1p, expm1 = (getattr(_core, n) for n in "abs sign floor ceil exp exp2 log log1p expm1".split())  # noqa: A001
sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh, atanh = (
    getattr(_core, n) for n in "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh".split())
sqrt, rsqrt, cbrt, square, reciprocal, erf, erfc, erf_inv, lgamma, digamma, logistic = (
    getattr(_core, n) for n in "sqrt rsqrt cbrt square reciprocal erf erfc erf_inv lgamma digamma sigmoid".split())
igamma, igammac, betainc, zeta, polygamma, bessel_i0e, bessel_i1e = (getattr(_core, n) for n in "igamma igammac betainc zeta polygamma i0e i1e".split())
max, min, eq, ne, lt, le, gt, ge = (getattr(_core, n) for n in "maximum minimum equal not_equal less less_equal greater greater_equal".split())  # noqa: A001
bitwise_and, bitwise_or, bitwise_xor, bitwise_not = _core.bitwise_and, _core.bitwise_or, _core.bitwise_xor, _core.bitwise_invert
bitcast_convert_type, population_count, shift_left, shift_right_arithmetic = _core.bitcast_convert_type, _core.population_count, _core.bitwise_left_shift, _core.bitwise_right_shift
real, imag, conj, complex, nextafter, pow = _core.real, _core.imag, _core.conj, _core.make_complex, _core.nextafter, _core.power  # noqa: A001
is_finite, top_k, approx_max_k, batch_matmul = _core.isfinite, _core.top_k, _core.top_k, _core.matmul
squeeze, expand_dims, transpose, tile = _core.squeeze, _standard.expand_dims, _standard.permute_dims, _core.tile
stack, unstack = _core.stack, _core.unstack


class RoundingMethod(enum.IntEnum):
    """What lax.round does with halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def like(number, x):
    """A number in the dtype of x, as an array. DtypeError for a fraction beside integers."""
    if isinstance(number, float) and x.dtype.kind in "iub" and not number.is_integer():
        raise _core.errors.DtypeError(f"lax at {_core.here()}: the number {number} does not fit {x.dtype}; give the array a floating dtype, or take an integer")
    return _core.astype(_core.full((), number, _core.float32), x.dtype) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else _core.full((), number, x.dtype)


def _pair(a, b):
    """Two operands as arrays; a plain number takes the other's dtype."""
    if not isinstance(a, _core.Array) and isinstance(b, _core.Array):
        return like(a, b) if isinstance(a, (int, float)) else _array(a, b), b
    a = _array(a)
    return a, like(b, a) if isinstance(b, (int, float)) else _array(b, a)


# ---- arithmetic ----
def div(a, b):
    """a / b; of integers the quotient towards zero, and -1 (all bits) by 0."""
    a, b = _pair(a, b)
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
        return _core.divide(a, b)
    zero, quotient = like(0, a), _core.floor_divide(a, b)
    if a.dtype.kind == "i":
        rest = _core.subtract(a, _core.multiply(quotient, b))
        opposite = _core.not_equal(_core.less(a, zero), _core.less(b, zero))
        quotient = _core.add(quotient, _core.astype(_core.bitwise_and(_core.not_equal(rest, zero), opposite), a.dtype))
    return _core.where(_core.equal(b, zero), _core.bitwise_invert(zero), quotient)


def rem(a, b):
    """What div leaves over, with the sign of a (C's %, fmod); a for integers by 0."""
    a, b = _pair(a, b)
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
        return _core.fmod(a, b)
    zero = like(0, a)
    return _core.where(_core.equal(b, zero), a, _core.subtract(a, _core.multiply(div(a, b), b)))


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):  # noqa: A001
    """The nearest integers; halves go away from zero, or to the even one."""
    x = _array(x)
    if int(rounding_method) == RoundingMethod.TO_NEAREST_EVEN:
        return _core.round(x)
    size = _core.abs(x)
    down = _core.floor(size)
    away = _core.where(_core.greater_equal(_core.subtract(size, down), like(0.5, x)), _core.add(down, like(1, x)), down)
    wide = _core.astype(away, _core.float32) if x.dtype.itemsize == 2 else away
    return _core.where(_core.isfinite(x), _core.astype(_core.copysign(wide, _core.astype(x, wide.dtype)), x.dtype), x)


def integer_pow(x, y):
    """x to an integer power."""
    return _core.power(x, int(y))


def mulhi(a, b):
    """The upper half of the product of two integers of 8 to 32 bits."""
    a, b = _pair(a, b)
    bits = a.dtype.itemsize * 8
    wide = _core.dtype("int64" if a.dtype.kind == "i" else "uint64")
    if bits == 64:
        raise _core.errors.DtypeError(f"mulhi at {_core.here()}: there are no integers wider than {a.dtype}; take integers of at most 32 bits")
    return _core.astype(_core.bitwise_right_shift(_core.multiply(_core.astype(a, wide), _core.astype(b, wide)), like(bits, _core.full((), 0, wide))), a.dtype)


def clamp(low, x, high):
    """minimum(maximum(x, low), high)."""
    return _core.clip(x, low, high)


# ---- bits ----
def _unsigned(x):
    return _core.bitcast_convert_type(x, f"uint{x.dtype.itemsize * 8}")


def shift_right_logical(a, b):
    """a shifted to the right by b bits, zeros in front."""
    a, b = _pair(a, b)
    return _core.bitwise_right_shift(a, b) if a.dtype.kind == "u" else _core.bitcast_convert_type(_core.bitwise_right_shift(_unsigned(a), _unsigned(b)), a.dtype)


def clz(x):
    """The number of zeros in front of the first bit that is set."""
    bits = _unsigned(x)  # every bit behind the first one is set, and the rest counted
    size, step = x.dtype.itemsize * 8, 1
    while step < size:
        bits = _core.bitwise_or(bits, _core.bitwise_right_shift(bits, like(step, bits)))
        step *= 2
    return _core.bitcast_convert_type(_core.subtract(like(size, bits), _core.astype(_core.population_count(bits), bits.dtype)), x.dtype)


_formats = {"float32": (8, 23, "uint32"), "float64": (11, 52, "uint64"), "bfloat16": (8, 7, "uint16"), "float16": (5, 10, "uint16")}


def reduce_precision(x, exponent_bits, mantissa_bits):
    """x rounded to nearest even as a format of that many bits would hold it: XLA's steps on the bits."""
    exponent, mantissa, name = _formats[x.dtype.name]
    if (exponent_bits, mantissa_bits) == (exponent, mantissa):
        return x
    bits = _core.bitcast_convert_type(x, name)
    if mantissa_bits < mantissa:
        cut = mantissa - mantissa_bits
        last = _core.bitwise_and(_core.bitwise_right_shift(bits, like(cut, bits)), like(1, bits))
        bits = _core.add(bits, _core.add(last, like(2 ** (cut - 1) - 1, bits)))
        bits = _core.bitwise_and(bits, like((2 ** (exponent + mantissa + 1) - 1) ^ (2 ** cut - 1), bits))
    if exponent_bits < exponent:
        bias, small = 2 ** (exponent - 1) - 1, 2 ** (exponent_bits - 1) - 1
        sign = _core.bitwise_and(bits, like(2 ** (exponent + mantissa), bits))
        size = _core.bitwise_and(bits, like((2 ** exponent - 1) << mantissa, bits))
        infinite = _core.bitwise_or(sign, like((2 ** exponent - 1) << mantissa, bits))
        bits = _core.where(_core.greater(size, like((bias + small) << mantissa, bits)), infinite,
                           _core.where(_core.less_equal(size, like((bias - small) << mantissa, bits)), sign, bits))
    return _core.where(_core.isnan(x), x, _core.bitcast_convert_type(bits, x.dtype))


# ---- dtypes and creation ----
def convert_element_type(x, dtype):
    """x with elements of another dtype."""
    return _core.astype(x, dtype)


def iota(dtype, size):
    """0, 1, ... size - 1."""
    return _core.arange_integers(0, size, 1, dtype) if _core.dtype(dtype).kind in "iu" else _core.arange_floats(0, size, 1, dtype)


def full(shape, value, dtype=None):
    """The value everywhere."""
    return _core.full(shape, value, dtype)


def full_like(x, fill_value, dtype=None, shape=None):
    """The value with the shape and dtype of x."""
    return _core.full(x.shape if shape is None else shape, fill_value, dtype or x.dtype)


def broadcasted_iota(dtype, shape, dimension):
    """0, 1, ... along a dim of a shape."""
    return broadcast_in_dim(iota(dtype, shape[dimension]), shape, (dimension,))


# ---- shapes ----
def broadcast_shapes(*shapes):
    """The shape to which shapes broadcast."""
    return tuple(_standard.broadcast_shapes(*shapes))


def reshape(x, new_sizes, dimensions=None):
    """x, transposed to the order `dimensions`, in another shape."""
    return _core.reshape(x if dimensions is None else _core.transpose(x, list(dimensions)), new_sizes)


def concatenate(operands, dimension=0, *, axis=None):
    """The operands one after the other along a dim."""
    return _standard.concatenate(list(operands), dimension if axis is None else axis)


def split(x, sizes, axis=0):
    """x in parts of these sizes along an axis."""
    axis, ends = axis_of(axis, x.ndim, "split"), [builtins.sum(sizes[:n]) for n in range(len(sizes) + 1)]
    if ends[-1] != x.shape[axis]:
        raise _core.errors.ShapeError(f"split at {_core.here()}: the sizes add up to {ends[-1]}, but dimension {axis} has the extent {x.shape[axis]}")
    return [slice_in_dim(x, start, stop, 1, axis) for start, stop in zip(ends, ends[1:])]


def broadcast(x, sizes):
    """x repeated along new leading dims."""
    return _core.broadcast_to(x, (*sizes, *x.shape))


def broadcast_in_dim(x, shape, broadcast_dimensions):
    """x broadcast to a shape; broadcast_dimensions gives the positions of its dims."""
    extents = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions):
        extents[d] = n
    return _core.broadcast_to(_core.reshape(x, extents), shape)


def collapse(x, start_dimension, stop_dimension=None):
    """Merges neighbouring dims to one."""
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(x.ndim)
    return _core.reshape(x, (*x.shape[:start], -1, *x.shape[stop:]))


def rev(x, dimensions):
    """x reversed along the dims."""
    return _core.flip(x, dimensions)


# ---- parts ----
def _from_end(start, n):
    """JAX counts a negative start from the end."""
    return (start + n if start < 0 else start) if isinstance(start, int) else _core.where(_core.less(start, like(0, start)), _core.add(start, like(n, start)), start)


def _begin(x, starts):
    parts = starts if isinstance(starts, (list, tuple)) else [starts[d] for d in range(x.ndim)]
    return [_from_end(s if isinstance(s, int) else _array(s), n) for s, n in zip(parts, x.shape)]


def dynamic_slice(x, start_indices, slice_sizes):
    """x[start : start + size] in each dim; a negative start counts from the end, and a start is clamped so that the part is inside."""
    return _core.dynamic_slice(x, _begin(x, start_indices), slice_sizes)


def dynamic_update_slice(x, update, start_indices):
    """x with the part that begins at the indices replaced by update; starts as for dynamic_slice."""
    return _core.dynamic_update_slice(x, update, _begin(x, start_indices))


def _starts(x, start, axis, name):
    axis = axis_of(axis, x.ndim, name)
    return _begin(x, [start if a == axis else 0 for a in range(x.ndim)])


def dynamic_slice_in_dim(x, start_index, slice_size, axis=0):
    """x[start : start + size] along an axis."""
    return _core.dynamic_slice(x, _starts(x, start_index, axis, "dynamic_slice_in_dim"), [slice_size if a == axis % x.ndim else n for a, n in enumerate(x.shape)])


def dynamic_index_in_dim(x, index, axis=0, keepdims=True):
    """x[index] along an axis."""
    taken = dynamic_slice_in_dim(x, index, 1, axis)
    return taken if keepdims else _core.squeeze(taken, axis)


def dynamic_update_slice_in_dim(x, update, start_index, axis):
    """x with update at x[start : start + size] along an axis."""
    return _core.dynamic_update_slice(x, update, _starts(x, start_index, axis, "dynamic_update_slice_in_dim"))


def dynamic_update_index_in_dim(x, update, index, axis):
    """x with update at x[index] along an axis."""
    update = _core.expand_dims(update, axis) if update.ndim < x.ndim else update
    return dynamic_update_slice_in_dim(x, update, index, axis)


def slice_in_dim(x, start, limit, stride=1, axis=0):
    """x[start:limit:stride] along an axis."""
    return x[(builtins.slice(None),) * axis_of(axis, x.ndim, "slice_in_dim") + (builtins.slice(start, limit, stride),)]


def slice(x, start_indices, limit_indices, strides=None):  # noqa: A001
    """x[start:limit:stride] in each dim."""
    steps = strides or [1] * x.ndim
    return x[tuple(builtins.slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, steps))]



def index_in_dim(x, index, axis=0, keepdims=True):
    """x[index] along an axis."""
    axis = axis_of(axis, x.ndim, "index_in_dim")
    n = x.shape[axis]
    if not -n <= index < n:
        raise _core.errors.IndexError(f"index_in_dim at {_core.here()}: index {index} is out of bounds for dimension {axis} of shape {tuple(x.shape)}")
    taken = slice_in_dim(x, index % n, index % n + 1, 1, axis)
    return taken if keepdims else _core.squeeze(taken, axis)


def index_take(x, indices, axes):
    """The slices of x at index arrays along axes; their dims stand first."""
    front = list(axes) + [d for d in range(x.ndim) if d not in axes]
    return _core.transpose(x, front)[tuple(indices)]


# ---- choices and orders ----
def select(condition, on_true, on_false):
    """on_true where the condition holds, else on_false."""
    return _core.where(condition, on_true, on_false)


def select_n(which, *cases):
    """cases[which] element by element; a bool chooses among two. A number out of range takes the nearest case."""
    which, cases = _array(which), [_array(c) for c in cases]
    if which.dtype.kind == "b":
        if len(cases) != 2:
            raise _core.errors.ArgumentError(f"select_n at {_core.here()}: a bool chooses among two cases, not {len(cases)}")
        return _core.where(which, cases[1], cases[0])
    result = cases[-1]
    for n in range(len(cases) - 2, -1, -1):
        result = _core.where(_core.less_equal(which, like(n, which)), cases[n], result)
    return _core.broadcast_to(result, cases[0].shape)


def sort(operand, dimension=-1, is_stable=True, num_keys=1, *, axis=None, descending=False):
    """Sorted along a dim; of several operands, all are put into the order of the first num_keys."""
    dimension = dimension if axis is None else axis
    if not isinstance(operand, (list, tuple)):
        return _core.sort(operand, dimension, descending=descending)
    order = None
    for key in reversed(operand[:num_keys]):
        step = _core.argsort(key if order is None else _core.take_along_axis(key, order, dimension), dimension)
        order = step if order is None else _core.take_along_axis(order, step, dimension)
    return tuple(_core.take_along_axis(x, order, dimension) for x in operand)


def sort_key_val(keys, values, dimension=-1, is_stable=True):
    """(keys sorted, values in the same order)."""
    return sort((keys, values), dimension)


def approx_min_k(x, k, reduction_dimension=-1, **_):
    """The k smallest elements along a dim and their indices, exactly."""
    places = slice_in_dim(_core.argsort(x, reduction_dimension), 0, k, 1, reduction_dimension)
    return _core.take_along_axis(x, places, reduction_dimension), places


def argmax(x, axis, index_dtype=_core.int32):
    """The index of the largest element along an axis."""
    return _core.astype(_core.argmax(x, axis, False), index_dtype)


def argmin(x, axis, index_dtype=_core.int32):
    """The index of the smallest element along an axis."""
    return _core.astype(_core.argmin(x, axis, False), index_dtype)


# ---- reductions and scans ----
def _over_axes(function):
    def reduce(x, axes=None):
        return function(x, axes, False)
    reduce.__doc__ = words_of(function)
    return reduce


reduce_sum, reduce_max, reduce_min, reduce_prod, reduce_and, reduce_or = (_over_axes(f) for f in (_core.sum, _core.max, _core.min, _core.prod, _core.all, _core.any))


def reduce_xor(x, axes):
    """The exclusive or of the elements along axes: the parity of each bit."""
    if x.dtype.kind == "b":
        return _core.equal(_core.remainder(_core.sum(x, list(axes), False), 2), 1)
    bits = range(x.dtype.itemsize * 8)
    odd = [_core.bitwise_and(_core.sum(_core.bitwise_and(shift_right_logical(x, like(n, x)), like(1, x)), list(axes), False), like(1, x)) for n in bits]
    return functools.reduce(_core.bitwise_or, [_core.bitwise_left_shift(_core.astype(o, x.dtype), like(n, x)) for n, o in enumerate(odd)])


def reduce(operand, init_value, computation, dimensions):
    """The elements along dims combined by a function that is associative and commutative, and init_value with them."""
    known = {add: _core.sum, mul: _core.prod, max: _core.max, min: _core.min, bitwise_and: _core.all, bitwise_or: _core.any}
    if computation in known and (computation in (add, mul, max, min) or operand.dtype.kind == "b"):
        if builtins.any(operand.shape[d] == 0 for d in dimensions):
            return _core.full([n for d, n in enumerate(operand.shape) if d not in dimensions], init_value, operand.dtype)
        return _core.astype(computation(known[computation](operand, list(dimensions), False), init_value), operand.dtype)
    for d in sorted((d % operand.ndim for d in dimensions), reverse=True):
        operand = _combined(_core.moveaxis(operand, d, 0), computation)
    initial = _core.full((), init_value, operand.dtype) if not isinstance(init_value, _core.Array) else init_value
    return computation(operand, initial) if operand is not None else initial


def _combined(rows, computation):
    """All rows combined in a tree, half of them at a time."""
    while rows.shape[0] > 1:
        half = rows.shape[0] // 2
        pairs = computation(rows[:half], rows[half:2 * half])
        rows = pairs if rows.shape[0] % 2 == 0 else _standard.concatenate([pairs, rows[2 * half:]], 0)
    return rows[0]


def _scan_along(function):
    def scan(x, axis=0, reverse=False):
        return function(x, axis, reverse=True) if reverse else function(x, axis)
    scan.__doc__ = words_of(function)
    return scan


cumsum, cumprod, cummax, cummin, cumlogsumexp = (_scan_along(f) for f in (_core.cumsum, _core.cumprod, _core.cummax, _core.cummin, _core.cumlogsumexp))


# ---- products ----
def dot(a, b):
    """The product of matrices or vectors."""
    return _core.dot(a, b)


def contract(a, b, dimension_numbers):
    """The product over pairs of dims: batch dims first, then a's rest, then b's."""
    (ca, cb), (ba, bb) = dimension_numbers
    letters = iter(string.ascii_letters)
    names_a, names_b = [None] * a.ndim, [None] * b.ndim
    batch = []
    for i, j in zip(ba, bb):
        names_a[i] = names_b[j] = next(letters)
        batch.append(names_a[i])
    for i, j in zip(ca, cb):
        names_a[i] = names_b[j] = next(letters)
    rest_a = [d for d in range(a.ndim) if names_a[d] is None]
    rest_b = [d for d in range(b.ndim) if names_b[d] is None]
    for d in rest_a:
        names_a[d] = next(letters)
    for d in rest_b:
        names_b[d] = next(letters)
    if not ba and len(ca) == 1 and a.ndim == 2 and b.ndim == 2 and ca[0] == 1 and cb[0] == 0:
        return _core.matmul(a, b)
    result = batch + [names_a[d] for d in rest_a] + [names_b[d] for d in rest_b]
    if not ca:
        wide_a = [a.shape[d] for d in ba] + [a.shape[d] for d in rest_a] + [1] * len(rest_b)
        wide_b = [b.shape[d] for d in bb] + [1] * len(rest_a) + [b.shape[d] for d in rest_b]
        return _core.multiply(_core.reshape(_core.transpose(a, [*ba, *rest_a]) if a.ndim else a, wide_a), _core.reshape(_core.transpose(b, [*bb, *rest_b]) if b.ndim else b, wide_b))
    return _core.einsum_of(f"{''.join(names_a)},{''.join(names_b)}->{''.join(result)}", [a, b])


def dot_general(a, b, dimension_numbers, precision=None, preferred_element_type=None, **_):
    """The product over pairs of contracting dims, for each of pairs of batch dims: ((a's contracting, b's), (a's batch, b's)). The result has the batch dims, a's and b's others."""
    if preferred_element_type is not None:
        a, b = _core.astype(a, preferred_element_type), _core.astype(b, preferred_element_type)
    return contract(a, b, dimension_numbers)


def ragged_dot(lhs, rhs, group_sizes, precision=None, preferred_element_type=None, **_):
    """Runs of rows of lhs, of these sizes, each times its own matrix of rhs; zero behind the last run."""
    ends = _core.cumsum(group_sizes, 0)
    rows = _core.expand_dims(_core.arange_integers(0, lhs.shape[0], 1, ends.dtype), 0)
    ends = _core.expand_dims(ends, 1)
    inside = _core.bitwise_and(_core.less(rows, ends), _core.greater_equal(rows, _core.subtract(ends, _core.expand_dims(group_sizes, 1))))
    spread = _core.multiply(_core.expand_dims(lhs, 0), _core.expand_dims(_core.astype(inside, lhs.dtype), -1))
    return dot_general(spread, rhs, (((0, 2), (0, 1)), ((), ())), preferred_element_type=preferred_element_type)


# ---- other ----
class FftType(enum.IntEnum):
    """The transforms of lax.fft."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x, fft_type, fft_lengths):
    """The transform of the last dims, of these lengths."""
    from . import fft as transforms
    kind = fft_type.upper() if isinstance(fft_type, str) else FftType(fft_type).name
    return getattr(transforms, kind.lower() + "n")(x, s=list(fft_lengths), axes=list(range(-len(fft_lengths), 0)))


def optimization_barrier(operand):
    """The operand."""
    return operand


def rng_uniform(a, b, shape):
    """Numbers between a and b that depend on nothing else. tessera.random.uniform has keys."""
    from . import random
    return random.uniform(random.key(0), shape, minval=a, maxval=b)


__all__ = [n for n in globals() if not n.startswith("_") and n not in ("builtins", "enum", "functools", "string", "words_of", "like", "contract")]
