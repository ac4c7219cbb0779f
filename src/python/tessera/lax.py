"""JAX's lax: collectives by axis name, control flow whose decisions may depend on values, and primitives by its names."""

import builtins

from . import _core, _standard
from ._create import words_of
from ._place import with_sharding_constraint  # noqa: F401
from .tree_util import tree_map

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
    """true_fun(*operands) if pred else false_fun(*operands): only one of them runs."""
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
    return _core.control.fori_loop(int(lower), int(upper), body_fun, init_val)


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


def map(f, xs):  # noqa: A001
    """f of each slice along the leading dim, one after the other, the results stacked."""
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def stop_gradient(x):
    """x, through which no gradient flows."""
    return tree_map(_core.stop_gradient_leaf, x)


# ---- primitives ----
add, sub, mul, div, rem, pow, neg = _core.add, _core.subtract, _core.multiply, _core.divide, _core.remainder, _core.power, _core.negative  # noqa: A001
abs, sign, floor, ceil, round, exp, log, log1p, expm1 = (getattr(_core, n) for n in "abs sign floor ceil round exp log log1p expm1".split())  # noqa: A001
sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh, atanh = (
    getattr(_core, n) for n in "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh".split())
sqrt, rsqrt, cbrt, square, reciprocal, erf, erfc, erf_inv, lgamma, digamma, logistic = (
    getattr(_core, n) for n in "sqrt rsqrt cbrt square reciprocal erf erfc erf_inv lgamma digamma sigmoid".split())
max, min, eq, ne, lt, le, gt, ge = (getattr(_core, n) for n in "maximum minimum equal not_equal less less_equal greater greater_equal".split())  # noqa: A001
bitwise_and, bitwise_or, bitwise_xor, bitwise_not = _core.bitwise_and, _core.bitwise_or, _core.bitwise_xor, _core.bitwise_invert
real, imag, conj, complex = _core.real, _core.imag, _core.conj, _core.make_complex  # noqa: A001
is_finite, top_k, sort, concatenate = _core.isfinite, _core.top_k, _core.sort, _standard.concatenate
cumsum, cumprod, cummax, cummin, cumlogsumexp = _core.cumsum, _core.cumprod, _core.cummax, _core.cummin, _core.cumlogsumexp
reshape, squeeze, expand_dims, transpose = _core.reshape, _core.squeeze, _standard.expand_dims, _standard.permute_dims


def clamp(low, x, high):
    """minimum(maximum(x, low), high)."""
    return _core.clip(x, low, high)


def select(condition, on_true, on_false):
    """on_true where the condition holds, else on_false."""
    return _core.where(condition, on_true, on_false)


def convert_element_type(x, dtype):
    """x with elements of another dtype."""
    return _core.astype(x, dtype)


def iota(dtype, size):
    """0, 1, ... size - 1."""
    return _core.arange_integers(0, size, 1, dtype) if _core.dtype(dtype).kind in "iu" else _core.arange_floats(0, size, 1, dtype)


def full(shape, value, dtype=None):
    """The value everywhere."""
    return _core.full(shape, value, dtype)


def dynamic_slice(x, start_indices, slice_sizes):
    """x[start : start + size] in each dim; a start is clamped so that the part is inside."""
    return _core.dynamic_slice(x, list(start_indices), slice_sizes)


def dynamic_update_slice(x, update, start_indices):
    """x with the part that begins at the indices replaced by update; a start is clamped so that the part is inside."""
    return _core.dynamic_update_slice(x, update, list(start_indices))


def _starts(x, start, axis):
    return [start if a == axis % x.ndim else 0 for a in range(x.ndim)]


def dynamic_slice_in_dim(x, start_index, slice_size, axis=0):
    """x[start : start + size] along an axis."""
    return _core.dynamic_slice(x, _starts(x, start_index, axis), [slice_size if a == axis % x.ndim else n for a, n in enumerate(x.shape)])


