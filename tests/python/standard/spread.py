"""tessera's namespace for the standard's own suite, with every new array put on one of many layouts.

The layouts are those that the job's processes allow: uncommitted, replicated, split by one dim or by two. Which one is drawn by what the array is made
of, so that all processes draw the same, and the same again when an example is repeated.
"""
import functools
import random
import types
import zlib

import tessera as ts

test = ""  # that is running


def layouts(ndim):
    """The shardings that an array of so many dims is put on: those that hold all of it everywhere come first."""
    n = ts.device_count()
    row = ts.make_mesh((n,), ("x",))
    found = [None, ts.NamedSharding(row, ts.P())]
    found += [ts.NamedSharding(row, ts.P(*[None] * dim, "x")) for dim in range(ndim)]
    if n % 2 == 0 and ndim > 1:
        grid = ts.make_mesh((2, n // 2), ("y", "z"))
        found += [ts.NamedSharding(grid, ts.P("y", "z")), ts.NamedSharding(grid, ts.P(None, ("z", "y")))]
    return found


_layouts = functools.lru_cache(layouts)


def _text(value):
    return f"{value.shape}{value.dtype}" if isinstance(value, ts.Array) else repr(value)


def spread(x, made_of):
    """x on one of the layouts. DLPack hands on memory, which has to hold all of an array."""
    possible = _layouts(x.ndim)[:2 if "dlpack" in test else None]
    target = random.Random(zlib.crc32(f"{test} {made_of}".encode())).choice(possible)
    return x if target is None else ts.device_put(x, target)


def _spreading(make):
    @functools.wraps(make)
    def function(*args, **options):
        made = make(*args, **options)
        return made if options.get("device") is not None else spread(made, [*map(_text, args), sorted((k, _text(v)) for k, v in options.items())])
    return function


def namespace():
    """A module with tessera's names, whose creation functions spread what they make."""
    module = types.ModuleType("tessera")
    module.__dict__.update(vars(ts))
    if ts.device_count() > 1:
        for name in ("asarray", "arange", "empty", "eye", "full", "linspace", "ones", "zeros"):
            setattr(module, name, _spreading(getattr(ts, name)))
    return module
