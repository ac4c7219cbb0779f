"""An array of tessera as JAX's programs expect an array: all of jax.Array's methods and operators, with JAX's types and shardings."""
import jax
import numpy as np
from jax._src import config, core, dtypes
from jax._src.array import ArrayImpl
from jax._src.interpreters import mlir
from jax._src.numpy import array_methods

from .. import _core
from . import _layouts, _values
from ._versions import prng, row_major

try:
    from jax._src.interpreters import xla
except ImportError:  # newer versions have no such table
    xla = None


class ShardedArray(jax.Array):
    """jax.Array whose value is an array of tessera: .__tessera_array__. Reading values is collective over all ranks."""

    __array_priority__ = 100  # as JAX's: NumPy's operators leave array * this to this class

    def __init__(self, x, aval, is_plain=False, spec=None):
        self.__tessera_array__, self.aval = x, aval
        self._plain = x if is_plain else None  # where x says all of it: neither weakly typed nor of a type with a sharding
        self._spec = spec  # as the program has written it
        self._layout = None  # likewise: of a Format
        self._device = config.default_device.value  # where JAX has what is not placed; nothing is computed there alone

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: int(np.prod(self.aval.shape)))
    weak_type = property(lambda self: self.aval.weak_type)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    itemsize = property(lambda self: self.dtype.itemsize)
    sharding = property(lambda self: _layouts.shown_sharding(self.__tessera_array__, self.aval, self._spec, self._device))
    committed = _committed = property(lambda self: self.__tessera_array__.committed)
    is_fully_replicated = property(lambda self: not self.committed or self.__tessera_array__.is_fully_replicated and not _layouts.unreduced_axes(_layouts.typed_sharding_of(self.aval)))
    is_fully_addressable = property(lambda self: True)
    device = property(lambda self: self.sharding if len(self.sharding.device_set) > 1 else next(iter(self.sharding.device_set)))
    format = property(lambda self: row_major(self.ndim, self.sharding, self._layout))
    __numpy_dtype__ = property(lambda self: self.dtype)

    @property
    def _value(self):
        return _values.to_numpy(_values.alive(self.__tessera_array__, self.aval)).astype(self.dtype, copy=False)

    def devices(self):
        return set(self.sharding.device_set)

    @property
    def addressable_shards(self):
        """Those of all devices, alike on every rank: a program without jax.distributed sees one process. Afterwards this rank's."""
        x, axes = self.__tessera_array__, _layouts.unreduced_axes(_layouts.typed_sharding_of(self.aval))
        if axes:
            shown, whole = self.sharding, ShardedArray(x, aval_of(x))
            zeros = ShardedArray(_core.device_put_leaf(_core.zeros(x.shape, x.dtype), x.sharding), whole.aval)
            return [_Shard(s._device, s.index, s.replica_id, whole if _layouts.is_first_along(shown, axes, s.device) else zeros) for s in whole.addressable_shards]
        if _layouts.is_one_process["yes"] and not x.committed and x.is_fully_replicated:  # on JAX's default device, and free to go elsewhere
            return [_Shard(self.device, (slice(None),) * self.ndim, 0, self, x)]
        if _layouts.is_one_process["yes"]:
            return [_Shard(device, index_of(index, x.shape), x.sharding.replica_id(x.shape, device), self)
                    for device, index in x.sharding.devices_indices_map(x.shape).items()]
        return [_Shard(s.device, index_of(s.index, x.shape), s.replica_id, self, s.data) for s in x.addressable_shards]

    global_shards = addressable_shards

    def addressable_data(self, index):
        return self.addressable_shards[index].data

    def block_until_ready(self):
        _values.evaluated(_values.alive(self.__tessera_array__, self.aval).block_until_ready)
        return self

    def is_ready(self):
        """After its ops have run: nothing computes while the program goes on. Collective."""
        self.block_until_ready()
        return True

    def copy_to_host_async(self):
        pass

    def delete(self):
        self.__tessera_array__.delete()

    def is_deleted(self):
        return self.__tessera_array__.is_deleted()

    def on_device_size_in_bytes(self):
        return self.nbytes

    def unsafe_buffer_pointer(self):
        if not self.is_fully_replicated:
            raise ValueError("unsafe_buffer_pointer() is supported only for unsharded arrays.")
        return np.from_dlpack(self.__tessera_array__.addressable_data(0)).ctypes.data

    def __array__(self, dtype=None, copy=None, context=None):
        host = self._value
        if dtype is not None and dtype != host.dtype:
            return host.astype(dtype)
        host.flags.writeable = False  # as JAX's: np.array(x) is one's own
        return host.copy() if copy else host

    def __dlpack__(self, **options):
        return self.__tessera_array__.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def __round__(self, ndigits=None):
        return self.round(0 if ndigits is None else ndigits) if ndigits else jax.numpy.round(self).astype(int)

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        aval = self.aval.update(shape=self.shape[1:], sharding=None)  # JAX's rows are of no mesh, whatever the array's type says
        return (wrapped(_layouts.as_typed(row, aval), aval) for begin in range(0, len(self), 100)  # as JAX: packages ask for iter(x) alone
                for row in _core.unstack(self.__tessera_array__[begin:begin + 100], 0))

    __hash__ = None  # packages ask isinstance(x, Hashable)

    def copy(self):
        """The same memory until this array or that one is donated."""
        return wrapped(self.__tessera_array__._again(), self.aval, spec=self._spec)

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    # JAX's own methods that read ._value, with their errors; what __reduce__ pickles JAX alone reads, too.
    locals().update({n: getattr(ArrayImpl, n) for n in ("__bool__", "__complex__", "__float__", "__format__", "__index__", "__int__", "__len__", "__reduce__",
                                                        "__repr__", "__str__", "tobytes", "tolist")})


