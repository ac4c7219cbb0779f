"""Values on their way in and out: JAX's types of arrays, NumPy's arrays, numbers and keys as tessera's arrays."""
import functools
import weakref

import jax
import numpy as np
from jax._src import core, dtypes

from .. import _core, _create
from . import _layouts
from .._primitives import like as number_like  # noqa: F401


class NotCarried(NotImplementedError):
    """A primitive, or one of its options, that has no counterpart."""


def refuse(what):
    """Raises the error of what cannot be carried; the line is added where the equation is known."""
    raise NotCarried(what)


@functools.lru_cache(maxsize=None)
def _dtype_named(name):
    return _core.dtype(name)


_accelerators_only = frozenset(("int1", "int2", "int4", "uint1", "uint2", "uint4"))


def dtype(of):
    """NumPy's dtype as tessera's; float0, whose values nobody reads, is bool."""
    if of == dtypes.float0:
        return _dtype_named("bool")
    name = np.dtype(of).name
    if name in _accelerators_only or name.startswith(("float8_", "float6_", "float4_")):
        refuse(f"the dtype {name}, which serves accelerators")
    return _dtype_named(name)


@functools.lru_cache(maxsize=None)
def numpy_dtype(name):
    """tessera's dtype, by its name, as NumPy's."""
    return np.dtype(dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def is_key(aval):
    """Whether it is an array of random keys."""
    return hasattr(aval, "dtype") and jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key)


def key_shape(aval):
    """The extents that a key's bits add behind."""
    return aval.dtype._impl.key_shape


def dtype_of(aval):
    if is_key(aval):
        return _dtype_named("uint32")
    if not hasattr(aval, "dtype"):
        return None
    return dtype(aval.dtype)


def with_dtype(x, aval):
    wanted = dtype_of(aval)
    return x if wanted is None else _core.astype(x, wanted)


def shape_of(aval):
    return tuple(aval.shape) + key_shape(aval) if is_key(aval) else tuple(aval.shape)


def literal(value, aval):
    """A constant of a jaxpr as an array of its type."""
    if not hasattr(aval, "dtype"):
        return value
    if is_key(aval) or np.ndim(value):
        return array_of(value)
    if aval.dtype == dtypes.float0:
        return _core.full((), False, "bool")
    number = np.asarray(value, aval.dtype)
    return scalar(number[()], aval.dtype)


def literal_key(value, aval):
    """The same for constants of a jaxpr with the same bits and type."""
    if not hasattr(aval, "dtype") or is_key(aval) or np.ndim(value) or aval.dtype == dtypes.float0:
        return id(value), str(aval)
    return np.asarray(value, aval.dtype).tobytes(), str(aval)


def reciprocal(x):
    """1 / x."""
    return _core.divide(number_like(1, x), x)


def scalar(number, of):
    """A number as an array without dims."""
    to = dtype(of)
    if to.name in ("bfloat16", "float16"):
        return _core.astype(_core.full((), float(number), "float32"), to)
    return _core.full((), np.asarray(number).item(), to)  # a plain number of any class that stands for one


def _dtype_of_number(value):
    kind = int if isinstance(value, int) else float if isinstance(value, float) else complex
    return dtypes.canonicalize_dtype(np.dtype(kind))


def of_numpy(host):
    """NumPy's array, every rank's alike, as an array."""
    if host.dtype == dtypes.float0:
        return _core.full(host.shape, False, "bool")
    dtype(host.dtype)
    return _create.asarray(np.ascontiguousarray(host) if host.ndim else host)


def alive(x, aval):
    """An array that may be read; of others JAX's own error."""
    if x.is_deleted():
        raise RuntimeError(f"Array has been deleted with shape={aval.str_short()}.")
    return x


def is_no_array(value):
    """Whether JAX has no type for it: an argument that should have been static, or an object that is no tree."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "OSUmM"
    return not isinstance(value, (int, float, complex, jax.Array, _core.Key)) and not hasattr(value, "aval") and _fails(core.shaped_abstractify, value)


def _fails(function, value):
    try:
        function(value)
    except (TypeError, ValueError):
        return True
    return False


def array_of(value):
    """Any value that JAX takes as an array of tessera."""
    if isinstance(value, _core.Array):
        return value
    kept = getattr(value, "__tessera_array__", None)
    if kept is not None:
        return alive(kept, value.aval)
    if isinstance(value, core.Tracer):
        raise TypeError(f"a value of a jax trace cannot enter a tessera program: {value}")
    if hasattr(value, "_base_array"):  # keys
        return array_of(value._base_array)
    if isinstance(value, jax.Array):
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            return array_of(jax.random.key_data(value))
        return of_numpy(np.asarray(value))
    if isinstance(value, bool):
        return _core.full((), value, "bool")
    if isinstance(value, int):
        return scalar(np.asarray(value, of := _dtype_of_number(value))[()], of)  # OverflowError as in JAX
    if isinstance(value, (float, complex)):
        return scalar(value, getattr(value, "dtype", None) or _dtype_of_number(value))
    if isinstance(value, _core.Key):
        return _core.random.key_data(value)
    host = np.asarray(value)
    return of_numpy(host.astype(dtypes.canonicalize_dtype(host.dtype)) if host.dtype != dtypes.float0 else host)


_converted = {}  # id of an array of JAX -> (weak reference to it, the array that it became)


def array_of_argument(value):
    """array_of for arguments that a call only reads: an array of JAX, which does not change, is copied at its first call alone.

    The copy lives as long as JAX's array, and its memory with it.
    """
    if not isinstance(value, jax.Array) or isinstance(value, core.Tracer) or hasattr(value, "__tessera_array__") or value.is_deleted():
        return array_of(value)
    at = id(value)
    reference, array = _converted.get(at, (None, None))
    if reference is not None and reference() is value and not array.is_deleted():  # not another array under the id of a dropped one
        return array
    array = array_of(value)
    _converted[at] = (weakref.ref(value, lambda gone: _forget(at, gone)), array)
    return array


def _forget(at, reference):
    if _converted.get(at, (None,))[0] is reference:
        del _converted[at]


def host(x, of=None):
    """Any value as NumPy's array, of a dtype that JAX has."""
    array = np.asarray(x)
    return array.astype(jax.dtypes.canonicalize_dtype(of or array.dtype), copy=False)


def stand_in(leaf):
    """An array of the type that a leaf only names: zeros, which nobody computes."""
    if not isinstance(leaf, (jax.ShapeDtypeStruct, core.ShapedArray)):
        return leaf
    zeros = _core.zeros(shape_of(leaf), dtype_of(leaf))
    sharding = getattr(leaf, "sharding", None)
    of_mesh = isinstance(sharding, jax.sharding.NamedSharding) and not isinstance(sharding.mesh, jax.sharding.AbstractMesh)
    return _core.device_put_leaf(zeros, _layouts.sharding_of(sharding)) if of_mesh else zeros


def evaluated(compute, *args):
    """compute(*args); where a callback of the program has failed in it, JAX's error, which packages wait for."""
    try:
        return compute(*args)
    except _core.errors.UserError as error:
        raise jax.errors.JaxRuntimeError(str(error)) if type(error) is _core.errors.UserError else error from None


def to_numpy(x):
    """The whole value on every rank. Collective."""
    return _create._as_numpy(evaluated(x._host))
