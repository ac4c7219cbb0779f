"""Primitives that move, repeat and cut elements. Arrays of keys have one dim more here than JAX sees: it stays last."""
from ... import _core as c
from ..._convolutions import pad
from .._interpret import rule
from .._values import dtype_of, number_like, shape_of


@rule("broadcast_in_dim")
def broadcast_in_dim(x, *_, shape, broadcast_dimensions, eqn, **__):
    more = x.ndim - len(broadcast_dimensions)
    shape, dims = shape_of(eqn.out_avals[0]), list(broadcast_dimensions) + [len(shape) + n for n in range(more)]
    extents = [1] * len(shape)
    for n, d in zip(x.shape, dims):
        extents[d] = n
    x = c.reshape(x, extents) if tuple(extents) != x.shape else x
    return c.broadcast_to(x, shape) if x.shape != tuple(shape) else x


@rule("reshape")
def reshape(x, *_, eqn, dimensions=None, **__):
    if dimensions is not None:
        x = c.transpose(x, list(dimensions))
    return c.reshape(x, shape_of(eqn.out_avals[0]))


@rule("squeeze", "expand_dims")
def squeeze(x, eqn, **_):
    return c.reshape(x, shape_of(eqn.out_avals[0]))


@rule("transpose")
def transpose(x, permutation):
    return c.transpose(x, [*permutation, *range(len(permutation), x.ndim)]) if x.ndim else x


@rule("rev")
def rev(x, dimensions):
    return c.flip(x, list(dimensions)) if dimensions else x


@rule("slice")
def slice_(x, start_indices, limit_indices, strides):
    return x[tuple(slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, strides or [1] * len(start_indices)))] if x.ndim else x


@rule("concatenate")
def concatenate(*operands, dimension):
    return c.concatenate(list(operands), dimension)


@rule("stack")
def stack(*operands, **params):
    return c.stack(list(operands), params.get("axis", params.get("dimension", 0)))


@rule("unstack")
def unstack(x, **params):
    return c.unstack(x, params.get("axis", params.get("dimension", 0)))


@rule("split")
def split(x, sizes, axis):
    places, at = [], 0
    for size in sizes[:-1]:
        at += size
        places.append(at)
    return c.split_at(x, places, axis)


@rule("tile")
def tile(x, reps, **_):
    return c.tile(x, [*reps, *[1] * (x.ndim - len(reps))])


@rule("iota")
def iota(*_, dtype, shape, dimension, **__):  # noqa: A002
    name = c.dtype(dtype.name) if dtype.name != "bool" else c.dtype("int32")
    n = shape[dimension]
    line = c.arange_integers(0, n, 1, name) if name.kind in "iu" else c.astype(c.arange_integers(0, n, 1, "int32"), name)
    line = c.reshape(line, [n if d == dimension else 1 for d in range(len(shape))])
    line = c.broadcast_to(line, shape) if line.shape != tuple(shape) else line
    return c.astype(line, dtype.name)


@rule("empty", "empty2", "full")
def empty(*_, eqn, **__):
    aval = eqn.out_avals[0]
    return c.zeros(shape_of(aval), dtype_of(aval))


rule("pad")(pad)


@rule("dynamic_slice")
def dynamic_slice(x, *starts, slice_sizes):
    more = x.ndim - len(slice_sizes)
    return c.dynamic_slice(x, [signed(s) for s in starts] + [0] * more, [*slice_sizes, *x.shape[len(slice_sizes):]]) if x.ndim else x


@rule("dynamic_update_slice")
def dynamic_update_slice(x, update, *starts):
    more = x.ndim - len(starts)
    return c.dynamic_update_slice(x, update, [signed(s) for s in starts] + [0] * more) if x.ndim else update


def signed(index):
    """Indices as int32 or int64: unsigned ones keep their values where these fit."""
    name = index.dtype.name
    if name in ("int32", "int64"):
        return index
    if name == "uint64":
        return c.astype(c.minimum(index, number_like(2 ** 63 - 1, index)), "int64")
    return c.astype(index, "int64" if name == "uint32" else "int32")
