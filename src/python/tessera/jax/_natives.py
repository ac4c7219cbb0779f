"""Files that packages in C and Rust, and io.FileIO, open by themselves, of a program that the runner runs.

Rank 0 opens the program's file. The others make the same calls on copies of their own, so every rank reads the same from it and arrays
of all ranks can be written; the copies are discarded. What rank 0 raises when it opens a file, all raise.
"""
import functools
import inspect
import urllib.parse

from . import _files
from ._imports import after_import


def _names(signature, name, args, kwargs):
    return signature.bind(*args, **kwargs).arguments.get(name)


def _replaced(signature, name, value, args, kwargs):
    bound = signature.bind(*args, **kwargs)
    bound.arguments[name] = value
    return bound.args, bound.kwargs


def _on_copies(original, name, starts_empty):
    """A function whose argument `name` is the path of a file that it writes whole."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def write(*args, **kwargs):
        path = _files.shared_path(_names(signature, name, args, kwargs))
        if path is None:
            return original(*args, **kwargs)

        def call(place):
            places, named = _replaced(signature, name, place, args, kwargs)
            return original(*places, **named)
        return _files.on_copies(call, path, starts_empty)
    return write


def _change_safetensors(module):
    module.save_file = _on_copies(module.save_file, "filename", starts_empty=True)


def _change_h5py(module):
    """h5py.File in the modes that change it. Files of several processes, by mpio, are the program's own matter."""
    kind = module.File
    original = kind.__init__

    @functools.wraps(original)
    def init(self, name, mode="r", driver=None, *args, **kwargs):
        path = None if driver == "mpio" else _files.shared_path(name)
        if path is not None and mode != "r":
            _files.on_copies(lambda place: original(self, place, mode, driver, *args, **kwargs), path, starts_empty=mode not in ("a", "r+"))
            return
        if path is not None:
            _files.before_reading(path)
        original(self, name, mode, driver, *args, **kwargs)
    kind.__init__ = init


def _change_sqlite(module):
    """sqlite3.connect. A copy lives as long as the program: what the program writes into the database it writes into each."""
    original = module.connect

    @functools.wraps(original)
    def connect(database, *args, **kwargs):
        name, query = _of_uri(database) if kwargs.get("uri") else (database, None)
        path = None if name in (":memory:", "", b"") else _files.shared_path(name)
        if path is None:
            return original(database, *args, **kwargs)

        def call(place):
            place = place if query is None else f"file:{urllib.parse.quote(place)}{query}"
            return original(place, *args, **kwargs)
        return _files.on_copies(call, path, starts_empty=False, is_kept=True)
    module.connect = connect


def _of_uri(database):
    """The path and the query of a database's address; no path of one in memory."""
    address, mark, query = str(database).partition("?")
    if not address.startswith("file:") or "mode=memory" in query:
        return "" if "mode=memory" in query else database, None
    return urllib.parse.unquote(urllib.parse.urlsplit(address).path), mark + query


def _change_io(module):
    """io.FileIO; what open() gives is one, too."""
    original = module.FileIO

    class Kind(type):
        def __instancecheck__(cls, value):
            return isinstance(value, original)

    class FileIO(original, metaclass=Kind):
        def __init__(self, file, mode="r", closefd=True, opener=None):
            path = None if opener is not None else _files.shared_path(file)
            if path is None or not _files.changes(mode):
                return super().__init__(file, mode, closefd, opener)
            _files.on_copies(lambda place: original.__init__(self, file if place == path else place, mode, closefd), path, starts_empty=mode[0] in "wx")
            self.name = file
    module.FileIO = functools.wraps(original, updated=())(FileIO)


def install():
    """From now on, in packages that are there and those that the program imports."""
    after_import("io", _change_io)
    after_import("h5py", _change_h5py)
    after_import("sqlite3", _change_sqlite)
    after_import("safetensors.numpy", _change_safetensors)
    after_import("safetensors.flax", _change_safetensors)
