"""Neural networks: activations, initializers, layers, losses and batches. A layer is a tree: a dataclass of arrays, called on data."""
import dataclasses as _dataclasses

from . import _core
from ._core import gelu, log_softmax, relu, sigmoid, silu, softmax, softplus, tanh  # noqa: F401
from ._core.nn import (  # noqa: F401
    accuracy, dropout, elu, exact_gelu, glorot_normal, glorot_uniform, glu, hard_sigmoid, hard_tanh, he_normal, he_uniform, huber_loss, leaky_relu, lecun_normal,
    lecun_uniform, log_sigmoid, mish, relu6, selu, shuffled_order, sigmoid_binary_cross_entropy, soft_sign, softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels, squared_error, standardize, variance_scaling)
from ._create import words_of as _words_of
from ._standard import logsumexp  # noqa: F401
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
    return _core.where(_core.greater(x, 0), x, _core.multiply(alpha, _core.expm1(_core.divide(_core.minimum(x, 0.0), alpha))))


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
