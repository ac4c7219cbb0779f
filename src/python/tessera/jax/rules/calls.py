"""Primitives that call a jaxpr."""
import jax
from jax._src.interpreters import mlir

from ... import _core as c
from .._interpret import evaluate, rule
from .._versions import jax_jit
from .place import placed


def _call(*operands, jaxpr=None, call_jaxpr=None, fun_jaxpr=None, fwd_jaxpr=None, call=None, **_):
    return evaluate(next(j for j in (jaxpr, call_jaxpr, fun_jaxpr, fwd_jaxpr, call) if j is not None), *operands)


rule("closed_call", "core_call", "xla_call", "custom_vjp_call_jaxpr", "core_closed_call", "custom_jvp_call_jaxpr", "call",
     "composite", "remat_opt", "custom_vmap_call", "compute_on", "eval_jaxpr", "custom_dce_call")(_call)


@rule("jit", "pjit")
def jit(*operands, jaxpr, in_shardings=(), out_shardings=(), **_):
    """A jitted function within another. Its own shardings hold there, too."""
    return _placed(evaluate(jaxpr, *_placed(operands, in_shardings)), out_shardings)


def _placed(arrays, shardings):
    if not any(hasattr(s, "spec") for s in shardings):
        return list(arrays)
    return [placed(x, s) if hasattr(s, "spec") else x for x, s in zip(arrays, shardings)]


@rule("checkpoint", "remat", "remat2")
def checkpoint(*operands, jaxpr, prevent_cse=True, differentiated=False, **_):
    """In the backward pass it computes again what the policy did not keep: when the cotangents are there, and not shared with the forward pass."""
    prevents = any(prevent_cse) if isinstance(prevent_cse, (tuple, list)) else prevent_cse
    if differentiated and prevents and operands:
        operands = c.jax.computed_together(list(operands))
    return evaluate(jaxpr, *operands)


@rule("custom_jvp_call")
def custom_jvp_call(*operands, call_jaxpr, **_):
    return evaluate(call_jaxpr, *operands)


@rule("custom_vjp_call")
def custom_vjp_call(*operands, call_jaxpr=None, fun_jaxpr=None, **_):
    return evaluate(call_jaxpr if call_jaxpr is not None else fun_jaxpr, *operands)


@rule("linear_call")
def linear_call(*operands, callee, num_callee_consts=0, **params):
    return evaluate(callee, *operands)


@rule("custom_transpose_call")
def custom_transpose_call(*operands, call=None, call_jaxpr=None, **_):
    return evaluate(call if call is not None else call_jaxpr, *operands)


@rule("custom_partitioning")
def custom_partitioning(*operands, call, **_):
    """The function itself: how it is partitioned is for tessera's planner."""
    return evaluate(call, *operands)


@rule("custom_linear_solve")
def custom_linear_solve(*operands, const_lengths, jaxprs, **_):
    """The solver that the program, or jax.scipy, chose: a jaxpr of the constants and the right-hand sides."""
    lengths = [const_lengths.matvec, const_lengths.vecmat, const_lengths.solve, const_lengths.transpose_solve]
    first = lengths[0] + lengths[1]
    consts, b = operands[first:first + lengths[2]], operands[sum(lengths):]
    return evaluate(jaxprs.solve, *consts, *b)


@rule("call_exported")
def call_exported(*operands, exported, eqn, **_):
    """A program of jax.export, by its text. Layouts for more devices than the job has are left out."""
    platform = _platform_index(exported)
    if "?" in exported.mlir_module():  # extents of its own types, or of a program that it calls
        return c.stablehlo.parse(_of_these_extents(exported, eqn.in_avals), exported.fun_name, False)(*operands)
    program = c.stablehlo.parse(exported.mlir_module(), exported.fun_name, exported.nr_devices > c.device_count())
    first = [c.full((), platform, "int32")] if len(exported.platforms) > 1 else []
    return program(*first, *[operands[n] for n in exported.module_kept_var_idx])


def _platform_index(exported):
    """Which of an exported program's platforms is the CPU: where there are several, it is the first argument."""
    if "cpu" in exported.platforms:
        return exported.platforms.index("cpu")
    if jax.export.DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
        return 0
    raise ValueError(f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but it is used on '('cpu',)'.")


def _of_these_extents(exported, avals):
    """The text of a program of symbolic shapes, for these ones: JAX's own refinement."""
    from jax._src.export import _export
    types = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
    call = jax_jit(lambda *operands: _export.call_exported_p.bind(*operands, exported=exported), keep_unused=True)
    return str(mlir.refine_polymorphic_shapes(call.lower(*types).compiler_ir()))
