"""Lines of the JAX program: what is recorded for an equation carries the line that wrote it.

Errors and explain cite the innermost Python line outside of this package. An equation is evaluated long after its line has run, so
its rule is called through a function whose code says that it stands there.
"""
import builtins
import functools
import sys
import types

_globals = {"__builtins__": builtins}  # an import from C, as NumPy's functions do, looks here
_caller = (lambda f, args, params: f(*args, **params)).__code__


@functools.lru_cache(maxsize=4096)
def _caller_at(file, line):
    return types.FunctionType(_caller.replace(co_filename=file, co_firstlineno=line, co_name="jax_program"), _globals)


def call_at(place, f, args, params):
    """f(*args, **params) as if called from place: (file, line), or None for here."""
    if place is None:
        return f(*args, **params)
    return _caller_at(*place)(f, args, params)


_own = __file__.rsplit("/", 2)[0] + "/"


@functools.lru_cache(maxsize=None)
def _is_foreign(file):
    return not (file.startswith(_own) or "/jax/" in file or "/jaxlib/" in file or file.endswith(("contextlib.py", "functools.py")) or file.startswith("<frozen"))


def calling_place():
    """The innermost line that is in neither JAX nor this package: (file, line), or None."""
    frame = sys._getframe(1)
    while frame is not None:
        if _is_foreign(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def text_of(place):
    """As errors write it: "train.py:12"."""
    return "" if place is None else f"{place[0].rsplit('/', 1)[-1]}:{place[1]}"
