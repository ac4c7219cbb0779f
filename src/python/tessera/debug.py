"""Looking inside a program: how arrays lie, what was communicated, where the time went, where a NaN came from."""
import contextlib as _contextlib
import sys as _sys

from . import _core
from ._core.debug import CommStats, set_nan_check, sharding_html, sharding_svg, sharding_text  # noqa: F401

_d = _core.debug


def _show(text):
    if _core.is_main_process():
        _sys.stdout.write(text if text.endswith("\n") else text + "\n")
        _sys.stdout.flush()


def visualize_sharding(shape, sharding, **options):
    """Prints, once per job, one cell per distinct block with the devices that hold it."""
    _show(_d.sharding_text(shape, sharding, **options))


def visualize_array_sharding(x, **options):
    """visualize_sharding of the array's shape and sharding; the value is not computed."""
    _show(_d.sharding_text(x.shape, x.sharding, **options))


def inspect_array_sharding(x, *, callback):
    """Hands over the array's sharding as it is recorded, inside a traced function too."""
    callback(x.sharding)


def print(format, *args, **kwargs):  # noqa: A001
    """The format with {} for each argument, or {name}, written once per job. Collective over all ranks: arrays are computed first."""
    text = lambda v: _d.text_for_print(v) if isinstance(v, _core.Array) else str(v)  # noqa: E731
    _show(format.format(*(text(v) for v in args), **{n: text(v) for n, v in kwargs.items()}))


@_contextlib.contextmanager
def profile(trace_path=""):
    """Times every step that this rank runs inside: table(), seconds(), steps(); with a path also a Chrome trace per rank."""
    scope = _d.Profile(trace_path)
    yield scope


def explain(fun, *args, **kwargs):
    """What fun(*args) would run: collectives with axes, bytes and source lines, arithmetic, peak memory. Nothing runs."""
    from ._transforms import jit
    return jit(fun).lower(*args, **kwargs).compile().explanation()


@_contextlib.contextmanager
def debug_nans(on=True):
    """Inside, every computed value is searched for NaN."""
    set_nan_check(on)
    try:
        yield
    finally:
        set_nan_check(False)
