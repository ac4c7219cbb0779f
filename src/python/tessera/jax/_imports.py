"""Changes to packages that a program imports later, made when it does."""
import importlib.abc
import importlib.util
import sys

_awaited = {}  # module -> its changes
_being_found = set()


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are waited for as Python does; their loader changes them."""

    def find_spec(self, name, path=None, target=None):
        if name not in _awaited or name in _being_found:
            return None
        _being_found.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            _being_found.remove(name)
        if spec is not None and spec.loader is not None:
            _change_after(spec.loader, _awaited[name])  # a program that only asks for the spec leaves the loader unused
        return spec


def _change_after(loader, changes):
    execute = loader.exec_module

    def exec_module(module):
        execute(module)
        for change in changes:
            change(module)
    loader.exec_module = exec_module


def after_import(name, change):
    """change(module), at once where the module is there."""
    if name in sys.modules:
        change(sys.modules[name])
        return
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _awaited.setdefault(name, []).append(change)
