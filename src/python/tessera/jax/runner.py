"""An unchanged program of JAX on all ranks.

What the program sees is one process with a device for each rank: jax.devices() are the ranks, all of them local, and what it prints is
printed once. A program that calls jax.distributed.initialize sees its processes: process k has device k. Arrays of jax.numpy are
arrays of tessera, jax.jit is tessera.jax.jit, and every primitive outside of jit is recorded as an op.
"""
import io
import os
import random
import runpy
import sys

from .. import _core, debug
from . import _eager, _jit, _layouts, _setup, _sharded, _values, rules, tutorials  # noqa: F401
from ._interpret import NotCarried
from ._lines import calling_place, text_of

import jax
import numpy as np


def _jit_replaced(fun=None, /, **options):
    if fun is None:
        return lambda f: _jit_replaced(f, **options)
    known = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "in_shardings", "out_shardings")
    return _jit.Jit(fun, **{name: options.get(name) for name in known}, wraps=True)


def _make_array_from_callback(shape, sharding, data_callback, dtype=None, **_):
    """Every rank's block by the callback: of what is no NumPy array, its values."""
    made = _core.make_array_from_callback(tuple(shape), _layouts.sharding_of(sharding), lambda index: _host(data_callback(index), dtype))
    return _sharded.wrapped(made, None)


def _host(block, dtype=None):
    if _sharded.is_ours(block):
        block = np.asarray(_values.array_of(block)._host())
    block = np.asarray(block)
    return block.astype(jax.dtypes.canonicalize_dtype(dtype or block.dtype), copy=False)


def _make_array_from_process_local_data(sharding, local_data, global_shape=None):
    if _layouts.is_one_process["yes"]:  # one process: its data are all of the array
        return jax.device_put(local_data, sharding)
    return _sharded.wrapped(_core.make_array_from_process_local_data(_layouts.sharding_of(sharding), _host(local_data), global_shape), None)


def _make_array_from_single_device_arrays(shape, sharding, arrays, **_):
    """One block per device: this rank gives the one that stands at its own."""
    by_index = {}
    for array, (_, index) in zip(arrays, sharding.addressable_devices_indices_map(tuple(shape)).items()):
        by_index[_bounds(index, shape)] = array
    return _make_array_from_callback(shape, sharding, lambda index: _values.to_numpy(_values.array_of(by_index[_bounds(index, shape)])))


def _bounds(index, shape):
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape))


def _initialize(*_, **__):
    _layouts.is_one_process["yes"] = False
    _draw_apart()
    _speak(True)


def _local_devices(process_index=None, backend=None, host_id=None):
    return jax.devices()[_core.process_index():_core.process_index() + 1] if not _layouts.is_one_process["yes"] else jax.devices()


def _device_get(tree):
    return jax.tree_util.tree_map(lambda x: np.asarray(x) if hasattr(x, "__array__") else x, tree)


def _block_until_ready(tree):
    _core.eval_leaves([_values.array_of(x) for x in jax.tree_util.tree_leaves(tree) if _sharded.is_ours(x)])
    return tree


def _visualize(x, **_):
    debug.visualize_array_sharding(_values.array_of(x))


def _visualize_sharding(shape, sharding, **_):
    debug.visualize_sharding(tuple(shape), _layouts.sharding_of(sharding))


class _Refused:
    """A part of JAX that has no counterpart: its use says so, with the program's line."""

    def __init__(self, name, instead):
        self._name, self._instead = name, instead

    def __call__(self, *_, **__):
        raise NotCarried(f"{self._name} at {text_of(calling_place())} is not carried: {self._instead}")


def _pmap(fun=None, axis_name=None, *, in_axes=0, out_axes=0, static_broadcasted_argnums=(), devices=None, donate_argnums=(), **_):
    """Example k on device k: a map over a mesh of one axis, whose collectives go by the axis's name."""
    if fun is None:
        return lambda f: _pmap(f, axis_name, in_axes=in_axes, out_axes=out_axes, static_broadcasted_argnums=static_broadcasted_argnums, devices=devices, donate_argnums=donate_argnums)
    import functools

    @functools.wraps(fun)
    def mapped(*args, **kwargs):
        return _pmap_call(fun, axis_name or "i", in_axes, out_axes, static_broadcasted_argnums, devices, args, kwargs)
    return mapped


_pmapped = {}


