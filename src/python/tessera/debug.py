"""Looking inside a program: how arrays lie, what was communicated, where the time went, where a NaN came from."""
import contextlib as _contextlib
import string as _string
import sys as _sys

import numpy as _np

from . import _core
from ._core.debug import CommStats, mesh_picture, set_nan_check, sharding_html, sharding_svg, sharding_text  # noqa: F401

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


def print(format, *args, ordered=False, **kwargs):  # noqa: A001
    """The format with {} for each argument, or {name}, {:.3f}, written once per job by rank 0. Collective over all ranks: arrays are
    computed first. Inside jit and the like it writes when the program runs, as jax.debug.print."""
    text, values, taken = "", [], 0
    for literal, field, spec, _ in _string.Formatter().parse(format):
        text += literal.replace("{", "{{").replace("}", "}}")
        if field is None:
            continue
        if field == "":
            if taken >= len(args):
                raise ValueError(f"debug.print: the format {format!r} has more {{}} than the {len(args)} arguments")
            values.append(args[taken])
            taken += 1
        else:
            values.append(args[int(field)] if field.isdigit() else kwargs[field])
        text += "{:" + spec + "}" if spec else "{}"
    if _d.prints_later():
        _d.print_values(text, values)
    else:  # through sys.stdout, which notebooks and tests take over
        _show(text.format(*(_Written(v) for v in values)))


def callback(callback, *args, ordered=False, **kwargs):
    """callback(*args) with NumPy arrays: now, on rank 0; inside jit and the like when the program runs, each time, in order with print. It must not call tessera.

    Collective over all ranks where the values are there.
    """
    names = list(kwargs)
    count = len(args)
    _d.callback_values(lambda *hosts: callback(*hosts[:count], **dict(zip(names, hosts[count:]))), [*args, *kwargs.values()])


class _Written:
    """An argument of print, as Python's format wants it; of an array the format holds for each element."""

    def __init__(self, value):
        self.value = value

    def __format__(self, spec):
        if not isinstance(self.value, _core.Array):
            return format(self.value, spec)
        if not spec:
            return str(self.value)
        is_bfloat16 = self.value.dtype == _core.bfloat16
        host = _np.asarray((_core.astype(self.value, _core.float32) if is_bfloat16 else self.value)._host())
        return _np.array2string(host, formatter={"all": lambda x: format(x, spec)})


@_contextlib.contextmanager
def profile(trace_path=""):
    """Times every step that this rank runs inside: table(), seconds(), steps(), and report() of all ranks. With a path the end is collective over
    all ranks, and writes one Chrome trace of them all; where an exception passes, it writes this rank's alone."""
    scope = _d.Profile()
    try:
        yield scope
    except BaseException:
        if trace_path:
            scope.write(trace_path)
        raise
    if trace_path:
        scope.write_all(trace_path)


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
