"""Primitives by JAX's own description of them in simpler primitives."""
import functools
import sys

import jax
from jax._src import core

from .. import _core
from ._versions import jax_jit


@functools.lru_cache(maxsize=512)
def jaxpr_of(function, avals, x64):
    """A function of JAX, traced for these types. The function must be the same object for the same meaning."""
    types = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in avals]
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        return jax.make_jaxpr(function)(*types)


_meanings = {}


def meaning_of(primitive, avals, params):
    """What a primitive's own implementation does, as a jaxpr; None if it is none in terms of other primitives. Traced once for the same types and parameters."""
    try:
        key = primitive, tuple((a.shape, a.dtype) for a in avals), tuple(sorted(params.items())), jax.config.jax_enable_x64
        hash(key)
    except TypeError:  # a parameter without a hash, or without an order
        return _meaning_of(primitive, avals, params)
    if key not in _meanings:
        if len(_meanings) > 4096:
            _meanings.clear()
        _meanings[key] = _meaning_of(primitive, avals, params)
    return _meanings[key]


def _meaning_of(primitive, avals, params):
    types = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
    for described in (described_beside(primitive), primitive.impl):
        try:
            jaxpr = jax.make_jaxpr(lambda *operands: described(*operands, **params))(*types)  # noqa: B023
        except Exception:
            continue
        if not _asks_for_itself(jaxpr.jaxpr, primitive):
            return jaxpr
    return None


def _asks_for_itself(jaxpr, primitive):
    """Whether the primitive is among the equations, or all that they call, as where its implementation is to compile it. A function that does more may lead to it again."""
    inner = core.jaxprs_in_params(jaxpr.eqns[0].params) if len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name in ("jit", "pjit") else ()
    return any(e.primitive is primitive for e in jaxpr.eqns) or any(_asks_for_itself(called, primitive) for called in inner)


def lowering_of(primitive, avals, params):
    """The program of the text that a primitive's own lowering writes; None if it has none."""
    types = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
    try:
        text = jax_jit(lambda *operands: primitive.bind(*operands, **params)).lower(*types).as_text()
    except NotImplementedError:
        return None
    return _core.stablehlo.parse(text, primitive.name, False)


def described_beside(primitive):
    """The function that jax.experimental.sparse lowers a primitive by, where evaluating it is left to that lowering."""
    for name in ("bcoo", "bcsr", "coo", "csr"):
        module = sys.modules.get(f"jax.experimental.sparse.{name}")
        if hasattr(module, f"_{primitive.name}_impl"):
            return getattr(module, f"_{primitive.name}_impl")
    return None
