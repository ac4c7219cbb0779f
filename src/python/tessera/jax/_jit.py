"""tj.jit: a function of JAX, traced by JAX and planned and run by tessera.

The first call with a signature traces: JAX makes a jaxpr of the function (its gradients, maps and custom rules are JAX's own), and one
tessera jit records it. Every later call flattens its arguments and runs the program.
"""
import functools

import jax
from jax.tree_util import tree_flatten, tree_unflatten

from .. import _core
from . import _layouts, _values
from ._interpret import evaluate
from ._versions import jax_jit, trace_of

Array = _core.Array


class _Results:
    """The tree of a program's results, and what else is known of them: part of the program."""
    __slots__ = ("tree", "avals")

    def __init__(self, tree, avals):
        self.tree, self.avals = tree, avals


def _names(given):
    return () if given is None else (given,) if isinstance(given, (int, str)) else tuple(given)


class Jit:
    """A jitted function. Its calls take and return trees of arrays; results are tessera's."""

    def __init__(self, fun, static_argnums, static_argnames, donate_argnums, donate_argnames, in_shardings, out_shardings, wrap=None):
        self._fun = fun
        self._static_numbers, self._static_names = _statics(fun, _names(static_argnums), _names(static_argnames))
        self._donated, self._donated_names = _names(donate_argnums), _names(donate_argnames)
        self._in_shardings, self._out_shardings = in_shardings, out_shardings
        self._programs = {}
        self._wrap = wrap
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, *args, **kwargs):
        program, leaves = self._program(args, kwargs)
        if program is None:
            return self._inline(args, kwargs)
        *arrays, results = program(*leaves)
        if self._wrap is not None:
            arrays = [self._wrap(a, t) for a, t in zip(arrays, results.avals)]
        return tree_unflatten(results.tree, arrays)

    def lower(self, *args, **kwargs):
        """The ops that are recorded for these arguments: as_text(), compile()."""
        program, leaves = self._program(args, kwargs)
        return program.lower(*leaves)

    def trace(self, *args, **kwargs):
        """JAX's own trace: .jaxpr."""
        return jax_jit(self._fun, static_argnums=self._static_numbers or None, static_argnames=self._static_names or None).trace(*args, **kwargs)

    def eval_shape(self, *args, **kwargs):
        return jax.eval_shape(self._fun, *args, **kwargs)

    def clear_cache(self):
        self._programs.clear()

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    # ---- inside of a trace of JAX: JAX's own jit ----
    def _inline(self, args, kwargs):
        if not hasattr(self, "_inner"):
            self._inner = jax_jit(self._fun, static_argnums=self._static_numbers or None, static_argnames=self._static_names or None)
        return self._inner(*args, **kwargs)

    def _program(self, args, kwargs):
        statics = None
        if self._static_numbers or self._static_names:
            numbers = {n % len(args) if n < 0 else n for n in self._static_numbers}
            statics = (tuple((n, args[n]) for n in sorted(numbers) if n < len(args)), tuple((k, kwargs[k]) for k in sorted(kwargs) if k in self._static_names))
            args = tuple(None if n in numbers else a for n, a in enumerate(args))
            kwargs = {k: v for k, v in kwargs.items() if k not in self._static_names}
        leaves, tree = tree_flatten((args, kwargs))
        types = None
        for n, leaf in enumerate(leaves):
            if type(leaf) is not Array:
                if isinstance(leaf, jax.core.Tracer):
                    return None, None
                if types is None:
                    types = [None] * len(leaves)
                types[n] = _note_of(leaf)
                leaves[n] = _values.array_of(leaf)
        key = (tree, statics, None if types is None else tuple(types), _settings())
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self._make(args, kwargs, tree, statics, types)
        return program, leaves

    def _make(self, args, kwargs, tree, statics, types):
        fixed, fixed_names = ({}, {}) if statics is None else (dict(statics[0]), dict(statics[1]))
        types = types or [None] * tree.num_leaves
        fun, out_shardings, static_names = self._fun, self._out_shardings, self._static_names

        def program(*leaves):
            avals = [_aval(x, note) for x, note in zip(leaves, types)]
            jax_args, jax_kwargs = tree_unflatten(tree, avals)
            jax_args = [fixed.get(n, a) for n, a in enumerate(jax_args)]
            jaxpr, out_tree = trace_of(fun, jax_args, {**jax_kwargs, **fixed_names}, static_argnums=tuple(fixed) or None, static_argnames=tuple(static_names) or None)
            results = evaluate(jaxpr, *leaves)
            results = [_as_typed(r, a) for r, a in zip(results, jaxpr.out_avals)]
            if out_shardings is not None:
                results = _constrained(results, out_tree, out_shardings)
            return (*results, _Results(out_tree, jaxpr.out_avals))

        donated = self._leaf_numbers(args, kwargs)
        return _core.JitFunction(program, self._leaf_shardings(args, kwargs), None, donated, [], set())

    def _leaf_numbers(self, args, kwargs):
        chosen, n = [], 0
        for i, arg in enumerate(args):
            size = len(jax.tree_util.tree_leaves(arg))
            if i in self._donated or i - len(args) in self._donated:
                chosen += range(n, n + size)
            n += size
        for name in sorted(kwargs):
            size = len(jax.tree_util.tree_leaves(kwargs[name]))
            if name in self._donated_names:
                chosen += range(n, n + size)
            n += size
        return chosen

    def _leaf_shardings(self, args, kwargs):
        given = self._in_shardings
        if given is None:
            return None
        spread = _spread(given, args if isinstance(given, (tuple, list)) else tuple(args))
        return [_layouts.sharding_of(s) for s in spread] + [None] * len(jax.tree_util.tree_leaves(kwargs))


