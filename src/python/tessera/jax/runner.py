"""An unchanged program of JAX on all ranks.

What the program sees is one process with a device for each rank: jax.devices() are the ranks, all of them local, and what it prints is
printed once. A program that calls jax.distributed.initialize sees its processes: process k has device k. Arrays of jax.numpy are
arrays of tessera, jax.jit is tessera.jax.jit, and every primitive outside of jit is recorded as an op.
"""
import contextlib
import gc
import io
import math
import os
import random
import re
import runpy
import sys
import traceback

from .. import _core, debug
from . import _eager, _files, _jit, _layouts, _multihost, _natives, _orbax, _processes, _setup, _sharded, _values, rules, tutorials  # noqa: F401
from ._garbage import collect_by_count
from ._interpret import NotCarried
from ._lines import calling_place, text_of
from ._versions import allow_uneven

import jax
import numpy as np


def _jit_replaced(fun=None, /, **options):
    if fun is None:
        return lambda f: _jit_replaced(f, **options)
    known = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "in_shardings", "out_shardings")
    return _jit.Jit(fun, **{name: options.get(name) for name in known}, wraps=True)


def _make_array_from_callback(shape, sharding, data_callback, dtype=None, **_):
    """Every rank's block by the callback. Blocks that are arrays of all ranks are asked for by all of them, block by block."""
    _layouts.check_concrete(sharding, "jax.make_array_from_callback")
    shape, layout = tuple(shape), _layouts.sharding_of(sharding)
    of_block = lambda index: data_callback(_sharded.index_of(index, shape))  # noqa: E731
    if _layouts.is_one_process["yes"]:
        indices = list(dict.fromkeys(_bounds(index, shape) for index in layout.devices_indices_map(shape).values()))
        first = of_block(_slices(indices[0])) if indices else None
        if _sharded.is_ours(first):
            blocks = {at: _values.host(of_block(_slices(at)), dtype) for at in indices}
            of_block = lambda index: blocks[_bounds(index, shape)]  # noqa: E731
    return _sharded.wrapped(_core.make_array_from_callback(shape, layout, lambda index: _values.host(of_block(index), dtype)), None, spec=_layouts.written_spec(sharding))


def _slices(bounds):
    return tuple(slice(begin, end) for begin, end in bounds)


_of_one_process = jax.make_array_from_process_local_data


def _make_array_from_process_local_data(sharding, local_data, global_shape=None):
    if _layouts.is_one_process["yes"]:  # one process: its data are all of the array
        return _of_one_process(sharding, local_data, global_shape)
    return _sharded.wrapped(_core.make_array_from_process_local_data(_layouts.sharding_of(sharding), _values.host(local_data), global_shape), None, spec=_layouts.written_spec(sharding))


def _make_array_from_single_device_arrays(shape, sharding, arrays, *, dtype=None):
    """One block per device: this rank gives the one that stands at its own. Blocks of one place that are partial sums are added."""
    _check_blocks(arrays, dtype)
    by_index, plain = {}, _layouts.without_unreduced(sharding)
    for array, (_, index) in zip(arrays, plain.addressable_devices_indices_map(tuple(shape)).items()):
        at = _bounds(index, shape)
        by_index[at] = _values.host(by_index[at]) + _values.host(array) if plain is not sharding and at in by_index else array
    made = _make_array_from_callback(shape, plain, lambda index: by_index[_bounds(index, shape)])
    return made if plain is sharding else jax.device_put(made, sharding)


def _check_blocks(arrays, dtype):
    """JAX's errors of blocks that cannot be one device's."""
    if isinstance(arrays, jax.Array):
        raise TypeError(f"jax.make_array_from_single_device_arrays `arrays` argument must be a list or tuple, but got {type(arrays)}.")
    for array in arrays:
        if isinstance(array, jax.Array) and len(array.sharding.device_set) > 1:
            raise ValueError("When making an array from single-device arrays the input arrays must have one shard each. An argument array had "
                             f"{len(array.sharding.device_set)} shard(s).")
        if dtype is not None and array.dtype != dtype:
            raise ValueError("If `dtype` is provided to `jax.make_array_from_single_device_arrays`, it must match the dtype of the addressable shards. "
                             f"Got dtype={dtype} and a block of {array.dtype}.")


def _bounds(index, shape):
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape))


def _initialize(*_, **__):
    _layouts.is_one_process["yes"] = False
    _files.leave()
    _draw_apart()
    _speak(True)


def _local_devices(process_index=None, backend=None, host_id=None):
    return jax.devices()[_core.process_index():_core.process_index() + 1] if not _layouts.is_one_process["yes"] else jax.devices()


