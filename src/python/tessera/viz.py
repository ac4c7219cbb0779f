"""Pictures of data, written by the first process: images, curves, histograms, and pictures in characters. Collective over all processes."""
from . import _core
from ._core.viz import colormaps, histogram, image, terminal  # noqa: F401

__all__ = ["colormaps", "histogram", "image", "plot", "terminal"]


def plot(path, y, x=None, *, labels=None, **options):
    """Curves as an .svg: y over x, or over 0, 1, 2, ...; lists give several curves. Options: title, x_label, y_label, log_x, log_y, width, height."""
    ys = list(y) if isinstance(y, (list, tuple)) else [y]
    xs = list(x) if isinstance(x, (list, tuple)) else [x] * len(ys)
    names = list(labels) if labels is not None else [""] * len(ys)
    if not len(xs) == len(ys) == len(names):
        raise _core.errors.ArgumentError(f"viz.plot at {_core.here()}: {len(ys)} curves, {len(xs)} places and {len(names)} labels; there must be as many of each")
    chosen = _core.viz.PlotOptions()
    for name, value in options.items():
        if not hasattr(chosen, name):
            raise TypeError(f"viz.plot has no option '{name}'; the options are title, x_label, y_label, log_x, log_y, width and height")
        setattr(chosen, name, value)
    _core.viz.plot_curves(path, ys, names, xs, chosen)
