"""orbax in a program that the runner runs: rank 0 saves, and every rank restores.

orbax works on arrays of JAX, with threads and JAX's own functions. A save gathers the arrays and hands them to orbax on rank 0, as
arrays of JAX with the same shardings, so that JAX alone restores them. A restore is orbax's own on every rank, whose arrays become
split ones. What a manager says of its steps is rank 0's answer.
"""
import contextlib
import copy
import dataclasses
import functools
import logging

import numpy as np

from .. import _core
from . import _eager, _files, _layouts, _sharded, _values
from ._imports import after_import

import jax

_kept = []  # (owner, name, JAX's own function) of what the runner replaces
_names = ("jit", "pmap", "make_array_from_callback", "make_array_from_process_local_data", "make_array_from_single_device_arrays", "process_index", "process_count",
          "local_devices", "local_device_count", "device_get", "block_until_ready", "device_put", "clear_caches")
_inside = [0]


def _is_orbax_s():
    """Whether a call comes from orbax itself, whose threads go on when a save has returned."""
    return _inside[0] > 0 or _files.in_thread()


@contextlib.contextmanager
def _jax_alone():
    """Within it JAX's functions are JAX's, and files are this rank's."""
    replaced = [(owner, name, getattr(owner, name)) for owner, name, _ in _kept]
    _inside[0] += 1
    _eager.take_all(False)
    for owner, name, function in _kept:
        setattr(owner, name, function)
    try:
        with _files.alone():
            yield
    finally:
        for owner, name, function in replaced:
            setattr(owner, name, function)
        _eager.take_all()
        _inside[0] -= 1


def _each(of_leaf, value):
    """A tree with of_leaf of each leaf; also in orbax's own arguments and results, which are no trees of JAX."""
    kinds = {kind.__name__ for kind in type(value).__mro__}
    if "Composite" in kinds:
        return type(value)(**{name: _each(of_leaf, part) for name, part in value.items()})
    if "CheckpointArgs" in kinds and dataclasses.is_dataclass(value):
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(made, field.name, _each(of_leaf, getattr(value, field.name)))
        return made
    return jax.tree_util.tree_map(of_leaf, value)


def _with_each(of_leaf, args, kwargs):
    """The arguments of a call, with rank 0's folders where those are temporary ones."""
    return [_each(of_leaf, _files.of_first(a)) for a in args], {name: _each(of_leaf, _files.of_first(a)) for name, a in kwargs.items()}


def _of_jax(leaf):
    """On rank 0 an array of JAX with the same sharding; elsewhere only what it took to gather it. Collective."""
    if not _sharded.is_ours(leaf):
        return leaf
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        data, kind = _of_jax(leaf._base_array), jax.random.key_impl(leaf)
        with _jax_alone():
            return jax.random.wrap_key_data(data, impl=kind)
    x = _values.array_of(leaf)
    host, sharding = _values.to_numpy(x), _layouts.jax_sharding_of(x)
    if not _core.is_main_process():
        return leaf
    with _jax_alone():
        try:
            return jax.device_put(host, sharding)
        except ValueError:  # JAX does not split extents that the devices do not divide
            return jax.device_put(host)


def _of_tessera(leaf):
    """An array of JAX, whole on this rank, as a split one."""
    if not isinstance(leaf, jax.Array) or _sharded.is_ours(leaf) or isinstance(leaf, jax.core.Tracer):
        return leaf
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_of_tessera(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
    array = jax.numpy.asarray(np.asarray(leaf))
    return jax.device_put(array, leaf.sharding) if isinstance(leaf.sharding, jax.sharding.NamedSharding) else array


def _described(leaf):
    """What a restore needs of an array: its type and where it is."""
    if not _sharded.is_ours(leaf) or not isinstance(leaf, jax.Array) or jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)


def _by_first(original):
    """A method that changes files, or tells of rank 0's state: rank 0's result for all."""
    @functools.wraps(original)
    def call(self, *args, **kwargs):
        if _is_orbax_s():
            return original(self, *args, **kwargs)
        args, kwargs = _with_each(_of_jax, args, kwargs)

        def of_first():
            with _jax_alone():
                found = original(self, *args, **kwargs)
                if not _layouts.is_one_process["yes"]:  # orbax's threads would ask for processes that take no part
                    _finish(self)
                return None if found is self else found
        return _files.by_first(of_first)
    return call


def _by_all(original):
    """A method that reads files: by every rank, when rank 0 has written."""
    @functools.wraps(original)
    def call(self, *args, **kwargs):
        if _is_orbax_s():
            return original(self, *args, **kwargs)
        _files.by_first(_finish, self)
        args, kwargs = _with_each(_described, args, kwargs)
        with _jax_alone():
            if not _core.is_main_process() and hasattr(self, "reload"):
                self.reload()
            found = original(self, *args, **kwargs)
        _files.wait()  # rank 0 removes steps after that
        return _each(_of_tessera, found)
    return call


def _finish(checkpointer):
    if hasattr(checkpointer, "wait_until_finished"):
        with _jax_alone():
            checkpointer.wait_until_finished()


def _in_one_process(original):
    """A checkpointer is made as in one process: without JAX's barriers of processes."""
    @functools.wraps(original)
    def init(self, *args, **kwargs):
        with contextlib.nullcontext() if _is_orbax_s() else _jax_alone():
            original(self, *args, **kwargs)
    return init


def _made_by_all(original):
    """A manager's beginning: rank 0 makes its folder, and the others only read."""
    @functools.wraps(original)
    def init(self, directory, checkpointers=None, options=None, *args, **kwargs):
        if _is_orbax_s():
            return original(self, directory, checkpointers, options, *args, **kwargs)
        directory = _files.of_first(directory)

        def of_first():
            with _jax_alone():
                original(self, directory, checkpointers, options, *args, **kwargs)
        _files.by_first(of_first)
        if not _core.is_main_process():
            import orbax.checkpoint as ocp
            with _jax_alone(), _without_warnings():  # that a manager that only reads removes nothing
                options = dataclasses.replace(options, read_only=True) if options is not None else ocp.CheckpointManagerOptions(read_only=True)
                original(self, directory, checkpointers, options, *args, **kwargs)
        _files.wait()
    return init


@contextlib.contextmanager
def _without_warnings():
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _patch(module):
    """orbax.checkpoint, just imported."""
    for kind in (module.Checkpointer, module.AsyncCheckpointer, module.StandardCheckpointer, module.PyTreeCheckpointer):
        _wrap(kind, _by_first, ("save", "wait_until_finished", "check_for_errors"))
        _wrap(kind, _by_all, ("restore", "metadata"))
        _wrap(kind, _in_one_process, ("__init__",))
    manager = module.CheckpointManager
    _wrap(manager, _made_by_all, ("__init__",))
    _wrap(manager, _by_first, ("save", "delete", "wait_until_finished", "check_for_errors", "all_steps", "latest_step", "best_step", "should_save",
                               "reached_preemption", "is_saving_in_progress", "metrics", "reload"))
    _wrap(manager, _by_all, ("restore", "item_metadata", "metadata"))


def _wrap(kind, by, names):
    for name in names:
        if name in vars(kind):
            setattr(kind, name, by(vars(kind)[name]))


def install():
    """Before the runner replaces JAX's functions."""
    named = [(jax, name) for name in _names] + [(jax.distributed, "is_initialized")]
    _kept.extend((owner, name, getattr(owner, name)) for owner, name in named if hasattr(owner, name))
    after_import("orbax.checkpoint", _patch)
