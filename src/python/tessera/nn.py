"""Neural networks: activations, initializers, layers, losses and batches. A layer is a tree: a dataclass of arrays, called on data."""
import dataclasses as _dataclasses
from math import inf as _inf

from . import _core, _initializers as initializers  # noqa: F401
from ._core import log_softmax, relu, sigmoid, silu, softplus, tanh  # noqa: F401
from ._core.nn import (  # noqa: F401
    accuracy, dropout, elu, exact_gelu, glorot_normal, glorot_uniform, glu, hard_sigmoid, hard_tanh, he_normal, he_uniform, huber_loss, leaky_relu, lecun_normal,
    lecun_uniform, log_sigmoid, mish, relu6, selu, shuffled_order, sigmoid_binary_cross_entropy, soft_sign, softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels, squared_error, variance_scaling)
from ._create import words_of as _words_of
from ._standard import logsumexp as _logsumexp
from .tree_util import tree_leaves as _tree_leaves, tree_map as _tree_map

swish = silu
_n = _core.nn


def identity(x):
    """x."""
    return x


def hard_silu(x):
    """x hard_sigmoid(x)."""
    return _core.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


def celu(x, alpha=1.0):
    """x if positive, else alpha (exp(x / alpha) - 1), elementwise."""
    is_positive = _core.greater(x, 0)
    return _core.where(is_positive, x, _core.multiply(alpha, _core.expm1(_core.divide(_core.where(is_positive, 0.0, x), alpha))))


def gelu(x, approximate=True):
    """x times the normal distribution's function of x: by its approximation with tanh, or by erf."""
    return _core.gelu(x) if approximate else exact_gelu(x)


def softmax(x, axis=-1, where=None):
    """exp(x) / sum(exp(x)) along one axis or several, without overflow; zero where `where` is false."""
    if where is None and isinstance(axis, int):
        return _core.softmax(x, axis)
    axes = [axis] if isinstance(axis, int) else axis
    kept = x if where is None else _core.where(where, x, -_inf)
    top = _core.max(kept, axes, True)
    parts = _core.exp(_core.subtract(kept, _core.stop_gradient_leaf(_core.where(_core.isfinite(top), top, 0.0))))
    return _core.divide(parts, _core.sum(parts, axes, True))


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None):
    """(x - mean) / sqrt(variance + epsilon), both along the axes unless they are given; of the elements where `where` holds."""
    from ._reductions import mean as average
    mean = average(x, axis, keepdims=True, **({} if where is None else {"where": where})) if mean is None else mean
    if variance is None:
        variance = average(_core.square(_core.subtract(x, mean)), axis, keepdims=True, **({} if where is None else {"where": where}))
    return _core.multiply(_core.subtract(x, mean), _core.rsqrt(_core.add(variance, epsilon)))


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    """log(sum(b exp(a))) along axes, without overflow, of the elements where `where` holds; with return_sign the logarithm of the size, and the sign."""
    if where is not None:
        a = _core.where(where, a, -_inf)
    if b is None:
        found = _logsumexp(a, axis, keepdims=keepdims)
        return (found, _core.ones(found.shape, found.dtype)) if return_sign else found
    top = _core.max(a, axis, True)
    top = _core.stop_gradient_leaf(_core.where(_core.isfinite(top), top, 0.0))
    total = _core.sum(_core.multiply(b, _core.exp(_core.subtract(a, top))), axis, keepdims)
    found = _core.add(_core.log(_core.abs(total) if return_sign else total), _core.reshape(top, total.shape))
    return (found, _core.sign(total)) if return_sign else found


def sparse_plus(x):
    """0 up to -1, (x + 1)^2 / 4 up to 1, x beyond."""
    return _core.where(_core.less_equal(x, -1.0), 0.0, _core.where(_core.greater_equal(x, 1.0), x, _core.multiply(_core.square(_core.add(x, 1.0)), 0.25)))


def sparse_sigmoid(x):
    """0 up to -1, (x + 1) / 2 up to 1, 1 beyond."""
    return _core.multiply(_core.clip(_core.add(x, 1.0), 0.0, 2.0), 0.5)


def logmeanexp(x, axis=None, *, where=None, keepdims=False):
    """log(mean(exp(x))) along axes, without overflow."""
    n = _core.sum(_core.broadcast_to(1.0 if where is None else _core.where(where, 1.0, 0.0), x.shape), axis, keepdims)
    return _core.subtract(logsumexp(x, axis, keepdims=keepdims, where=where), _core.log(n))


