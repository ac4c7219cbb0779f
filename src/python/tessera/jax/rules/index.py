"""gather in JAX's own form, as index expressions.

JAX's gather cuts a window of slice_sizes at each of a batch of starts. Dims of extent one in the window, or of batches, become index
arrays; a window that takes a dim whole keeps it as it is; any other one becomes an index array of starts plus places in the window.
"""
import itertools

from ... import _core as c
from .._interpret import rule
from .._values import is_key, number_like
from .shapes import signed


def _mode(mode):
    return {0: "clip", 1: "fill", 2: "promise", 3: "one_hot"}.get(getattr(mode, "value", mode), "clip")


def mode_name(mode):
    """"clip", "fill" or "promise" of JAX's GatherScatterMode."""
    text = str(getattr(mode, "name", mode)).upper()
    return "clip" if "CLIP" in text else "fill" if "FILL" in text else "promise" if "PROMISE" in text or "ONE_HOT" in text else _mode(mode)


class Starts:
    """The starts of the windows: one array per indexed dim, all of the shape `batch`."""

    def __init__(self, x_shape, indices, sizes, start_map, x_batch, i_batch):
        indices = signed(indices)
        self.batch = indices.shape[:-1]
        self.by_dim = {d: c.squeeze(indices[(Ellipsis, slice(n, n + 1))], [-1]) for n, d in enumerate(start_map)}
        self.room = {d: x_shape[d] - sizes[d] for d in start_map}
        for d, at in zip(x_batch, i_batch):
            line = c.arange_integers(0, x_shape[d], 1, indices.dtype)
            self.by_dim[d] = c.broadcast_to(c.reshape(line, [line.size if e == at else 1 for e in range(len(self.batch))]), self.batch)
        self.given = list(start_map)

    def clamped(self):
        for d in self.given:
            i = self.by_dim[d]
            self.by_dim[d] = c.clip(i, number_like(0, i), number_like(max(self.room[d], 0), i))

    def inside(self):
        """Whether the window lies inside, a bool per element of the batch."""
        result = None
        for d in self.given:
            i = self.by_dim[d]
            fits = c.bitwise_and(c.greater_equal(i, number_like(0, i)), c.less_equal(i, number_like(self.room[d], i)))
            result = fits if result is None else c.bitwise_and(result, fits)
        return c.full(self.batch, True, "bool") if result is None else result


def with_window(starts, sizes, dims):
    """Index arrays for the dims, which broadcast to batch + the windows' extents that are not one."""
    wide = [d for d in dims if sizes[d] != 1]
    arrays = []
    for d in dims:
        i = c.reshape(starts.by_dim[d], [*starts.batch, *[1] * len(wide)]) if wide else starts.by_dim[d]
        if d in wide:
            step = c.arange_integers(0, sizes[d], 1, i.dtype)
            i = c.add(i, c.reshape(step, [1] * len(starts.batch) + [sizes[d] if e == d else 1 for e in wide]))
        arrays.append(i)
    return arrays, wide


def split_dims(x_shape, sizes, start_map, x_batch):
    """(dims that index arrays read, dims that stay whole): a start of a whole window can only be 0."""
    indexed = [d for d in range(len(x_shape)) if d in x_batch or (d in start_map and sizes[d] != x_shape[d]) or (d in start_map and x_shape[d] == 1 == sizes[d] and len(x_shape) == 1)]
    return indexed, [d for d in range(len(x_shape)) if d not in indexed]


def _fill_value(x, fill_value):
    if fill_value is not None:
        return number_like(fill_value, x)
    kind, bits = x.dtype.kind, x.dtype.itemsize * 8
    if x.dtype.name == "bool":
        return c.full((), True, "bool")
    if kind == "c":
        return c.full((), complex("nan"), x.dtype)
    return number_like(float("nan") if kind not in "iu" else -2 ** (bits - 1) if kind == "i" else 2 ** bits - 1, x)


