#!/usr/bin/env python3
"""stubs.py FOLDER: a .pyi beside each module of the package that is imported, for editors and type checkers.

Signatures of Python functions are their own; those of the bindings stand in the first lines of their docstrings, as
pybind11 writes them.
"""
import inspect
import pathlib
import re
import sys
import types

sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != pathlib.Path(__file__).resolve().parent]  # whose tessera lacks its module
import tessera  # noqa: E402

head = '''import typing as _typing
from typing import Any, Callable, Iterator, List, Optional, Sequence, Set, Tuple, Dict, overload
import numpy
{imports}
ArrayLike = _typing.Union[Array, numpy.ndarray, bool, int, float, complex]
DtypeLike = _typing.Union[dtype, str, type, numpy.dtype]
Shape = _typing.Union[int, Sequence[int]]
Axes = _typing.Union[None, int, Sequence[int]]
AxisName = _typing.Union[str, Sequence[str]]
'''
names_of_core = "Array, At, AtIndexer, Compiled, Device, Explanation, Key, Lowered, MemoryAnalysis, Mesh, PartitionSpec, PlannedCollective, PositionalSharding, Shard, Sharding, dtype"
cpp_types = re.compile(r"tessera(?:\._core)?\.(?:debug\.|tree\.)?(\w+)")


def plain(text):
    """A signature that Python reads: pybind11's names of C++ types become the package's, defaults become `...`."""
    text = re.sub(r"<[^<>]*>", "...", cpp_types.sub(r"\1", text))
    text = re.sub(r"(?:std::|py::)?[\w]+::[\w:]+(?:<.*?>)?", "Any", text).replace("handle", "Any").replace("capsule", "Any").replace("buffer", "Any")
    text = re.sub(r"= (?:\w+\.)?(?:float\d+|u?int\d+|array\(.*?\)|\.\.\.)", "= ...", text)
    return re.sub(r"\b(?:JitFunction|MappedFunction|Pullback|Block|TreeDef|CommStats|Profile)\b", "Any", text).replace("*args", "*args: Any").replace("**kwargs", "**kwargs: Any")


def bound_signatures(name, value):
    """(signature, doc) for each overload of a binding."""
    doc = value.__doc__ or ""
    found = re.findall(rf"^(?:\d+\. )?{re.escape(name)}(\(.*\) -> .*)$", doc, re.M)
    words = re.sub(rf"^(?:\d+\. )?{re.escape(name)}\(.*$|^Overloaded function\.$", "", doc, flags=re.M).strip()
    return [(plain(signature), words) for signature in found] or [("(*args: Any, **kwargs: Any) -> Any", words)]


def own_signature(value):
    """Of a function of Python's: without defaults that would need names."""
    parameters = []
    for p in inspect.signature(value).parameters.values():
        if p.default is not p.empty and not isinstance(p.default, (int, float, str, bool, type(None))):
            p = p.replace(default=...)
        parameters.append(p.replace(annotation=p.empty))
    return re.sub(r"Ellipsis", "...", str(inspect.Signature(parameters))) + " -> Any"


def function_lines(name, value, indent=""):
    is_own = isinstance(value, types.FunctionType)
    signatures = [(own_signature(value), inspect.getdoc(value) or "")] if is_own else bound_signatures(value.__name__, value)
    for signature, doc in signatures:
        if len(signatures) > 1:
            yield f"{indent}@overload"
        yield f"{indent}def {name}{signature}:"
        yield f'{indent}    {doc!r}' if doc else f"{indent}    ..."


def class_lines(name, value):
    yield f"class {name}{'(Exception)' if issubclass(value, Exception) else ''}:"
    yield f"    {(value.__doc__ or '').strip()!r}"
    for member, what in sorted(vars(value).items()):
        if member.startswith("_") and not (member.startswith("__") and callable(what) and member not in ("__new__", "__class__", "__repr__", "__hash__", "__doc__", "__init_subclass__")):
            continue
        if isinstance(what, property):
            yield f"    @property\n    def {member}(self) -> Any: ..."
        elif callable(what) and inspect.isroutine(what):
            try:
                yield from function_lines(member, what, "    ")
            except (TypeError, ValueError):
                yield f"    def {member}(self, *args: Any, **kwargs: Any) -> Any: ..."


def module_lines(module):
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") and not name.startswith("__array"):
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith("tessera"):
                yield f"from . import {value.__name__.split('.')[-1]} as {name}"
        elif inspect.isclass(value):
            if module is tessera._core or value.__module__ == module.__name__ or issubclass(value, Exception):
                yield from class_lines(name, value)
            else:
                yield f"{name} = {value.__name__}" if name != value.__name__ else ""
        elif inspect.isroutine(value):
            yield from function_lines(name, value)
        else:
            yield f"{name}: {'dtype' if type(value).__name__ == 'dtype' else type(value).__name__ if isinstance(value, (int, float, str)) else 'Any'}"


def main():
    folder = pathlib.Path(sys.argv[1])
    modules = {"__init__": tessera, "_core": tessera._core}
    modules.update({m.__name__.split(".")[-1]: m for m in vars(tessera).values() if isinstance(m, types.ModuleType) and m.__name__.startswith("tessera.") and m is not tessera._core})
    for name, module in modules.items():
        imports = "" if name == "_core" else f"from ._core import {names_of_core}"
        text = head.format(imports=imports) if name != "_core" else head.format(imports="")
        text += "\n".join(line for line in module_lines(module) if line) + "\n"
        compile(text, f"{name}.pyi", "exec")
        path = folder / f"{name}.pyi"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


main()
