"""Dtypes: promotion, kinds, limits, and the namespace's information about itself."""
import builtins

import numpy as _np

from . import _core
from ._core import Array
from ._create import asarray
from ._device import all_devices

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "promote_types", "result_type", "__array_namespace_info__"]

def _dtype_of(value):
    return value.dtype if isinstance(value, Array) else _core.dtype(value)


def promote_types(a, b):
    """The dtype of a + b."""
    return result_type(_core.dtype(a), _core.dtype(b))


def result_type(*values):
    """The dtype that an expression of these arrays, dtypes and numbers has."""
    if not values:
        raise ValueError("result_type needs at least one array or dtype")
    number = (builtins.bool, int, float, complex)
    samples = [v if type(v) in number else _core.zeros((), v.dtype) if isinstance(v, Array) else _core.zeros((), v) for v in values]
    if builtins.all(type(v) in number for v in values):
        return asarray(builtins.sum(values)).dtype
    total = None
    for sample in sorted(samples, key=lambda s: type(s) in number):
        total = sample if total is None else _core.maximum(total, sample) if not _is_complex(total, sample) else _core.add(total, sample)
    return total.dtype


def _is_complex(*values):
    return builtins.any(isinstance(v, complex) or (isinstance(v, Array) and v.dtype.kind == "c") for v in values)


def can_cast(from_, to, /):
    """Whether the promotion of both is `to`."""
    return result_type(_dtype_of(from_), to) == _core.dtype(to)


_kinds = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f", "complex floating": "c", "numeric": "iufc"}


def isdtype(dtype, kind):
    """Whether the dtype is of a kind: a name of the standard, a dtype, or a tuple of those."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _kinds:
            raise ValueError(f"isdtype: there is no kind '{kind}'; the kinds are {', '.join(_kinds)}")
        return _core.dtype(dtype).kind in _kinds[kind]
    return _core.dtype(dtype) == kind


class finfo:
    """Limits of a floating-point dtype; of a complex one those of its parts."""

    def __init__(self, type, /):
        given = _dtype_of(type)
        if given.kind not in "fc":
            raise TypeError(f"finfo: {given} is no floating-point dtype")
        if given == _core.bfloat16:
            self.bits, self.dtype, self.eps, self.max = 16, given, 2.0 ** -7, (2 - 2.0 ** -7) * 2.0 ** 127
            self.min, self.smallest_normal = -self.max, 2.0 ** -126
            self.tiny = self.smallest_normal
            return
        facts = _np.finfo(given.dtype)
        self.bits, self.dtype = facts.bits, _core.dtype(facts.dtype)
        self.eps, self.max, self.min, self.smallest_normal = (float(v) for v in (facts.eps, facts.max, facts.min, facts.tiny))
        self.tiny = self.smallest_normal


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, type, /):
        self.dtype = _dtype_of(type)
        if self.dtype.kind not in "iu":
            raise TypeError(f"iinfo: {self.dtype} is no integer dtype")
        facts = _np.iinfo(self.dtype.dtype)
        self.bits, self.max, self.min = facts.bits, int(facts.max), int(facts.min)


class __array_namespace_info__:
    """The namespace's information about itself, as the standard defines it."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        return all_devices()

    def default_dtypes(self, *, device=None):
        return {"real floating": _core.float32, "complex floating": _core.complex64, "integral": _core.int32, "indexing": _core.int32}

    def devices(self):
        return [all_devices(), *_core.devices()]

    def dtypes(self, *, device=None, kind=None):
        names = ["bool", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)), "float32", "float64", "complex64", "complex128"]
        return {name: _core.dtype(name) for name in names if kind is None or isdtype(_core.dtype(name), kind)}
