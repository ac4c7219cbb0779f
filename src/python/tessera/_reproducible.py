"""The same bits on every number of ranks."""
from . import _core
from ._core import is_reproducible  # noqa: F401

__all__ = ["reproducible", "is_reproducible"]


def reproducible(on=True):
    """Results recorded inside `with ts.reproducible():` have the same bits on any number of ranks, in any layout, in every run.

    Sums are trees over the elements' global positions, products add up their inner dim in one order; gradients of what was recorded
    inside follow, wherever they are taken. `on=False`: a part that does without. TESSERA_REPRODUCIBLE=1 is the same for a whole
    program, jit(f, reproducible=True) for one function. An op that cannot keep the promise raises ShardingError and says what to do.
    Enter it on every rank alike.
    """
    return _core.ReproducibleScope(on)