@rule("gather")
def gather(x, indices, dimension_numbers, slice_sizes, mode, fill_value, eqn, **_):
    numbers, sizes = dimension_numbers, list(slice_sizes)
    if is_key(eqn.in_avals[0]):
        sizes.append(x.shape[-1])
        fill_value = 0
    offset = list(numbers.offset_dims)
    if is_key(eqn.in_avals[0]):
        offset.append(len(eqn.out_avals[0].shape))
    x_batch, i_batch = list(numbers.operand_batching_dims), list(numbers.start_indices_batching_dims)
    starts = Starts(x.shape, indices, sizes, list(numbers.start_index_map), x_batch, i_batch)
    how = mode_name(mode)
    inside = starts.inside() if how == "fill" and 0 not in x.shape else None
    if 0 in x.shape and 0 not in sizes or 0 in starts.batch:
        return c.broadcast_to(_fill_value(x, fill_value), [*_out_shape(starts.batch, sizes, offset, numbers.collapsed_slice_dims, x_batch)])
    starts.clamped()
    result = _windows(x, starts, sizes, list(numbers.start_index_map), x_batch)
    gone = set(numbers.collapsed_slice_dims) | set(x_batch)
    if gone:
        result = c.reshape(result, [*starts.batch, *[n for d, n in enumerate(sizes) if d not in gone]])
    if inside is not None:
        shape = [*starts.batch, *[1] * (result.ndim - len(starts.batch))]
        result = c.where(c.reshape(inside, shape), result, _fill_value(x, fill_value))
    # The window's dims stand where offset_dims says, the batch's between them.
    order, batch, window = [], itertools.count(), itertools.count(len(starts.batch))
    for d in range(result.ndim):
        order.append(next(window) if d in offset else next(batch))
    return result if order == list(range(result.ndim)) else c.transpose(result, order)


def _out_shape(batch, sizes, offset, collapsed, x_batch):
    window = iter([n for d, n in enumerate(sizes) if d not in set(collapsed) | set(x_batch)])
    rest = iter(batch)
    total = len(batch) + len(offset)
    return [next(window) if d in offset else next(rest) for d in range(total)]


def _windows(x, starts, sizes, start_map, x_batch):
    """(batch..., window...) with all dims of the window in x's order."""
    indexed, whole = split_dims(x.shape, sizes, start_map, x_batch)
    cut = tuple(slice(0, sizes[d]) if d in whole and sizes[d] != x.shape[d] else slice(None) for d in range(x.ndim))
    if any(part != slice(None) for part in cut):
        x = x[cut]
    if not indexed:
        return c.broadcast_to(x, [*starts.batch, *sizes]) if starts.batch else x
    if not starts.batch and not x_batch:
        return c.dynamic_slice(x, [starts.by_dim[d] if d in starts.by_dim else 0 for d in range(x.ndim)], sizes)
    if len(indexed) == 1 and sizes[indexed[0]] == 1:
        d = indexed[0]
        taken = c.take(x, starts.by_dim[d], d)
        nb = len(starts.batch)
        order = [*range(d, d + nb), *range(d), *range(d + nb, taken.ndim)]
        taken = c.transpose(taken, order) if d else taken
        return c.reshape(taken, [*starts.batch, *sizes])
    arrays, wide = with_window(starts, sizes, indexed)
    front = c.transpose(x, indexed + whole) if indexed + whole != list(range(x.ndim)) else x
    taken = front[tuple(c.broadcast_to(a, [*starts.batch, *[sizes[d] for d in wide]]) if a.ndim == 0 else a for a in arrays)]
    nb = len(starts.batch)
    shape = [*starts.batch, *[sizes[d] for d in wide], *[sizes[d] for d in whole]]
    taken = c.broadcast_to(taken, shape) if taken.shape != tuple(shape) else taken
    # batch, wide..., whole... -> batch and the window's dims in order, those of extent one put in.
    places = wide + whole
    order = [*range(nb), *[nb + places.index(d) for d in sorted(places)]]
    taken = c.transpose(taken, order) if order != list(range(taken.ndim)) else taken
    return c.reshape(taken, [*starts.batch, *sizes])
