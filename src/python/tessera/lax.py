"""JAX's lax: collectives by axis name, control flow whose decisions may depend on values, and primitives by its names."""

import builtins

from . import _core, _standard
from ._create import _array, words_of
from ._convolutions import *  # noqa: F401,F403
from ._place import with_sharding_constraint  # noqa: F401
from ._primitives import *  # noqa: F401,F403
from ._primitives import slice_in_dim
from .tree_util import tree_leaves, tree_map

_c = _core.collectives


# ---- collectives by axis name: inside shard_map, pmap and vmap(axis_name) ----
def _reduced(name):
    leaf = getattr(_c, name)

    def collective(x, axis_name, *, axis_index_groups=None):
        return tree_map(lambda a: leaf(a, axis_name, axis_index_groups), x)
    collective.__name__, collective.__doc__ = name, words_of(leaf)
    return collective


pmean, pmax, pmin = (_reduced(n) for n in ("pmean", "pmax", "pmin"))
_psum = _reduced("psum")


def psum(x, axis_name, *, axis_index_groups=None):
    """The sum over the ranks along an axis, on every rank. For a plain number: n times the number."""
    if type(x) in (int, float, complex) and axis_index_groups is None:
        return x * axis_size(axis_name)
    return _psum(x, axis_name, axis_index_groups=axis_index_groups)


def psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False):
    """The sum, scattered: rank i keeps block i."""
    return tree_map(lambda a: _c.psum_scatter(a, axis_name, scatter_dimension, axis_index_groups, tiled), x)


def all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False):
    """The ranks' x along an axis, on every rank."""
    return tree_map(lambda a: _c.all_gather(a, axis_name, axis_index_groups, axis, tiled), x)


def all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False):
    """Sends block j along split_axis to rank j, and joins the received blocks along concat_axis."""
    return tree_map(lambda a: _c.all_to_all(a, axis_name, split_axis, concat_axis, axis_index_groups, tiled), x)


def ppermute(x, axis_name, perm):
    """Sends x along (source, destination) pairs; a rank that is no destination gets zeros."""
    return tree_map(lambda a: _c.ppermute(a, axis_name, [tuple(p) for p in perm]), x)


def pshuffle(x, axis_name, perm):
    """Rank i gets the x of rank perm[i]."""
    return tree_map(lambda a: _c.pshuffle(a, axis_name, list(perm)), x)


def pswapaxes(x, axis_name, axis, *, axis_index_groups=None):
    """Exchanges the mapped axis with a dimension of x."""
    return tree_map(lambda a: _c.all_to_all(a, axis_name, axis, axis, axis_index_groups, False), x)


def pbroadcast(x, axis_name, source):
    """The x of rank `source`, on every rank."""
    return tree_map(lambda a: _c.pbroadcast(a, axis_name, source), x)


pargmax, pargmin, axis_index, axis_size = _c.pargmax, _c.pargmin, _c.axis_index, _c.axis_size


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
    from ._transforms import vmap
    n = tree_leaves(xs)[0].shape[0]
    count, rest = divmod(n, batch_size)
    rows = lambda x: _core.reshape(x[: count * batch_size], (count, batch_size, *x.shape[1:]))  # noqa: E731
    parts = [tree_map(lambda y: _core.reshape(y, (count * batch_size, *y.shape[2:])), map(vmap(f), tree_map(rows, xs)))] if count else []
    parts += [vmap(f)(tree_map(lambda x: x[n - rest:], xs))] if rest else []
    return tree_map(lambda *ys: _standard.concatenate(ys, 0), *parts) if parts else map(f, xs)


def platform_dependent(*args, default=None, **per_platform):
    """per_platform["cpu"](*args), or default(*args)."""
    return per_platform.get("cpu", default)(*args)


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """solve(matvec, b). Gradients go through `solve` itself, so that transpose_solve and symmetric need not be used."""
    return solve(matvec, b)


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """solve(f, initial_guess): where f is zero. Gradients go through one step of Newton's method there, solved by tangent_solve."""
    from ._transforms import jvp
    found = solve(f, stop_gradient(initial_guess))
    root, *aux = found if has_aux else (found,)
    root = stop_gradient(root)
    step = tangent_solve(lambda t: jvp(f, (root,), (t,))[1], f(root))
    better = tree_map(lambda r, s: r - (s - stop_gradient(s)), root, step)
    return (better, *aux) if has_aux else better


def stop_gradient(x):
    """x, through which no gradient flows."""
    return tree_map(_core.stop_gradient_leaf, x)


def associative_scan(fn, elems, reverse=False, axis=0):
    """All running combinations along an axis, in a logarithmic number of steps."""
    if reverse:
        elems = tree_map(lambda x: _core.flip(x, axis), elems)
    n = tree_leaves(elems)[0].shape[axis]
    part = lambda tree, start, stop: tree_map(lambda x: slice_in_dim(x, start, stop, 1, axis), tree)  # noqa: E731
    step = 1
    while step < n:
        joined = fn(part(elems, 0, n - step), part(elems, step, n))
        elems = tree_map(lambda x, y: _standard.concatenate([slice_in_dim(x, 0, step, 1, axis), y], axis), elems, joined)  # noqa: B023
        step *= 2
    return tree_map(lambda x: _core.flip(x, axis), elems) if reverse else elems
