"""NumPy's functions whose arguments are often lists, with the library's signatures."""
import collections
import functools

from . import _core
from ._create import _array, _arrays, asarray
from ._searching import histogram_bin_edges
from ._shapes import ravel

__all__ = ["compress", "convolve", "correlate", "digitize", "extract", "histogram2d", "interp", "intersect1d", "nanpercentile", "nanquantile", "percentile", "polyadd", "polyder",
           "polymul", "polysub", "polyval", "quantile", "setdiff1d", "setxor1d", "union1d"]


def _taking_lists(name):
    function = getattr(_core, name)
    arrays = 3 if name == "interp" else 2

    @functools.wraps(function)
    def call(*args, **options):
        given = args[:arrays]
        return function(*(_array(a, *given) if isinstance(a, (list, tuple)) else a for a in given), *args[arrays:], **options)
    return call


for _name in __all__:
    globals()[_name] = _taking_lists(_name)


_interp = interp  # noqa: F821


def interp(x, xp, fp, left=None, right=None, period=None):
    """Values of the piecewise linear function through (xp, fp), left and right of them fp's first and last unless others are given; with a period xp need not ascend."""
    if period is None:
        return _interp(x, xp, fp, left, right)
    x, xp, fp = _arrays((x, xp, fp))
    x, xp = _core.remainder(x, abs(period)), _core.remainder(xp, abs(period))
    order = _core.argsort(xp, -1)
    xp, fp = _core.take(xp, order, 0), _core.take(fp, order, 0)
    around = lambda v, turn: _core.concatenate([v[-1:] - turn, v, v[:1] + turn], 0)  # noqa: E731
    return _interp(x, around(xp, abs(period)), around(fp, 0))


def _of_fractions(name):
    """Fractions in a list are float64, as a number is: 0.3 of 10 elements is 3, and float32's 0.3 would be the next one."""
    function = getattr(_core, name)

    @functools.wraps(function)
    def call(x, q, *args, **options):
        if isinstance(q, (list, tuple)):
            q = asarray(q, dtype=_core.float64)
        return function(_array(x), q, *args, **options)
    return call


for _name in ("percentile", "quantile", "nanpercentile", "nanquantile"):
    globals()[_name] = _of_fractions(_name)


Histogram2d = collections.namedtuple("Histogram2d", "counts x_edges y_edges", module="tessera")


def histogram2d(x, y, bins=10, range=None, density=False, weights=None):  # noqa: A002
    """(counts, edges of x, edges of y) of equal bins of both: their number, or a pair of numbers, or of edges that ascend."""
    pair = list(bins) if isinstance(bins, (list, tuple)) and len(bins) == 2 else [bins, bins]
    if range is None and isinstance(bins, int):
        return _core.histogram2d(x, y, bins=bins, density=density, weights=weights)
    flat = [ravel(_array(v)) for v in (x, y)]
    limits = [None, None] if range is None else range
    edges = [histogram_bin_edges(v, b, None if r is None else tuple(r)) for v, b, r in zip(flat, pair, limits)]
    places = [_core.where(_core.equal(v, e[-1]), e.size - 2, _core.searchsorted(e, v, "right") - 1) for v, e in zip(flat, edges)]
    shape = tuple(e.size - 1 for e in edges)
    inside = [_core.logical_and(_core.greater_equal(p, 0), _core.less(p, n)) for p, n in zip(places, shape)]
    at = _core.where(_core.logical_and(*inside), places[0] * shape[1] + places[1], shape[0] * shape[1])
    counts = _core.bincount(at, shape[0] * shape[1] + 1) if weights is None else _core.bincount(at, ravel(_array(weights)), shape[0] * shape[1] + 1)
    counts = _core.reshape(counts[:-1], shape)
    if density:
        area = _core.expand_dims(_core.diff(edges[0], 1, 0), 1) * _core.diff(edges[1], 1, 0)
        counts = counts / area / _core.sum(counts)
    return Histogram2d(counts, *edges)