def _device_get(tree):
    """Of a tree's arrays NumPy's; keys and traced values are what they are."""
    stays = lambda x: isinstance(x, jax.core.Tracer) or jax.dtypes.issubdtype(getattr(x, "dtype", np.dtype("f")), jax.dtypes.extended)  # noqa: E731
    return jax.tree_util.tree_map(lambda x: np.asarray(x) if hasattr(x, "__array__") and not stays(x) else x, tree)


def _block_until_ready(tree):
    _values.evaluated(_core.eval_leaves, [_values.array_of(x) for x in jax.tree_util.tree_leaves(tree) if _sharded.is_ours(x)])
    return tree


def _live_arrays(platform=None):
    """Those that the program has in hand, and that nobody has deleted."""
    return [x for x in gc.get_objects() if type(x) is _sharded.ShardedArray and not x.is_deleted()]


def _drawn_by(original):
    """JAX's own picture; tessera's where that has none, as of uneven blocks or without the package rich."""
    def visualize_sharding(shape, sharding, **options):
        try:
            return original(shape, sharding, **options)
        except ValueError:
            return debug.visualize_sharding(tuple(shape), _layouts.sharding_of(sharding))
    return visualize_sharding


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
    mapped.lower = _jit_replaced(mapped, static_argnums=static_broadcasted_argnums, donate_argnums=donate_argnums).lower
    return mapped


_pmapped = {}


def _leaf_axes(axes, tree):
    """The axis of each leaf, as a list: an axis of a prefix of the tree stands for all leaves below it."""
    is_none = lambda axis: axis is None  # noqa: E731
    spread = jax.tree_util.tree_map(lambda axis, part: [(axis,)] * len(jax.tree_util.tree_leaves(part)), axes, tree, is_leaf=is_none)
    return [axis for (axis,) in jax.tree_util.tree_leaves(spread, is_leaf=lambda leaf: isinstance(leaf, tuple) and len(leaf) == 1 and (leaf[0] is None or isinstance(leaf[0], int)))]


def _pmap_call(fun, name, in_axes, out_axes, static, devices, args, kwargs):
    static = {static} if isinstance(static, int) else set(static)
    axes = [in_axes] * len(args) if isinstance(in_axes, int) or in_axes is None else list(in_axes)
    if max(static, default=-1) >= len(args):
        raise ValueError(f"pmapped function has static_broadcasted_argnums={tuple(sorted(static))} but was called with only {len(args)} positional "
                         f"argument{'s' * (len(args) != 1)}. All static broadcasted arguments must be passed positionally.")
    fixed = {n % len(args): args[n] for n in static}
    mapped = tuple(a for n, a in enumerate(args) if n not in fixed), kwargs
    leaves, tree = jax.tree_util.tree_flatten(mapped)
    leaf_axes = _leaf_axes((tuple(a for n, a in enumerate(axes) if n not in fixed), 0 if kwargs else {}), mapped)
    leaf_axes = [axis if axis is None or axis >= 0 else axis + np.ndim(leaf) for axis, leaf in zip(leaf_axes, leaves)]
    sizes = {np.shape(leaf)[axis] for leaf, axis in zip(leaves, leaf_axes) if axis is not None}
    if len(sizes) != 1:
        raise ValueError(f"pmap: the arguments have {sorted(sizes) or 'no'} examples along their mapped axes, which have to be as many in each")
    key = (fun, name, *sizes, tree, tuple(leaf_axes), str(out_axes), tuple(fixed.items()))
    if key not in _pmapped:
        _pmapped[key] = _pmap_made(fun, name, *sizes, tree, leaf_axes, out_axes, fixed, len(args), devices)
    return _pmapped[key](*leaves)


def _pmap_made(fun, name, size, tree, axes, out_axes, fixed, count, devices):
    from jax.sharding import Mesh, PartitionSpec as P
    devices = list(devices or jax.devices())[:size]
    if len(devices) < size:
        raise ValueError(f"pmap: {size} examples, and the job has {len(jax.devices())} ranks. {_layouts.of_ranks(size)}")
    mesh = Mesh(np.array(devices, object), (name,))
    spec = lambda axis: P() if axis is None else P(*[None] * axis, name)  # noqa: E731
    is_none = lambda axis: axis is None  # noqa: E731

    def one(*blocks):
        args, kwargs = tree.unflatten([b if axis is None else jax.numpy.squeeze(b, axis) for b, axis in zip(blocks, axes)])
        values = iter(args)
        result = fun(*[fixed[n] if n in fixed else next(values) for n in range(count)], **kwargs)
        leaves, results = jax.tree_util.tree_flatten(result)
        return results.unflatten([x if axis is None else jax.numpy.expand_dims(x, axis) for x, axis in zip(leaves, _leaf_axes(out_axes, result))])

    def whole(*leaves):
        return shard_map(one, mesh=mesh, in_specs=tuple(map(spec, axes)), out_specs=jax.tree_util.tree_map(spec, out_axes, is_leaf=is_none), check_vma=False)(*leaves)
    from jax import shard_map
    return _jit_replaced(whole)


