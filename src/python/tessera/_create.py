"""Creation of arrays: the standard's functions, NumPy's, and conversion to and from NumPy."""
import re as _re

import numpy as _np

from . import _core
from ._core import eye as _eye, linspace as _linspace
from ._core import Array
from ._device import placed

__all__ = ["array", "asarray", "arange", "empty", "empty_like", "eye", "identity", "from_dlpack", "full", "full_like", "linspace", "ones", "ones_like", "zeros",
           "zeros_like", "device_get", "copy_to_numpy", "logspace", "geomspace", "tri"]


def _array(x, *beside):
    """x as an array. A number, or a list of numbers, has the precision of the arrays beside it: next to float64, 0.1 is not rounded to float32, and next to int64 2**40 is no overflow."""
    if isinstance(x, Array):
        return x
    try:
        made = asarray(x)
    except OverflowError:
        if not any(str(getattr(b, "dtype", "")) in ("int64", "uint64", "float64", "complex128") for b in beside):
            raise
        return asarray(x, dtype=_core.int64)
    wide = {"float32": _core.float64, "complex64": _core.complex128}.get(str(made.dtype))
    if wide is None or not isinstance(x, (float, complex, list, tuple)) or not any(str(getattr(b, "dtype", "")) in ("float64", "complex128") for b in beside):
        return made
    return asarray(x, dtype=wide)


def _arrays(values):
    """The values as arrays beside each other."""
    values = list(values)
    return values if all(isinstance(v, Array) for v in values) else [_array(v, *values) for v in values]


def axis_of(axis, ndim, name):
    """The axis counted from the front; an IndexError where there is none of that number."""
    if not -ndim <= axis < ndim:
        raise _core.errors.IndexError(f"{name} at {_core.here()}: axis {axis} is out of range for an array of {ndim} dimension{'' if ndim == 1 else 's'}; it must be in [{-ndim}, {ndim})")
    return axis % ndim


def refuse_out(name, out):
    """Refuses NumPy's out= unless it is None, because arrays do not share memory."""
    if out is not None:
        raise TypeError(f"{name} at {_core.here()}: there is no memory of an array to write into; leave out= away and write x = {name}(...), or x[...] = {name}(...)")


def words_of(function):
    """The docstring of a binding without the signatures in front of it."""
    return "\n".join(line for line in (function.__doc__ or "").split("\n") if not _re.match(r"(?:\d+\. )?\w+\(.*\) -> |\w+\(\*args, \*\*kwargs\)|Overloaded function", line)).strip()


def _has_arrays(values):
    return any(isinstance(v, Array) or (isinstance(v, (list, tuple)) and _has_arrays(v)) for v in values)


def _numpy_of(values):
    """Converts nested lists to one NumPy array: floats become float32, integers int32, like plain numbers in expressions."""
    try:
        host = _np.asarray(values)
    except ValueError as error:
        raise _core.errors.ShapeError(f"array at {_core.here()}: the lists are ragged: {error}") from None
    if host.dtype == object and host.size and all(type(v) is int for v in host.flat):
        raise OverflowError(f"array at {_core.here()}: integers have at most 64 bits")
    if host.dtype == object:
        raise TypeError(f"array at {_core.here()}: {type(values).__name__} holds what is no number; arrays hold numbers and bools")
    if _holds_numpy(values):
        return host  # what has a dtype of its own keeps it: NumPy's arrays, pandas' and others' by __array__, buffers
    short = {"f": _np.float32, "c": _np.complex64}
    if host.dtype.kind in short:
        return host.astype(short[host.dtype.kind])
    if host.dtype.kind in "iu":
        limits = _np.iinfo(_np.int32)
        if host.size and (host.min() < limits.min or host.max() > limits.max):
            raise OverflowError(f"array at {_core.here()}: integers beyond int32 need a dtype: array(values, dtype=tessera.int64)")
        return host.astype(_np.int32)
    return host


