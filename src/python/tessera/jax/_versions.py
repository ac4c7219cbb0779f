"""What differs between the versions of JAX that are carried, 0.6 to the newest: one function per difference.

    name                     0.6 and 0.7                          0.8 and later
    user_frame               takes the SourceInfo                 takes its traceback
    the jit primitive        "pjit"                               "jit"
    shard_map's check        check_rep (until 0.6), check_vma     check_vma
    split_axis of top_k      the last axis                        axis=
    mul of scatter           "scatter-mul"                        "scatter_mul"
    facts of a jit's call    compiled, profiler                   compiled, profiler, constants
    module of keys           jax._src.prng                        jax._src.random.prng

Parameters that came later (out_sharding, accuracy, axis of top_k ...) are read with a default by the rules that know them.
"""
import jax
from jax._src import core, source_info_util

try:
    from jax._src import prng
except ImportError:
    from jax._src.random import prng

jax_jit = jax.jit  # JAX's own: the runner puts another one in its place
version = tuple(int(part) for part in jax.__version__.split(".")[:3])
oldest = (0, 6, 0)


def _count_of_call_facts():
    """How many values JAX's call of a compiled program gives beside the results: constants came with 0.7."""
    import inspect
    from jax._src import pjit
    return 3 if "const_args" in inspect.getsource(pjit) else 2


call_facts = (None, None, [])[:_count_of_call_facts()]


def user_frame(source_info):
    """The innermost frame outside of JAX of an equation: (file, line), or None."""
    trace = source_info.traceback
    if trace is None:
        return None
    try:
        frame = source_info_util.user_frame(trace)
    except (AttributeError, TypeError):
        frame = source_info_util.user_frame(source_info)
    return None if frame is None else (frame.file_name, frame.start_line)


def trace_of(function, args, kwargs, **options):
    """What jax.jit(function).trace gives: a closed jaxpr and the tree of the results."""
    traced = jax_jit(function, **options).trace(*args, **kwargs)
    return traced.jaxpr, jax.tree_util.tree_structure(traced.out_info)


def is_literal(variable):
    return isinstance(variable, core.Literal)


def closed(jaxpr):
    """A jaxpr with its constants, whether it came with them or not."""
    return jaxpr if isinstance(jaxpr, core.ClosedJaxpr) else core.ClosedJaxpr(jaxpr, ())
