"""NumPy's functions on tessera's arrays: np.mean(x) and np.sin(x) call tessera's function of that name, on split arrays too.

https://numpy.org/neps/nep-0018, nep-0013. If tessera has no function of that name, NumPy's own gets this process's memory if it holds all of the array;
for a split array that is a TypeError that says how to gather.
"""
import inspect

import numpy as _np

from . import _core
from ._core import Array
from ._create import refuse_out

# ufuncs whose names are others here, or that NumPy knows by one name alone.
_renamed = {"absolute": "abs", "fabs": "fabs", "divide": "divide", "rint": "round", "invert": "bitwise_invert", "conjugate": "conj", "degrees": "rad2deg", "radians": "deg2rad"}
# What reduces with a ufunc, and what accumulates.
_reduced = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any", "logaddexp": "logsumexp"}
_accumulated = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}


_older = {"round_": "round"}  # NumPy 1's name of a function


def _namespace():
    import tessera
    return tessera


def _own(function):
    """tessera's function of NumPy's name, in the module of its name, or None."""
    place, (*modules, _) = _namespace(), [*(function.__module__ or "numpy").split("."), ""]
    for name in modules[1:]:
        if name.startswith("_") or name in ("core", "lib", "ma"):
            continue
        place = getattr(place, name, None)
    return getattr(place, _older.get(function.__name__, function.__name__), None) if place is not None else None


def _refused(name, reason):
    return TypeError(f"numpy.{name} at {_core.here()}: {reason}. Gather first, numpy.{name}(tessera.device_get(x)), or write it with tessera's functions")


def _on_memory(name, call, values):
    """NumPy's own function, on arrays that this process holds completely."""
    def host(value):
        if isinstance(value, Array):
            try:
                return _np.asarray(value)
            except TypeError:
                raise _refused(name, f"tessera has no function of this name, and the array {value.shape} is split over {value.sharding.num_devices} devices") from None
        if isinstance(value, (list, tuple)) and any(isinstance(v, Array) for v in value):
            return type(value)(host(v) for v in value)
        return value
    if isinstance(values, dict):
        return {k: host(v) for k, v in values.items()}
    return call(*(host(v) for v in values))


def _is_left_out(value, default):
    return value is default or value is None or type(value).__name__ == "_NoValueType"


_parameters = {"a_min": "min", "a_max": "max"}  # NumPy 2.1 has both names, tessera and the standard the second


def _arguments(function, args, options):
    """The arguments without those that are NumPy's defaults, the required ones by position."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **options)
    except (TypeError, ValueError):
        return args, options
    positional, named = [], {}
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.kind is parameter.POSITIONAL_ONLY or (parameter.default is parameter.empty and not named):
            positional.append(value)
        elif not _is_left_out(value, parameter.default):
            named[_parameters.get(name, name)] = value
    return positional, named


def _array_function(self, function, types, args, kwargs):
    """numpy.f(x) calls tessera.f(x), with NumPy's optional arguments if tessera's function has them."""
    own = _own(function)
    name = ".".join([*(function.__module__ or "numpy").split(".")[1:], function.__name__])
    if own is None or not callable(own):
        kwargs = _on_memory(name, None, kwargs)
        return _on_memory(name, lambda *values: function(*values, **kwargs), args)
    args, options = _arguments(function, args, kwargs)
    refuse_out(f"numpy.{name}", options.pop("out", None))
    try:
        return own(*args, **options)
    except TypeError as error:
        unknown = [o for o in options if f"unexpected keyword argument '{o}'" in str(error) or f"has no parameter '{o}'" in str(error)]
        if not unknown:
            raise
        if any(isinstance(a, Array) and not a.is_fully_replicated and a.committed for a in args):
            raise _refused(name, f"tessera.{name} has no parameter '{unknown[0]}'") from None
        kwargs = _on_memory(name, None, options)
        return _on_memory(name, lambda *values: function(*values, **kwargs), args)


def _array_ufunc(self, ufunc, method, *inputs, out=None, where=True, **options):
    """numpy.sin(x), numpy.add(x, y), numpy.add.reduce(x): tessera's. out= would change an array: TypeError."""
    name = ufunc.__name__
    if out is not None and any(isinstance(o, Array) for o in out):
        refuse_out(f"numpy.{name}", out)
    if out is not None:
        raise TypeError(f"numpy.{name} at {_core.here()}: out= is an array of NumPy's, and an operand is tessera's; write out[...] = tessera.device_get(...)")
    namespace = _namespace()
    own = getattr(namespace, _renamed.get(name, name), None)
    if method == "__call__" and own is not None and where is True:
        dtype = options.pop("dtype", None)
        options = {k: v for k, v in options.items() if not (k == "casting" and v == "same_kind" or k in ("order", "subok"))}
        if not options:
            inputs = inputs if dtype is None else [namespace.astype(namespace.asarray(x), dtype) for x in inputs]
            return own(*inputs)
    if method == "reduce" and name in _reduced:
        options.setdefault("axis", 0)
        return getattr(namespace, _reduced[name])(inputs[0], where=where, **options) if where is not True else getattr(namespace, _reduced[name])(inputs[0], **options)
    if method == "accumulate" and name in _accumulated:
        return getattr(namespace, _accumulated[name])(namespace.asarray(inputs[0]), axis=options.get("axis", 0))
    if method == "outer" and own is not None:
        a, b = (namespace.asarray(x) for x in inputs)
        return own(namespace.reshape(a, (*a.shape, *[1] * b.ndim)), b)
    called = ufunc if method == "__call__" else getattr(ufunc, method)
    full = name if method == "__call__" else f"{name}.{method}"
    return _on_memory(full, lambda *values: called(*values, where=where, **options) if where is not True else called(*values, **options), inputs)


def _format(self, spec):
    """f"{x:.2f}" of an array of one element is that of the number; other formats of larger arrays are TypeErrors, as NumPy's."""
    if not spec:
        return str(self)
    if self.ndim:
        raise TypeError(f"the format '{spec}' at {_core.here()} is one of a number, and the array has shape {self.shape}; take one element, f\"{{x[0]:{spec}}}\", or debug.print")
    return format(self.item(), spec)


def _of_pickle(host, name):
    return _namespace().asarray(host) if name != "bfloat16" else _core.astype(_namespace().asarray(host), name)


def _reduce(self):
    """Pickles the value of an array that this process holds completely, without its sharding; unpickling gives an uncommitted array."""
    from ._methods import _block
    _block(self, "pickle")
    host = _np.asarray(_core.astype(self, _core.float32) if self.dtype == _core.bfloat16 else self)
    return _of_pickle, (host.copy(), self.dtype.name)


Array.__array_function__, Array.__array_ufunc__ = _array_function, _array_ufunc
Array.__format__, Array.__reduce__ = _format, _reduce
