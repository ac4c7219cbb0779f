"""Commands of a program that the runner runs: rank 0 starts them, as the one process would that the program sees.

subprocess.Popen and os.popen give every rank an object whose methods act on rank 0 and return or raise the same on every rank.
"""
import functools
import os
import subprocess
import sys

from . import _files


class Started:
    """What rank 0 has started, or a pipe of it, on every rank. Each use of it is collective."""

    def __init__(self, there):
        self._there = there  # None on the other ranks

    def _call(self, name, *args, **kwargs):
        return _files.by_first(lambda: getattr(self._there, name)(*args, **kwargs))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        kind, value = _files.by_first(lambda: _kind_of(getattr(self._there, name)))
        if kind == "method":
            return functools.partial(self._call, name)
        return Started(getattr(self._there, name, None)) if kind == "pipe" else value

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._call("__exit__", kind, None, None)

    def __iter__(self):
        return self

    def __next__(self):
        return self._call("__next__")


def _kind_of(value):
    return ("method", None) if callable(value) else ("pipe", None) if hasattr(value, "close") else ("value", value)


def _here(value):
    return value._there if type(value) is Started else value


def _start(original, *args, **kwargs):
    """Pipes of other commands among the arguments are rank 0's."""
    started = []
    _files.by_first(lambda: started.append(original(*map(_here, args), **{name: _here(value) for name, value in kwargs.items()})))
    return Started(started[0] if started else None)


def _popen_of_all(original):
    class Kind(type):
        def __instancecheck__(cls, value):
            return isinstance(value, (original, Started))

    class Popen(original, metaclass=Kind):
        """subprocess.Popen by rank 0; asyncio's, which reads pipes by their numbers, by each."""

        def __new__(cls, *args, **kwargs):
            by_number = sys._getframe(1).f_globals.get("__name__", "").startswith("asyncio.")
            return _start(original, *args, **kwargs) if _files.concerns_all() and not by_number else original(*args, **kwargs)
    return functools.wraps(original, updated=())(Popen)


def _by_first(original):
    @functools.wraps(original)
    def run(*args, **kwargs):
        return _files.by_first(original, *args, **kwargs) if _files.concerns_all() else original(*args, **kwargs)
    return run


def _started(original):
    @functools.wraps(original)
    def start(*args, **kwargs):
        return _start(original, *args, **kwargs) if _files.concerns_all() else original(*args, **kwargs)
    return start


def install():
    """From now on, where the files of a program are all ranks'."""
    if not _files.concerns_all():
        return
    os.system, os.popen = _by_first(os.system), _started(os.popen)
    subprocess.run, subprocess.call = _by_first(subprocess.run), _by_first(subprocess.call)
    subprocess.Popen = _popen_of_all(subprocess.Popen)