def _is_buffer(value):
    try:
        return memoryview(value) is not None
    except (TypeError, BufferError):
        return False


def _holds_numpy(values):
    """Whether the values, or those in lists, have a dtype of their own."""
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    return hasattr(values, "__array__") or hasattr(values, "__array_interface__") or _is_buffer(values)


def asarray(obj, /, dtype=None, *, device=None, copy=None, sharding=None):
    """An array from numbers, nested lists, NumPy arrays, or objects that export DLPack or a buffer; the same on every process. Placed, if a sharding is given."""
    if isinstance(obj, Array):
        x = obj
        if dtype is not None and x.dtype != dtype:
            if copy is False:
                raise ValueError("asarray: another dtype needs a copy, and copy=False forbids it")
            x = _core.astype(x, dtype)
        elif copy:
            x = _core.copy(x)
    elif isinstance(obj, (list, tuple)) and _has_arrays(obj):
        x = _core.stack(_arrays([asarray(v) if isinstance(v, (list, tuple)) and _has_arrays(v) else v for v in obj]))
        if dtype is not None:
            x = _core.astype(x, dtype)
    else:
        if copy is False:
            raise ValueError("asarray: what comes from outside is copied into tessera's own memory; copy=False cannot be kept")
        if dtype is not None and type(obj) in (bool, int, float, complex):
            x = _from_numbers(obj, _core.dtype(dtype))
        else:
            if hasattr(obj, "__dlpack__") and not isinstance(obj, _np.ndarray):
                return asarray(_from_outside(obj), dtype=dtype, device=device, sharding=sharding)
            wanted = None if dtype is None else _core.dtype(dtype)
            if wanted is not None and not isinstance(obj, (_np.ndarray, _np.generic)) and not _holds_numpy(obj):
                x = _from_numbers(obj, wanted)
            else:
                x = _core.array_from_numpy(_numpy_of(obj))
                if wanted is not None and x.dtype != wanted:
                    x = _core.astype(x, wanted)
    return placed(x, sharding if sharding is not None else device)


def _from_numbers(values, wanted):
    if wanted == _core.bfloat16:  # which NumPy alone cannot make
        return _core.astype(_core.array_from_numpy(_checked_cast(values, _core.float64)), wanted)
    return _core.array_from_numpy(_checked_cast(values, wanted))


def _checked_cast(values, wanted):
    try:
        host = _np.asarray(values)
        if host.dtype.kind in "iu" and wanted.kind in "iu" and host.size:
            limits = _np.iinfo(wanted.dtype)
            if host.min() < limits.min or host.max() > limits.max:
                worst = host.max() if host.max() > limits.max else host.min()
                raise OverflowError(f"array at {_core.here()}: the number {worst} does not fit {wanted}, which holds {limits.min} to {limits.max}")
        return host.astype(wanted.dtype)
    except ValueError as error:
        raise _core.errors.ShapeError(f"array at {_core.here()}: {error}") from None


