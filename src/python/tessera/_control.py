"""Control flow whose decisions may depend on values: part of tessera.lax."""
from . import _core
from ._create import _array
from ._shapes import concatenate
from ._transforms import jvp, vmap
from .tree_util import tree_leaves, tree_map

__all__ = ["cond", "custom_linear_solve", "custom_root", "fori_loop", "map", "platform_dependent", "scan", "stop_gradient", "switch", "while_loop"]


# ---- control flow ----
def cond(pred, true_fun, false_fun, *operands):
    """true_fun(*operands) if pred else false_fun(*operands): only one of them runs. JAX's older form cond(pred, x, f, y, g) is f(x) or g(y)."""
    if not callable(true_fun) and len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        return _core.control.cond(pred, lambda x, _: false_fun(x), lambda _, y: operands[1](y), true_fun, operands[0])
    return _core.control.cond(pred, true_fun, false_fun, *operands)


def switch(index, branches, *operands):
    """branches[index](*operands), the index clamped."""
    last = len(branches) - 1

    def choose(n):
        if n == last:
            return branches[n](*operands)
        return cond(_core.less_equal(index, n), lambda: branches[n](*operands), lambda: choose(n + 1))

    return choose(0)


def while_loop(cond_fun, body_fun, init_val):
    """value = init; while cond_fun(value): value = body_fun(value)."""
    return _core.control.while_loop(cond_fun, body_fun, init_val)


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """value = body_fun(i, value) for i from lower to upper. In a trace body_fun is recorded once, with i as an array."""
    if any(isinstance(b, _core.Array) and b._traced for b in (lower, upper)):
        more = lambda state: _core.less(state[0], upper)  # noqa: E731
        return while_loop(more, lambda state: (state[0] + 1, body_fun(state[0], state[1])), (_core.astype(lower, _core.int32), init_val))[1]
    return tree_map(_array, _core.control.fori_loop(int(lower), int(upper), body_fun, init_val))


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """A loop that carries a value and collects results: f(carry, x) -> (carry, y) along the leading dim of xs."""
    if xs is None:
        if length is None:
            raise TypeError("scan: without xs it needs a length")
        return _core.control.scan(lambda carry, _: f(carry, None), init, _core.arange_integers(0, length, 1, _core.int32))
    if not reverse:
        return _core.control.scan(f, init, xs)
    carry, ys = _core.control.scan(f, init, tree_map(lambda x: _core.flip(x, 0), xs))
    return carry, tree_map(lambda y: _core.flip(y, 0), ys)


def map(f, xs, *, batch_size=None):  # noqa: A001
    """f of each slice along the leading dim, one after the other, the results stacked. With batch_size, f is mapped over that many slices at a time."""
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    n = tree_leaves(xs)[0].shape[0]
    count, rest = divmod(n, batch_size)
    rows = lambda x: _core.reshape(x[: count * batch_size], (count, batch_size, *x.shape[1:]))  # noqa: E731
    parts = [tree_map(lambda y: _core.reshape(y, (count * batch_size, *y.shape[2:])), map(vmap(f), tree_map(rows, xs)))] if count else []
    parts += [vmap(f)(tree_map(lambda x: x[n - rest:], xs))] if rest else []
    return tree_map(lambda *ys: concatenate(ys, 0), *parts) if parts else map(f, xs)


def platform_dependent(*args, default=None, **per_platform):
    """per_platform["cpu"](*args), or default(*args)."""
    return per_platform.get("cpu", default)(*args)


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """solve(matvec, b). Gradients go through `solve` itself, so that transpose_solve and symmetric need not be used."""
    return solve(matvec, b)


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """solve(f, initial_guess): where f is zero. Gradients go through one step of Newton's method there, solved by tangent_solve."""
    found = solve(f, stop_gradient(initial_guess))
    root, *aux = found if has_aux else (found,)
    root = stop_gradient(root)
    step = tangent_solve(lambda t: jvp(f, (root,), (t,))[1], f(root))
    better = tree_map(lambda r, s: r - (s - stop_gradient(s)), root, step)
    return (better, *aux) if has_aux else better


def stop_gradient(x):
    """x, through which no gradient flows."""
    return tree_map(_core.stop_gradient_leaf, x)
