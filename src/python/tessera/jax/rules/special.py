"""Special functions."""
import functools

from jax._src.lax import special

from ... import _core as c
from .._interpret import expand, rule


@functools.lru_cache(maxsize=None)
def _of_dtype(function, dtype):
    return lambda *values: function(*values, dtype=dtype)


def _by_jax(name, function):
    """JAX's own series, in the operands' dtype."""
    def apply(*operands, eqn, **_):
        aval = eqn.out_avals[0]
        return expand(_of_dtype(function, aval.dtype), [aval] * len(operands), [c.broadcast_to(x, aval.shape) for x in operands])
    rule(name)(apply)


_by_jax("igamma_grad_a", special.igamma_grad_a_impl)
_by_jax("random_gamma_grad", special.random_gamma_grad_impl)
