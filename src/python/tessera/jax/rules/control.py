"""cond, while and scan: tessera's own, so that a loop is planned once and runs in the program."""
from ... import _core as c
from ... import lax
from .._interpret import evaluate, rule
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
    batched = closed(cond_jaxpr).jaxpr.outvars[0].aval.shape
    if batched:
        raise NotImplementedError("a while loop whose condition is an array")
    return list(c.control.while_loop(lambda state: evaluate(cond_jaxpr, *for_cond, *state)[0],
                                     lambda state: tuple(evaluate(body_jaxpr, *for_body, *state)), tuple(init)))


@rule("scan")
def scan(*operands, jaxpr, num_consts, num_carry, length, reverse, eqn, **_):
    consts, init, xs = operands[:num_consts], operands[num_consts:num_consts + num_carry], operands[num_consts + num_carry:]

    def step(carry, x):
        results = evaluate(jaxpr, *consts, *carry, *(x or ()))
        return tuple(results[:num_carry]), tuple(results[num_carry:])

    if length == 0:
        from .._values import dtype_of, shape_of
        return list(init) + [c.zeros(shape_of(a), dtype_of(a)) for a in eqn.out_avals[num_carry:]]
    carry, ys = lax.scan(step, tuple(init), tuple(xs) if xs else None, length=length, reverse=reverse)
    return list(carry) + list(ys)