def array(obj, dtype=None, copy=True, sharding=None, *, ndmin=0):
    """numpy.array: see asarray; with dims of extent 1 in front if it would have fewer than ndmin."""
    x = asarray(obj, dtype=dtype, copy=True if isinstance(obj, Array) and copy else None, sharding=sharding)
    return x if x.ndim >= ndmin else _core.reshape(x, (1,) * (ndmin - x.ndim) + x.shape)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array from an object that exports DLPack. Memory from other libraries is copied."""
    if isinstance(x, Array):
        return placed(_core.copy(x) if copy else x, device)
    if copy is False:
        raise ValueError("from_dlpack: what comes from outside is copied into tessera's own memory; copy=False cannot be kept")
    return asarray(_from_outside(x), device=device)


def _from_outside(x):
    kind, number = x.__dlpack_device__()
    if kind != 1:
        raise BufferError(f"from_dlpack: the memory is on device ({int(kind)}, {number}); only the CPU's can be read")
    try:
        capsule = x.__dlpack__(max_version=(1, 0))  # memory that may only be read is not offered otherwise
    except TypeError:  # older than the keyword
        capsule = x.__dlpack__()
    return _core.from_dlpack_capsule(capsule)


def arange(start, /, stop=None, step=1, dtype=None, *, device=None):
    """start, start + step, ... before stop: int32 of integers, float32 of floats, unless a dtype is given."""
    if stop is None:
        start, stop = 0, start
    are_integers = type(start) is type(stop) is type(step) is int
    if not are_integers:
        start, stop, step = (v.item() if isinstance(v, Array) else v for v in (start, stop, step))
        for v in (start, stop, step):
            if not isinstance(v, (int, float, _np.number, _np.bool_)):
                raise TypeError(f"arange at {_core.here()}: {v!r} ({type(v).__name__}) is no number; start, stop and step are")
        are_integers = all(isinstance(v, (int, _np.integer)) for v in (start, stop, step))
    wanted = _core.dtype(dtype) if dtype is not None else _core.int32 if are_integers else _core.float32
    make = _core.arange_integers if are_integers and wanted.kind in "iu" else _core.arange_floats
    return placed(make(start, stop, step, wanted), device)


def empty(shape, dtype=None, *, device=None):
    """Zeros: memory is never returned with its old contents."""
    return placed(_core.zeros(shape, dtype=dtype or _core.float32), device)


def _like(make, words):
    def function(x, /, dtype=None, *, device=None, shape=None):
        x = asarray(x)
        made = make(x.shape if shape is None else shape, dtype=x.dtype if dtype is None else dtype)
        return placed(made, device)
    function.__doc__ = words
    return function


empty_like = _like(_core.zeros, "Zeros with the shape and dtype of x: memory is not handed out with what it held before.")
zeros_like = _like(_core.zeros, "Zeros with the shape and dtype of x.")
ones_like = _like(_core.ones, "Ones with the shape and dtype of x.")


def full_like(x, /, fill_value, dtype=None, *, device=None, shape=None):
    """The value with the shape and dtype of x."""
    x = asarray(x)
    return placed(_core.full(x.shape if shape is None else shape, fill_value, dtype=x.dtype if dtype is None else dtype), device)


def zeros(shape, dtype=None, *, device=None):
    """Zeros, float32 unless a dtype is given."""
    return placed(_core.zeros(shape, dtype or _core.float32), device)


def ones(shape, dtype=None, *, device=None):
    """Ones, float32 unless a dtype is given."""
    return placed(_core.ones(shape, dtype or _core.float32), device)


def full(shape, fill_value, dtype=None, *, device=None):
    """The value everywhere. A plain number gives int32, float32, bool or complex64, unless a dtype is given."""
    return placed(_core.full(shape, fill_value, dtype), device)


def eye(n_rows, n_cols=None, /, k=0, dtype=None, *, device=None, M=None):
    """Ones on diagonal k. The number of columns is NumPy's M."""
    n_cols = n_cols if M is None else M
    k = max(-n_rows, min(k, n_rows if n_cols is None else n_cols))  # further away there is nothing
    return placed(_eye(n_rows, n_cols, k, dtype or _core.float32), device)


def identity(n, dtype=None):
    """The identity matrix."""
    return eye(n, dtype=dtype)


def _is_number(value):
    return isinstance(value, (int, float, complex, _np.generic))


