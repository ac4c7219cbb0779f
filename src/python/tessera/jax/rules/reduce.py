"""Reductions, running combinations, orders."""
import numpy as np

from ... import _core as c
from .._interpret import evaluate, rule
from .._values import dtype, number_like
from .arithmetic import is_complex, maximum, minimum


def fold(combine, arrays, dim):
    """The arrays' lines along a dim, combined in pairs until one element is left; the dim goes."""
    while arrays[0].shape[dim] > 1:
        n = arrays[0].shape[dim]
        half = n // 2
        part = lambda start, stop: [x[(slice(None),) * dim + (slice(start, stop),)] for x in arrays]  # noqa: B023,E731
        joined = combine(part(0, half), part(half, 2 * half))
        arrays = [c.concatenate([a, b], dim) for a, b in zip(joined, part(2 * half, n))] if n % 2 else joined
    return [c.squeeze(x, [dim]) for x in arrays]


@rule("reduce_sum")
def reduce_sum(x, axes, **_):
    return c.sum(x, list(axes), x.dtype) if axes else x


@rule("reduce_prod")
def reduce_prod(x, axes, **_):
    return c.prod(x, list(axes), x.dtype) if axes else x


def _extremum(op, pair, neutral):
    def reduce(x, axes, **_):
        if not axes:
            return x
        if is_complex(x):
            for a in sorted(axes, reverse=True):
                x = fold(lambda one, two: [pair(one[0], two[0])], [x], a)[0]
            return x
        if any(x.shape[a] == 0 for a in axes):
            return c.full([n for d, n in enumerate(x.shape) if d not in axes], neutral(x.dtype), x.dtype)
        return op(x, list(axes))
    return reduce


def lowest(of):
    if of.name == "bool":
        return False
    bits = of.itemsize * 8
    return float("-inf") if of.kind not in "iu" else 0 if of.kind == "u" else -2 ** (bits - 1)


def highest(of):
    if of.name == "bool":
        return True
    bits = of.itemsize * 8
    return float("inf") if of.kind not in "iu" else 2 ** bits - 1 if of.kind == "u" else 2 ** (bits - 1) - 1


rule("reduce_max")(_extremum(c.max, maximum, lowest))
rule("reduce_min")(_extremum(c.min, minimum, highest))


def _bitwise(whole, op, neutral):
    def reduce(x, axes, **_):
        if not axes:
            return x
        if x.dtype.name == "bool" and whole is not None:
            return whole(x, list(axes))
        for a in sorted(axes, reverse=True):
            if x.shape[a] == 0:
                x = c.full([n for d, n in enumerate(x.shape) if d != a], neutral, x.dtype)
            else:
                x = fold(lambda one, two: [op(one[0], two[0])], [x], a)[0]
        return x
    return reduce


rule("reduce_and")(_bitwise(c.all, c.bitwise_and, -1))
rule("reduce_or")(_bitwise(c.any, c.bitwise_or, 0))


@rule("reduce_xor")
def reduce_xor(x, axes, **_):
    if x.dtype.name == "bool":
        return c.equal(c.bitwise_and(c.sum(c.astype(x, "int32"), list(axes)), 1), 1)
    return _bitwise(None, c.bitwise_xor, 0)(x, axes)


@rule("reduce")
def reduce(*operands, computation=None, jaxpr=None, consts=(), dimensions=(), **_):
    """A reduction by a function of the program: halves are combined, elementwise."""
    n = len(operands) // 2
    arrays, inits = list(operands[:n]), list(operands[n:])
    for d in sorted(dimensions, reverse=True):
        arrays = _fold_with(jaxpr, arrays, inits, d)
    return elementwise(jaxpr, [c.broadcast_to(i, a.shape) for i, a in zip(inits, arrays)], arrays)