def index_of(index, shape):
    """A block's slices as JAX has them: a dim that is not split is slice(None)."""
    return tuple(slice(None) if s.indices(n) == (0, n, 1) else s for s, n in zip(index, shape))


class _Shard:
    """One device's block, in JAX's words."""
    _impl = None  # of keys

    def __init__(self, device, index, replica_id, array, data=None):
        self._device, self.index, self.replica_id, self._array, self._data = device, index, replica_id, array, data

    @property
    def data(self):
        if self._data is None:  # a block of the array, on that device
            self._data = _core.device_put_leaf(self._array.__tessera_array__[tuple(self.index)], _core.SingleDeviceSharding(self._device))
        data = wrapped(self._data, None)
        return data if self._impl is None else prng.PRNGKeyArray(self._impl, data)

    @property
    def device(self):
        return jax.devices()[self._device.id]

    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def _of_keys(shards_of):
    """Blocks of an array of keys: JAX makes them of members of its own class of blocks."""
    def shards(self):
        if type(self._base_array) is not ShardedArray:
            return shards_of(self)
        found = self._base_array.addressable_shards
        for shard in found:
            shard._impl = self._impl
        return found
    return property(shards)


for _name in ("addressable_shards", "global_shards"):
    setattr(prng.PRNGKeyArray, _name, _of_keys(getattr(prng.PRNGKeyArray, _name).fget))
array_methods._set_array_base_attributes(ShardedArray, exclude={n for n in vars(ShardedArray) if n not in ("__module__", "__doc__", "__dict__", "__weakref__")})
core.pytype_aval_mappings[ShardedArray] = lambda x: x.aval


def _register(kind, as_value):
    """How JAX makes a value of its own of an object that it is handed, by the table of its version."""
    register = getattr(dtypes, "register_canonicalize_value_handler", None)
    if register is not None:
        return register(kind, as_value)
    for module in (dtypes, core, xla):
        for name in ("canonicalize_value_handlers", "canonicalize_dtype_handlers"):
            if hasattr(module, name):
                getattr(module, name)[kind] = as_value


def is_ours(value):
    return type(value) is ShardedArray or type(value) is _core.Array or getattr(value, "_base_array", None).__class__ is ShardedArray


def spec_of(value):
    """The spec of an array, or of one of keys, as the program has written it; of all others None."""
    return getattr(getattr(value, "_base_array", value), "_spec", None)


def aval_of(x):
    return core.ShapedArray(tuple(x.shape), _values.numpy_dtype(x.dtype.name))


def wrapped(x, aval, is_plain=False, spec=None):
    """An array of tessera as JAX's: of keys a key array of JAX, of cotangents of integers an array of NumPy."""
    if not isinstance(x, _core.Array):
        return x
    if aval is not None and aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    if aval is not None and _values.is_key(aval):
        bits = aval_of(x) if _layouts.typed_sharding_of(aval) is None else core.physical_aval(aval)
        return prng.PRNGKeyArray(aval.dtype._impl, ShardedArray(_layouts.whole_from(x, len(aval.shape)), bits, spec=spec))
    return ShardedArray(x, aval_of(x) if aval is None else aval, is_plain, spec)


_core.Array._plain = property(lambda self: self)
# A function of jax.numpy takes a tessera array for what it stands for.
_core.Array.__jax_array__ = lambda self: ShardedArray(self, aval_of(self))
core.pytype_aval_mappings[_core.Array] = lambda x: aval_of(x)
_register(ShardedArray, lambda x: x)
mlir.register_constant_handler(ShardedArray, lambda x, *_: mlir.ir_constant(x._value))  # what a function captures, in JAX's text of it
_register(_core.Array, lambda x: ShardedArray(x, aval_of(x)))
# jax.numpy's *_like asks an array for its sharding: a tessera array's does not hold for what is like it.
_core.Array._committed = property(lambda self: False)
_core.Sharding._is_concrete = True
