"""Reductions of windows, and the gradients of pooling.

A window's elements are slices of the padded array with the window's stride, one for each place in the window: all that tessera's own
reduce_window does not know (dilations, functions of the program, the choice of an element) is made of those.
"""
import functools
import itertools

from ... import _core as c
from .._interpret import rule
from .._values import number_like
from .arithmetic import is_complex, maximum, minimum
from .reduce import elementwise, highest, lowest
from .shapes import pad


class Windows:
    """Where windows are: the arrays that their elements at one place make up."""

    def __init__(self, ndim, window, strides, padding, base=None, window_dilation=None):
        self.window, self.strides, self.padding = list(window), list(strides), [tuple(p) for p in padding]
        self.base, self.dilation = list(base or [1] * ndim), list(window_dilation or [1] * ndim)

    def padded(self, x, value):
        return pad(x, value, [(low, high, n - 1) for (low, high), n in zip(self.padding, self.base)])

    def counts(self, padded_shape):
        return [max((n - ((w - 1) * k + 1)) // s + 1, 0) for n, w, s, k in zip(padded_shape, self.window, self.strides, self.dilation)]

    def places(self):
        return itertools.product(*[range(w) for w in self.window])

    def cut(self, padded, place):
        counts = self.counts(padded.shape)
        return padded[tuple(slice(p * k, p * k + (n - 1) * s + 1 if n else p * k, s) for p, k, n, s in zip(place, self.dilation, counts, self.strides))]


def _neutral(kind, x):
    name = {"sum": 0, "prod": 1}.get(kind)
    return number_like(name if name is not None else (lowest if kind == "max" else highest)(x.dtype), x)


_pairs = {"sum": c.add, "max": maximum, "min": minimum, "prod": c.multiply}


def _reduce_window(kind):
    def apply(x, window_dimensions, window_strides, padding, base_dilation=None, window_dilation=None, **_):
        w = Windows(x.ndim, window_dimensions, window_strides, padding, base_dilation, window_dilation)
        if x.ndim == 0:
            return x
        padded = w.padded(x, _neutral(kind, x))
        counts = w.counts(padded.shape)
        if 0 in counts or 0 in padded.shape:
            return c.zeros(counts, x.dtype)
        if all(k == 1 for k in w.dilation) and not is_complex(x) and x.dtype.name != "bool" and min(w.window) > 0:
            return c.astype(c.reduce_window(padded, kind, w.window, w.strides), x.dtype)
        return functools.reduce(_pairs[kind], [w.cut(padded, p) for p in w.places()])
    return apply


for _kind in ("sum", "max", "min"):
    rule(f"reduce_window_{_kind}")(_reduce_window(_kind))


@rule("reduce_window")
def reduce_window(*operands, jaxpr, consts=(), window_dimensions, window_strides, padding, base_dilation=None, window_dilation=None, **_):
    """By a function of the program."""
    n = len(operands) // 2
    arrays, inits = operands[:n], operands[n:]
    w = Windows(arrays[0].ndim, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    padded = [w.padded(x, i) for x, i in zip(arrays, inits)]
    counts = w.counts(padded[0].shape)
    result = [c.broadcast_to(i, counts) for i in inits]
    if 0 in counts:
        return result
    for place in w.places():
        result = elementwise(jaxpr, result, [w.cut(x, place) for x in padded])
    return result


def _is_ge(primitive):
    return str(getattr(primitive, "name", primitive)) == "ge"


def _first_best(w, padded, is_ge):
    """The place in its window, as a number, of each window's first largest (smallest) element."""
    best = which = None
    for n, place in enumerate(w.places()):
        part = w.cut(padded, place)
        if best is None:
            best, which = part, c.zeros(part.shape, "int32")
            continue
        better = c.greater(part, best) if is_ge else c.less(part, best)
        better = c.bitwise_or(better, c.bitwise_and(c.isnan(part), c.bitwise_invert(c.isnan(best)))) if part.dtype.kind not in "iub" else better
        best, which = c.where(better, part, best), c.where(better, n, which)
    return best, which


@rule("select_and_gather_add")
def select_and_gather_add(tangents, x, select_prim, window_dimensions, window_strides, padding, base_dilation=None, window_dilation=None):
    """The tangent of the element that the window's maximum is."""
    w = Windows(x.ndim, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    is_ge = _is_ge(select_prim)
    padded = w.padded(x, number_like((lowest if is_ge else highest)(x.dtype), x))
    moved = w.padded(tangents, number_like(0, tangents))
    _, which = _first_best(w, padded, is_ge)
    result = None
    for n, place in enumerate(w.places()):
        part = c.where(c.equal(which, n), w.cut(moved, place), number_like(0, tangents))
        result = part if result is None else c.add(result, part)
    return result


@rule("select_and_scatter_add")
def select_and_scatter_add(source, x, select_prim, window_dimensions, window_strides, padding):
    """Each window's value is added to the element that is its maximum."""
    w = Windows(x.ndim, window_dimensions, window_strides, padding)
    is_ge = _is_ge(select_prim)
    padded = w.padded(x, number_like((lowest if is_ge else highest)(x.dtype), x))
    _, which = _first_best(w, padded, is_ge)
    result = None
    for n, place in enumerate(w.places()):
        part = _spread(w, c.where(c.equal(which, n), source, number_like(0, source)), place, padded.shape)
        result = part if result is None else c.add(result, part)
    return _unpadded(result, w.padding)


def _spread(w, part, place, shape):
    """The elements of a cut where they came from, zeros elsewhere."""
    zero = number_like(0, part)
    config = []
    for d, (p, s) in enumerate(zip(place, w.strides)):
        extent = (part.shape[d] - 1) * s + 1
        config.append((p, shape[d] - p - extent, s - 1))
    return pad(part, zero, config)


def _unpadded(x, padding):
    return pad(x, number_like(0, x), [(-low, -high, 0) for low, high in padding])


@rule("select_and_scatter")
def select_and_scatter(x, source, init, select_jaxpr, scatter_jaxpr, window_dimensions, window_strides, padding, select_consts=(), scatter_consts=(), **_):
    """By functions of the program: select(a, b) keeps a, scatter combines what one element gets."""
    w = Windows(x.ndim, window_dimensions, window_strides, padding)
    shape = [n + low + high for n, (low, high) in zip(x.shape, w.padding)]
    padded, inside = w.padded(x, number_like(0, x)), w.padded(c.full(x.shape, True, "bool"), c.full((), False, "bool"))
    best = which = known = None
    for n, place in enumerate(w.places()):
        part, here = w.cut(padded, place), w.cut(inside, place)
        if best is None:
            best, which, known = part, c.zeros(part.shape, "int32"), here
            continue
        keeps = elementwise(select_jaxpr, [best], [part])[0]
        better = c.bitwise_and(here, c.bitwise_or(c.bitwise_invert(keeps), c.bitwise_invert(known)))
        best, which, known = c.where(better, part, best), c.where(better, n, which), c.bitwise_or(known, here)
    result = c.broadcast_to(init, shape)
    for n, place in enumerate(w.places()):
        chosen = c.equal(which, n)
        changed = elementwise(scatter_jaxpr, [result], [_spread(w, source, place, shape)])[0]
        result = c.where(_spread(w, c.astype(chosen, "int32"), place, shape) != 0, changed, result)
    return _unpadded(result, w.padding)
