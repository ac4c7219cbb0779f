"""x.at[index]: the parts of an array, with JAX's methods and its modes for indices out of range."""
from math import nan

from . import _core
from ._core import Array
from ._create import _array

_parts_of = Array.at  # the binding's property
_modes = {"clip": "clip", "fill": "fill", "drop": "fill", "promise_in_bounds": "fill"}


def _mode(name, mode, default):
    chosen = default if mode is None else _modes.get(mode if isinstance(mode, str) else str(getattr(mode, "name", mode)).lower())
    if chosen is None:
        raise _core.errors.ArgumentError(f"x.at[i].{name} at {_core.here()}: there is no mode '{mode}'; the modes are {', '.join(_modes)}")
    return chosen


class _Places:
    """The index arrays of an index, and where the dims of their common shape stand in what they read."""

    def __init__(self, x, index):
        self.parts = list(index) if isinstance(index, tuple) else [index]
        self.extents, self.first = {}, 0  # by part; the number of dims before those of the arrays
        is_mask = lambda part: getattr(getattr(part, "dtype", None), "kind", "") == "b"  # noqa: E731  one dim of it for each of x
        named = sum(part.ndim if is_mask(part) else 1 for part in self.parts if part is not None and part is not Ellipsis)
        dim, before, advanced = 0, 0, []
        for n, part in enumerate(self.parts):
            if part is None:
                before += 1
            elif part is Ellipsis:
                dim, before = dim + x.ndim - named, before + x.ndim - named
            elif isinstance(part, slice):
                dim, before = dim + 1, before + 1
            else:
                advanced.append((n, before))
                if not isinstance(part, int):
                    part = _array(part)
                    if part.dtype.kind in "iu":
                        self.parts[n], self.extents[n] = part, x.shape[dim]
                dim += part.ndim if is_mask(part) else 1
        together = bool(advanced) and advanced[-1][0] - advanced[0][0] == len(advanced) - 1
        self.first = advanced[0][1] if together else 0

    def clipped(self):
        """The index with its arrays clipped to the extents."""
        counted = lambda i, n: _core.where(_core.less(i, 0), _core.add(i, n), i)  # noqa: E731  negative ones from the end
        parts = [_core.clip(counted(p, self.extents[n]), 0, self.extents[n] - 1) if n in self.extents else p for n, p in enumerate(self.parts)]
        return tuple(parts)

    def inside(self, ndim):
        """Whether each element of a result of so many dims was read from within x; None if all were."""
        found = None
        for n, extent in self.extents.items():
            here = _core.bitwise_and(_core.greater_equal(self.parts[n], -extent), _core.less(self.parts[n], extent))
            found = here if found is None else _core.bitwise_and(found, here)
        return found if found is None else _core.reshape(found, [*found.shape, *[1] * (ndim - found.ndim - self.first)])


class At:
    """A part of an array: methods give the part, or a new array in which it is changed. Indices out of range are dropped by changes, and clamped by get, unless `mode` says otherwise."""

    def __init__(self, x, index):
        self._x, self._index = x, index

    def _at(self, name="get", mode=None):
        return _parts_of.fget(self._x)[_Places(self._x, self._index).clipped() if _mode(name, mode, "fill") == "clip" else self._index]

    def get(self, *, mode=None, fill_value=None, indices_are_sorted=False, unique_indices=False):
        """The part. mode="fill" gives fill_value where an index is out of range: NaN, or an integer's least (unsigned: largest) value."""
        found = _parts_of.fget(self._x)[self._index].get()
        if _mode("get", mode, "clip") == "clip" or mode == "promise_in_bounds":
            return found
        inside = _Places(self._x, self._index).inside(found.ndim)
        if inside is None:
            return found
        if fill_value is None:
            bits = found.dtype.itemsize * 8
            fill_value = {"i": -2 ** (bits - 1), "u": 2 ** bits - 1, "b": True}.get(found.dtype.kind, nan)
        return _core.where(inside, found, _core.astype(fill_value, found.dtype) if found.dtype.kind not in "iu" else _core.full((), fill_value, found.dtype))

    def apply(self, func, *, mode=None, indices_are_sorted=False, unique_indices=False):
        """With func(part) in place of the part; func is called on an array of elements, once for each."""
        at = self._at("apply", mode)
        return at.set(func(at.get()))

    def power(self, values, *, mode=None, indices_are_sorted=False, unique_indices=False):
        """With part ** values in place of the part."""
        return self.apply(lambda part: _core.power(part, values), mode=mode)


def _changing(name):
    def change(self, values, *, mode=None, indices_are_sorted=False, unique_indices=False):
        return getattr(self._at(name, mode), name)(values)
    change.__name__ = name
    change.__doc__ = "A new array in which the part " + {"set": "is values.", "add": "has values added.", "subtract": "has values subtracted.", "multiply": "is multiplied by values.", "mul": "is multiplied by values.",
                                                         "divide": "is divided by values.", "min": "is the smaller of it and values.", "max": "is the larger of it and values."}[name] + " All of repeated indices count, but for set."
    return change


for _name in ("set", "add", "subtract", "multiply", "mul", "divide", "min", "max"):
    setattr(At, _name, _changing(_name))
At.mul.__name__ = "mul"


class AtIndexer:
    """x.at, before its brackets."""

    def __init__(self, x):
        self._x = x

    def __getitem__(self, index):
        return At(self._x, index)


_core.At, _core.AtIndexer = At, AtIndexer  # in place of the bindings of the same names
Array.at = property(AtIndexer, doc="x.at[0, :].set(v): a new array in which that part is replaced.")
