"""jax.numpy outside of jit, on arrays of tessera: every primitive that JAX would run by XLA is recorded as an op instead.

JAX's evaluating trace hands each primitive to this module. Small functions of jax.numpy are recorded op by op, which computes nothing
yet; larger ones, and loops, are programs of their own, planned once.
"""
import contextlib
import functools
import itertools
import threading
import types
import weakref

import jax
import numpy as np
from jax._src import api, core, dispatch, pjit
from jax._src.array import ArrayImpl
from jax._src.lax import lax as lax_module
from jax._src.numpy import indexing

from .. import _core
from . import _layouts, _nans, _references as references, _values
from ._arrays import _put
from ._expand import described_beside
from ._garbage import passed
from ._interpret import Equation, apply, evaluate, has_rule
from ._lines import call_at, calling_place
from ._sharded import ShardedArray, is_ours, spec_of, wrapped
from ._unseen import LooksAtTracer, unseen_tracers
from ._versions import call_facts, closed

_small = 60
_main = threading.main_thread().ident
_programs = {}
_sizes = weakref.WeakKeyDictionary()
_state = {"takes_all": False}
_callbacks = frozenset(("io_callback", "debug_callback", "debug_print"))
_callers = frozenset(("custom_jvp_call", "custom_vjp_call", "custom_linear_solve", "checkpoint", "remat2", "closed_call"))
_loops = frozenset(("while", "scan", "cond", "shard_map"))
_originals = {}
# JAX's own evaluation of these holds or raises what it should: references are objects of the host.
_jax_itself = frozenset(("new_ref", "mutable_array", "freeze", "free_ref", "custom_lin", "check", "pvary"))


def take_all(on=True):
    """Whether primitives without an array of tessera among their operands are taken, too: in a program that the runner runs."""
    _state["takes_all"] = on


@contextlib.contextmanager
def left_to_jax():
    """JAX evaluates what has no array of tessera among its operands."""
    before, _state["takes_all"] = _state["takes_all"], False
    try:
        yield
    finally:
        _state["takes_all"] = before


def takes_all_here():
    """Threads of a program come to their ops in any order: what has no array of tessera among its operands is computed by JAX there."""
    return _state["takes_all"] and threading.get_ident() == _main


def takes(args):
    """JAX computes with its own arrays, which threads and functions of callbacks have made, perhaps not on every rank."""
    return any(is_ours(a) for a in args) or takes_all_here() and not any(type(a) is ArrayImpl for a in args)


def _aval(value):
    return core.get_aval(value) if not hasattr(core, "typeof") else core.typeof(value)


def _out_avals(primitive, avals, params):
    if primitive.name in ("jit", "pjit", "closed_call"):
        return closed(params["jaxpr"]).out_avals
    with _layouts.meshes_of_types(avals) as avals:
        result = primitive.abstract_eval(*avals, **params)
    result = result[0] if isinstance(result, tuple) and len(result) == 2 and not primitive.multiple_results or primitive.multiple_results else result
    return list(result) if isinstance(result, (list, tuple)) else [result]


def run(primitive, args, params):
    """One primitive on values, now or when a value is asked for."""
    passed()
    if any(references.is_reference(a) for a in args) or references.of_constants(primitive, params):
        return references.run(primitive, args, params)
    described = described_beside(primitive)
    if described is not None:  # its results' types may depend on values
        return described(*[wrapped(_values.array_of(a), _aval(a)) for a in args], **params)
    if primitive.name == "device_put":
        results = _put_all(args, params)
        return results if primitive.multiple_results else results[0]
    avals = [_aval(a) for a in args]
    operands = [_values.array_of(a) for a in args]
    place = calling_place()
    out_avals = _out_avals(primitive, avals, params)
    if primitive.name in ("jit", "pjit"):
        results = _call(params["jaxpr"], operands, place)
    elif primitive.name in _callbacks or primitive.name in _callers and any(j.effects for j in core.jaxprs_in_params(params)):
        results = _now(lambda *operands: apply(primitive, operands, params, Equation(primitive.name, avals, out_avals, place)), operands, place)
    elif primitive.name in _loops:
        results = _program_of(primitive, params, operands, avals, out_avals, place)
    else:
        results = apply(primitive, operands, params, Equation(primitive.name, avals, out_avals, place))
    results = [_own(r, operands) for r in results]
    results = [wrapped(_layouts.as_typed(r, a), a, spec=s) for r, a, s in zip(results, out_avals, _specs(primitive.name, params, args, results, out_avals))]
    if _nans.asked():
        _nans.check_op(primitive.name, results)
    return results if primitive.multiple_results else results[0]