def _statics(fun, numbers, names):
    """Either of the two says the other, as for jax.jit: by the function's signature."""
    import inspect
    try:
        parameters = [p for p in inspect.signature(fun).parameters.values()]
    except (TypeError, ValueError):
        return numbers, names
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if numbers and not names:
        names = tuple(positional[n] for n in numbers if -len(positional) <= n < len(positional))
    elif names and not numbers:
        numbers = tuple(positional.index(n) for n in names if n in positional)
    return numbers, names


def _settings():
    """What a trace depends on beside its arguments."""
    mesh = jax.sharding.get_abstract_mesh() if hasattr(jax.sharding, "get_abstract_mesh") else None
    return jax.config.jax_enable_x64, mesh, jax.config.jax_numpy_dtype_promotion, jax.config.jax_default_matmul_precision


def _note_of(leaf):
    """What the array of a leaf does not say of it: that it is weakly typed, or a key."""
    kind = type(leaf)
    if kind in (int, float, complex, bool):
        return kind is not bool and "weak" or None
    if isinstance(leaf, jax.Array):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return leaf.dtype
        return "weak" if leaf.aval.weak_type else None
    return None


def _aval(x, note):
    if note == "weak":
        return jax.ShapeDtypeStruct(x.shape, _values.numpy_dtype(x.dtype.name), weak_type=True)
    if note is not None:
        return jax.ShapeDtypeStruct(x.shape[:x.ndim - len(note._impl.key_shape)], note)
    return jax.ShapeDtypeStruct(x.shape, jax.dtypes.canonicalize_dtype(_values.numpy_dtype(x.dtype.name)), sharding=_layouts.explicit_sharding_of(x))


def _as_typed(x, aval):
    """In programs with explicit axes a type says where its values are."""
    typed = _layouts.typed_sharding_of(aval)
    return x if typed is None else _core.with_sharding_constraint_leaf(x, _layouts.sharding_of(typed))


def _is_sharding(s):
    return s is None or isinstance(s, (jax.sharding.Sharding, _core.Sharding, jax.Device))


def _spread(given, tree):
    """One sharding per leaf: one stands for all leaves below it."""
    if _is_sharding(given):
        return [given] * len(jax.tree_util.tree_leaves(tree))
    return jax.tree_util.tree_leaves(jax.tree_util.tree_map(lambda s, part: [s] * len(jax.tree_util.tree_leaves(part)), given, tree, is_leaf=_is_sharding),
                                     is_leaf=_is_sharding)


def _constrained(results, tree, shardings):
    spread = _spread(shardings, tree_unflatten(tree, list(range(len(results)))))
    return [r if s is None else _core.with_sharding_constraint_leaf(r, _layouts.sharding_of(s)) for r, s in zip(results, spread)]


def jit(fun=None, /, *, static_argnums=None, static_argnames=None, donate_argnums=None, donate_argnames=None, in_shardings=None, out_shardings=None, keep_unused=False,
        inline=False, device=None, backend=None, abstracted_axes=None, compiler_options=None):
    """jax.jit, run by all ranks: fun is traced by JAX once per signature and planned as one program.

    Arguments are trees (JAX's) of arrays of tessera, of NumPy (the same on every rank), of JAX (likewise), numbers and keys. Results are
    arrays of tessera. Shardings are JAX's or tessera's. keep_unused, inline, device, backend and compiler_options concern XLA and are
    read over. The calls are collective over the ranks of the arguments' meshes.
    """
    options = dict(static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums, donate_argnames=donate_argnames,
                   in_shardings=in_shardings, out_shardings=out_shardings)
    if fun is None:
        return functools.partial(jit, **options)
    if not callable(fun):
        raise TypeError(f"tj.jit takes a function, not {fun!r}")
    return Jit(fun, **options)
