"""Functions of neural networks, by jax.nn's names."""
from . import _core
from ._core import gelu, log_softmax, relu, sigmoid, silu, softmax, softplus  # noqa: F401
from ._standard import logsumexp  # noqa: F401

swish = silu
tanh = _core.tanh


def one_hot(x, num_classes, *, dtype=None, axis=-1):
    """1 at the number that x holds, along a new axis."""
    x = x if isinstance(x, _core.Array) else _core.array_from_numpy(x)
    hot = _core.equal(_core.expand_dims(x, x.ndim), _core.arange_integers(0, num_classes, 1, _core.int32))
    hot = _core.astype(hot, dtype or _core.float32)
    return hot if axis == -1 else _core.moveaxis(hot, -1, axis)


def leaky_relu(x, negative_slope=0.01):
    """x, and negative_slope x below 0."""
    return _core.where(_core.greater_equal(x, 0), x, _core.multiply(x, negative_slope))


def elu(x, alpha=1.0):
    """x, and alpha (e^x - 1) below 0."""
    safe = _core.where(_core.greater(x, 0), 0.0, x)
    return _core.where(_core.greater(x, 0), x, _core.multiply(alpha, _core.expm1(safe)))


def selu(x):
    """The self-normalizing elu."""
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def relu6(x):
    """Between 0 and 6."""
    return _core.clip(x, 0, 6)


def log_sigmoid(x):
    """log(sigmoid(x)) without overflow."""
    return -softplus(-x)


def hard_tanh(x):
    """Between -1 and 1."""
    return _core.clip(x, -1, 1)


def standardize(x, axis=-1, epsilon=1e-5):
    """Mean 0 and variance 1 along the axis."""
    centered = x - _core.mean(x, axis, True)
    return centered * _core.rsqrt(_core.var(x, axis, True) + epsilon)
