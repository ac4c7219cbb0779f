"""x[i] = v and x += v bind this handle to another value, like x = x.at[i].set(v); other handles keep theirs.

NumPy's views share memory, these do not. A program that writes through a view, or reads a view of what it writes, is refused:
x[i] = v raises while a view of x, or the array of which x is one, is alive.
"""
import builtins
import functools
import gc
import sys

from . import _core
from ._core import Array
from ._create import _array, asarray

_link, _is_linked = _core._link_view, _core._is_linked
_numbers = (builtins.bool, int, float, complex)


def linked(result, x):
    """The result, recorded as a view of x, because NumPy's function of this name returns one."""
    if isinstance(result, Array):
        if result is not x and result.ndim:
            _link(x, result)
    elif isinstance(result, (list, tuple)):  # parts beside each other
        for part in result:
            if part.ndim:
                _core._link_row(x, part)
    return result


def rows_of(x):
    """The slices along the first dim, which share nothing with each other."""
    for i in range(x.shape[0]):
        row = _core._handle(x[i])
        if row.ndim:
            _core._link_row(x, row)
        yield row


def giving_views(function):
    """The function, whose results are noted as views of its first argument."""
    @functools.wraps(function)
    def call(x, /, *args, **options):
        result = function(x, *args, **options)
        return linked(result, x) if isinstance(x, Array) else result
    return call


def _has_living_views(x):
    if not _is_linked(x):
        return False
    gc.collect()  # views that only wait to be collected: ranks would not agree on them
    return _is_linked(x)


def _parts(index):
    """The index with masks among other parts as the places that they choose."""
    if not isinstance(index, tuple) or len(index) < 2:
        return index
    parts = []
    for part in index:
        part = asarray(part) if isinstance(part, list) or hasattr(part, "__array_interface__") else part
        is_mask = isinstance(part, Array) and part.dtype.kind == "b" and part.ndim
        parts.extend(_core.nonzero(part, None, None) if is_mask else [part])
    return tuple(parts)


def _replaced_if(x, condition, value):
    """x[condition] = value with a bool of no dims, which chooses all of x, as one row, or nothing."""
    if not isinstance(value, _numbers) and value.ndim == x.ndim + 1:
        if value.shape[0] == 0:
            return x
        value = _core.reshape(value, value.shape[1:])
    return _core.where(condition, value, x)


def _replaced(x, index, value):
    """x.at[index].set(value), where the value may have more dims of extent 1 in front than the part, as in NumPy."""
    if isinstance(index, builtins.bool) or isinstance(index, Array) and index.dtype.kind == "b" and index.ndim == 0:
        return _replaced_if(x, index, value)
    while True:
        try:
            return x.at[_parts(index)].set(value)
        except _core.errors.ShapeError:
            if isinstance(value, _numbers) or value.ndim < 2 or value.shape[0] != 1:
                raise
            value = _core.reshape(value, value.shape[1:])


def _setitem(self, index, value):
    """x[index] = value: this handle gets the value of x.at[index].set(value). TypeError if a view or a base of x is alive."""
    if _has_living_views(self):
        raise TypeError(f"x[i] = v at {_core.here()}: x is a view, made by indexing or reshaping an array that is still used, or such a view of x is; NumPy would change both, "
                        "but arrays do not share memory here. Write x = x.at[i].set(v), or del the other one, or take x = tessera.copy(x) first")
    value = value if isinstance(value, (Array, *_numbers)) else _array(value, self)
    if isinstance(value, Array) and value.dtype.kind == "c" and self.dtype.kind != "c":
        raise TypeError(f"x[i] = v at {_core.here()}: complex values do not fit into {self.dtype}; take tessera.real(v)")
    replaced = _replaced(self, index, value)
    if replaced.dtype != self.dtype:
        replaced = _core.astype(replaced, self.dtype)
    if replaced._traced and not self._traced:
        raise _core.errors.ArgumentError(f"x[i] = v at {_core.here()}: x comes from outside of the function that is being traced, and the new value would leave it; "
                                         "write y = x.at[i].set(v), and return it")
    _core._rebind(self, replaced)


class _Probe:
    """Counts the references that an operand of += has: y[i] += v writes back what it has indexed, row += v does not."""

    def __iadd__(self, other):
        return sys.getrefcount(self)

    def __getitem__(self, _):
        return _Probe()

    def __setitem__(self, _, count):
        self.count = count


def _references_of_named():
    named, of_parts = _Probe(), _Probe()
    of_parts[0] += 1
    named += 1
    return named if named > of_parts.count else sys.maxsize  # an interpreter that does not count them refuses nothing


_of_named = _references_of_named()


def _in_place(name, operator):
    def update(self, other):
        if sys.getrefcount(self) < _of_named:  # a part: y[i] += v puts the result back into y, which keeps its dtype
            result = operator(self, other)
            if result is NotImplemented or result.dtype == self.dtype or name in ("@=", "<<=", ">>="):
                return result
            raise TypeError(f"y[i] {name} v at {_core.here()}: the result is {result.dtype}, and does not fit into y, which has the dtype {self.dtype}; take y = tessera.astype(y, "
                            f"tessera.{result.dtype}) first, or convert v")
        if "_view" in self.__dict__ and not self._traced and _has_living_views(self):
            raise TypeError(f"x {name} v at {_core.here()}: x is a view, made by indexing or reshaping an array that is still used; NumPy would change that as well, "
                            f"but arrays do not share memory here. Write x = x {name[:-1]} v for a new array, or y[i] {name} v to change the array itself")
        return operator(self, other)
    update.__name__ = f"__i{operator.__name__.strip('_')}__"
    return update


Array.__setitem__ = _setitem
for _name, _method in {"+=": "add", "-=": "sub", "*=": "mul", "/=": "truediv", "//=": "floordiv", "%=": "mod", "**=": "pow", "@=": "matmul", "&=": "and", "|=": "or", "^=": "xor", "<<=": "lshift",
                       ">>=": "rshift"}.items():
    setattr(Array, f"__i{_method}__", _in_place(_name, getattr(Array, f"__{_method}__")))
