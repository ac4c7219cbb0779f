"""Jaxprs as tessera programs: equation by equation, each by the rule of its primitive.

A rule is a function of the operands' arrays and the primitive's parameters. It returns one array, or a list for primitives with
several results. It records ops; nothing is computed here.
"""
import inspect

import jax
import numpy as np

from . import _values
from ._expand import jaxpr_of, lowering_of, meaning_of
from ._lines import call_at, text_of
from ._systems import solved, systems
from ._values import NotCarried, refuse  # noqa: F401  rules refuse
from ._versions import closed, is_literal, lowered, makes_references, user_frame, without_references

_rules = {}


def rule(*names):
    """Registers a function as the rule of primitives."""
    def register(function):
        takes_context = "eqn" in inspect.signature(function).parameters
        for name in names:
            _rules[name] = (function, takes_context)
        return function
    return register


def known_primitives():
    """Names of all primitives that have a rule."""
    return sorted(_rules)


def has_rule(name):
    """Whether a primitive has a rule, or a reason not to have one."""
    from .rules.left_out import reasons
    return name in _rules or name in reasons


class Equation:
    """What rules may ask of an equation beside its parameters: the types of operands and results."""
    __slots__ = ("name", "in_avals", "out_avals", "place")

    def __init__(self, name, in_avals, out_avals, place):
        self.name, self.in_avals, self.out_avals, self.place = name, in_avals, out_avals, place


def apply(primitive, operands, params, equation):
    """The results of one primitive on arrays, as a list."""
    function, takes_context = _rules.get(primitive.name) or (_by_its_own_function(primitive, equation), False)
    if takes_context:
        params = {**params, "eqn": equation}
    try:
        results = call_at(equation.place, function, operands, params)
    except NotCarried as error:
        where = text_of(equation.place)
        if where and where not in str(error):
            raise NotCarried(f"{primitive.name} at {where}: {error}") from None
        raise
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    return [r if r is None or r.dtype == _values.dtype_of(a) else _values.with_dtype(r, a) for r, a in zip(results, equation.out_avals)]


def _by_its_own_function(primitive, equation):
    """A package's own primitive, by the function of jax.numpy that it says is its meaning, or by its lowering to StableHLO."""
    def run(*operands, **params):
        from .rules.left_out import reasons
        jaxpr = meaning_of(primitive, equation.in_avals, params)
        program = None if jaxpr is not None or primitive.name in reasons else lowering_of(primitive, equation.in_avals, params)
        if program is not None:
            return program(*operands)
        if jaxpr is None:
            where = text_of(equation.place)
            why = f": {reasons[primitive.name]}" if primitive.name in reasons else ""
            raise NotCarried(f"jax's primitive {primitive.name!r}{' at ' + where if where else ''} has no counterpart in tessera.jax{why}")
        return evaluate(jaxpr, *operands)
    return run


def without_high(jaxpr):
    """A closed jaxpr of primitives that have rules: without JAX's high-level ones, and without references of its own."""
    jaxpr = lowered(closed(jaxpr))
    return without_references(jaxpr) if any(e.primitive.name in makes_references for e in jaxpr.jaxpr.eqns) else jaxpr


def evaluate(jaxpr, *operands):
    """The results of a closed jaxpr on arrays, as a list."""
    jaxpr = without_high(jaxpr)
    return evaluate_equations(jaxpr.jaxpr, jaxpr.consts, *operands)


def expand(function, avals, operands):
    """The results of a function of JAX on arrays of these types; the same object for the same meaning."""
    return evaluate(jaxpr_of(function, tuple((tuple(a.shape), a.dtype) for a in avals), jax.config.jax_enable_x64), *operands)


def evaluate_equations(jaxpr, consts, *operands):
    """The results of a jaxpr, or of what has its equations and variables, on arrays, as a list."""
    return _evaluate(jaxpr, [_values.array_of(c) for c in consts], operands)


def _last_uses(jaxpr):
    """For each equation the variables that no later one reads."""
    seen = {v for v in jaxpr.outvars if not is_literal(v)}
    dead = []
    for eqn in reversed(jaxpr.eqns):
        mine = {v for v in eqn.invars if not is_literal(v)} | set(eqn.outvars)
        dead.append(mine - seen)
        seen |= mine
    return dead[::-1]


def _has_reciprocal(v):
    """XLA divides numbers of bfloat16 in float32."""
    return getattr(v.aval, "dtype", None) in (np.float16, np.float32, np.float64, np.complex64, np.complex128)


def _inverted(jaxpr):
    """Broadcast values that are only divided by: XLA multiplies by the reciprocal of what is broadcast, which tells in the last digit."""
    found = {e.outvars[0] for e in jaxpr.eqns if e.primitive.name == "broadcast_in_dim" and len(e.invars) == 1 and _has_reciprocal(e.outvars[0])}
    for e in jaxpr.eqns if found else ():
        found -= {v for n, v in enumerate(e.invars) if not is_literal(v) and (n != 1 or e.primitive is not jax.lax.div_p)}
    return found - {v for v in jaxpr.outvars if not is_literal(v)}


def _divides_by_few(eqn, inverted):
    """Whether all is divided by fewer values, or a constant; "inverted" where those are their reciprocals already."""
    x, divisor = eqn.invars
    if not is_literal(divisor) and divisor in inverted:
        return "inverted"
    return _has_reciprocal(divisor) and (is_literal(divisor) or divisor.aval.size < x.aval.size)


def _evaluate(jaxpr, consts, operands):
    known = dict(zip(jaxpr.constvars, consts))
    known.update(zip(jaxpr.invars, operands))
    literals = {}

    def read(v):
        if not is_literal(v):
            return known[v]
        key = _values.literal_key(v.val, v.aval)
        if key not in literals:  # equal ones are one array: what is computed from them is computed once, in a loop's body too
            literals[key] = _values.literal(v.val, v.aval)
        return literals[key]

    def run(eqn, operands):
        primitive = eqn.primitive
        equation = Equation(primitive.name, [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars], user_frame(eqn.source_info))
        if eqn.outvars and eqn.outvars[0] in inverted:
            operands = [_values.reciprocal(operands[0])]
        elif primitive is jax.lax.div_p and (divides := _divides_by_few(eqn, inverted)):
            primitive, operands = jax.lax.mul_p, [operands[0], operands[1] if divides == "inverted" else _values.reciprocal(operands[1])]
        return apply(primitive, operands, eqn.params, equation)

    inverted = _inverted(jaxpr)
    one_op = systems(jaxpr)
    matrices = {}  # of the systems that are not solved yet, by the equation that does it
    for eqn, dead in zip(jaxpr.eqns, _last_uses(jaxpr)):
        if id(eqn) in one_op:
            matrices[id(one_op[id(eqn)])] = read(eqn.invars[0])
        elif id(eqn) in matrices:
            known[eqn.outvars[0]] = solved(eqn, matrices.pop(id(eqn)), read(eqn.invars[-1]), run)
        else:
            known.update(zip(eqn.outvars, run(eqn, [read(v) for v in eqn.invars])))
        for v in dead:
            known.pop(v, None)
    return [read(v) for v in jaxpr.outvars]