def _between_arrays(start, stop, num, endpoint, dtype, axis):
    """linspace for each pair of elements, along a new axis; the last value is stop's own."""
    start, stop = _arrays((start, stop))
    start, stop = (v if v.dtype.kind in "fc" else _core.astype(v, _core.float32) for v in (start, stop))
    shape = _core.subtract(stop, start).shape
    start, stop = (_core.expand_dims(_core.broadcast_to(v, shape), 0) for v in (start, stop))
    span = _core.subtract(stop, start)
    parts = max(num - 1 if endpoint else num, 1)
    at = _core.reshape(arange(num), (num,) + (1,) * (span.ndim - 1))
    values = _core.add(start, _core.multiply(span, _core.astype(at, span.dtype) / parts))
    if endpoint and num > 1:
        values = _core.where(_core.equal(at, num - 1), stop, values)
    if dtype is not None:
        values = _core.astype(_core.floor(values) if _core.dtype(dtype).kind in "iu" else values, dtype)
    return values if axis == 0 else _core.moveaxis(values, 0, axis)


def linspace(start, stop, /, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """num values from start to stop, numbers or arrays, along a new axis; with retstep also the distance between them."""
    if retstep:
        parts = num - 1 if endpoint else num
        return linspace(start, stop, num, endpoint, dtype=dtype, device=device), (stop - start) / parts if parts > 0 else _np.nan
    if not (_is_number(start) and _is_number(stop)):
        return placed(_between_arrays(start, stop, num, endpoint, dtype, axis), device)
    if isinstance(start, complex) or isinstance(stop, complex):
        start, stop = complex(start), complex(stop)
        re, im = (_linspace(a, b, num, _core.float64, endpoint) for a, b in ((start.real, stop.real), (start.imag, stop.imag)))
        return placed(_core.astype(_core.make_complex(re, im), dtype or _core.complex64), device)
    return placed(_linspace(float(start), float(stop), num, dtype or _core.float32, endpoint), device)


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """base to the powers of linspace."""
    if not (_is_number(start) and _is_number(stop)):
        values = _core.power(base, linspace(start, stop, num, endpoint, axis=axis))
        return values if dtype is None else _core.astype(values, dtype)
    return _core.astype(_core.power(base, linspace(start, stop, num, endpoint=endpoint, dtype=_core.float64)), dtype or _core.float32)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """num values from start to stop, each the same multiple of the one before."""
    if not (_is_number(start) and _is_number(stop)) or isinstance(start, complex) or isinstance(stop, complex):
        start, stop = _arrays((start, stop))
        if "c" in start.dtype.kind + stop.dtype.kind:  # along the logarithmic spiral from one to the other
            turn = _core.log(_core.divide(stop, start))
            values = _core.multiply(start if axis == 0 else _core.expand_dims(start, axis), _core.exp(linspace(turn * 0.0, turn, num, endpoint, axis=axis)))
            return values if dtype is None else _core.astype(values, dtype)
        sign = _core.sign(start)
        values = _core.multiply(sign if axis == 0 else _core.expand_dims(sign, axis), _core.exp(linspace(_core.log(start * sign), _core.log(stop * sign), num, endpoint, axis=axis)))
        return values if dtype is None else _core.astype(values, dtype)
    if endpoint or num < 1:
        return _core.geomspace(float(start), float(stop), num, dtype or _core.float32)
    longer = _core.geomspace(float(start), float(start) * (float(stop) / float(start)) ** ((num - 1) / num), num, _core.float64)
    return _core.astype(longer, dtype or _core.float32)


def tri(n, m=None, k=0, dtype=None, *, M=None):
    """Ones on and below diagonal k. The number of columns is NumPy's M."""
    m = m if M is None else M
    return _core.tril(ones((n, n if m is None else m), dtype=dtype), k)


def _as_numpy(block):
    """A block as a NumPy array, without a copy; bfloat16 as ml_dtypes' type, or as uint16 without that package."""
    host = _np.asarray(block)
    return host.view(block.dtype.dtype) if block.dtype == _core.bfloat16 else host


def device_get(tree):
    """The whole value as NumPy arrays, on every process. Collective: gathers."""
    from .tree_util import tree_map
    return tree_map(copy_to_numpy, tree)


def copy_to_numpy(x):
    """One array's whole value as a NumPy array of its own. Collective: gathers."""
    return _as_numpy(x._host())