def _pmap_call(fun, name, in_axes, out_axes, static, devices, args, kwargs):
    static = {static} if isinstance(static, int) else set(static)
    axes = [in_axes] * len(args) if isinstance(in_axes, int) or in_axes is None else list(in_axes)
    fixed = {n % len(args): args[n] for n in static}
    rest = [(a, axes[n]) for n, a in enumerate(args) if n not in fixed]
    leaf_axes = [(leaf, axis) for a, axis in rest for leaf in jax.tree_util.tree_leaves(a)]
    size = next(np.shape(leaf)[axis] for leaf, axis in leaf_axes if axis is not None)
    key = (fun, name, size, str(in_axes), str(out_axes), tuple(fixed.items()))
    if key not in _pmapped:
        _pmapped[key] = _pmap_made(fun, name, size, [axis for _, axis in rest], out_axes, fixed, len(args), devices)
    return _pmapped[key](*[a for a, _ in rest], **kwargs)


def _pmap_made(fun, name, size, axes, out_axes, fixed, count, devices):
    from jax.sharding import Mesh, PartitionSpec as P
    devices = list(devices or jax.devices())[:size]
    if len(devices) < size:
        raise ValueError(f"pmap: {size} examples, and the job has {len(jax.devices())} ranks")
    mesh = Mesh(np.array(devices, object), (name,))
    spec = lambda axis: P() if axis is None else P(*[None] * axis, name)  # noqa: E731

    def one(*blocks, **kwargs):
        values = iter([b if axis is None else jax.tree_util.tree_map(lambda x: jax.numpy.squeeze(x, axis), b) for b, axis in zip(blocks, axes)])  # noqa: B023
        result = fun(*[fixed[n] if n in fixed else next(values) for n in range(count)], **kwargs)
        return jax.tree_util.tree_map(lambda x: jax.numpy.expand_dims(x, out_axes), result)

    def whole(*args, **kwargs):
        return shard_map(lambda *a: one(*a, **kwargs), mesh=mesh, in_specs=tuple(spec(a) for a in axes), out_specs=spec(out_axes), check_vma=False)(*args)
    from jax import shard_map
    return _jit_replaced(whole)


_silent = None


def _speak(on):
    """One process prints: the others' output goes nowhere. Errors are the job's and are printed once by tessera."""
    global _silent
    if on and _silent is not None:
        sys.stdout, _silent = _silent, None
    elif not on and not _core.is_main_process() and _silent is None:
        _silent, sys.stdout = sys.stdout, io.TextIOWrapper(open(os.devnull, "wb"), write_through=True)


_default_rng = np.random.default_rng


def _draw_alike():
    """What one process would draw, every rank draws: generators of NumPy and Python without a seed begin alike. Collective."""
    seeds = np.random.SeedSequence(_core.multihost.broadcast_one_to_all(np.frombuffer(os.urandom(8), "uint32").astype("int64")).tolist())
    np.random.seed(seeds.generate_state(4))
    random.seed(int(seeds.generate_state(1)[0]))
    np.random.default_rng = lambda seed=None: _default_rng(seeds.spawn(1)[0] if seed is None else seed)


def _draw_apart():
    """Processes of their own: the system's entropy."""
    np.random.seed()
    random.seed()
    np.random.default_rng = _default_rng


def install():
    """jax and its modules, with tessera behind them. Nothing changes for what was imported by name before."""
    _layouts.is_one_process["yes"] = True
    _draw_alike()
    _eager.install()
    _eager.take_all()
    jax.jit = _jit_replaced
    jax.pmap = _pmap
    jax.make_array_from_callback = _make_array_from_callback
    jax.make_array_from_process_local_data = _make_array_from_process_local_data
    jax.make_array_from_single_device_arrays = _make_array_from_single_device_arrays
    jax.process_index = lambda backend=None: 0 if _layouts.is_one_process["yes"] else _core.process_index()
    jax.process_count = lambda backend=None: 1 if _layouts.is_one_process["yes"] else _core.process_count()
    jax.local_devices, jax.local_device_count = _local_devices, lambda backend=None: len(_local_devices())
    jax.device_get, jax.block_until_ready = _device_get, _block_until_ready
    jax.distributed.initialize, jax.distributed.is_initialized = _initialize, lambda: not _layouts.is_one_process["yes"]
    jax.debug.visualize_array_sharding, jax.debug.visualize_sharding = _visualize, _visualize_sharding
    jax.clear_caches = lambda: None
    _refuse()
    tutorials.install()


def _refuse():
    for owner, name, instead in ((getattr(jax, "profiler", None), "start_trace", "use tessera.debug.profile"), (getattr(jax, "profiler", None), "trace", "use tessera.debug.profile")):
        if owner is not None and hasattr(owner, name):
            setattr(owner, name, _Refused(f"jax.profiler.{name}", instead))


def run(path, arguments=()):
    """The program of that path, as python3 path arguments would run it."""
    install()
    _speak(False)
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    return runpy.run_path(path, run_name="__main__")


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: tessera run -n 8 -m tessera.jax program.py [arguments]")
        return
    if arguments[0] == "-m":
        install()
        _speak(False)
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    run(arguments[0], arguments[1:])
