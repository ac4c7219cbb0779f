"""Arrays between JAX and tessera, explicitly."""
import jax

from .. import _core
from . import _layouts, _values


def array(tree):
    """A tree of what JAX takes for arrays as arrays of tessera. Values have to be the same on every rank."""
    return jax.tree_util.tree_map(_values.array_of, tree)


def device_put(tree, device=None, *, src=None, donate=False, may_alias=None):
    """A tree on shardings of JAX or of tessera: one for all leaves, or a tree of them. Not collective: records."""
    leaves, definition = jax.tree_util.tree_flatten(tree)
    return definition.unflatten([_put(_values.array_of(x), s) for x, s in zip(leaves, _layouts.spread(device, tree))])


def _put(x, sharding):
    sharding = _layouts.sharding_of(sharding)
    return x if sharding is None else _core.device_put_leaf(x, sharding)


def to_jax(tree):
    """A tree of arrays as JAX's own, whole on every rank. Collective: gathers."""
    return jax.tree_util.tree_map(lambda x: jax.numpy.asarray(_values.to_numpy(x)) if isinstance(x, _core.Array) else x, tree)
