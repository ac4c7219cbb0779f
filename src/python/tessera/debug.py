"""Inspecting a program: layouts of arrays, communication, time per step, origin of a NaN."""
import contextlib as _contextlib
import functools as _functools
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


_draw = None  # a notebook's: draw(text, svg) shows both forms of a picture, on rank 0


def visualize_sharding(shape, sharding, **options):
    """Prints, once per job, one cell per distinct block with the devices that hold it; in a notebook over ranks as a coloured picture."""
    text = _d.sharding_text(shape, sharding, **options)
    if _draw is None or options:
        _show(text)
    elif _core.is_main_process():
        _draw(text, sharding_svg(shape, sharding))


def visualize_array_sharding(x, **options):
    """visualize_sharding of the array's shape and sharding; the value is not computed."""
    visualize_sharding(x.shape, x.sharding, **options)


def inspect_array_sharding(x, *, callback):
    """Passes the array's sharding, as known at recording time, to a function; also inside a traced function."""
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
    """The plan of fun(*args, **kwargs): collectives with axes, bytes and source lines, arithmetic, peak memory. Nothing runs.
    Arguments without arrays are options, as in explain(sum, x, axis=0). A hint is added if a quick search finds much better layouts for the arguments."""
    fun, args, kwargs = _of_arrays(fun, args, kwargs)
    own = _lowered(fun, args, kwargs).compile().explanation()
    if kwargs:
        return own
    arrays, plan = _planner(fun, args)
    return _core.with_hint(own, arrays, plan)


def _planner(fun, args):
    """The arrays among the arguments, and what plans fun with other layouts of them; their values do not matter."""
    from . import zeros
    from ._place import device_put
    arrays = []

    def note(leaf):
        arrays.append(leaf if isinstance(leaf, _core.Array) else zeros(tuple(leaf.shape), leaf.dtype))
        return arrays[-1]

    _for_arrays(args, note)

    def plan(shardings):
        placed = iter([device_put(zeros(x.shape, x.dtype), s) for x, s in zip(arrays, shardings)])
        return _lowered(fun, _for_arrays(args, lambda leaf: next(placed)), {}).compile().explanation()

    return arrays, plan


def _has_arrays(tree):
    found = []
    _for_arrays(tree, lambda leaf: found.append(leaf) or leaf)
    return bool(found)


def _of_arrays(fun, args, kwargs):
    """fun as a function of those arguments that hold arrays, and these. A jitted function knows its static arguments itself."""
    if isinstance(fun, _core.JitFunction):
        return fun, args, kwargs
    has_arrays = [_has_arrays(a) for a in args]

    @_functools.wraps(fun)
    def of_arrays(*arrays, **named):
        rest = iter(arrays)
        return fun(*(next(rest) if traced else a for a, traced in zip(args, has_arrays)), **{**kwargs, **named})

    return of_arrays, tuple(a for a, traced in zip(args, has_arrays) if traced), {k: v for k, v in kwargs.items() if _has_arrays(v)}


def _lowered(fun, args, kwargs):
    """A jitted function keeps its options: in_shardings, static arguments."""
    from ._transforms import jit
    return (fun if isinstance(fun, _core.JitFunction) else jit(fun)).lower(*args, **kwargs)


def simulate(fun, *args, trace_path="", trace_ranks=64, most_messages=2_000_000_000, **kwargs):
    """The run of fun(*args) on the machine of TESSERA_MACHINE, every rank and message followed by the clock: seconds, waiting, the longest calls, the busiest links.
    Values do not matter: zeros(shape) and ShapeDtypeStruct will do, on abstract meshes too. trace_path: a timeline of the first trace_ranks ranks for Perfetto.
    ArgumentError beyond most_messages. Arguments without arrays are options. Nothing runs. Not collective."""
    fun, args, kwargs = _of_arrays(fun, args, kwargs)
    return _lowered(fun, args, kwargs).simulation(trace_path, trace_ranks, most_messages)


def advise(fun, *args, meshes=None, memory_limit_bytes=0, keep=(), best=3, most_plans=1000):
    """The layouts of args for which fun(*args) costs least by the planner's model, the three best with seconds, bytes, peak and the reason.
    Values do not matter: zeros(shape) and ShapeDtypeStruct will do. meshes: to choose from (meshes_of(8); default: one axis over all devices).
    keep: numbers of the leaves that keep the layouts they have. Nothing runs. Not collective."""
    arrays, plan = _planner(fun, args)
    given = [meshes] if isinstance(meshes, _core.Mesh) else list(meshes or ())
    return _core.advise_leaves(arrays, given, memory_limit_bytes, best, most_plans, list(keep), plan)


def _for_arrays(tree, change):
    """The tree with change(leaf) for every array and ShapeDtypeStruct; numbers stay numbers."""
    from .tree_util import tree_flatten, tree_unflatten
    if hasattr(tree, "shape") and hasattr(tree, "dtype"):
        return change(tree)
    if isinstance(tree, dict):
        return {key: _for_arrays(tree[key], change) for key in sorted(tree)}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_for_arrays(child, change) for child in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(_for_arrays(child, change) for child in tree)
    if tree is None or isinstance(tree, (bool, int, float, complex, str)):
        return tree
    leaves, structure = tree_flatten(tree)  # a class that was registered
    return tree_unflatten(structure, [change(leaf) for leaf in leaves]) if leaves else tree


@_contextlib.contextmanager
def debug_nans(on=True):
    """Inside this scope, every computed value is searched for NaN."""
    set_nan_check(on)
    try:
        yield
    finally:
        set_nan_check(False)
