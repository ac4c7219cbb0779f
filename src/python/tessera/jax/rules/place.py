"""Primitives that say where arrays are."""
import math

from jax.sharding import NamedSharding

from ... import _core as c
from .. import _layouts
from .._interpret import rule


@rule("sharding_constraint", "mesh_cast")
def sharding_constraint(x, sharding=None, dst_sharding=None, **_):
    return placed(x, sharding if sharding is not None else dst_sharding)


@rule("reshard")
def reshard(x, dst_sharding, concrete_mesh=None, **_):
    """To axes none of which is explicit, as at the end of explicit_axes, it says nothing."""
    return placed(x, dst_sharding) if _layouts.has_explicit_axes(dst_sharding.mesh) else x


def placed(x, sharding):
    if sharding is None or _layouts.has_free_dims(sharding):
        return x  # what a free dim has to be is left to the planner
    return c.with_sharding_constraint_leaf(x, _layouts.sharding_of(sharding))


@rule("shard_alike")
def shard_alike(x, y, **_):
    """Both as the one of them lies that has the smaller blocks."""
    placed = [v.sharding for v in (x, y) if v.committed]
    if not placed:
        return [x, y]
    sharding = min(placed, key=lambda s: math.prod(s.shard_shape(x.shape)))
    return [c.with_sharding_constraint_leaf(v, sharding) for v in (x, y)]


@rule("device_put")
def device_put(*operands, devices=None, srcs=None, copy_semantics=None, device=None, **_):
    targets = devices if devices is not None else [device] * len(operands)
    return [_put(x, t) for x, t in zip(operands, targets)]


def _put(x, target):
    """A place in memory alone, and JAX's first device inside of a program, say nothing of ranks."""
    target = getattr(target, "sharding", target)
    if target is None or not (hasattr(target, "spec") or hasattr(target, "mesh")):
        return x
    return c.with_sharding_constraint_leaf(x, _layouts.sharding_of(target))


@rule("host_local_array_to_global_array")
def host_local_array_to_global_array(x, global_mesh, pspec):
    """In one process all of the array is local."""
    return placed(x, NamedSharding(global_mesh, pspec))