def _shapes_by(original):
    """JAX asks for the class of its own jitted functions, whose results' types have shardings."""
    return lambda fun, *args, **kwargs: fun.eval_shape(*args, **kwargs) if isinstance(fun, _jit.Jit) else original(fun, *args, **kwargs)


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


def _without_colors():
    """mpirun gives every rank a terminal, whatever the job's output goes to: texts are those of a file or pipe."""
    if "JAX_PPRINT_USE_COLOR" not in os.environ:
        jax.config.update("jax_pprint_use_color", False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.isatty = lambda: False


def _name_as_in_jax(kind):
    """What type(x) of an array prints, in programs and in errors of packages."""
    from jax._src.array import ArrayImpl
    for name in ("__module__", "__name__", "__qualname__"):
        setattr(kind, name, getattr(ArrayImpl, name))


def install():
    """jax and its modules, with tessera behind them. Nothing changes for what was imported by name before."""
    _layouts.is_one_process["yes"] = True
    _orbax.install()  # keeps jax's own functions
    _draw_alike()
    _without_colors()
    _eager.install()
    _eager.take_all()
    _name_as_in_jax(_sharded.ShardedArray)
    collect_by_count()
    allow_uneven()
    jax.jit = _jit_replaced
    jax.eval_shape = _shapes_by(jax.eval_shape)
    jax.pmap = _pmap
    jax.make_array_from_callback = _make_array_from_callback
    jax.make_array_from_process_local_data = _make_array_from_process_local_data
    jax.make_array_from_single_device_arrays = _make_array_from_single_device_arrays
    jax.process_index = lambda backend=None: 0 if _layouts.is_one_process["yes"] else _core.process_index()
    jax.process_count = lambda backend=None: 1 if _layouts.is_one_process["yes"] else _core.process_count()
    jax.local_devices, jax.local_device_count = _local_devices, lambda backend=None: len(_local_devices())
    jax.device_get, jax.block_until_ready = _device_get, _block_until_ready
    jax.distributed.initialize, jax.distributed.is_initialized = _initialize, lambda: not _layouts.is_one_process["yes"]
    jax.debug.visualize_sharding = draw = _drawn_by(jax.debug.visualize_sharding)
    jax.debug.visualize_array_sharding = lambda x, **options: draw(x.shape, x.sharding, **options)
    jax.clear_caches, jax.live_arrays = lambda: None, _live_arrays
    _refuse()
    tutorials.install()
    _files.install()
    _natives.install()
    _processes.install()
    _multihost.install()


def _refuse():
    for owner, name, instead in ((getattr(jax, "profiler", None), "start_trace", "use tessera.debug.profile"), (getattr(jax, "profiler", None), "trace", "use tessera.debug.profile")):
        if owner is not None and hasattr(owner, name):
            setattr(owner, name, _Refused(f"jax.profiler.{name}", instead))


_too_few = re.compile(r"(?:Number of devices (\d+) must .* mesh_shape|cannot reshape array of size (\d+) into shape) \(([\d, ]+)\)")


@contextlib.contextmanager
def _mended():
    """JAX's and NumPy's errors of a mesh whose size is not the number of devices say how many ranks to start."""
    try:
        yield
    except ValueError as error:
        found = _too_few.search(str(error))
        is_of_devices = found and (found[1] or "device" in (traceback.extract_tb(error.__traceback__)[-1].line or ""))
        if is_of_devices and int(found[1] or found[2]) == _core.device_count():
            count = math.prod(int(n) for n in found[3].split(",") if n.strip())
            if count != _core.device_count():
                error.args = (f"{error}. The devices are the job's {_core.device_count()} ranks. {_layouts.of_ranks(count)}",)
        raise


def run(path, arguments=()):
    """The program of that path, as python3 path arguments would run it."""
    install()
    _speak(False)
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    with _mended():
        return runpy.run_path(path, run_name="__main__")


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: tessera run -n 8 -m tessera.jax program.py [arguments]")
        return
    if arguments[0] == "-m":
        install()
        _speak(False)
        sys.argv = arguments[1:]
        with _mended():
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    run(arguments[0], arguments[1:])
