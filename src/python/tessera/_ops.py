"""Ops with the signatures of the C++ headers."""
import inspect as _inspect

from . import _core

# Bound for the package, or by a signature of the standard (_standard.py, _create.py).
_not_here = {"array_from_numpy", "arange_integers", "set_threefry", "arange_floats", "clip_lower", "clip_upper", "device_put_leaf", "with_sharding_constraint_leaf", "eval_leaves", "start", "finish_job_profile",
             "end", "fail", "here", "attach", "is_started", "set_package_folder", "grad", "value_and_grad", "jacrev", "jacfwd", "linearize", "hessian", "vjp", "jvp", "vmap", "pmap", "shard_map",
             "checkpointed", "with_own_backward", "with_own_forward", "checkpoint_name_leaf", "with_hint", "checkpoint_policies", "from_dlpack_capsule", "stop_gradient_leaf", "eval_shape", "mesh_of_ids", "device_of_id", "key_of_data", "is_forked_child", "detach"}

__all__ = [name for name, value in vars(_core).items()
           if _inspect.isbuiltin(value) and not name.startswith("_") and name not in _not_here]
globals().update({name: getattr(_core, name) for name in __all__})