def _own(result, operands):
    """A result that is an operand lives on when that is donated."""
    return result._again() if any(result is x for x in operands) else result


def _specs(name, params, args, results, avals):
    """The results' specs as they were written, each or None."""
    if name == "sharding_constraint":
        return [_layouts.written_spec(params["sharding"])]
    if name == "host_local_array_to_global_array":
        return [params["pspec"]]
    first = next((a for a in args if is_ours(a) and a.committed), None)
    is_forgotten = args and args[0] is not first and (name in ("jit", "pjit") or np.ndim(args[0]) == 0)  # JAX takes the first operand's
    spec = None if first is None or is_forgotten else spec_of(first)
    if spec is None:
        return itertools.repeat(None)
    return [_layouts.spec_of_first(spec, first.ndim, getattr(r, "sharding", None), a) for r, a in zip(results, avals)]


def _put_all(args, params):
    place, operands = calling_place(), [_values.array_of(a) for a in args]
    return [_put_there(place, x, _aval(a), given, operands) for x, a, given in zip(operands, args, params.get("devices", [params.get("device")] * len(args)))]


def _put_there(place, x, aval, given, operands):
    """One array where a sharding, a device or a Format says. What a Format says of the blocks' memory is shown again, and changes nothing."""
    _layouts.check_concrete(given, f"input {aval.str_short()}")
    target = _layouts.of_format(given)
    put = wrapped(_own(call_at(place, _put, (x, target), {}), operands), _layouts.typed(aval, target), spec=_layouts.written_spec(target))
    if type(put) is ShardedArray:
        put._layout = _layouts.layout_of(given, x.ndim)
    return put


def _size_of(jaxpr):
    """The number of equations, with those of the functions that it calls; more than any where there is a loop among them, or a call that acts."""
    size = _sizes.get(jaxpr)
    if size is None:
        size = float("inf") if jaxpr.effects or any(e.primitive.name in _loops for e in jaxpr.eqns) else len(jaxpr.eqns)
        size = _sizes[jaxpr] = size + sum(_size_of(inner) for e in jaxpr.eqns for inner in core.jaxprs_in_params(e.params))
    return size


def _call(jaxpr, operands, place):
    jaxpr = closed(jaxpr)
    if _size_of(jaxpr.jaxpr) <= _small:
        return call_at(place, evaluate, (jaxpr, *operands), {})
    return _run_program(id(jaxpr), jaxpr, lambda *leaves: tuple(evaluate(jaxpr, *leaves)), operands, place)


def _program_of(primitive, params, operands, avals, out_avals, place):
    equation = Equation(primitive.name, avals, out_avals, place)
    inner = next((p for n, p in params.items() if n in ("jaxpr", "body_jaxpr")), params.get("branches"))
    inner = inner[0] if isinstance(inner, (list, tuple)) else inner
    return _run_program((primitive.name, id(inner)), inner, lambda *leaves: tuple(apply(primitive, leaves, params, equation)), operands, place)


def _now(function, operands, place):
    """A function that acts on more than its results: evaluated at once, whether these are asked for or not."""
    program = _core.JitFunction(lambda _, *leaves: tuple(function(*leaves)), None, None, [], [], set())
    return list(call_at(place, _values.evaluated, [program, _core.zeros((), "int32"), *operands], {}))


def _run_program(key, kept, function, operands, place):
    """JAX caches jaxprs, so the same function has the same one; it is kept, and its identity with it."""
    if key not in _programs:
        if len(_programs) > 4096:
            _programs.clear()
        _programs[key] = (_core.JitFunction(function, None, None, [], [], set()), kept)
    program = _programs[key][0]
    if not operands:
        return _now(function, [], place) if getattr(kept, "effects", None) else list(function())
    return list(call_at(place, _values.evaluated, (program, *operands), {}))


def _is_for_jax(primitive):
    """Whether JAX evaluates it: what only moves references, and a package's or program's own primitive, by its function of values."""
    return primitive.name in _jax_itself or not has_rule(primitive.name) and isinstance(primitive.impl, types.FunctionType) and not described_beside(primitive)


