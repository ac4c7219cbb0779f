"""Primitives of JAX that have no rule, each with its reason: errors say it, and a test holds the list against JAX's own modules."""

_accelerators = "it serves accelerators: JAX itself has it on GPUs alone"
_cudnn = "it is cuDNN's: leave out implementation='cudnn'"
_internal = "JAX removes it before a program is compiled"
_high = "JAX's experimental high-level types (hijax) have no arrays of their own"
_linear = "buffers that are pinned to a device's memory are accelerators'"
_references = "a mutable reference is written by the program that makes it, or that takes or holds it, and not inside of this construct"

reasons = {
    **dict.fromkeys(("cudnn_fusion", "scaled_matmul", "scaled_matmul_wrapper", "triton_kernel_call", "eigh_jacobi"), _accelerators),
    **dict.fromkeys([f"dot_product_attention_{part}{wrapper}" for part in ("fwd", "bwd", "fp8_fwd", "fp8_bwd") for wrapper in ("", "_wrapper")] + ["bias_fwd", "bias_bwd"], _cudnn),
    **dict.fromkeys(("custom_lin", "unreachable", "from_edtype", "to_edtype", "full_to_shard", "shard_to_full", "xla_pmap", "pgather", "dce_sential"), _internal),
    **dict.fromkeys(("call_hi_primitive", "call_hi_primitive_linearized", "box_get", "box_set", "new_box", "log_extend", "log_read", "new_log"), _high),
    **dict.fromkeys(("pin", "unpin", "create_linear"), _linear),
    **dict.fromkeys(("new_ref", "mutable_array", "empty_ref", "free_ref", "freeze", "get", "swap", "addupdate", "accum_grad_in_ref"), _references),
    **dict.fromkeys(("infeed", "outfeed"), "it is a queue of one device: use jax.experimental.io_callback"),
    "for": "it is JAX's experimental loop over references: use lax.fori_loop",
    "spsolve": "it calls SciPy in one process: use jax.scipy.sparse.linalg.cg, gmres or bicgstab",
    "buffer_callback": "it hands out XLA's buffers: use jax.pure_callback",
}
