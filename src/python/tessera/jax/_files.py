"""Files of a program that the runner runs: rank 0 writes them, as the one process would that the program sees.

Every rank runs the program's calls. A call that changes a file or a folder waits for all ranks, acts on rank 0 alone, and returns
or raises the same on every rank. What another rank writes goes to a temporary file of its own, which is discarded. A read of what the
program has changed waits for rank 0's writes. Folders of tempfile belong to each rank, and so does all that is written into them.
Commands of subprocess and os.system run on rank 0. Calls of threads and of forked processes do not wait: rank 0's act, the others'
do nothing. All of it ends with jax.distributed.initialize.
"""
import atexit
import builtins
import bz2
import functools
import io
import itertools
import os
import pickle
import shutil
import tarfile
import tempfile
import threading

import numpy as np

from .. import _core

_originals = {}
_state = {"is_on": False, "alone": 0}
_touched, _parents, _own = set(), set(), set()  # paths that the program has changed; their folders; paths of this rank alone
_copies = {}  # this rank's copy of a file that a package writes, by its path
_numbers = itertools.count()  # of copies
_changing_flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_process = os.getpid()
_special = ("/dev/", "/proc/", "/sys/")


def broadcast(value):
    """Rank 0's object on every rank. Collective."""
    data = np.frombuffer(pickle.dumps(value) if _core.is_main_process() else b"", "uint8").astype("int32")
    length = int(_core.multihost.broadcast_one_to_all(np.array([data.size], "int64"))[0])
    data = data if _core.is_main_process() else np.zeros(length, "int32")
    return pickle.loads(np.asarray(_core.multihost.broadcast_one_to_all(data)).astype("uint8").tobytes())


def wait():
    """Until every rank is here. Collective."""
    _core.multihost.sync_global_devices("files of a program of JAX")


def by_first(function, *args, **kwargs):
    """What function returns or raises on rank 0, which calls it alone, on every rank. Collective."""
    wait()  # the others have read what it may change
    found = None
    if _core.is_main_process():
        with alone():
            try:
                found = (function(*args, **kwargs), None)
            except Exception as error:
                found = (None, error)
    result, error = broadcast(_that_travels(found))
    if error is not None:
        raise found[1] if found else error
    return result


def _that_travels(found):
    try:
        pickle.dumps(found)
        return found
    except Exception:
        return (None, None) if found is None or found[1] is None else (None, RuntimeError(f"{type(found[1]).__name__}: {found[1]}"))


class alone:
    """Within it calls act on files directly, on the rank that makes them."""

    def __enter__(self):
        _state["alone"] += 1

    def __exit__(self, *_):
        _state["alone"] -= 1


def _path_of(path):
    """An absolute path, or None of what is not one: an open file's number, a pipe."""
    try:
        text = os.fsdecode(os.fspath(path))
    except TypeError:
        return None
    text = os.path.abspath(text)
    return None if text.startswith(_special) else text


def of_first(path):
    """A path in a folder of tempfile, which is this rank's alone: the first rank's. All other values as they are. Collective."""
    full = _path_of(path) if isinstance(path, (str, os.PathLike)) else None
    return type(path)(broadcast(os.fspath(path))) if _state["is_on"] and full is not None and _within(full, _own) else path


def _within(path, folders):
    while path not in folders:
        parent = os.path.dirname(path)
        if parent == path:
            return False
        path = parent
    return True


def _is_shared(path):
    """Whether a call concerns all ranks: of this program's one process, and not in a folder of this rank alone."""
    return _state["is_on"] and not _state["alone"] and path is not None and not _within(path, _own)


def concerns_all():
    """Whether a call is every rank's at once."""
    return _state["is_on"] and not _state["alone"] and not in_thread()


def in_thread():
    """Whether the caller is a thread, or a process by fork, that the program or a package has started."""
    return threading.current_thread() is not threading.main_thread() or os.getpid() != _process


def _touch(*paths):
    for path in [copied for copied in _copies if _within(copied, paths)]:
        os.remove(_copies.pop(path))
    _note(*paths)


def _note(*paths):
    _touched.update(paths)
    _parents.update(map(os.path.dirname, paths))


def _changing(name, owner, count=1, from_own=False):
    """A function that changes the paths that are its first `count` arguments."""
    original = _originals[name] = getattr(owner, name.rpartition(".")[2])

    @functools.wraps(original)
    def change(*args, **kwargs):
        paths = [_path_of(p) for p in args[:count]]
        if "dir_fd" in kwargs or not paths or not _is_shared(paths[-1]):
            return original(*args, **kwargs)
        if in_thread():
            return original(*args, **kwargs) if _core.is_main_process() else None
        _touch(*[p for p in paths if p is not None])
        result = by_first(original, *args, **kwargs)
        if from_own and paths[0] is not None and _within(paths[0], _own) and os.path.exists(paths[0]) and not _core.is_main_process():
            (shutil.rmtree if os.path.isdir(paths[0]) else os.remove)(paths[0])  # this rank's own copy of what was moved
        return result
    setattr(owner, name.rpartition(".")[2], change)


def _reading(name, owner):
    """A function that reads the path that is its first argument."""
    original = _originals[name] = getattr(owner, name.rpartition(".")[2])

    @functools.wraps(original)
    def read(*args, **kwargs):
        if _touched and concerns_all():
            _wait_for(_path_of(args[0] if args else kwargs.get("path", ".")))
        return original(*args, **kwargs)
    setattr(owner, name.rpartition(".")[2], read)


def _wait_for(path):
    if _is_shared(path) and (path in _parents or _within(path, _touched)):
        wait()


def changes(mode):
    return any(c in mode for c in "wax+")


