"""Array's methods besides operators: NumPy's methods, the standard's protocols, and its text and picture."""
import contextlib as _contextlib

import numpy as _np

from . import _core, _create, _standard
from ._core import Array
from ._device import placed
from ._derived import around
from ._views import linked, rows_of

_shown_elements = 1000


def _array_namespace(self, /, *, api_version=None):
    """The module with the standard's functions."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"the array API standard {api_version} is not implemented; 2024.12 is")
    import tessera
    return tessera


_gatherings = 0


@_contextlib.contextmanager
def gathering():
    """Inside this scope, requests for an array's memory (numpy.asarray, memoryview, __dlpack__, pickle, SciPy's C functions) get the complete value.

    For libraries that do not know split arrays: with tessera.gathering(): y = scipy.signal.lfilter(b, a, x). Every such request is
    collective over all ranks and gathers x everywhere, so that all ranks make the same calls. Results are NumPy's, or uncommitted arrays.
    """
    global _gatherings
    _gatherings += 1
    try:
        yield
    finally:
        _gatherings -= 1


def _is_whole_here(x):
    """Whether this process holds all of it."""
    return not x.committed or x.is_fully_replicated or x.sharding.num_devices == 1 and _core.process_count() == 1


def _block(self, call, refusal=TypeError):
    if self._traced:
        str(self)  # raises where the trace has ended
        raise _core.errors.ArgumentError(f"{call} at {_core.here()}: the array belongs to a function that is being traced and has no value yet; "
                                         "return it, or use lax.cond, where and debug.print")
    if not _is_whole_here(self):
        if _gatherings or self.is_deleted():  # the latter is refused
            return self._host()
        raise refusal(f"{call} at {_core.here()}: the array {self.shape} is split over {self.sharding.num_devices} devices ({self.sharding.spec}), "
                        "and its memory would have to be gathered: ask for that with tessera.device_get(x), or for all that a library does, "
                      "with tessera.gathering(): ...; or take this process's block, x.addressable_shards[0].data")
    return self._local()


def _array_protocol(self, dtype=None, copy=None):
    """numpy.asarray(x): this process's memory without a copy if it holds all of x; otherwise a TypeError."""
    host = _create._as_numpy(_block(self, "numpy.asarray"))
    if dtype is not None and host.dtype != _np.dtype(dtype):
        return host.astype(dtype)
    return host.copy() if copy else host


def _dlpack(self, /, *, stream=None, max_version=None, dl_device=None, copy=None):
    """This process's memory without a copy, for arrays that it holds completely. A consumer of DLPack 1.0 (max_version) gets a read-only flag; an older one, which has no such flag,
    gets a copy, or a BufferError with copy=False."""
    if stream is not None:
        raise ValueError("__dlpack__: memory of the CPU has no streams")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"__dlpack__: arrays are in the memory of the CPU, not on device {dl_device}")
    block = _block(self, "__dlpack__", BufferError)
    versioned = max_version is not None and tuple(max_version) >= (1, 0)
    if copy is False and not versioned:
        raise BufferError("__dlpack__: arrays do not change, which DLPack says since 1.0: ask with max_version=(1, 0), or allow a copy")
    return (block._copy() if copy or not versioned else block)._dlpack(versioned)


def _dlpack_device(self):
    return (1, 0)


def _shown(self):
    return _core.astype(self, _core.float32) if self.dtype == _core.bfloat16 else self


def _values(self):
    if self._traced:
        return None
    if self.size > _shown_elements:
        return None
    return _np.array2string(_np.asarray(_shown(self)._host()), separator=", ", prefix="Array(")


def _repr(self):
    """Values of small arrays, dtype and sharding. Collective over all ranks, like print."""
    if self.is_deleted():
        return "Array(deleted)"
    values = _values(self)
    facts = [f"shape={self.shape}"] if values is None else [values]
    if values is not None and self.size == 0:
        facts.append(f"shape={self.shape}")
    facts.append(f"dtype={self.dtype}")
    if self.committed and self.sharding.num_devices > 1:
        facts.append(f"sharding={self.sharding.spec}")
    if self._traced:
        str(self)
        facts.append("traced")
    return f"Array({', '.join(facts)})"


def _repr_html(self):
    """The picture of the sharding, above the values."""
    import html
    picture = _core.debug.sharding_html(self.shape, self.sharding) if self.ndim else ""
    return f"{picture}<pre>{html.escape(repr(self))}</pre>"


def _iter(self):
    if self.ndim == 0:
        raise TypeError("an array without dimensions cannot be iterated over")
    return rows_of(self)


