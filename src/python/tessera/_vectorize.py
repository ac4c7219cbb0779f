"""numpy.vectorize, by vmap."""
import functools
import re

from . import _core
from ._create import _array, _arrays
from ._shapes import broadcast_shapes, expand_dims, reshape
from ._transforms import vmap
from .tree_util import tree_map

__all__ = ["vectorize"]

_dims = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_form = re.compile(rf"\s*{_dims}(?:\s*,\s*{_dims})*\s*->\s*{_dims}(?:\s*,\s*{_dims})*\s*")


def _refuse(words):
    raise _core.errors.ArgumentError(f"vectorize at {_core.here()}: {words}")


class _Signature:
    """"(n,m),(m)->(n)": takes [("n", "m"), ("m",)], gives [("n",)]. Without one, scalars."""

    def __init__(self, text):
        if text is not None and not _form.fullmatch(text):
            _refuse(f"{text!r} is no signature; one is '(n,m),(m)->(n)'")
        self.text = text
        self.takes, self.gives = (None, None) if text is None else ([tuple(re.findall(r"\w+", dims)) for dims in re.findall(_dims, part)] for part in text.split("->"))

    def cores(self, arguments, extents):
        """The dims of each argument that the function sees; what their names stand for is noted."""
        if self.text is None:
            return [()] * len(arguments)
        if len(self.takes) != len(arguments):
            _refuse(f"{len(arguments)} arguments for the {len(self.takes)} of the signature {self.text}")
        for n, (x, dims) in enumerate(zip(arguments, self.takes)):
            self._check(x, dims, extents, f"argument {n}")
        return self.takes

    def check_results(self, result, extents):
        if self.text is None:
            return
        parts = [_array(y) for y in (result if isinstance(result, tuple) else (result,))]
        if len(parts) != len(self.gives):
            _refuse(f"{len(parts)} results for the {len(self.gives)} of the signature {self.text}")
        for n, (y, dims) in enumerate(zip(parts, self.gives)):
            if y.ndim != len(dims):
                _refuse(f"result {n} has {y.ndim} dimensions, and the signature says ({','.join(dims)})")
            self._check(y, dims, extents, f"result {n}")

    @staticmethod
    def _check(x, dims, extents, what):
        if x.ndim < len(dims):
            _refuse(f"{what} has {x.ndim} dimensions, and the signature wants at least {len(dims)}, ({','.join(dims)})")
        for name, extent in zip(dims, x.shape[x.ndim - len(dims):]):
            if extents.setdefault(name, extent) != extent:
                _refuse(f"{what} has extent {extent} for {name}, which is {extents[name]} elsewhere")


def _mapped(function, arguments, cores):
    """function at each place of the broadcast outer dims; a dim of which an argument has one element is no dim of that argument's."""
    outers = [x.shape[:x.ndim - len(dims)] for x, dims in zip(arguments, cores)]
    ndim = len(broadcast_shapes(*outers))
    outers = [(1,) * (ndim - len(outer)) + outer for outer in outers]
    slim = [reshape(x, [e for e in outer if e != 1] + list(x.shape[x.ndim - len(dims):])) for x, outer, dims in zip(arguments, outers, cores)]
    single = [dim for dim in range(ndim) if all(outer[dim] == 1 for outer in outers)]
    for dim in reversed(range(ndim)):
        if dim not in single:
            function = vmap(function, in_axes=tuple(None if outer[dim] == 1 else 0 for outer in outers))
    results = function(*slim)
    return tree_map(lambda y: expand_dims(y, single), results) if single else results


def vectorize(pyfunc=None, *, excluded=(), signature=None):
    """A function of scalars as a function of arrays, whose shapes are broadcast; pyfunc is traced once for all elements (vmap), not called for each.

    With a signature, "(n,m),(m)->(n)", pyfunc takes and returns arrays of those dims, and the dims before these are broadcast. Arguments that
    `excluded` numbers or names are handed on as they are. ArgumentError: no such signature; arguments or results that disagree with it. Source:
    numpy.vectorize, jax.numpy.vectorize.
    """
    if pyfunc is None:
        return functools.partial(vectorize, excluded=excluded, signature=signature)
    form = _Signature(signature)

    @functools.wraps(pyfunc)
    def call(*args, **options):
        places = [n for n in range(len(args)) if n not in excluded]
        names = [name for name in options if name not in excluded]
        arguments, extents = _arrays([*(args[n] for n in places), *(options[name] for name in names)]), {}
        cores = form.cores(arguments, extents)

        def at_one_place(*values):
            by_place, by_name = dict(zip(places, values)), dict(zip(names, values[len(places):]))
            result = pyfunc(*(by_place.get(n, a) for n, a in enumerate(args)), **{**options, **by_name})
            form.check_results(result, extents)
            return result

        return _mapped(at_one_place, arguments, cores)

    return call
