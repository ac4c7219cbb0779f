"""User-defined ops: kernels on NumPy blocks, placed by a rule."""
import functools as _functools

from . import _core

__all__ = ["custom_op"]


def _margin(given, boundary, value):
    before, after = (given, given) if isinstance(given, int) else given
    return (before, after, boundary, float(value))


def custom_op(kernel=None, /, rule=None, *, name=None, halo=None, boundary="wrap", value=0.0, result=None, vjp=None, jvp=None, batch=None, pass_index=False):
    """A user-defined op: kernel(*blocks) works on one rank's blocks, and a rule says which dims correspond.

        @ts.custom_op(rule="i j, j k -> i k | sum j")
        def product(a, b):
            return a @ b

        @ts.custom_op(rule="~i ~j -> i j", halo={"i": 1, "j": 1}, boundary="edge")
        def laplace(u):
            return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]

    The kernel gets read-only NumPy views of the operands' blocks (with the margins that `halo` names along dims marked ~: elements before and
    after, one number or a pair; outside of the array stands what `boundary` says, "wrap", "constant", "edge", "reflect" or "symmetric"; with None
    the operand is longer than the result by the margins). It returns an array, or a tuple of them, of exactly the shape and dtype of the result's
    block, and keeps no view. With pass_index=True it is given index=, the slices of the first result's block in the whole array.

    Shapes follow from the sentence, dtypes from the operands by promotion, unless result(*operands) gives other ones as objects with shape and
    dtype (ShapeDtypeStruct). vjp(operands, results, cotangents) -> a cotangent per operand, jvp(operands, results, tangents) -> a tangent per
    result, batch(operands, dims, size) -> the results with the batch in front: tuples of arrays, made of ops; None stands for zeros.

    Rules, layouts, communication and errors: tessera/custom_op.hpp, and the page on custom ops. Not collective: calls record.
    """
    if kernel is None:
        return _functools.partial(custom_op, rule=rule, name=name, halo=halo, boundary=boundary, value=value, result=result, vjp=vjp, jvp=jvp, batch=batch, pass_index=pass_index)
    if not callable(kernel):
        raise TypeError(f"custom_op takes a function of blocks as kernel, not {kernel!r}")
    if rule is None:
        raise TypeError('custom_op: give it a rule, such as rule="i j -> i | sum j"')
    margins = {dim: _margin(given, boundary, value) for dim, given in (halo or {}).items()}
    return _core.custom_op_of(kernel, name or getattr(kernel, "__name__", "custom_op"), rule, margins, result, vjp, jvp, batch, pass_index)
