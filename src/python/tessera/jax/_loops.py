"""Products in a scan's body that need no loop, done once for all steps.

    a product of a step's input and a constant              -> one product of all inputs, before the loop
    a carried sum of products (the gradient of weights)     -> one product of all factors, behind the loop

A loop holds one step's factors, this holds all of them: what needs more than `most_bytes` stays in the loop.
"""
import collections
import types

import numpy as np

from .. import _core as c
from ._versions import is_literal
from .rules.products import dot_general

most_bytes = 32 << 20


class Split:
    """A scan's body without such products, and what stands for them."""

    def __init__(self, jaxpr, num_consts, num_carry, length):
        self._length, self._room = length, most_bytes
        self._consts, self._carry, self._xs = jaxpr.invars[:num_consts], jaxpr.invars[num_consts:num_consts + num_carry], jaxpr.invars[num_consts + num_carry:]
        self._made = {v: e for e in jaxpr.eqns for v in e.outvars}
        self._uses = collections.Counter(v for e in jaxpr.eqns for v in e.invars if not is_literal(v))
        self._uses.update(v for v in jaxpr.outvars if not is_literal(v))
        self._fixed, gone = {*self._consts, *jaxpr.constvars}, set()
        self.stacked = []  # values of the body that are further results
        self.sums = {n: s for n, s in enumerate(map(self._sum, self._carry, jaxpr.outvars[:num_carry])) if s is not None}
        for s in self.sums.values():
            gone |= {id(e) for e in s.equations}
        self.before = [e for e in jaxpr.eqns if id(e) not in gone and num_carry and self._is_before(e)]
        gone |= {id(e) for e in self.before}
        self.kept = [n for n in range(num_carry) if n not in self.sums]
        equations = [e for e in jaxpr.eqns if id(e) not in gone]
        outs = [jaxpr.outvars[n] for n in self.kept] + jaxpr.outvars[num_carry:] + self.stacked
        read = {v for e in equations for v in e.invars if not is_literal(v)} | {v for v in outs if not is_literal(v)}
        self.read = [n for n, v in enumerate(self._xs) if v in read]
        invars = [*self._consts, *[self._carry[n] for n in self.kept], *[self._xs[n] for n in self.read], *[e.outvars[0] for e in self.before]]
        self.body = types.SimpleNamespace(constvars=jaxpr.constvars, invars=invars, eqns=equations, outvars=outs)

    def _fits(self, variables):
        """Takes the room for all steps' values of these; False where there is not enough."""
        needed = sum(self._length * int(np.prod(v.aval.shape)) * v.aval.dtype.itemsize for v in variables)
        if needed > self._room:
            return False
        self._room -= needed
        return True

    def _only_used_once(self, v, name):
        """The equation of that name that made a value which nothing else reads; otherwise None."""
        found = None if is_literal(v) or self._uses[v] != 1 else self._made.get(v)
        return found if found is not None and found.primitive.name in name else None

    def _sum(self, carry, out):
        """What is added to a carried value in each step, if that is all that is done with it, and it is a product."""
        add = self._only_used_once(out, ("add", "add_any"))
        if add is None or self._uses[carry] != 1 or not any(v is carry for v in add.invars):
            return None
        term = add.invars[1] if add.invars[0] is carry else add.invars[0]
        turned = self._only_used_once(term, ("transpose",))
        product = self._only_used_once(term if turned is None else turned.invars[0], ("dot_general",))
        if product is None or product.params["dimension_numbers"][1] != ((), ()) or any(is_literal(v) or v in self._fixed for v in product.invars):
            return None
        new = [v for v in dict.fromkeys(product.invars) if v not in self._xs and v not in self.stacked]
        if product.outvars[0].aval.dtype != carry.aval.dtype or not self._fits(new):
            return None
        self.stacked += new
        return types.SimpleNamespace(product=product, permutation=None if turned is None else turned.params["permutation"],
                                     equations=[e for e in (add, turned, product) if e is not None])

    def _is_before(self, eqn):
        if eqn.primitive.name != "dot_general" or any(is_literal(v) for v in eqn.invars):
            return False
        a, b = eqn.invars
        return (a in self._xs and b in self._consts or a in self._consts and b in self._xs) and self._fits(eqn.outvars)

    def inputs(self, consts, xs):
        """The loop's inputs: those that its body still reads, and the products of all steps."""
        return [xs[n] for n in self.read] + [self._of_all_steps(e, consts, xs) for e in self.before]

    def _of_all_steps(self, eqn, consts, xs):
        a, b = eqn.invars
        (ca, cb), (ba, bb) = eqn.params["dimension_numbers"]
        wider = lambda dims: tuple(d + 1 for d in dims)  # noqa: E731
        options = dict(preferred_element_type=eqn.params.get("preferred_element_type"))
        if a in self._xs:
            found = dot_general(xs[self._xs.index(a)], consts[self._consts.index(b)], ((wider(ca), cb), (wider(ba), bb)), **options)
            return c.moveaxis(found, len(ba), 0)
        found = dot_general(consts[self._consts.index(a)], xs[self._xs.index(b)], ((ca, wider(cb)), (ba, wider(bb))), **options)
        return c.moveaxis(found, len(a.aval.shape) - len(ca), 0)

    def results(self, init, xs, carry, ys):
        """All that the scan gives, of what the loop gave."""
        count = len(ys) - len(self.stacked)
        stacks = dict(zip(self.stacked, ys[count:]))
        stacks.update(zip(self._xs, xs))
        carried = dict(zip(self.kept, carry))
        for n, s in self.sums.items():
            (ca, cb), _ = s.product.params["dimension_numbers"]
            numbers = ((0, *(d + 1 for d in ca)), (0, *(d + 1 for d in cb))), ((), ())
            total = dot_general(*[stacks[v] for v in s.product.invars], numbers, preferred_element_type=s.product.params.get("preferred_element_type"))
            carried[n] = c.add(init[n], total if s.permutation is None else c.transpose(total, list(s.permutation)))
        return [carried[n] for n in range(len(carried))] + list(ys[:count])
