"""Linear systems as one op: JAX's solve is an `lu`, and two triangular solves inside of a `custom_linear_solve`.

If nothing else reads the factor, tessera's solve takes the place of both: the matrix is redistributed once instead of three times,
and no factor is written. A factor that has other readers (the backward pass, lu_factor) is kept, as JAX keeps it.
"""
from .. import _core as c
from ._lines import call_at
from ._versions import closed, is_literal, user_frame

_solver = "_lu_solve"  # JAX's own function
_moves = frozenset(("broadcast_in_dim", "transpose", "reshape", "squeeze", "gather"))


def systems(jaxpr):
    """{id of an lu equation: the equation that solves by its factor}, for factors with one reader."""
    found = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "lu":
            readers = [e for e in jaxpr.eqns if any(v in eqn.outvars for v in e.invars if not is_literal(v))]
            kept = any(v in eqn.outvars for v in jaxpr.outvars if not is_literal(v))
            if len(readers) == 1 and not kept and readers[0].primitive.name == "custom_linear_solve" and _is_solve(readers[0], eqn):
                found[id(eqn)] = readers[0]
    return found


def _is_solve(eqn, factored):
    """Whether it is JAX's solve by this factor and its permutation, of one right-hand side."""
    lengths = eqn.params["const_lengths"]
    first = lengths.matvec + lengths.vecmat
    consts, sides = eqn.invars[first:first + lengths.solve], eqn.invars[sum(lengths):]
    factor, _, permutation = factored.outvars
    return list(consts) == [factor, permutation] and len(sides) == 1 and _substitution(eqn) is not None


def _substitution(eqn):
    """The jaxpr of JAX's function (factor, permutation, b) -> x, if it is the one that is known; otherwise None."""
    solver = closed(eqn.params["jaxprs"].solve).jaxpr
    if len(solver.eqns) != 1 or solver.eqns[0].params.get("name") != _solver or solver.eqns[0].invars != solver.invars:
        return None
    jaxpr = closed(solver.eqns[0].params["jaxpr"]).jaxpr
    values = _values_of_b(jaxpr)
    steps = [e for e in jaxpr.eqns if e.outvars[0] in values]
    solves = [e for e in steps if e.primitive.name == "triangular_solve"]
    is_known = all(e.primitive.name in _moves or e in solves or _takes_all(e) for e in steps) and [e.primitive.name for e in steps].count("gather") == 1
    return jaxpr if is_known and jaxpr.outvars[0] in values and len(solves) == 2 and all(_is_half(jaxpr, e, n) for n, e in enumerate(solves)) else None


def _takes_all(eqn):
    """JAX 0.6 ends in a slice of the whole."""
    return eqn.primitive.name == "slice" and eqn.invars[0].aval.shape == eqn.outvars[0].aval.shape


def _values_of_b(jaxpr):
    """The variables that depend on the right-hand side."""
    known = {jaxpr.invars[2]}
    for eqn in jaxpr.eqns:
        if any(v in known for v in eqn.invars if not is_literal(v)):
            known.update(eqn.outvars)
    return known


def _is_half(jaxpr, eqn, n):
    """The first of the two solves is by L, or by U^T; the second by U, or by L^T."""
    p = eqn.params
    is_lower = (n == 0) != bool(p["transpose_a"])
    return p["left_side"] and bool(p["lower"]) == is_lower == bool(p["unit_diagonal"]) and eqn.invars[0] is jaxpr.invars[0]


def solved(eqn, a, b, apply):
    """The x of a x = b, or of a^T x = b: the dims move as in JAX's function. apply(eqn, operands) evaluates an equation."""
    jaxpr = _substitution(eqn)
    known = {jaxpr.invars[2]: b}
    is_first = True
    for step in jaxpr.eqns:
        name, operands = step.primitive.name, [known.get(v) for v in step.invars if not is_literal(v)]
        if all(x is None for x in operands):  # the permutation's
            continue
        if name == "gather":
            known[step.outvars[0]] = operands[0]
        elif name == "triangular_solve":
            known[step.outvars[0]] = operands[1] if is_first else call_at(user_frame(eqn.source_info), c.jax.solve, [_as_used(a, step.params), operands[1]], {})
            is_first = False
        else:
            known[step.outvars[0]], = apply(step, operands)
    return known[jaxpr.outvars[0]]


def _as_used(a, params):
    if not params["transpose_a"]:
        return a
    return c.conj(c.matrix_transpose(a)) if params["conjugate_a"] else c.matrix_transpose(a)
