"""Random keys and bits: an array of keys is the array of their bits, with the bits' dim behind."""
import functools
import math

import jax
import numpy as np

from ... import _core as c
from .._interpret import evaluate, expand, refuse, rule
from .._values import key_shape, number_like


def _impl(aval):
    return aval.dtype._impl


def _is_threefry(impl):
    return impl.name == "threefry2x32"


@rule("random_wrap")
def random_wrap(bits, impl):
    return bits


@rule("random_unwrap")
def random_unwrap(keys):
    return keys


@rule("random_clone", "random_consume")
def same(keys, **_):
    return keys


@rule("eq", "ne")
def compared(a, b, eqn):
    """Keys are equal where all of their bits are."""
    from .._values import is_key
    compare, join = (c.equal, c.all) if eqn.name == "eq" else (c.not_equal, c.any)
    result = compare(a, b)
    return join(result, list(range(-len(key_shape(eqn.in_avals[0])), 0))) if is_key(eqn.in_avals[0]) else result


def _mapped(function, dims):
    for _ in range(dims):
        function = jax.vmap(function)
    return function


@functools.lru_cache(maxsize=256)
def _seed(impl, dims):
    return _mapped(impl.seed, dims)


@rule("random_seed")
def random_seed(seeds, impl, eqn):
    return expand(_seed(impl, seeds.ndim), eqn.in_avals, [seeds])


class _Bits:
    """The type of the bits of an array of keys."""

    def __init__(self, keys, aval):
        self.shape, self.dtype = keys.shape, np.dtype("uint32")


@functools.lru_cache(maxsize=256)
def _split(impl, dims, shape):
    return _mapped(lambda key: impl.split(key, shape), dims)


@rule("random_split")
def random_split(keys, shape, eqn):
    return expand(_split(_impl(eqn.in_avals[0]), len(eqn.in_avals[0].shape), tuple(shape)), [_Bits(keys, None)], [keys])


@functools.lru_cache(maxsize=256)
def _fold_in(impl, dims):
    return _mapped(impl.fold_in, dims)


@rule("random_fold_in")
def random_fold_in(keys, data, eqn):
    """Keys and data of shapes that broadcast, as under vmap of one of the two."""
    shape = eqn.out_avals[0].shape
    keys, data = (x if x.shape == wanted else c.broadcast_to(x, wanted) for x, wanted in ((keys, (*shape, *key_shape(eqn.in_avals[0]))), (data, shape)))
    return expand(_fold_in(_impl(eqn.in_avals[0]), len(shape)), [_Bits(keys, None), jax.ShapeDtypeStruct(shape, eqn.in_avals[1].dtype)], [keys, data])


@functools.lru_cache(maxsize=256)
def _bits(impl, dims, width, shape):
    return _mapped(lambda key: impl.random_bits(key, width, shape), dims)


@rule("random_bits")
def random_bits(keys, bit_width, shape, eqn):
    impl = _impl(eqn.in_avals[0])
    if _is_threefry(impl) and keys.ndim == 1 and jax.config.jax_threefry_partitionable and bit_width in (8, 16, 32, 64):
        return c.random.bits(c.random.wrap_key_data(keys), list(shape), f"uint{bit_width}")
    return expand(_bits(impl, len(eqn.in_avals[0].shape), bit_width, tuple(shape)), [_Bits(keys, None)], [keys])


@rule("iota_2x32_shape")
def iota_2x32_shape(shape):
    count = math.prod(shape)
    if count >= 2 ** 32:
        wide = c.reshape(c.arange_integers(0, count, 1, "uint64"), shape)
        return [c.astype(c.bitwise_right_shift(wide, number_like(32, wide)), "uint32"), c.astype(wide, "uint32")]
    low = c.astype(c.arange_integers(0, count, 1, "uint32"), "uint32")
    return [c.zeros(shape, "uint32"), c.reshape(low, shape)]


_rotations = ((13, 15, 26, 6), (17, 29, 16, 24))


@rule("threefry2x32")
def threefry2x32(k1, k2, x1, x2, **_):
    """Twenty rounds of additions, rotations and exclusive ors (Salmon et al., 2011)."""
    keys = [k1, k2, c.bitwise_xor(c.bitwise_xor(k1, k2), c.full((), 0x1BD11BDA, "uint32"))]
    a, b = c.add(x1, keys[0]), c.add(x2, keys[1])
    for n in range(5):
        for r in _rotations[n % 2]:
            a = c.add(a, b)
            turned = c.bitwise_or(c.bitwise_left_shift(b, c.full((), r, "uint32")), c.bitwise_right_shift(b, c.full((), 32 - r, "uint32")))
            b = c.bitwise_xor(a, turned)
        a = c.add(a, keys[(n + 1) % 3])
        b = c.add(c.add(b, keys[(n + 2) % 3]), c.full((), n + 1, "uint32"))
    return [a, b]


