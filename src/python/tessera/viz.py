"""Pictures of data, written by the first process: images, curves, histograms, and pictures in characters. Collective over all processes."""
import os

from . import _core
from ._create import array as _array
from ._core.viz import colormaps, histogram, image, terminal  # noqa: F401

__all__ = ["colormaps", "histogram", "image", "plot", "terminal"]


_options = {"title": str, "x_label": str, "y_label": str, "log_x": bool, "log_y": bool, "width": int, "height": int}


def _is_number(value):
    return isinstance(value, (int, float))


def _curves(values, what):
    """A list of curves: a list of numbers is one."""
    if not isinstance(values, (list, tuple)):
        return [values]
    if all(map(_is_number, values)) and values:
        return [_array(list(map(float, values)))]
    if any(map(_is_number, values)):
        raise _core.errors.ArgumentError(f"viz.plot at {_core.here()}: {what} is a list of numbers and other values; it takes an array, a list of numbers, or a list of arrays")
    return [_array(list(map(float, v))) if isinstance(v, (list, tuple)) else v for v in values]


def _set_options(chosen, options):
    for name, value in options.items():
        kind = _options.get(name)
        if kind is None:
            raise TypeError(f"viz.plot at {_core.here()}: there is no option '{name}'; the options are {', '.join(_options)}")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            takes = {str: "a text", bool: "True or False", int: "an integer"}[kind]
            raise TypeError(f"viz.plot at {_core.here()}: '{name}' is {value!r} ({type(value).__name__}); it takes {takes}")
        setattr(chosen, name, value)


def plot(path, y, x=None, *, labels=None, **options):
    """Curves as an .svg: y over x, or over 0, 1, 2, ...; lists of arrays give several curves. Options: title, x_label, y_label, log_x, log_y, width, height."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"viz.plot at {_core.here()}: 'path' is of type {type(path).__name__}; it takes the path of the .svg first, then the values")
    ys = _curves(y, "y")
    xs = _curves(x, "x") if isinstance(x, (list, tuple)) else [x] * len(ys)
    names = [labels] if isinstance(labels, str) else [""] * len(ys) if labels is None else list(labels)
    if not len(xs) == len(ys) == len(names):
        counts = [f"{len(ys)} {'curve' if len(ys) == 1 else 'curves'}", f"{len(xs)} {'array' if len(xs) == 1 else 'arrays'} of x", f"{len(names)} {'label' if len(names) == 1 else 'labels'}"]
        raise _core.errors.ArgumentError(f"viz.plot at {_core.here()}: {counts[0]}, {counts[1]} and {counts[2]}; there must be as many of each")
    chosen = _core.viz.PlotOptions()
    _set_options(chosen, options)
    _core.viz.plot_curves(path, ys, names, xs, chosen)
