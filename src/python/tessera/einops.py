"""`import tessera.einops` makes plain einops accept tessera's arrays: a backend in the form of einops' _backends.py.

einops.array_api and everything that asks for __array_namespace__ work without it.
"""
import sys

from einops._backends import AbstractBackend

import tessera as _ts


class TesseraBackend(AbstractBackend):
    """As einops' JaxBackend: functions of the namespace, arrays that stay split."""
    framework_name = "tessera"

    def is_appropriate_type(self, tensor):
        return isinstance(tensor, _ts.Array)

    def from_numpy(self, x):
        return _ts.asarray(x)

    def to_numpy(self, x):
        return _ts.device_get(x)

    def arange(self, start, stop):
        return _ts.arange(start, stop)

    def stack_on_zeroth_dimension(self, tensors):
        return _ts.stack(tensors)

    def add_axes(self, x, n_axes, pos2len):
        for position in sorted(pos2len):
            x = _ts.expand_dims(x, axis=position)
        return _ts.broadcast_to(x, tuple(pos2len.get(d, n) for d, n in enumerate(x.shape)))

    def tile(self, x, repeats):
        return _ts.tile(x, repeats)

    def concat(self, tensors, axis):
        return _ts.concat(tensors, axis=axis)

    def is_float_type(self, x):
        return x.dtype.kind in "fc"

    def einsum(self, pattern, *x):
        return _ts.einsum(pattern, *x)


__all__ = ["TesseraBackend"]
assert TesseraBackend.framework_name in sys.modules