def _memory(self):
    """The block that memoryview(x) shows. bfloat16 has no letter there: NumPy asks for __array__ then."""
    if self.dtype == _core.bfloat16:
        raise BufferError("bfloat16 has no format of Python's buffers; take tessera.astype(x, tessera.float32)")
    return _block(self, "memoryview", BufferError)


def _to_device(self, device, /, *, stream=None):
    """The array on a device, or on a sharding; all_devices() changes nothing."""
    return placed(self, device)


_only_item = Array.item


def _item(self, *index):
    """The one element of an array of size 1, or the element at an index, row-major or one for each dim, as a Python number. Collective over all ranks."""
    index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
    if not index:
        return _only_item(self)
    return _only_item(self[tuple(index)] if len(index) == self.ndim else _core.reshape(self, (-1,))[index])


def _view(self, dtype):
    """The same bytes as another dtype: the last extent changes with the size of an element. A new array, like all results."""
    return linked(_with_bytes_as(self, _core.dtype(dtype)), self)


def _with_bytes_as(self, wanted):
    if wanted.itemsize == self.dtype.itemsize:
        return _core.bitcast_convert_type(self, wanted)
    if self.ndim == 0 or self.shape[-1] * self.dtype.itemsize % wanted.itemsize:
        raise ValueError(f"view at {_core.here()}: the last dim of {tuple(self.shape)} {self.dtype} is no multiple of the {wanted.itemsize} bytes of {wanted}")
    if wanted.itemsize < self.dtype.itemsize:
        return _core.reshape(_core.bitcast_convert_type(self, wanted), (*self.shape[:-1], -1))
    return _core.bitcast_convert_type(_core.reshape(self, (*self.shape[:-1], -1, wanted.itemsize // self.dtype.itemsize)), wanted)


def _reshape(self, *shape, order="C", copy=None):
    return linked(_standard.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape, order), self)


def _transpose(self, *axes):
    axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return linked(_core.transpose(self, list(axes)) if axes else _core.transpose(self), self)


def _contains(self, value):
    return bool(_core.any(_core.equal(self, value)))


Array.__array_namespace__ = _array_namespace
Array.__array__ = _array_protocol
Array.__array_priority__ = 100
Array.__dlpack__, Array.__dlpack_device__ = _dlpack, _dlpack_device
Array.__repr__, Array._repr_html_ = _repr, _repr_html
Array.__iter__, Array.__contains__ = _iter, _contains
Array.to_device, Array._memory = _to_device, _memory
Array.reshape, Array.transpose = _reshape, _transpose
Array.T = property(lambda self: linked(_core.transpose(self), self), doc="The dims in reverse order.")
Array.mT = property(lambda self: _standard.matrix_transpose(self))
Array.real, Array.imag = property(lambda self: _standard.real(self)), property(lambda self: _standard.imag(self))
Array.flatten = Array.ravel = lambda self, order="C": _standard.ravel(self, order)
Array.compress = lambda self, condition, axis=None: _standard.compress(condition, self, axis)
Array.choose = lambda self, choices, mode="clip": _core.choose(self, [_create._array(c) for c in choices], mode)
Array.item, Array.view = _item, _view
Array.tolist = lambda self: _np.asarray(_shown(self)._host()).tolist()
Array.copy = lambda self: _core.copy(self)
Array.addressable_data = lambda self, index=0: self.addressable_shards[index].data
Array.__copy__ = Array.__deepcopy__ = lambda self, *_: _core._handle(self)  # the value never changes, the handle may be bound anew
Array.__divmod__ = lambda self, other: _standard.divmod(self, other)
Array.__rdivmod__ = lambda self, other: _standard.divmod(other, self)
Array.__round__ = lambda self, digits=0: around(self, digits or 0)

def _method(function):
    """The function as a method: functions of the binding do not take self by themselves."""
    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)
    method.__name__, method.__doc__ = function.__name__, function.__doc__
    return method


for _name in ("astype", "sum", "prod", "mean", "max", "min", "all", "any", "var", "std", "ptp", "argmax", "argmin", "cumsum", "cumprod", "squeeze", "swapaxes", "take", "repeat",
              "clip", "sort", "argsort", "diagonal", "trace", "nonzero", "searchsorted", "round", "conj", "dot"):
    _function = getattr(_standard, _name, None) or getattr(_core, _name)
    setattr(Array, _name, _function if hasattr(_function, "__get__") else _method(_function))
Array.conjugate = Array.conj
