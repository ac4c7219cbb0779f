"""Error texts for wrong arguments of a binding: one sentence with the parameter, the value and the accepted types."""
import math
import re

import numpy as _np

from . import _core
from ._core import Array

_words = {
    "ArrayLike": "an array or a number", "Axes": "None, an integer or a tuple of integers", "Shape": "an integer or a tuple of integers", "DtypeLike": "a dtype, or the name of one",
    "Key": "a key of tessera.random", "Sharding": "a sharding or a device", "AxisName": "the name of a mesh axis, or a tuple of names", "slice": "a slice", "bool": "True or False", "int": "an integer",
    "float": "a number", "str": "a string", "function": "a function", "Callable": "a function", "handle": "any value", "object": "any value", "list": "a list", "dict": "a dict", "tuple": "a tuple",
}


def _integer(value):
    return isinstance(value, (int, _np.integer)) and not isinstance(value, bool) or isinstance(value, Array) and value.ndim == 0 and value.dtype.kind in "iu"


def _integers(value):
    return _integer(value) or isinstance(value, (list, tuple)) and all(map(_integer, value))


_takes = {
    "ArrayLike": lambda v: isinstance(v, (Array, bool, int, float, complex)) or hasattr(v, "__array_interface__"), "Axes": lambda v: v is None or _integers(v), "Shape": _integers,
    "bool": lambda v: isinstance(v, (bool, _np.bool_)), "int": _integer, "float": lambda v: isinstance(v, (int, float, _np.integer, _np.floating)), "str": lambda v: isinstance(v, str),
    "Key": lambda v: isinstance(v, (_core.Key, Array)), "DtypeLike": lambda v: not isinstance(v, (int, float, list, tuple, Array)), "slice": lambda v: isinstance(v, slice), "Mesh": lambda v: isinstance(v, _core.Mesh), "PartitionSpec": lambda v: isinstance(v, _core.PartitionSpec),
    "Sharding": lambda v: isinstance(v, (_core.Sharding, _core.Device, _core.PositionalSharding)), "AxisName": lambda v: isinstance(v, (str, list, tuple)), "function": callable, "Callable": callable,
}


def _plain(kind):
    """(the type's own word, whether None is one) of a type in a signature."""
    kind = kind.strip()
    optional = re.fullmatch(r"(?:typing\.)?Optional\[(.*)\]", kind)
    return (optional.group(1) if optional else kind).rpartition(".")[2] if "[" not in kind or optional else kind, bool(optional)


def _fits(kind, value):
    word, may_be_none = _plain(kind)
    if value is None and may_be_none:
        return True
    if word.lower().startswith(("list[", "typing.list[", "sequence[")):
        inner = word[word.index("[") + 1:-1]
        return isinstance(value, (list, tuple)) and all(_fits(inner, v) for v in value)
    return _takes.get(word, lambda _: True)(value)


def _described(kind):
    word, may_be_none = _plain(kind)
    inner = re.fullmatch(r"(?:typing\.)?(?:[Ll]ist|Sequence)\[(.*)\]", word)
    text = f"a list, each {_described(inner.group(1))}" if inner else _words.get(word, f"a {word}")
    return f"None or {text}" if may_be_none and not text.startswith("None") else text


def _split(text):
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c in "[(<") - (c in "])>")
        if c == "," and not depth:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    return [p for p in [*parts, current.strip()] if p]


def _shown(value):
    text = f"an array of shape {value.shape}" if isinstance(value, Array) else repr(value)
    return f"{text if len(text) < 60 else text[:57] + '...'} ({type(value).__name__})"


def _too_large(value):
    return _integer(value) and not isinstance(value, Array) and not -(2 ** 31) <= value < 2 ** 31 or isinstance(value, (list, tuple)) and any(map(_too_large, value))


def _problem(parameters, args, kwargs):
    """(how far the arguments fit, what is wrong with the first that does not)."""
    if parameters and parameters[0].partition(":")[0] == "self":
        parameters, args = parameters[1:], args[1:]
    parameters = [p for p in parameters if p not in ("*", "/")]
    named = [(p.partition(":")[0].strip().lstrip("*"), p.partition(":")[2].partition(" = ")[0].strip(), " = " in p) for p in parameters]
    if len(args) > len(named) and not any(p.startswith("*") for p in parameters):
        return len(named), f"it takes {len(named)} arguments, {', '.join(n for n, *_ in named)}, and was given {len(args)}"
    given = dict(zip((n for n, *_ in named), args))
    for name in kwargs or ():
        if name not in (n for n, *_ in named):
            return -1, f"it has no parameter '{name}'; its parameters are {', '.join(n for n, *_ in named)}"
        given[name] = kwargs[name]
    for place, (name, kind, has_default) in enumerate(named):
        if name not in given and not has_default:
            return place, f"the argument '{name}' is missing: {_described(kind)}"
        if name in given and not _fits(kind, given[name]):
            return place, f"'{name}' is {_shown(given[name])}; it takes {_described(kind)}"
    for name, value in given.items():
        if _too_large(value):
            return math.inf, f"'{name}' is {_shown(value)}, which is beyond the integers that it takes"
    return -1, "the arguments are of types that it does not take"


def sentence(text, args, kwargs):
    """The sentence for a call whose signatures stand in the binding's text."""
    name = re.match(r"([\w.]+)\(\)", text)
    name = name.group(1).removesuffix("_leaf") if name else "the call"
    problems, args = [], args[1:] if "incompatible constructor" in text else args
    for found in re.finditer(r"^\s*\d+\. (?:[\w.]+)?\((.*)\)(?: -> .*)?$", text.partition("\nInvoked with")[0], re.M):
        problems.append(_problem(_split(found.group(1)), args, kwargs))
    best = max(problems, default=(0, "the arguments are of types that it does not take"))
    if "incompatible constructor" in text:
        name = re.search(r"1\. (?:[\w.]+\.)?(\w+)\(", text).group(1)
    return f"{name} at {_core.here()}: {best[1]}"
