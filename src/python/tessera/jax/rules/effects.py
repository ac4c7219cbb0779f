"""What a program does besides computing: prints and calls of its own functions."""
import logging

import jax
import numpy as np
from jax._src import core

from ... import _core as c
from ... import debug
from .. import _eager, _layouts
from .._interpret import refuse, rule
from .._values import shape_of
from .mapped import _reduced, axis_index, manual_axes


def _called(callback, hosts):
    """A function of the program on arrays of JAX's own, as JAX calls it. JAX computes what it does with them: other ranks may not call it."""
    with _eager.left_to_jax(), core.eval_context():
        return callback(*jax.device_put(hosts, jax.devices()[0]))


def _blocks_of_devices(operands):
    """Inside of a shard_map: (devices, the operands of all of them, stacked); (0, operands) elsewhere.

    A program without jax.distributed is one process, which every device's block calls; with it each process calls for its own.
    """
    names = manual_axes() if _layouts.is_one_process["yes"] else []
    if not names:
        return 0, list(operands)
    return c.collectives.axis_size(names), [c.collectives.all_gather(x, names, None, 0, False) for x in operands]


def _tell(written, operands):
    """written(*arrays) on rank 0, as debug.callback of tessera; once per device inside of a shard_map."""
    count, operands = _blocks_of_devices(operands)

    def of_all(*hosts):
        if c.is_main_process():
            for part in _of_each_device(hosts, count):
                _called(written, part)
    debug.callback(of_all, *operands)
    return []


@rule("debug_callback")
def debug_callback(*operands, callback, **_):
    if not _layouts.is_one_process["yes"]:
        return _tell(callback, operands)
    count, operands = _blocks_of_devices(operands)
    return _host_call(operands, lambda *hosts: [_called(callback, part) for part in _of_each_device(hosts, count)][:0], [], False)


def _of_each_device(hosts, count):
    """The arguments of each call: of all devices inside of a shard_map."""
    return [tuple(host[n] for host in hosts) for n in range(count)] if count else [hosts]


@rule("debug_print")
def debug_print(*operands, fmt, in_tree, static_args, ordered=False, np_printoptions=(), has_placeholders=True, logging_record=None, **_):
    """As NumPy's options said when the call was made. Every rank prints, as a program may look at what stands in sys.stdout; the log is rank 0's."""
    from jax._src import debugging

    def written(*hosts):
        if logging_record and not c.is_main_process():
            return
        args, kwargs = debugging.merge_callback_args(in_tree, hosts, static_args)
        with np.printoptions(**dict(np_printoptions)):
            text = fmt.format(*args, **kwargs) if has_placeholders else " ".join(map(str, (fmt, *args)))
        if logging_record:
            debugging.logger.handle(logging.makeLogRecord({**vars(logging_record), "msg": text}))
        else:
            print(text, flush=True)
    return debug_callback(*operands, callback=written)


@rule("check")
def check(*_, debug=False, **__):
    """What checkify did not turn into a result raises, as JAX's own lowering does; checks for debugging are left out."""
    from jax._src import checkify
    if not debug:
        raise checkify.functionalization_error
    return []


@rule("inspect_sharding")
def inspect_sharding(x, callback, **_):
    from .. import _layouts
    callback(_layouts.jax_sharding_of(x))
    return []


def _host_call(operands, callback, result_avals, is_pure):
    """Every rank calls a pure function on the whole operands; of any other one rank 0 tells the others the results.

    A program without jax.distributed is one process: what its function changes, such as a list that it appends to, changes on every rank.
    """
    callers = "all" if is_pure else "each" if _layouts.is_one_process["yes"] else "one"
    types = [(shape_of(a), str(np.dtype(a.dtype).name)) for a in result_avals]

    def call(*hosts):
        results = callback(*hosts)
        results = results if isinstance(results, (list, tuple)) else [results]
        return [np.asarray(r, np.dtype(a.dtype)) for r, a in zip(results, result_avals)]

    return c.jax.host_call(call, list(operands), types, getattr(c.jax.Callers, callers))


@rule("pure_callback")
def pure_callback(*operands, callback, result_avals, **_):
    return _host_call(operands, lambda *hosts: _called(callback, hosts), result_avals, True)


@rule("io_callback")
def io_callback(*operands, callback, result_avals, **_):
    count, operands = _blocks_of_devices(operands)
    return _io_of_devices(count, operands, callback, result_avals) if count else _host_call(operands, lambda *hosts: _called(callback, hosts), result_avals, False)


def _io_of_devices(count, operands, callback, result_avals):
    """Every rank calls for each device. Rank 0 has the results of all; the others have zeros, and the sum over ranks gives each device its own."""
    names = manual_axes()
    types = [((count, *shape_of(a)), str(np.dtype(a.dtype).name)) for a in result_avals]

    def call(*hosts):
        calls = [_called(callback, part) for part in _of_each_device(hosts, count)]
        if not c.is_main_process():
            return [np.zeros(shape, a.dtype) for (shape, _), a in zip(types, result_avals)]
        calls = [r if isinstance(r, (list, tuple)) else [r] for r in calls]
        return [np.stack([np.asarray(r[k], a.dtype) for r in calls]) for k, a in enumerate(result_avals)]

    results = c.jax.host_call(call, operands, types, c.jax.Callers.one)
    here = axis_index(axis_name=names)
    return [c.take(_reduced("psum", r, names, None), here, 0) for r in results]


@rule("ffi_call")
def ffi_call(*operands, target_name=None, **_):
    refuse(f"jax.ffi's function {target_name!r}, which takes XLA's buffers: use jax.pure_callback")