def _process_primitive(self, primitive, args, params, /):
    if takes(args) and not _is_for_jax(primitive):
        return run(primitive, args, params)
    return _originals["process_primitive"](self, primitive, args, params)


def _pjit_call(*args, **params):
    if not takes(args):
        return _originals["pjit"](*args, **params)
    return run(pjit.jit_p if hasattr(pjit, "jit_p") else pjit.pjit_p, args, params), *call_facts


def _device_put(*args, **params):
    if not takes_all_here() and not takes(args):
        return _originals["device_put"](*args, **params)
    return _put_all(args, params)


def install():
    """JAX's evaluation, from now on with arrays of tessera among its values."""
    if _originals:
        return
    _originals["process_primitive"] = core.EvalTrace.process_primitive
    core.EvalTrace.process_primitive = _process_primitive
    _originals["pjit"] = pjit._pjit_call_impl_python
    pjit._pjit_call_impl_python = _pjit_call
    if hasattr(dispatch, "_batched_device_put_impl"):
        _originals["device_put"] = dispatch._batched_device_put_impl
        dispatch._batched_device_put_impl = _device_put
    if hasattr(api, "_infer_src_sharding"):
        api._infer_src_sharding = _infer_source(api._infer_src_sharding)
    if hasattr(getattr(indexing, "NDIndexer", None), "is_sharded"):
        indexing.NDIndexer.is_sharded = staticmethod(_is_gathered_from(indexing.NDIndexer.is_sharded))
    lax_module.full = jax.lax.full = _full_there(lax_module.full)
    _install_shard_map()


def _is_gathered_from(original):
    """Whether x[i] is a gather, which takes .at[i].get(out_sharding=), and not a slice: JAX asks for the class of its own arrays there, too."""
    def asks(x):
        return original(x) or type(x) is ShardedArray and _layouts.typed_sharding_of(x.aval) is not None and x.sharding.num_devices > 1
    return asks


def _infer_source(original):
    """From where device_put takes an array, which the gradient goes back to: JAX asks for the class of its own arrays there."""
    def infer(src, x, *types):
        value = x.to_concrete_value() if src is None and isinstance(x, core.Tracer) else x
        return value.sharding if src is None and type(value) is ShardedArray and value.committed else original(src, x, *types)
    return infer


def _with_specs(results, specs):
    """A tree of arrays with specs as they were written, one for all below it."""
    def write(spec, part):
        for x in jax.tree_util.tree_leaves(part):
            if type(x) is ShardedArray:
                x._spec = spec
    jax.tree_util.tree_map(write, specs, results, is_leaf=lambda s: isinstance(s, jax.sharding.PartitionSpec))
    return results


def _full_there(original):
    """jnp.zeros(shape, device=sharding) and the like: JAX asks for the class of its own arrays there."""
    @functools.wraps(original)
    def full(shape, fill_value, dtype=None, *, sharding=None):
        x = original(shape, fill_value, dtype, sharding=sharding)
        return jax.device_put(x, sharding) if sharding is not None and sharding._is_concrete and is_ours(x) else x
    return full


def _install_shard_map():
    """Outside of jit JAX runs a shard_map's body op by op on each device. Here it is jitted, unless it looks at the values of its blocks."""
    from jax._src import shard_map as module
    original = module.shard_map

    def shard_map(f=None, /, **options):
        if f is None:
            return lambda g: shard_map(g, **options)
        mapped = original(f, **options)
        jitted = jax.jit(mapped)
        looks = [s for s in jax.tree_util.tree_leaves(options.get("in_specs"), is_leaf=lambda s: s is None) if s is None]  # or takes what is no array

        @functools.wraps(f, updated=())
        def call(*args):
            if looks or not core.trace_state_clean() or not takes(jax.tree_util.tree_leaves(args)):
                return mapped(*args)
            try:
                with unseen_tracers():
                    return _with_specs(jitted(*args), options.get("out_specs"))
            except (LooksAtTracer, jax.errors.JAXTypeError, jax.errors.JAXIndexError):
                looks.append(True)
                return mapped(*args)
        return call

    for owner in (jax, module):
        if getattr(owner, "shard_map", None) is original:
            owner.shard_map = shard_map
