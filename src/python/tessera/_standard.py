"""Functions with the signatures of the array API standard (2024.12) or NumPy: thin wrappers of the ops.

https://data-apis.org/array-api/2024.12. Behaviour that the standard leaves open follows JAX: no function changes its arguments,
dtypes are promoted as in expressions, indices out of range are clamped.
"""
from . import _dtypes, _elementwise, _more, _numeric, _numpys, _products, _reductions, _searching, _shapes
from ._create import _array, _arrays  # noqa: F401

_rooms = (_elementwise, _reductions, _shapes, _searching, _products, _dtypes, _numeric, _more, _numpys)
__all__ = [name for room in _rooms for name in room.__all__]
globals().update({name: getattr(room, name) for room in _rooms for name in room.__all__})
