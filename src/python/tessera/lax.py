"""JAX's lax: collectives by axis name, control flow whose decisions may depend on values, and primitives by its names."""
from . import _core
from ._control import *  # noqa: F401,F403
from ._convolutions import *  # noqa: F401,F403
from ._create import words_of
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


def associative_scan(fn, elems, reverse=False, axis=0):
    """All running combinations along an axis, in a logarithmic number of steps."""
    if reverse:
        elems = tree_map(lambda x: _core.flip(x, axis), elems)
    n = tree_leaves(elems)[0].shape[axis]
    part = lambda tree, start, stop: tree_map(lambda x: slice_in_dim(x, start, stop, 1, axis), tree)  # noqa: E731
    step = 1
    while step < n:
        joined = fn(part(elems, 0, n - step), part(elems, step, n))
        elems = tree_map(lambda x, y: _core.concatenate([slice_in_dim(x, 0, step, 1, axis), y], axis), elems, joined)  # noqa: B023
        step *= 2
    return tree_map(lambda x: _core.flip(x, axis), elems) if reverse else elems
