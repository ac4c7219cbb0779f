"""NumPy's functions whose arrays are often written as lists, by the library's signatures."""
import functools

from . import _core
from ._create import _array

__all__ = ["compress", "convolve", "correlate", "digitize", "extract", "interp", "intersect1d", "nanpercentile", "nanquantile", "percentile", "polyadd", "polyder", "polyfit",
           "polyint", "polymul", "polysub", "polyval", "quantile", "setdiff1d", "setxor1d", "union1d"]


def _taking_lists(name):
    function = getattr(_core, name)
    arrays = 3 if name == "interp" else 2

    @functools.wraps(function)
    def call(*args, **options):
        return function(*(_array(a) if isinstance(a, (list, tuple)) else a for a in args[:arrays]), *args[arrays:], **options)
    return call


for _name in __all__:
    globals()[_name] = _taking_lists(_name)
