"""cond, while and scan: tessera's own, so that a loop is planned once and runs in the program."""
from ... import _core as c
from ... import lax
from .._interpret import evaluate, evaluate_equations, refuse, rule, without_high
from .._loops import Split
from .._values import number_like
from .._versions import closed


@rule("cond")
def cond(index, *operands, branches, **_):
    last = len(branches) - 1
    if index.dtype.name == "bool":
        index = c.astype(index, "int32")

    def run(n):
        return lambda *values: tuple(evaluate(branches[n], *values))

    def choose(n):
        if n == last:
            return run(n)(*operands)
        return c.control.cond(c.less_equal(index, number_like(n, index)), lambda: run(n)(*operands), lambda: choose(n + 1))
    return list(choose(0))


@rule("while")
def while_(*operands, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **_):
    for_cond, for_body = operands[:cond_nconsts], operands[cond_nconsts:cond_nconsts + body_nconsts]
    init = operands[cond_nconsts + body_nconsts:]
    if not init:
        return []
    condition = lambda state: evaluate(cond_jaxpr, *for_cond, *state)[0]  # noqa: E731
    body = lambda state: tuple(evaluate(body_jaxpr, *for_body, *state))  # noqa: E731
    is_mapped, acts = bool(closed(cond_jaxpr).jaxpr.outvars[0].aval.shape), bool(closed(cond_jaxpr).jaxpr.effects)
    if not is_mapped and not acts:
        return list(c.control.while_loop(condition, body, tuple(init), in_program=True))

    def step(state):
        """The condition of the next step is a part of the state: it prints once, and says which examples go on."""
        goes_on, *old = state
        new = body(old)
        if is_mapped:
            new = tuple(c.where(_as_wide(goes_on, n), n, o) for n, o in zip(new, old))
        return (condition(new), *new)

    return list(c.control.while_loop(lambda state: c.any(state[0]), step, (condition(init), *init), in_program=True))[1:]


def _as_wide(flags, x):
    """The mapped dims lead: the flags' elements hold for all that is behind."""
    return c.reshape(flags, [*flags.shape, *[1] * (x.ndim - flags.ndim)])


@rule("platform_index")
def platform_index(*, platforms, **_):
    """The branch for the CPU, or the one for all others."""
    for n, names in enumerate(platforms):
        if names is None or "cpu" in names:
            return c.full((), n, "int32")
    refuse("a choice by platform that has none for the CPU")


@rule("scan")
def scan(*operands, jaxpr, num_consts, num_carry, length, reverse, eqn, **_):
    consts, init, xs = operands[:num_consts], operands[num_consts:num_consts + num_carry], operands[num_consts + num_carry:]

    if length == 0:
        from .._values import dtype_of, shape_of
        return list(init) + [c.zeros(shape_of(a), dtype_of(a)) for a in eqn.out_avals[num_carry:]]
    jaxpr = without_high(jaxpr)
    loop = Split(jaxpr.jaxpr, num_consts, num_carry, length)

    def step(carry, x):
        results = evaluate_equations(loop.body, jaxpr.consts, *consts, *carry, *(x or ()))
        return tuple(results[:len(loop.kept)]), tuple(results[len(loop.kept):])

    inputs = tuple(loop.inputs(consts, xs))
    carry, ys = lax.scan(step, tuple(init[n] for n in loop.kept), inputs or None, length=length, reverse=reverse)
    return loop.results(init, xs, carry, ys)
