"""Tokens, which order what XLA runs: programs of tessera have one order, so a token carries nothing, or what was sent."""
from ... import _core as c
from .._interpret import evaluate, refuse, rule
from .._versions import without_references
from .mapped import ppermute


@rule("create_token")
def create_token(*_, **__):
    return None


@rule("after_all")
def after_all(*tokens):
    return next((t for t in tokens if t is not None), None)


@rule("psend")
def psend(x, *, axis_name, perm):
    """The token is what arrives: precv hands it out."""
    return ppermute(x, axis_name=axis_name, perm=perm)[0]


@rule("precv")
def precv(token, *, out_shape, axis_name, perm):
    if token is None or token.shape != tuple(out_shape.shape):
        refuse("precv of a token that is not psend's own")
    return token


@rule("dce_sink")
def dce_sink(_, **__):
    return []


@rule("run_state")
def run_state(*operands, jaxpr, is_initialized=None, **_):
    """References that become values and results."""
    if is_initialized is not None and not all(is_initialized):
        refuse("run_state with references that are not initialized")
    return evaluate(without_references(jaxpr), *operands)


@rule("zeros_like")
def zeros_like(x):
    return c.zeros(x.shape, x.dtype)


@rule("broadcast_to")
def broadcast_to(x, shape):
    return c.broadcast_to(x, shape)
