"""NumPy's names around arrays: files by one name, rows and columns between brackets, kinds of dtypes, host data."""
import pathlib

import numpy as _np

from . import _core
from ._create import _array, _arrays, asarray

__all__ = ["array_repr", "array_str", "c_", "complexfloating", "einsum_path", "floating", "frombuffer", "fromiter", "generic", "inexact", "integer", "issubdtype", "load", "number", "r_", "save",
           "savez", "signedinteger", "unsignedinteger"]

generic, number, integer, signedinteger, unsignedinteger = _np.generic, _np.number, _np.integer, _np.signedinteger, _np.unsignedinteger
inexact, floating, complexfloating = _np.inexact, _np.floating, _np.complexfloating


def issubdtype(arg1, arg2):
    """Whether a dtype is one of a kind: tessera.floating, integer, inexact ..., or another dtype."""
    known = lambda t: _np.float16 if not isinstance(t, type) and _core.dtype(t) == _core.bfloat16 else t if isinstance(t, type) else _core.dtype(t).dtype  # noqa: E731
    if not isinstance(arg2, type) and _core.bfloat16 in (_core.dtype(arg2), _core.dtype(arg1)):
        return _core.dtype(arg1) == _core.dtype(arg2)
    return bool(_np.issubdtype(known(arg1), known(arg2)))


def _number_of(self, value=0):
    """The value as an array of this dtype, as jnp.float32(3) is."""
    return _core.astype(value, self) if isinstance(value, _core.Array) else asarray(value, dtype=self)


_core.dtype.__call__ = _number_of


# ---- files ----
def _with_suffix(file, suffix):
    file = pathlib.Path(file)
    return file if file.suffix == suffix else file.with_name(file.name + suffix)


def save(file, arr):
    """io.save_npy to `file`, with .npy behind its name. Collective; each rank writes its own part."""
    _core.io.save_npy(_with_suffix(file, ".npy"), _array(arr))


def savez(file, *args, **kwds):
    """io.save_npz of arrays by keyword, or as arr_0, arr_1 ... Collective."""
    _core.io.save_npz(_with_suffix(file, ".npz"), {**{f"arr_{n}": _array(a) for n, a in enumerate(args)}, **{name: _array(a) for name, a in kwds.items()}})


def load(file):
    """The array of a .npy file, or a dict of those of an .npz file. Collective; tessera.io.load_npy(file, sharding) reads only a rank's own part."""
    path = pathlib.Path(file)
    if path.suffix == ".npz":
        return {name: _core.io.load_npz(path, name) for name in _core.io.npz_info(path)}
    return _core.io.load_npy(path)


# ---- rows and columns between brackets ----
class _Joined:
    """numpy.r_ and c_: arrays, numbers and slices between brackets, one after the other."""

    def __init__(self, are_columns):
        self.are_columns = are_columns

    def __getitem__(self, parts):
        parts = parts if isinstance(parts, tuple) else (parts,)
        if any(isinstance(part, str) for part in parts):
            raise _core.errors.ArgumentError(f"r_ at {_core.here()}: directives in strings are not carried; write tessera.concatenate or tessera.stack")
        arrays = _arrays([_range(part) if isinstance(part, slice) else part for part in parts])
        arrays = [_core.reshape(a, [1]) if a.ndim == 0 else a for a in arrays]
        if self.are_columns:
            arrays = [_core.expand_dims(a, 1) if a.ndim == 1 else a for a in arrays]
        return _core.concatenate(arrays, -1 if self.are_columns else 0)


def _range(part):
    host = _np.r_[part]
    return host.astype(_np.int32 if host.dtype.kind == "i" else _np.float32)


r_, c_ = _Joined(False), _Joined(True)


# ---- host data and texts ----
def frombuffer(buffer, dtype=_np.float32, count=-1, offset=0):
    """An array of the bytes of an object on every rank."""
    return asarray(_np.frombuffer(buffer, _core.dtype(dtype).dtype, count, offset))


def fromiter(iterable, dtype, count=-1):
    """A vector of what an iterator gives, the same on every rank."""
    return asarray(_np.fromiter(iterable, _core.dtype(dtype).dtype, count))


def einsum_path(subscripts, *operands, optimize="greedy"):
    """NumPy's order of pairs, and its text. tessera.explain(lambda *a: tessera.einsum(subscripts, *a), *operands) tells tessera's own order, and what it sends."""
    def shape_alone(x):  # lists of dims stand beside the arrays in NumPy's other form
        return _np.broadcast_to(_np.float32(0), x.shape) if hasattr(x, "shape") else x
    return _np.einsum_path(shape_alone(subscripts), *map(shape_alone, operands), optimize=optimize)


def array_repr(arr):
    """repr(x). Collective: reads it."""
    return repr(_array(arr))


def array_str(a):
    """str(x). Collective: reads it."""
    return str(_array(a))