def _fold_with(jaxpr, arrays, inits, d):
    if arrays[0].shape[d] == 0:
        return [c.broadcast_to(i, [m for e, m in enumerate(a.shape) if e != d]) for a, i in zip(arrays, inits)]
    return fold(lambda one, two: elementwise(jaxpr, one, two), arrays, d)


def elementwise(jaxpr, one, two):
    """A jaxpr of scalars, applied to all elements: retraced at the arrays' shape."""
    import jax
    from jax._src import core
    from .._versions import closed
    jaxpr = closed(jaxpr)
    scalar = core.jaxpr_as_fun(jaxpr)
    operands = list(one) + list(two)
    types = [jax.ShapeDtypeStruct(x.shape, v.aval.dtype) for x, v in zip(operands, jaxpr.jaxpr.invars)]
    mapped = scalar
    for _ in range(one[0].ndim):
        mapped = jax.vmap(mapped)
    return evaluate(jax.make_jaxpr(mapped)(*types), *operands)


def _place(name, op, pick):
    def arg(x, axes, index_dtype, **_):
        (axis,) = axes
        if x.dtype.name == "bool":
            x = c.astype(x, "int32")
        return c.astype(op(x, axis), dtype(index_dtype))
    rule(name)(arg)


_place("argmax", c.argmax, max)
_place("argmin", c.argmin, min)


def _running(name, op):
    def run(x, axis, reverse, **_):
        return op(x, axis, reverse)
    rule(name)(run)


_running("cumsum", lambda x, axis, reverse: c.cumsum(x, axis, x.dtype, False, reverse))
_running("cumprod", lambda x, axis, reverse: c.cumprod(x, axis, x.dtype, False, reverse))
_running("cummax", c.cummax)
_running("cummin", c.cummin)
_running("cumlogsumexp", c.cumlogsumexp)


def _sorts_alike(x):
    """As integers, for bool."""
    return c.astype(x, "uint8") if x.dtype.name == "bool" else x


@rule("sort")
def sort(*operands, dimension, is_stable, num_keys):
    if len(operands) == 1:
        x = _sorts_alike(operands[0])
        return c.astype(c.sort(x, dimension), operands[0].dtype)
    order = None
    for key in reversed(operands[:num_keys]):
        key = _sorts_alike(key)
        key = key if order is None else c.take_along_axis(key, order, dimension)
        step = c.argsort(key, dimension)
        order = step if order is None else c.take_along_axis(order, step, dimension)
    return [c.take_along_axis(x, order, dimension) for x in operands]


def _by_total_order(x, k):
    """The largest of floats as XLA orders them: a NaN below all others if its sign is set (jnp.partition's last ones), -0 below 0."""
    bits = c.bitcast_convert_type(x, f"int{x.dtype.itemsize * 8}")
    low_bits = c.full((), np.iinfo(bits.dtype.name).max, bits.dtype)
    in_order = lambda b: c.where(c.less(b, number_like(0, b)), c.bitwise_xor(b, low_bits), b)  # noqa: E731  its own inverse
    values, places = c.top_k(in_order(bits), k)
    return c.bitcast_convert_type(in_order(values), x.dtype), places


@rule("top_k", "approx_top_k")
def top_k(x, k, eqn, axis=-1, reduction_dimension=None, is_max_k=True, operand_index=None, **_):
    """approx_top_k gives exact ones, and as many candidates as its type says where they are not aggregated to k."""
    axis = (axis if reduction_dimension is None else reduction_dimension) % x.ndim
    k = eqn.out_avals[0].shape[axis]
    last = x if axis == x.ndim - 1 else c.moveaxis(x, axis, -1)
    if is_max_k:
        values, places = _by_total_order(last, k) if last.dtype.kind == "f" else c.top_k(last, k)
    else:
        places = c.argsort(last, -1)[(Ellipsis, slice(0, k))]
        values = c.take_along_axis(last, places, -1)
    places = c.astype(places, "int32")
    return [values, places] if axis == x.ndim - 1 else [c.moveaxis(values, -1, axis), c.moveaxis(places, -1, axis)]
