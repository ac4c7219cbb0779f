"""Functions with the signatures of the array API standard (2024.12) or NumPy: thin wrappers of the ops.

https://data-apis.org/array-api/2024.12. Behaviour that the standard leaves open follows JAX: no function changes its arguments,
dtypes are promoted as in expressions, indices out of range are clamped.
"""
from . import _derived, _dtypes, _edits, _elementwise, _indices, _numeric, _numpys, _polynomials, _products, _reductions, _searching, _segments, _shapes
from ._create import _array, _arrays  # noqa: F401

_rooms = (_elementwise, _reductions, _shapes, _searching, _products, _polynomials, _dtypes, _numeric, _derived, _edits, _indices, _segments, _numpys)
__all__ = [name for room in _rooms for name in room.__all__]
globals().update({name: getattr(room, name) for room in _rooms for name in room.__all__})