@functools.lru_cache(maxsize=64)
def _gamma(impl, log_space):
    from jax._src import random
    module = random if hasattr(random, "_gamma_impl") else random.core
    return lambda bits, alpha: module._gamma_impl(jax.random.wrap_key_data(bits, impl=impl), alpha, log_space=log_space, use_vmap=True)


@rule("random_gamma")
def random_gamma(keys, alpha, log_space, eqn):
    return expand(_gamma(_impl(eqn.in_avals[0]).name, log_space), [_Bits(keys, None), eqn.in_avals[1]], [keys, alpha])


@rule("rng_uniform")
def rng_uniform(low, high, shape, **_):
    key = c.random.key(0)
    return c.add(low, c.multiply(c.random.uniform(key, list(shape), low.dtype), c.subtract(high, low)))


_philox = (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85)


@rule("rng_bit_generator")
def rng_bit_generator(key, shape, dtype, algorithm, eqn, **_):  # noqa: A002
    """Philox-4x32-10 of a counter (Salmon et al., 2011), XLA's default on the CPU: (key, counter) in 64-bit words. Of a counter of one
    word the other one is the key's."""
    if "THREE_FRY" in str(algorithm):
        refuse("the algorithm RNG_THREE_FRY of rng_bit_generator: keys of jax.random have the same rounds")
    words = key if key.dtype.name == "uint32" else c.reshape(c.bitcast_convert_type(key, "uint32"), [-1])
    width = np.dtype(dtype).itemsize
    size = math.prod(shape) * max(width, 4)  # of narrower numbers each is the low end of a word
    blocks = -(-size // 16)
    at = c.arange_integers(0, blocks, 1, "uint64")
    low64 = c.bitwise_or(_wide(words[2]), c.bitwise_left_shift(_wide(words[3]), c.full((), 32, "uint64")))
    count = c.add(at, low64)
    carry = c.astype(c.less(count, low64), "uint64")
    high64 = c.bitwise_or(_wide(words[4]), c.bitwise_left_shift(_wide(words[5]), c.full((), 32, "uint64"))) if words.shape[0] > 4 else c.bitwise_or(_wide(words[0]), c.bitwise_left_shift(_wide(words[1]), c.full((), 32, "uint64")))
    high = c.add(c.broadcast_to(high64, (blocks,)), carry)
    x = [c.astype(count, "uint32"), c.astype(c.bitwise_right_shift(count, c.full((), 32, "uint64")), "uint32"),
         c.astype(high, "uint32"), c.astype(c.bitwise_right_shift(high, c.full((), 32, "uint64")), "uint32")]
    k = [words[0], words[1]]
    for _ in range(10):
        a, b = c.multiply(_wide(x[0]), c.full((), _philox[0], "uint64")), c.multiply(_wide(x[2]), c.full((), _philox[1], "uint64"))
        top = lambda v: c.astype(c.bitwise_right_shift(v, c.full((), 32, "uint64")), "uint32")  # noqa: E731
        x = [c.bitwise_xor(c.bitwise_xor(top(b), x[1]), k[0]), c.astype(b, "uint32"), c.bitwise_xor(c.bitwise_xor(top(a), x[3]), k[1]), c.astype(a, "uint32")]
        k = [c.add(k[0], c.full((), _philox[2], "uint32")), c.add(k[1], c.full((), _philox[3], "uint32"))]
    bits = c.reshape(c.stack(x, 1), [-1])
    if width == 8:
        bits = c.bitcast_convert_type(c.reshape(bits, [-1, 2]), "uint64")
    new_low = c.add(low64, c.full((), blocks, "uint64"))
    new_high = c.add(high64, c.astype(c.less(new_low, low64), "uint64"))
    parts = [words[0], words[1]]
    for v in (new_low, new_high):
        parts += [c.astype(v, "uint32"), c.astype(c.bitwise_right_shift(v, c.full((), 32, "uint64")), "uint32")]
    new_key = c.stack(parts[:words.shape[0]], 0)
    if key.dtype.name != "uint32":
        new_key = c.bitcast_convert_type(c.reshape(new_key, [-1, 2]), key.dtype)
    taken = bits[(slice(0, math.prod(shape)),)]
    return [new_key, c.reshape(c.astype(taken, np.dtype(dtype).name), list(shape))]


def _wide(x):
    return c.astype(x, "uint64")


def _by_lowering(name, module, function):
    """Other generators: JAX's rounds."""
    import importlib
    try:
        rounds = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError):
        return
    rule(name)(lambda *operands, eqn, **_: evaluate(jax.make_jaxpr(rounds)(*[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in eqn.in_avals]), *operands))


for _name in ("philox2x32", "philox4x32", "threefry4x32"):
    _by_lowering(_name, f"jax._src.random.{_name}", f"_{_name}_lowering")
