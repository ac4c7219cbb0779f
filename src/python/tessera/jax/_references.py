"""Mutable references outside of jit: a reference holds an array, and what writes to it is run as a program on values."""
from jax._src import core

from . import _values
from ._interpret import evaluate
from ._sharded import wrapped
from ._versions import constants_as_operands, one_equation, without_references

_kind = getattr(core, "Ref", None) or getattr(core, "MutableArray", None)


class HoldsReferences(Exception):
    """A jitted function reads or writes references that are none of its arguments."""


def is_reference(value):
    return _kind is not None and type(value) is _kind


def _held(reference):
    """The object whose _buf is the reference's value."""
    return getattr(reference, "_refs", reference)


def of_constants(primitive, params):
    """Whether it is a jitted function that holds references."""
    return primitive.name in ("jit", "pjit") and any(is_reference(constant) for constant in params["jaxpr"].consts)


def run(primitive, args, params):
    """One primitive, a jitted function among them, that reads and writes references. They hold what was written afterwards."""
    if of_constants(primitive, params):
        jaxpr, args = constants_as_operands(params["jaxpr"]), (*params["jaxpr"].consts, *args)
    else:
        jaxpr = one_equation(primitive, [core.typeof(a) for a in args], params)
    jaxpr = without_references(jaxpr)
    results = evaluate(jaxpr, *[_values.array_of(_held(a)._buf if is_reference(a) else a) for a in args])
    results = [wrapped(r, a) for r, a in zip(results, jaxpr.out_avals)]
    references = [a for a in args if is_reference(a)]
    count = len(results) - len(references)
    for reference, value in zip(references, results[count:]):
        _held(reference)._buf = value
    return results[:count] if primitive.multiple_results else results[0] if count else []