def _open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    original = _originals["open"]
    path = _path_of(file) if isinstance(mode, str) and opener is None and not isinstance(file, int) else None
    options = dict(buffering=buffering, encoding=encoding, errors=errors, newline=newline, closefd=closefd, opener=opener)
    if not _is_shared(path):
        return original(file, mode, **options)
    if not changes(mode):
        before_reading(path)
        return original(file, mode, **options)
    if in_thread():
        return original(file, mode, **options) if _core.is_main_process() else _sink(file, path, mode, options)
    _touch(path)
    sink = None if _core.is_main_process() else _sink(file, path, mode, options)  # with what stands in the file before rank 0 opens it
    opened = []
    try:
        by_first(lambda: opened.append(original(file, mode, **options)))
    except Exception:
        if sink is not None:
            sink.close()
        raise
    return opened[0] if opened else sink


def _sink(file, path, mode, options):
    """A temporary file of this rank in place of one that rank 0 writes."""
    name = _copy(path, "w" in mode)
    sink = _originals["open"](name, mode.replace("x", "w"), **options)
    os.unlink(name)
    raw = getattr(sink, "buffer", sink)
    getattr(raw, "raw", raw).name = file
    return sink


def _copy(path, starts_empty, exists=True):
    """The path of a temporary file of this rank, with what stands in that file."""
    with alone():
        name = os.path.join(_folder(), f"{next(_numbers)}-{os.path.basename(path)}")
        if not starts_empty and os.path.isfile(path):
            shutil.copyfile(path, name)
        elif exists:
            _originals["open"](name, "wb").close()
    return name


@functools.cache
def _folder():
    """Of this rank's copies, until the program ends."""
    folder = tempfile.mkdtemp()
    atexit.register(_originals["shutil.rmtree"], folder, ignore_errors=True)
    return folder


def _open_descriptor(path, flags, mode=0o777, *, dir_fd=None):
    """os.open, whose descriptor on ranks other than the first is a temporary file's where it may write."""
    original, options = _originals["os.open"], {} if dir_fd is None else {"dir_fd": dir_fd}
    full = _path_of(path if dir_fd is None else os.path.join(_originals["readlink"](f"/proc/self/fd/{dir_fd}"), os.fsdecode(path)))
    if not _is_shared(full) or flags & os.O_TMPFILE == os.O_TMPFILE:
        return original(path, flags, mode, **options)
    if not flags & _changing_flags:
        before_reading(full)
        return original(path, flags, mode, **options)
    if in_thread():
        return original(path, flags, mode, **options) if _core.is_main_process() else _descriptor_sink(full, flags)
    _touch(full)
    sink = None if _core.is_main_process() else _descriptor_sink(full, flags)
    try:
        found = by_first(original, path, flags, mode, **options)
    except Exception:
        if sink is not None:
            os.close(sink)
        raise
    return found if sink is None else sink


def _descriptor_sink(path, flags):
    name = _copy(path, flags & os.O_TRUNC)
    sink = _originals["os.open"](name, flags & ~(os.O_CREAT | os.O_EXCL))
    os.unlink(name)
    return sink


def shared_path(path):
    """The absolute path of a file that is all ranks', or None of what is not one."""
    full = None if path is None else _path_of(path)
    return full if _is_shared(full) else None


def before_reading(path):
    """Waits for rank 0's writes into it."""
    if _touched and not in_thread():
        _wait_for(path)


def on_copies(call, path, starts_empty, is_kept=False):
    """call(path) on rank 0; on the others call(copy of it), for what opens a path by itself. Raises what rank 0 raises. Collective.

    A copy that is kept is what a later call for that path gets, until the program changes the file otherwise.
    """
    is_first = _core.is_main_process()
    if not in_thread():
        (_note if is_kept else _touch)(path)
        wait()  # for what rank 0 has written, before it is copied
    place = path if is_first else _copies.get(path) or _copy(path, starts_empty, exists=False)
    if is_kept and not is_first:
        _copies[path] = place
    if in_thread():
        return call(place)
    wait()  # for the copies
    with alone():
        try:
            found = (call(place), None)
        except Exception as error:
            found = (None, error)
    error = broadcast(_that_travels((None, found[1])) if is_first else None)[1]
    if not is_first and not is_kept and os.path.exists(place):
        os.unlink(place)
    if error is not None or found[1] is not None:
        raise found[1] if is_first or error is None else error
    return found[0]


def _of_own(original):
    """tempfile's files and folders are each rank's own: their names are drawn."""
    @functools.wraps(original)
    def make(*args, **kwargs):
        with alone():
            made = original(*args, **kwargs)
        _own.add(os.path.abspath(os.fsdecode(made if isinstance(made, (str, bytes)) else made[1])))
        return made
    return make


def install():
    """From now on, where the job has several ranks."""
    if _core.process_count() == 1 or _originals:
        return
    tempfile.gettempdir()  # found by opening files, under a lock that this rank's copies need, too
    _originals["open"] = builtins.open
    builtins.open = io.open = bz2._builtin_open = tarfile.bltn_open = _open
    _originals["os.open"], os.open = os.open, _open_descriptor
    for name, count in dict(remove=1, unlink=1, mkdir=1, rmdir=1, rename=2, replace=2, symlink=2, link=2, chmod=1, utime=1, truncate=1).items():
        _changing(name, os, count, from_own=name in ("rename", "replace"))
    _changing("shutil.rmtree", shutil)
    for name in ("stat", "lstat", "listdir", "scandir", "access", "readlink"):
        _reading(name, os)
    for name in ("mkdtemp", "_mkstemp_inner"):  # the latter also makes mkstemp's and NamedTemporaryFile's
        setattr(tempfile, name, _of_own(getattr(tempfile, name)))
    _state["is_on"] = True


def leave():
    """Processes of their own write their own files."""
    _state["is_on"] = False