def log1mexp(x):
    """log(1 - exp(-x)), without loss of digits for small and large x."""
    is_small = _core.less(x, 0.6931472)
    small, large = _core.where(is_small, x, 1.0), _core.where(is_small, 1.0, x)  # the other one has the slope 0 times infinity
    return _core.where(is_small, _core.log(_core.negative(_core.expm1(_core.negative(small)))), _core.log1p(_core.negative(_core.exp(_core.negative(large)))))


def squareplus(x, b=4.0):
    """(x + sqrt(x^2 + b)) / 2."""
    return _core.multiply(_core.add(x, _core.sqrt(_core.add(_core.square(x), b))), 0.5)


def dot_product_attention(query, key, value, bias=None, mask=None, *, scale=None, is_causal=False, key_block=None):
    return _n.dot_product_attention(query, key, value, bias=bias, mask=mask, scale=scale, is_causal=is_causal, key_block=key_block)


dot_product_attention.__doc__ = _words_of(_n.dot_product_attention)


def one_hot(x, num_classes, *, dtype=None, axis=-1):
    """1 at the index that x holds, along a new axis; zeros for an index out of range."""
    hot = _n.one_hot(x, num_classes, dtype or _core.float32)
    return hot if axis == -1 else _core.moveaxis(hot, -1, axis)


@_dataclasses.dataclass
class Dense:
    """x W + b: weight (inputs, outputs), bias (outputs,)."""
    weight: _core.Array
    bias: _core.Array

    def __call__(self, x):
        return _n.apply_dense(self.weight, self.bias, x)


@_dataclasses.dataclass
class LayerNorm:
    """Mean 0 and variance 1 along the last dim, then scaled and shifted."""
    scale: _core.Array
    shift: _core.Array

    def __call__(self, x):
        return _n.apply_layer_norm(self.scale, self.shift, x)


@_dataclasses.dataclass
class Embedding:
    """A row of a table (numbers, features) for each number."""
    table: _core.Array

    def __call__(self, numbers):
        return _n.apply_embedding(self.table, numbers)


def dense(key, inputs, outputs, initializer=None, dtype=_core.float32):
    """A layer with a weight that initializer(key, shape, dtype) draws (lecun_normal), and a bias of zeros."""
    return Dense(*_n.dense(key, inputs, outputs, initializer, dtype))


def mlp(key, sizes, initializer=None, dtype=_core.float32):
    """Consecutive dense layers, drawn by he_normal by default: sizes (784, 128, 10) make two."""
    return [Dense(*layer) for layer in _n.mlp(key, list(sizes), initializer, dtype)]


def apply(network, x, activation=relu):
    """The output of an mlp: the activation follows every layer except the last."""
    for layer in network[:-1]:
        x = activation(layer(x))
    return network[-1](x)


def split_in_pairs(network, mesh, axis):
    """An mlp for tensor parallelism along a mesh axis: of two layers the first is split by columns, the second by rows; the first and last layer are replicated."""
    return [Dense(*layer) for layer in _n.split_in_pairs([(layer.weight, layer.bias) for layer in network], mesh, axis)]


def layer_norm(features, dtype=_core.float32):
    """A layer that scales by 1 and shifts by 0."""
    return LayerNorm(*_n.layer_norm(features, dtype))


def embedding(key, numbers, features, dtype=_core.float32):
    """A table of normal draws with variance 1 / features."""
    return Embedding(*_n.embedding(key, numbers, features, dtype))


class Batches:
    """An epoch: all examples once, in random order, a batch at a time. Made by shuffled_batches."""

    def __init__(self, rows, count):
        self._rows, self._count = rows, count

    def __len__(self):
        return self._count

    def __getitem__(self, i):
        if not -self._count <= i < self._count:
            raise IndexError(f"batch {i} of {self._count}")
        return _tree_map(lambda x: x[i], self._rows)


def shuffled_batches(key, data, batch, mesh, batch_spec):
    """The examples of a tree of arrays (examples, ...) in random order, the same for every layout; each batch has the layout batch_spec on the mesh."""
    order = shuffled_order(key, _n.common_examples(_tree_leaves(data)), batch)
    return Batches(_tree_map(lambda x: _n.scattered_batches(x, order, mesh, batch_spec), data), order.shape[0])
