"""What a program does besides computing: prints and calls of its own functions."""
import numpy as np

from ... import _core as c
from ... import debug
from .._interpret import refuse, rule
from .._values import shape_of


@rule("debug_callback")
def debug_callback(*operands, callback, **_):
    """On rank 0, with NumPy's arrays, as debug.callback of tessera."""
    debug.callback(lambda *hosts: _quietly(callback, hosts), *operands)
    return []


def _quietly(callback, hosts):
    callback(*hosts)


@rule("debug_print")
def debug_print(*operands, fmt, in_tree, static_args, ordered=False, **_):
    from jax._src import debugging
    def written(*hosts):
        args, kwargs = debugging.merge_callback_args(in_tree, hosts, static_args)
        print(fmt.format(*args, **kwargs), flush=True)
    debug.callback(written, *operands)
    return []


@rule("inspect_sharding")
def inspect_sharding(x, callback, **_):
    from .. import _layouts
    callback(_layouts.jax_sharding_of(x))
    return []


def _host_call(operands, callback, result_avals, is_pure):
    """Every rank calls a pure function on the whole operands; any other one is called by rank 0, which tells the others the results."""
    types = [(shape_of(a), str(np.dtype(a.dtype).name)) for a in result_avals]

    def call(*hosts):
        results = callback(*hosts)
        results = results if isinstance(results, (list, tuple)) else [results]
        return [np.asarray(r, np.dtype(a.dtype)) for r, a in zip(results, result_avals)]

    return c.jax.host_call(call, list(operands), types, is_pure)


@rule("pure_callback")
def pure_callback(*operands, callback, result_avals, **_):
    return _host_call(operands, callback, result_avals, True)


@rule("io_callback")
def io_callback(*operands, callback, result_avals, **_):
    return _host_call(operands, callback, result_avals, False)


@rule("ffi_call")
def ffi_call(*operands, target_name=None, **_):
    refuse(f"jax.ffi's function {target_name!r}, which takes XLA's buffers: use jax.pure_callback")


