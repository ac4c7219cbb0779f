"""What differs between the versions of JAX that are carried, 0.6 to the newest: one function per difference.

    name                     0.6 and 0.7                          0.8 and later
    user_frame               takes the SourceInfo                 takes its traceback
    the jit primitive        "pjit"                               "jit"
    shard_map's check        check_rep (until 0.6), check_vma     check_vma
    split_axis of top_k      the last axis                        axis=
    mul of scatter           "scatter-mul"                        "scatter_mul"
    discharge_state          takes a jaxpr and its constants      takes a closed jaxpr (since 0.9 or so)
    facts of a jit's call    compiled, profiler                   compiled, profiler, constants
    module of keys           jax._src.prng                        jax._src.random.prng

Parameters that came later (out_sharding, accuracy, axis of top_k ...) are read with a default by the rules that know them.
"""
import inspect

import jax
from jax._src import config, core, source_info_util

try:
    from jax._src import prng
except ImportError:
    from jax._src.random import prng  # noqa: F401

jax_jit = jax.jit  # JAX's own: the runner puts another one in its place
version = tuple(int(part) for part in jax.__version__.split(".")[:3])
oldest = (0, 6, 0)


def _count_of_call_facts():
    """How many values JAX's call of a compiled program gives beside the results: constants came with 0.7."""
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


# What a trace depends on beside its arguments, as JAX's own caches have it.
trace_context = config.trace_context


def trace_of(function, args, kwargs, **options):
    """What jax.jit(function).trace gives: a closed jaxpr and the tree of the results."""
    traced = jax_jit(function, **options).trace(*args, **kwargs)
    return traced.jaxpr, jax.tree_util.tree_structure(traced.out_info)


def allow_uneven():
    """Extents that the axes of a sharding do not divide are split all the same: JAX's own checks of them are left out."""
    from jax._src import pjit, sharding
    check, shape = pjit.pjit_check_aval_sharding, sharding._common_shard_shape

    def largest_block(of, extents):
        try:
            return shape(of, extents)
        except ValueError:
            ways = sharding.get_num_ways_dim_sharded(of._to_xla_hlo_sharding(len(extents)))[0]
            return tuple(-(-n // p) for n, p in zip(extents, ways))

    sharding._common_shard_shape = largest_block
    if "allow_uneven_sharding" in inspect.signature(check).parameters:
        pjit.pjit_check_aval_sharding = lambda *args, **options: check(*args, **{**options, "allow_uneven_sharding": True})


def row_major(ndim, sharding, written=None):
    """JAX's words for an array whose blocks lie row by row, or as the program has written it; None in versions that have none."""
    from jax.experimental import layout
    if not hasattr(layout, "Format"):
        return None
    return layout.Format(layout.Layout(tuple(range(ndim)), tiling=()) if written is None else written, sharding)


def is_literal(variable):
    return isinstance(variable, core.Literal)


def closed(jaxpr):
    """A jaxpr with its constants, whether it came with them or not."""
    return jaxpr if isinstance(jaxpr, core.ClosedJaxpr) else core.ClosedJaxpr(jaxpr, ())


def lowered(jaxpr):
    """Without JAX's high-level primitives, whose rules are Python classes, where its operands are arrays: JAX's own lowering, since 0.9."""
    from jax._src.interpreters import partial_eval
    if not getattr(jaxpr.jaxpr, "is_high", False) or not hasattr(partial_eval, "lower_jaxpr2") or any(getattr(a, "is_high", False) for a in jaxpr.in_avals):
        return jaxpr
    return partial_eval.lower_jaxpr2(jaxpr)


makes_references = frozenset(("new_ref", "mutable_array", "empty_ref"))


def without_references(jaxpr):
    """The same program on values: JAX's own rewriting. The last values of references among the operands are further results."""
    from jax._src.state import discharge
    jaxpr = closed(jaxpr)
    if "consts" in inspect.signature(discharge.discharge_state).parameters:
        return core.ClosedJaxpr(*discharge.discharge_state(jaxpr.jaxpr, jaxpr.consts))
    return discharge.discharge_state(jaxpr)


def constants_as_operands(jaxpr):
    """A closed jaxpr without constants: they are its first operands."""
    from jax._src.interpreters import partial_eval
    return core.ClosedJaxpr(partial_eval.convert_constvars_jaxpr(jaxpr.jaxpr), ())


def one_equation(primitive, avals, params):
    """A closed jaxpr of one primitive on operands of these types."""
    result, effects = primitive.abstract_eval(*avals, **params)
    outs = list(result) if primitive.multiple_results else [result]
    variables, results = [core.Var(a) for a in avals], [core.Var(a) for a in outs]
    equation = core.new_jaxpr_eqn(variables, results, primitive, params, effects)
    return core.ClosedJaxpr(core.Jaxpr((), variables, results, [equation], effects, debug_info=_no_names(len(variables), len(results))), ())


def _no_names(operands, results):
    from jax._src import api_util
    return api_util.debug_info("one equation", lambda *_: None, (None,) * operands, {})._replace(arg_names=("",) * operands, result_paths=("",) * results)
