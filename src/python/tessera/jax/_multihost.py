"""jax.experimental.multihost_utils in a program of several processes: tessera's collectives between them, on NumPy's arrays.

What a process alone has is an array of NumPy: arrays of jax.numpy are the same on every process.
"""
import functools

import jax
import numpy as np

from .. import _core
from . import _sharded, _values
from ._imports import after_import
from ._values import host

_multihost = _core.multihost


def _is_global(x):
    """Whether it is an array over the ranks, whose value is asked for as a whole."""
    return _sharded.is_ours(x) and x.committed and len(x.sharding.device_set) > 1


def _gathered(x, tiled):
    if _is_global(x):
        if not tiled:
            raise ValueError("Gathering global non-fully-addressable arrays only supports tiled=True")
        return np.asarray(x)
    mine = host(x)
    return np.asarray(_multihost.process_allgather(mine[None] if mine.ndim == 0 or not tiled else mine, True))


def process_allgather(in_tree, tiled=False):
    return jax.tree.map(lambda x: _gathered(x, tiled), in_tree)


def broadcast_one_to_all(in_tree, is_source=None):
    if is_source is None:
        return jax.tree.map(lambda x: np.asarray(_multihost.broadcast_one_to_all(host(x))), in_tree)
    source = int(np.argmax(_gathered(np.int32(is_source), False)))
    return jax.tree.map(lambda x: _gathered(host(x), False)[source], in_tree)


def assert_equal(in_tree, fail_message=""):
    all_values = process_allgather(jax.tree.map(host, in_tree), tiled=True)
    of_each = [values.reshape(_core.process_count(), -1) for values in jax.tree.leaves(all_values)]
    if not all((values == values[0]).all() for values in of_each):
        raise AssertionError(f"{fail_message}. Expected: {all_values}; got: {in_tree}.")


def host_local_array_to_global_array(local_inputs, global_mesh, pspecs):
    return _by_spec(lambda x, sharding: x if _is_global(x) else jax.make_array_from_process_local_data(sharding, host(x)), local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs, global_mesh, pspecs):
    def block(x, sharding):
        return np.asarray(_values.array_of(jax.device_put(x, sharding)).addressable_data(0))
    return _by_spec(block, global_inputs, global_mesh, pspecs)


def _by_spec(function, tree, mesh, specs):
    """A tree of function(leaf, its sharding); a spec stands for all leaves below it."""
    is_spec = lambda s: s is None or isinstance(s, jax.sharding.PartitionSpec)  # noqa: E731
    of = lambda spec: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec() if spec is None else spec)  # noqa: E731
    return jax.tree.map(lambda spec, part: jax.tree.map(lambda x: function(x, of(spec)), part), specs, tree, is_leaf=is_spec)


def _change(module):
    for name, function in dict(process_allgather=process_allgather, broadcast_one_to_all=broadcast_one_to_all, assert_equal=assert_equal, sync_global_devices=_multihost.sync_global_devices,
                               host_local_array_to_global_array=host_local_array_to_global_array, global_array_to_host_local_array=global_array_to_host_local_array).items():
        setattr(module, name, _in_processes(getattr(module, name), function))


def _in_processes(original, function):
    @functools.wraps(original)
    def call(*args, **kwargs):
        return (original if jax.process_count() == 1 else function)(*args, **kwargs)
    return call


def install():
    """From now on, in a program that calls jax.distributed.initialize."""
    after_import("jax.experimental.multihost_utils", _change)
