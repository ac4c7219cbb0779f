"""nn.initializers with JAX's names: each makes a function (key, shape, dtype) -> weight."""
import sys

from . import _core
from ._core import nn as _n, random as _random

__all__ = ["zeros", "ones", "constant", "normal", "uniform", "truncated_normal", "orthogonal", "variance_scaling", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal",
           "kaiming_uniform", "kaiming_normal", "lecun_uniform", "lecun_normal", "xavier_uniform", "xavier_normal"]


_fans = {"fan_in": "in", "fan_out": "out", "fan_avg": "average"}


def zeros(key, shape, dtype=_core.float32):
    """Zeros; the key is not used."""
    return _core.zeros(shape, dtype)


def ones(key, shape, dtype=_core.float32):
    """Ones; the key is not used."""
    return _core.ones(shape, dtype)


def constant(value, dtype=_core.float32):
    """The value everywhere."""
    return lambda key, shape, dtype=dtype: _core.full(shape, value, dtype)


def _scaled(draw, stddev, dtype):
    return lambda key, shape, dtype=dtype: _core.astype(_core.multiply(draw(key, shape, dtype), stddev), dtype)


def normal(stddev=1e-2, dtype=_core.float32):
    """Normal draws with mean 0."""
    return _scaled(_random.normal, stddev, dtype)


def uniform(scale=1e-2, dtype=_core.float32):
    """Uniform draws from [0, scale)."""
    return _scaled(_random.uniform, scale, dtype)


def truncated_normal(stddev=1e-2, dtype=_core.float32, lower=-2.0, upper=2.0):
    """Normal draws between lower and upper, times stddev."""
    draw = lambda key, shape, dtype: _random.truncated_normal(key, lower, upper, shape, dtype)  # noqa: E731
    return _scaled(draw, stddev, dtype)


def orthogonal(scale=1.0, column_axis=-1, dtype=_core.float32):
    """Orthogonal columns, or rows where there are fewer of them."""
    def draw(key, shape, dtype=dtype):
        columns = shape[column_axis]
        rows = 1
        for n in shape:
            rows *= n
        rows //= columns
        tall = (rows, columns) if rows >= columns else (columns, rows)
        q, r = _core.linalg.qr(_random.normal(key, tall, dtype))
        q = _core.multiply(q, _core.expand_dims(_core.sign(_core.diagonal(r)), 0))
        q = q if rows >= columns else _core.transpose(q, [1, 0])
        others = [n for d, n in enumerate(shape) if d != column_axis % len(shape)]
        return _core.multiply(_core.moveaxis(_core.reshape(q, [*others, columns]), -1, column_axis), scale)
    return draw


def variance_scaling(scale, mode, distribution, in_axis=-2, out_axis=-1, dtype=_core.float32):
    """Variance scale / n, n by mode "fan_in", "fan_out" or "fan_avg", of the distribution "truncated_normal", "normal" or "uniform"."""
    return lambda key, shape, dtype=dtype: _n.variance_scaling(key, shape, scale=scale, fan=_fans.get(mode, mode), draw=distribution, in_axis=in_axis, out_axis=out_axis, dtype=dtype)


def _fan(scale, mode, distribution):
    def make(in_axis=-2, out_axis=-1, dtype=_core.float32):
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, dtype)
    make.__doc__ = f'variance_scaling({scale}, "{mode}", "{distribution}").'
    return make


glorot_uniform, glorot_normal = _fan(1.0, "fan_avg", "uniform"), _fan(1.0, "fan_avg", "truncated_normal")
he_uniform, he_normal = _fan(2.0, "fan_in", "uniform"), _fan(2.0, "fan_in", "truncated_normal")
lecun_uniform, lecun_normal = _fan(1.0, "fan_in", "uniform"), _fan(1.0, "fan_in", "truncated_normal")
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal = glorot_uniform, glorot_normal, he_uniform, he_normal

sys.modules["tessera.nn.initializers"] = sys.modules[__name__]  # import tessera.nn.initializers
