"""JAX's random keys and values, bit for bit."""
import operator

from . import _core
from ._core.random import *  # noqa: F401,F403
from ._core import Key  # noqa: F401

_r = _core.random


def key(seed):
    """A key from a seed."""
    try:
        return _r.key(operator.index(seed))
    except TypeError:
        raise TypeError(f"key at {_core.here()}: 'seed' is {seed!r} ({type(seed).__name__}); it takes an integer of 64 bits") from None


PRNGKey = key


def split(key, num=2):
    """New keys from one, to unpack or to map over; num may be a shape."""
    return _r.split_batch(key, num)


def key_data(key):
    """The words of a key, or of keys in lists, stacked."""
    return _core.stack([key_data(k) for k in key], 0) if isinstance(key, (list, tuple)) else _r.key_data(key)


def clone(key):
    """The same key: keys may be used more than once."""
    return key


def key_impl(key):
    """The name of the generator."""
    return "threefry2x32"


def choice(key, a, shape=(), replace=True, p=None, axis=0):
    """Elements of a, or of range(a), with replacement or without, by probabilities p."""
    return _r.choice(key, a, shape, replace, p, axis)


def shuffle(key, x, axis=0):
    """permutation(key, x)."""
    return _r.permutation(key, x, axis)


def __getattr__(name):
    if name in {"rand", "randn", "random", "random_sample", "seed", "default_rng", "RandomState", "get_state", "set_state", "standard_normal"}:
        raise AttributeError(f"tessera.random has no {name}: there is no hidden state, draws take a key, as in uniform(key(0), (3, 4)) and normal(key(1), (5,)); split(key) makes new keys")
    raise AttributeError(f"module 'tessera.random' has no attribute {name!r}")