def dynamic_index_in_dim(x, index, axis=0, keepdims=True):
    """x[index] along an axis."""
    taken = dynamic_slice_in_dim(x, index, 1, axis)
    return taken if keepdims else _core.squeeze(taken, axis)


def dynamic_update_slice_in_dim(x, update, start_index, axis):
    """x with update at x[start : start + size] along an axis."""
    return _core.dynamic_update_slice(x, update, _starts(x, start_index, axis))


def slice_in_dim(x, start, limit, stride=1, axis=0):
    """x[start:limit:stride] along an axis."""
    return x[(builtins.slice(None),) * (axis % x.ndim) + (builtins.slice(start, limit, stride),)]


def dot(a, b):
    """The product of matrices or vectors."""
    return _core.dot(a, b)


def associative_scan(fn, elems, reverse=False, axis=0):
    """All running combinations along an axis, in a logarithmic number of steps."""
    from .tree_util import tree_leaves
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


bitcast_convert_type, population_count, reduce_window, conv_transpose, igamma, igammac, betainc, zeta, polygamma = (
    getattr(_core, n) for n in "bitcast_convert_type population_count reduce_window conv_transpose igamma igammac betainc zeta polygamma".split())


def _over_axes(function):
    def reduce(x, axes=None):
        return function(x, axes, False)
    reduce.__doc__ = words_of(function)
    return reduce


reduce_sum, reduce_max, reduce_min, reduce_prod, reduce_and, reduce_or = (_over_axes(f) for f in (_core.sum, _core.max, _core.min, _core.prod, _core.all, _core.any))
batch_matmul, nextafter, bessel_i0e, bessel_i1e = _core.matmul, _core.nextafter, _core.i0e, _core.i1e
shift_left, shift_right_arithmetic = _core.bitwise_left_shift, _core.bitwise_right_shift


def full_like(x, fill_value, dtype=None, shape=None):
    """The value with the shape and dtype of x."""
    return _core.full(x.shape if shape is None else shape, fill_value, dtype or x.dtype)


def argmax(x, axis, index_dtype=_core.int32):
    """The index of the largest element along an axis."""
    return _core.astype(_core.argmax(x, axis, False), index_dtype)


def argmin(x, axis, index_dtype=_core.int32):
    """The index of the smallest element along an axis."""
    return _core.astype(_core.argmin(x, axis, False), index_dtype)


def broadcast(x, sizes):
    """x repeated along new leading dims."""
    return _core.broadcast_to(x, (*sizes, *x.shape))


def broadcast_in_dim(x, shape, broadcast_dimensions):
    """x broadcast to a shape; broadcast_dimensions gives the positions of its dims."""
    extents = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions):
        extents[d] = n
    return _core.broadcast_to(_core.reshape(x, extents), shape)


def broadcasted_iota(dtype, shape, dimension):
    """0, 1, ... along a dim of a shape."""
    return broadcast_in_dim(iota(dtype, shape[dimension]), shape, (dimension,))


def collapse(x, start_dimension, stop_dimension=None):
    """Merges neighbouring dims to one."""
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(x.ndim)
    return _core.reshape(x, (*x.shape[:start], -1, *x.shape[stop:]))


def dynamic_update_index_in_dim(x, update, index, axis):
    """x with update at x[index] along an axis."""
    update = _core.expand_dims(update, axis) if update.ndim < x.ndim else update
    return dynamic_update_slice_in_dim(x, update, index, axis)


def integer_pow(x, y):
    """x to an integer power."""
    return _core.power(x, int(y))


def rev(x, dimensions):
    """x reversed along the dims."""
    return _core.flip(x, dimensions)


def slice(x, start_indices, limit_indices, strides=None):  # noqa: A001
    """x[start:limit:stride] in each dim."""
    steps = strides or [1] * x.ndim
    return x[tuple(builtins.slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, steps))]
