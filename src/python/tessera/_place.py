"""Placement and computation of arrays."""
from . import _core
from ._device import AllDevices, placed
from .tree_util import tree_leaves, tree_map

__all__ = ["device_put", "block_until_ready", "with_sharding_constraint"]


def _target(where, spec):
    if spec is not None:
        return _core.NamedSharding(where, spec)
    if isinstance(where, _core.Mesh) or (isinstance(where, _core.PartitionSpec) and not where.is_automatic):
        raise TypeError(f"device_put at {_core.here()}: a mesh and a spec belong together: device_put(x, mesh, P('x')), or a NamedSharding")
    return where


def device_put(x, device=None, spec=None):
    """The tree with every array on a sharding, a device, or a mesh and spec. Not collective: records."""
    if device is None:
        return tree_map(lambda leaf: leaf, x)
    if isinstance(device, (tuple, list, dict)):
        leaves, definition = _core.tree.flatten(x)
        return definition.unflatten([_core.device_put_leaf(leaf, to) for leaf, to in zip(leaves, _spread(device, x))])
    to = _target(device, spec)
    if isinstance(to, AllDevices):
        return placed(x, to) if isinstance(x, _core.Array) else tree_map(lambda leaf: placed(leaf, to), x)
    return _core.device_put_leaf(x, to) if isinstance(x, _core.Array) else tree_map(lambda leaf: _core.device_put_leaf(leaf, to), x)


def _spread(targets, tree):
    """One target per leaf: a target stands for all leaves below it."""
    if not isinstance(targets, (tuple, list, dict)):
        return [targets] * len(tree_leaves(tree))
    pairs = [(targets[k], tree[k]) for k in sorted(tree)] if isinstance(targets, dict) else list(zip(targets, tree))
    return [leaf for target, part in pairs for leaf in _spread(target, part)]


def with_sharding_constraint(x, shardings):
    """Inside jit: a layout that the planner must give x, and may use for x's operands. Outside: device_put."""
    if isinstance(shardings, (tuple, list, dict)):
        leaves, definition = _core.tree.flatten(x)
        return definition.unflatten([_core.with_sharding_constraint_leaf(leaf, to) for leaf, to in zip(leaves, _spread(shardings, x))])
    return tree_map(lambda leaf: _core.with_sharding_constraint_leaf(leaf, shardings), x)


def block_until_ready(tree):
    """Computes all arrays of a tree together. Collective over the ranks of their meshes."""
    _core.eval_leaves(tree_leaves(tree))
    return tree
