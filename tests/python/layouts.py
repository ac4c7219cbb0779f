"""Arrays on every layout that the job's processes allow: replicated, split by one dim, by another, on a mesh of two axes."""
import itertools

import numpy as np

import tessera as ts


def shardings(ndim):
    """None (uncommitted) first, then splits of each dim, then two dims at once where the number of processes divides."""
    n = ts.device_count()
    row = ts.make_mesh((n,), ("x",))
    yield None
    yield ts.NamedSharding(row, ts.P())
    for dim in range(ndim):
        yield ts.NamedSharding(row, ts.P(*[None] * dim, "x"))
    if n % 2 == 0 and ndim >= 2:
        grid = ts.make_mesh((2, n // 2), ("y", "z"))
        yield ts.NamedSharding(grid, ts.P("y", "z"))
        yield ts.NamedSharding(grid, ts.P(None, ("z", "y")))


def spread(host):
    """The NumPy array as tessera's, on each layout in turn."""
    for sharding in shardings(np.ndim(host)):
        yield ts.asarray(host, sharding=sharding)


def pairs(a, b):
    """Two arrays on the same and on different layouts."""
    left, right = list(spread(a)), list(spread(b))
    yield left[0], right[0]
    for x, y in zip(itertools.cycle(left), right):
        yield x, y
    yield left[-1], right[0]


def values(x):
    """The whole value as NumPy's."""
    return ts.device_get(x)


def assert_same(found, expected, tolerance=1e-5, dtype=True):
    """Shape, dtype and values."""
    expected = np.asarray(expected)
    assert isinstance(found, ts.Array), f"{type(found)} is no Array"
    assert found.shape == expected.shape, f"shape {found.shape} is not {expected.shape}"
    if dtype:
        assert found.dtype == expected.dtype, f"dtype {found.dtype} is not {expected.dtype}"
    np.testing.assert_allclose(values(found), expected, rtol=tolerance, atol=tolerance)
