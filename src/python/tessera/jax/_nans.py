"""jax_debug_nans and jax_debug_infs: results of ops and of jitted functions are looked at, as JAX does."""
import jax
from jax._src import api_util, dispatch

asked = dispatch.needs_check_special


def check_op(name, results):
    """Raises for the first result with NaN or infinities: of a jitted function what makes JAX call it again, op by op. Collective."""
    arrays = [r for r in results if hasattr(r, "__tessera_array__")]
    if name in ("jit", "pjit"):
        return dispatch.check_special(name, arrays)
    try:
        dispatch.check_special(name, arrays)
    except api_util.InternalFloatingPointError as error:
        raise FloatingPointError(f"invalid value ({error.ty}) encountered in {error.name}") from None


def check_call(function, args, kwargs, results):
    """The results of a jitted function; where they are bad the function itself is called, whose op then raises. Collective."""
    try:
        dispatch.check_special("jit", [r for r in jax.tree_util.tree_leaves(results) if hasattr(r, "__tessera_array__")])
    except api_util.InternalFloatingPointError as error:
        api_util.maybe_recursive_nan_check(error, function, args, kwargs)
        api_util._raise_no_nan_in_deoptimized(error)
    return results
