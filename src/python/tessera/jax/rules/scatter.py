"""scatter in JAX's own form, as updates of parts: x.at[...].set, add, multiply, min, max."""
from ... import _core as c
from .._interpret import rule
from .._values import is_key, number_like
from .index import Starts, mode_name, split_dims, with_window
from .reduce import elementwise


def _scatter(name, change):
    def apply(x, indices, updates, dimension_numbers, mode, eqn, update_jaxpr=None, unique_indices=False, **_):
        if name == "scatter" and update_jaxpr is not None and _is_own_function(update_jaxpr):
            return _scatter_apply(x, indices, updates, dimension_numbers, mode, update_jaxpr)
        return _update(x, indices, updates, dimension_numbers, mode, change, is_key(eqn.in_avals[0]))
    return apply


def _is_own_function(update_jaxpr):
    """Whether the update is other than `lambda _, new: new`: then it is scatter_apply."""
    from .._versions import closed
    jaxpr = closed(update_jaxpr).jaxpr
    return bool(jaxpr.eqns)


def _sizes(x_shape, updates, numbers):
    """The window's extent in each dim of x."""
    window = iter(updates.shape[d] for d in sorted(numbers.update_window_dims))
    gone = set(numbers.inserted_window_dims) | set(numbers.operand_batching_dims)
    return [1 if d in gone else next(window) for d in range(len(x_shape))]


def _update(x, indices, updates, numbers, mode, change, of_keys=False):
    if of_keys:
        # the bits of a key are one more window dim, whole
        numbers = numbers._replace(update_window_dims=(*numbers.update_window_dims, updates.ndim - 1))
    if updates.size == 0 or x.size == 0:
        return x
    sizes = _sizes(x.shape, updates, numbers)
    start_map, x_batch = list(numbers.scatter_dims_to_operand_dims), list(numbers.operand_batching_dims)
    starts = Starts(x.shape, indices, sizes, start_map, x_batch, list(numbers.scatter_indices_batching_dims))
    inside = None
    if mode_name(mode) == "clip":
        starts.clamped()
    else:
        inside = starts.inside()
    # updates as (batch..., window... in x's order)
    window = sorted(numbers.update_window_dims)
    rest = [d for d in range(updates.ndim) if d not in window]
    order = rest + window
    updates = c.transpose(updates, order) if order != list(range(updates.ndim)) else updates
    updates = c.reshape(updates, [*starts.batch, *sizes])
    indexed, whole = split_dims(x.shape, sizes, start_map, x_batch)
    partial = [d for d in whole if sizes[d] != x.shape[d]]
    if not indexed and not partial:
        return _whole_update(x, updates, inside, len(starts.batch), change)
    for d in partial:  # a window at the start of a dim that has no index
        starts.by_dim[d] = c.zeros(starts.batch, "int32")
        indexed.append(d)
    indexed.sort()
    whole = [d for d in whole if d not in partial]
    if not starts.batch:
        return _one_window(x, starts, updates, sizes, inside, change)
    arrays, wide = with_window(starts, sizes, indexed)
    nb = len(starts.batch)
    if inside is not None:  # what lies outside is sent past the end, where it is dropped
        inside = c.reshape(inside, [*starts.batch, *[1] * len(wide)])
        first = indexed[0]
        i = arrays[0]
        arrays[0] = c.where(inside, i, number_like(x.shape[first], i))
    front = c.transpose(x, indexed + whole) if indexed + whole != list(range(x.ndim)) else x
    squeezed = c.reshape(updates, [*starts.batch, *[n for d, n in enumerate(sizes) if d in wide or d in whole]])
    kept = [d for d in range(x.ndim) if d in wide or d in whole]
    order = [*range(nb), *[nb + kept.index(d) for d in wide + whole]]
    squeezed = c.transpose(squeezed, order) if order != list(range(squeezed.ndim)) else squeezed
    shape = [*starts.batch, *[sizes[d] for d in wide]]
    arrays = [c.broadcast_to(a, shape) if a.shape != tuple(shape) else a for a in arrays]
    result = change(front, tuple(arrays), squeezed)
    back = [0] * x.ndim
    for n, d in enumerate(indexed + whole):
        back[d] = n
    return c.transpose(result, back) if back != list(range(x.ndim)) else result


def _whole_update(x, updates, inside, nb, change):
    """Every window is all of x."""
    if nb == 0:
        changed = change(c.expand_dims(x, 0), (c.zeros((1,), "int32"),), c.expand_dims(updates, 0))
        changed = c.squeeze(changed, [0])
        return changed if inside is None else c.where(inside, changed, x)
    n = 1
    for extent in updates.shape[:nb]:
        n *= extent
    where = c.zeros((n,), "int32")
    if inside is not None:
        where = c.where(c.reshape(inside, [n]), where, number_like(1, where))
    return c.squeeze(change(c.expand_dims(x, 0), (where,), c.reshape(updates, [n, *x.shape])), [0])


def _one_window(x, starts, updates, sizes, inside, change):
    """No batch: the part is read, changed and put back."""
    begin = [starts.by_dim[d] if d in starts.by_dim else 0 for d in range(x.ndim)]
    if change is _set:
        new = updates
    else:
        part = c.dynamic_slice(x, begin, sizes)
        new = c.squeeze(change(c.expand_dims(part, 0), (c.zeros((1,), "int32"),), c.expand_dims(updates, 0)), [0])
    changed = c.dynamic_update_slice(x, c.reshape(new, sizes), begin)
    return changed if inside is None else c.where(inside, changed, x)


def _changer(method):
    def change(x, index, values):
        if x.dtype.name in ("bool",) and method in ("add", "max", "min", "multiply"):
            wide = getattr(c.astype(x, "int32").at[index], method)(c.astype(values, "int32"))
            return c.astype(wide, "bool")
        return getattr(x.at[index], method)(values)
    return change


_set = _changer("set")
for _name, _change in (("scatter", _set), ("scatter-add", _changer("add")), ("scatter_add", _changer("add")), ("scatter-sub", _changer("subtract")),
                       ("scatter_sub", _changer("subtract")), ("scatter-mul", _changer("multiply")), ("scatter_mul", _changer("multiply")),
                       ("scatter_min", _changer("min")), ("scatter-min", _changer("min")), ("scatter_max", _changer("max")), ("scatter-max", _changer("max"))):
    rule(_name)(_scatter(_name, _change))


def _scatter_apply(x, indices, updates, numbers, mode, update_jaxpr):
    """x.at[...].apply(f): f of the part, as often as a place is named."""
    times = _update(c.zeros(x.shape, "int32"), indices, c.full(updates.shape, 1, "int32"), numbers, mode, _changer("add"))

    def once_more(state):
        n, values = state
        (changed,) = elementwise(update_jaxpr, [values], [values])
        return c.add(n, 1), c.where(c.less(n, times), changed, values)

    most = c.max(times)
    return c.control.while_loop(lambda state: c.less(state[0], most), once_more, (c.full((), 0, "int32"), x))[1]
