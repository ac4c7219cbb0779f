"""Reductions of segments: jax.ops's functions."""
import math

import numpy as _np

from . import _core
from ._create import _array

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _segments(name, start, combine, words):
    def reduce(x, ids, segments):
        x, ids = _array(x), _array(ids)
        if ids.dtype.kind not in "iu":
            raise _core.errors.DtypeError(f"{name} at {_core.here()}: ids are integers, these are {ids.dtype}")
        if x.ndim == 0 or ids.shape != x.shape[:1]:
            raise _core.errors.ShapeError(f"{name} at {_core.here()}: ids of shape {ids.shape} for slices of shape {x.shape}; there must be one id for each slice of the first axis")
        outside = _core.where(_core.less(ids, 0), segments, _core.astype(ids, _core.int64))
        limits = {} if x.dtype.kind != "i" and x.dtype.kind != "u" else {-math.inf: _np.iinfo(x.dtype.name).min, math.inf: _np.iinfo(x.dtype.name).max}
        return combine(_core.full((segments, *x.shape[1:]), limits.get(start, start), x.dtype).at[outside], x)
    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = words
    return reduce


segment_sum = _segments("segment_sum", 0, lambda at, x: at.add(x),
                        "The sums of the slices along the first axis that have the same number in ids; 0 where none has it. Ids outside of [0, segments) are left out. jax.ops.segment_sum.")
segment_prod = _segments("segment_prod", 1, lambda at, x: at.multiply(x),
                        "segment_sum's products; 1 where no slice has the id.")
segment_max = _segments("segment_max", -math.inf, lambda at, x: at.max(x),
                        "segment_sum's largest elements; -inf, or the least integer, where no slice has the id.")
segment_min = _segments("segment_min", math.inf, lambda at, x: at.min(x),
                        "segment_sum's smallest elements; inf, or the largest integer, where no slice has the id.")
