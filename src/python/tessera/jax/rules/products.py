"""Contractions."""
import functools
import importlib

import jax

from ... import _core as c
from ..._primitives import contract
from .._interpret import expand, refuse, rule
from .._values import dtype


@rule("dot_general")
def dot_general(a, b, dimension_numbers, preferred_element_type=None, **_):
    to = dtype(preferred_element_type) if preferred_element_type is not None else None
    if to is not None and to != a.dtype and (to.kind == "c" or to.itemsize >= a.dtype.itemsize):
        a, b = c.astype(a, to), c.astype(b, to)
    elif a.dtype != b.dtype:
        common = c.result_type(a, b) if hasattr(c, "result_type") else (a.dtype if a.dtype.itemsize >= b.dtype.itemsize else b.dtype)
        a, b = c.astype(a, common), c.astype(b, common)
    result = contract(a, b, dimension_numbers)
    return result if to is None or result.dtype == to else c.astype(result, to)


@rule("ragged_dot_general")
def ragged_dot_general(a, b, sizes, ragged_dot_dimension_numbers, preferred_element_type=None, group_offset=None, **_):
    """Rows of a in runs, each run times its own matrix of b. A mask per group picks the run; groups are summed."""
    numbers = ragged_dot_dimension_numbers
    (ca, cb), (ba, bb) = numbers.dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    groups = list(numbers.rhs_group_dimensions)
    if ba or bb or sizes.ndim != 1 or group_offset is not None:
        refuse("ragged_dot_general with batch dims or an offset")
    ends = c.cumsum(sizes, 0)
    starts = c.subtract(ends, sizes)
    rows = c.arange_integers(0, a.shape[ragged], 1, sizes.dtype)
    member = c.bitwise_and(c.greater_equal(c.expand_dims(rows, 0), c.expand_dims(starts, 1)), c.less(c.expand_dims(rows, 0), c.expand_dims(ends, 1)))
    member = c.reshape(member, [member.shape[0]] + [a.shape[d] if d == ragged else 1 for d in range(a.ndim)])
    spread = c.multiply(c.expand_dims(a, 0), c.astype(member, a.dtype))
    if groups:
        (g,) = groups
        result = contract(spread, b, (([0] + [d + 1 for d in ca], [g] + list(cb)), ([], [])))
    else:
        result = contract(spread, b, (([d + 1 for d in ca], list(cb)), ([], [])))
    return result if preferred_element_type is None else c.astype(result, dtype(preferred_element_type))


@rule("ragged_dot")
def ragged_dot(a, b, sizes, preferred_element_type=None, **_):
    numbers = jax.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(a, b, sizes, numbers, preferred_element_type)


@functools.lru_cache(maxsize=256)
def _scaled(dimension_numbers, preferred_element_type):
    module = importlib.import_module("jax._src.lax.scaled_dot")
    return functools.partial(module._scaled_dot_impl, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type)


@rule("scaled_dot")
def scaled_dot(*operands, dimension_numbers, preferred_element_type=None, eqn):
    """By JAX's own description: scales are spread over their runs, the product is of bfloat16. Scales of 8 bits are refused as dtypes."""
    numbers = tuple(tuple(map(tuple, pair)) for pair in dimension_numbers)
    return expand(_scaled(numbers, preferred_element_type), eqn.in_avals, operands)
