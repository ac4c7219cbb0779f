"""The stages of a jitted function ahead of its calls, in JAX's words: traced, lowered, compiled."""
import jax
from jax.tree_util import tree_flatten, tree_map, tree_structure

from ._layouts import of_format, results_shardings, shown_as_written, spread
from ._versions import row_major


class Traced:
    """JAX's own trace, whose lower() is tessera's: .jaxpr, .out_info and the like are JAX's."""

    def __init__(self, traced, lower):
        self._traced, self._lower = traced, lower

    def lower(self, *, lowering_platforms=None, _private_parameters=None):
        """The ops that are recorded for the types of the trace; JAX's own text where it is for certain platforms, as jax.export asks for it."""
        if _private_parameters is not None:
            return self._traced.lower(lowering_platforms=lowering_platforms, _private_parameters=_private_parameters)
        return self._lower()

    def __getattr__(self, name):
        return getattr(self._traced, name)


class Lowered:
    """The ops of a program: as_text(), and compile(), which plans it."""

    def __init__(self, lowered, call, args, kwargs, of_jax, text_of_jax=False, shardings=()):
        self._lowered, self._call, self._args, self._kwargs, self._of_jax, self._text_of_jax = lowered, call, args, kwargs, of_jax, text_of_jax
        self._shardings = shardings

    def compile(self, compiler_options=None):  # noqa: A003
        """The plan, which calls with arguments of the same types run."""
        kind = CompiledOfJax if self._text_of_jax else Compiled
        return kind(self._lowered.compile(), self._call, self._args, self._kwargs, self._of_jax, *self._shardings)

    def cost_analysis(self):
        return self._lowered.compile().cost_analysis()

    def as_text(self, dialect=None, **options):
        """JAX's StableHLO in a program that the runner runs; the ops of tessera otherwise."""
        return self._of_jax().lower().as_text(dialect, **options) if self._text_of_jax else self._lowered.as_text()

    def __getattr__(self, name):
        if hasattr(self._lowered, name):
            return getattr(self._lowered, name)
        traced = self._of_jax()
        return getattr(traced if hasattr(traced, name) else traced.lower(), name)


class Compiled:
    """A planned program: calls, as_text(), explanation(), cost_analysis(), memory_analysis()."""

    def __init__(self, compiled, call, args, kwargs, of_jax, in_shardings=(), out_shardings=None):
        self._compiled, self._call, self._of_jax, self._in_shardings, self._out_shardings = compiled, call, of_jax, in_shardings, out_shardings
        self._types, self._tree = _types_of(args, kwargs), tree_structure((args, kwargs))

    def __call__(self, *args, **kwargs):
        """Errors are worded as JAX's."""
        tree = tree_structure((args, kwargs))
        if tree != self._tree:
            raise TypeError(f"Function compiled with input pytree does not match the input pytree it was called with: {self._tree}, and now {tree}")
        differ = [(n, f"compiled with {_text(wanted)} and called with {_text(found)}") for n, (found, wanted) in enumerate(zip(_types_of(args, kwargs), self._types)) if found != wanted]
        if differ:
            names = self._of_jax().jaxpr.jaxpr.debug_info.arg_names
            raise TypeError("Argument types differ from the types for which this computation was compiled. Perhaps you are calling the compiled executable with a different enable_x64 mode "
                            "than when it was AOT compiled? The mismatches are:\n" + "\n".join(f"Argument '{names[n]}' {how}" for n, how in differ))
        return self._call(args, kwargs)

    @property
    def in_tree(self):
        return self._tree

    def __getattr__(self, name):
        return getattr(self._compiled if hasattr(self._compiled, name) else self._of_jax(), name)


class CompiledOfJax(Compiled):
    """A planned program in JAX's words, for programs that the runner runs: its shardings are trees of JAX's."""

    input_shardings = property(lambda self: self._tree.unflatten(shown_as_written(self._compiled.input_shardings, self._in_shardings)))
    input_formats = property(lambda self: tree_map(row_major, self._tree.unflatten([len(shape) for shape, _ in self._types]), self.input_shardings))

    @property
    def output_shardings(self):
        avals, tree = tree_flatten(self._of_jax().out_info)
        first = jax.tree.leaves(self.input_shardings)[:1]
        ndim = len(self._types[0][0]) if first else 0
        return tree.unflatten(results_shardings(self._compiled.output_shardings, avals, first, ndim, map(of_format, spread(self._out_shardings, self._of_jax().out_info))))

    output_formats = property(lambda self: tree_map(lambda a, s: row_major(len(a.shape), s), self._of_jax().out_info, self.output_shardings))


def _types_of(args, kwargs):
    return [(tuple(a.shape), str(jax.dtypes.canonicalize_dtype(a.dtype, allow_extended_dtype=True))) for a in map(_type_of, tree_flatten((args, kwargs))[0])]


def _type_of(leaf):
    return leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else jax.api_util.shaped_abstractify(leaf)


def _text(of):
    return f"{of[1]}[{','.join(map(str, of[0]))}]"
