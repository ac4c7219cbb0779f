"""JAX's programs on all ranks of an MPI job: traced by JAX, planned and run by tessera.

    import tessera.jax as tj

    step = tj.jit(jax.value_and_grad(loss))                       # jax.jit, its options too
    w = tj.device_put(w, NamedSharding(mesh, P("x", None)))      # JAX's own meshes and specs; device k is rank k
    value, gradient = step(w, batch)                             # arrays of tessera

An unchanged program runs by `tessera run -n 8 -m tessera.jax program.py`. Needs JAX 0.6 or newer.
"""
from . import _setup  # noqa: F401  before JAX makes its devices
from . import rules  # noqa: F401
from ._interpret import NotCarried, known_primitives  # noqa: F401
from ._jit import jit  # noqa: F401
from ._arrays import array, device_put, to_jax  # noqa: F401
from ._eager import install as _install

_install()

__all__ = ["jit", "device_put", "array", "to_jax", "NotCarried", "known_primitives"]
