"""tj.jit: a function of JAX, traced by JAX and planned and run by tessera.

The first call with a signature traces: JAX makes a jaxpr of the function (its gradients, maps and custom rules are JAX's own), and one
tessera jit records it. Every later call flattens its arguments and runs the program.
"""
import collections
import functools

import jax
from jax._src import core
from jax.tree_util import tree_flatten, tree_unflatten

from .. import _core
from . import _layouts, _values
from ._compiled import Lowered, Traced
from ._eager import takes, takes_all_here
from ._garbage import passed
from ._interpret import evaluate
from ._nans import asked, check_call
from ._references import HoldsReferences, is_reference
from ._sharded import ShardedArray, spec_of, wrapped
from ._values import evaluated, is_no_array
from ._versions import jax_jit, trace_context, trace_of

Array = _core.Array


class _Results:
    """The tree of a program's results, and what else is known of them: part of the program."""
    __slots__ = ("tree", "avals", "unflatten", "wrap", "are_plain", "kept", "first", "known", "layouts")

    def __init__(self, tree, avals, kept=(), given=None, first=None):
        self.tree, self.avals, self.unflatten, self.kept = tree, avals, tree.unflatten, set(kept)
        self.wrap = wrapped if any(_values.is_key(a) or a.dtype == jax.dtypes.float0 for a in avals) else ShardedArray
        self.first = first
        self.known = {None: [None] * len(avals) if given is None else list(map(_layouts.written_spec, given))}  # spec of that argument -> the results'
        layouts = [] if given is None else [_layouts.layout_of(g, len(a.shape)) for g, a in zip(given, avals)]
        self.layouts = [(n, layout) for n, layout in enumerate(layouts) if layout is not None]
        self.are_plain = [not _values.is_key(a) and _note_of_type(a) is None and _layouts.typed_sharding_of(a) is None for a in avals]

    def specs(self, leaves, found):
        """The results' specs as they were written: in out_shardings, or of the first placed argument that is read."""
        spec = None if self.first is None else spec_of(leaves[self.first])
        if spec not in self.known:
            self.known[spec] = [_layouts.spec_of_first(spec, leaves[self.first].ndim, x.sharding, a) for x, a in zip(found, self.avals)]
        return self.known[spec]


def _names(given):
    return () if given is None else (given,) if isinstance(given, (int, str)) else tuple(given)


class Jit:
    """A jitted function. Its calls take and return trees of arrays; results are tessera's."""

    def __init__(self, fun, static_argnums, static_argnames, donate_argnums, donate_argnames, in_shardings, out_shardings, wraps=False):
        self._fun = fun
        self._static_numbers, self._static_names = _both(fun, _names(static_argnums), _names(static_argnames))
        self._donated, self._donated_names = _both(fun, _names(donate_argnums), _names(donate_argnames))
        self._in_shardings, self._out_shardings = in_shardings, out_shardings
        self._programs = {}
        self._recent = {}  # (tree, context) -> the program for leaves that are all arrays of tessera
        self._has_statics = bool(self._static_numbers or self._static_names)
        self._traced = set()  # the types of calls that were traced, with the places of placed arguments: JAX's number of compilations
        self._inlines = False  # a function that holds mutable references is JAX's own jit, whose call is evaluated here
        # A donated array's memory is overwritten, so that no copy is kept.
        self._array_of = _values.array_of if self._donated or self._donated_names else _values.array_of_argument
        self._of_jax = None  # JAX's own jit of the function, and what that has traced
        self._wraps = wraps  # whether results are JAX's arrays: in programs that the runner runs
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, *args, **kwargs):
        if core.trace_ctx.trace is not core.eval_trace:  # in a trace of JAX it is a part of that, even if all its arguments are known
            return self._inline(args, kwargs)
        if self._wraps and not takes_all_here() and not takes(jax.tree_util.tree_leaves((args, kwargs))):
            return self._inline(args, kwargs)
        found, leaves = (None, None) if self._has_statics else self._called_again(args, kwargs)
        if found is None:
            program, plain, leaves = self._program(args, kwargs)
            if program is None:
                return self._inline(args, kwargs)
            try:
                found = evaluated(program.call_leaves, plain)
            except HoldsReferences:
                self._inlines = True
                self.clear_cache()
                return self._inline(args, kwargs)
        results = found[-1]
        if not self._wraps:
            return results.unflatten(found[:-1])
        passed()
        arrays = list(map(results.wrap, found, results.avals, results.are_plain, results.specs(leaves, found)))
        for n, layout in results.layouts:
            arrays[n]._layout = layout
        results = results.unflatten(arrays)
        return check_call(self._fun, args, kwargs, results) if asked() else results

    def _called_again(self, args, kwargs):
        """The results of a call with a tree of arrays that was seen before, None for all others, and the leaves."""
        leaves, tree = tree_flatten((args, kwargs))
        program = self._recent.get((tree, trace_context()))
        if program is None:
            return None, leaves
        try:
            return evaluated(program.call_leaves, [leaf._plain for leaf in leaves]), leaves
        except AttributeError:
            return evaluated(program.call_leaves, leaves), leaves

    def lower(self, *args, **kwargs):
        """The ops that are recorded for these arguments, or their types: as_text(), compile()."""
        called_for = set(self._traced)
        program, leaves, _ = self._program(*jax.tree_util.tree_map(_values.stand_in, (args, kwargs)))
        if program is None:
            return self._as_jax().lower(*args, **kwargs)
        dynamic, named = self._without_statics(args, kwargs)
        given = None if self._in_shardings is None else _layouts.spread(self._in_shardings, dynamic)
        written = _layouts.arguments_shardings(given, jax.tree_util.tree_leaves((dynamic, named)))
        lowered = program.lower(*leaves)
        self._traced &= called_for  # JAX does not count it
        return Lowered(lowered, lambda a, k: self(*self._with_statics(a, args), **k, **{n: v for n, v in kwargs.items() if n not in named}),
                       dynamic, named, lambda: self._as_jax().trace(*args, **kwargs), self._wraps, (written, self._out_shardings))

    def trace(self, *args, **kwargs):
        """JAX's own trace: .jaxpr; its lower() is this function's."""
        return Traced(self._as_jax().trace(*args, **kwargs), lambda: self.lower(*args, **kwargs))

    def eval_shape(self, *args, **kwargs):
        return self._as_jax().eval_shape(*args, **kwargs)

    def _as_jax(self):
        if self._of_jax is None:
            given = {"in_shardings": self._in_shardings, "out_shardings": self._out_shardings}
            self._of_jax = jax_jit(self._fun, static_argnums=self._static_numbers or None, static_argnames=self._static_names or None, **{n: s for n, s in given.items() if s is not None})
        return self._of_jax

    def _without_statics(self, args, kwargs):
        """The arguments that a compiled function takes."""
        numbers = {n % len(args) if n < 0 else n for n in self._static_numbers} if args else ()
        return tuple(a for n, a in enumerate(args) if n not in numbers), {k: v for k, v in kwargs.items() if k not in self._static_names}

    def _with_statics(self, dynamic, args):
        numbers, rest = {n % len(args) if n < 0 else n for n in self._static_numbers} if args else (), iter(dynamic)
        return [a if n in numbers else next(rest) for n, a in enumerate(args)]

    def clear_cache(self):
        self._programs.clear()
        self._recent.clear()
        self._traced.clear()

    def _cache_size(self):
        """As JAX's, by which tests of packages count compilations."""
        return len(self._traced)

    def __repr__(self):
        return f"<PjitFunction of {self._fun!r}>"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    # ---- inside of a trace of JAX, and with mutable references: JAX's own jit ----
    def _inline(self, args, kwargs):
        return self._as_jax()(*args, **kwargs)

    def _program(self, args, kwargs):
        if self._inlines or self._wraps and jax.config.jax_disable_jit:
            return None, None, None
        statics = None
        if self._static_numbers or self._static_names:
            numbers = {n % len(args) if n < 0 else n for n in self._static_numbers}
            statics = (tuple((n, args[n]) for n in sorted(numbers) if n < len(args)), tuple((k, kwargs[k]) for k in sorted(kwargs) if k in self._static_names))
            _check_hashable(statics)
            args = tuple(None if n in numbers else a for n, a in enumerate(args))
            kwargs = {k: v for k, v in kwargs.items() if k not in self._static_names}
        given, tree = tree_flatten((args, kwargs))
        leaves, types = list(given), None
        for n, leaf in enumerate(given):
            kind = type(leaf)
            if kind is Array:
                continue
            if kind is ShardedArray:
                leaves[n] = leaf._plain
                if leaves[n] is not None:
                    continue
                note, leaves[n] = _note_of_type(leaf.aval), leaf.__tessera_array__
                if note is None and _layouts.typed_sharding_of(leaf.aval) is None:
                    leaf._plain = leaves[n]
            elif isinstance(leaf, jax.core.Tracer) or is_reference(leaf) or is_no_array(leaf):  # JAX refuses those with its own words
                return None, None, None
            else:
                note, leaves[n] = _note_of(leaf), self._array_of(leaf)
            if note is not None:
                types = types or [None] * len(leaves)
                types[n] = note
        key = (tree, statics, None if types is None else tuple(types), trace_context())
        program = _found(self._programs, key)
        if program is None:
            program = self._programs[key] = self._make(args, kwargs, tree, statics, types)
        if types is None and statics is None:
            self._recent[tree, key[-1]] = program
        return program, leaves, given

    def _make(self, args, kwargs, tree, statics, types):
        fixed, fixed_names = ({}, {}) if statics is None else (dict(statics[0]), dict(statics[1]))
        types = types or [None] * tree.num_leaves
        fun, out_shardings, static_names, traced = self._fun, self._out_shardings, self._static_names, self._traced

        def program(*leaves):
            avals = [_aval(x, note) for x, note in zip(leaves, types)]
            traced.add((tree, statics, tuple((a, x.committed and x.sharding) for a, x in zip(avals, leaves))))
            jax_args, jax_kwargs = tree_unflatten(tree, avals)
            jax_args = [fixed.get(n, a) for n, a in enumerate(jax_args)]
            jaxpr, out_tree = trace_of(fun, jax_args, {**jax_kwargs, **fixed_names}, static_argnums=tuple(fixed) or None, static_argnames=tuple(static_names) or None)
            if any(is_reference(constant) for constant in jaxpr.consts):
                raise HoldsReferences
            results = evaluate(jaxpr, *leaves)
            results = [_layouts.as_typed(r, a) for r, a in zip(results, jaxpr.out_avals)]
            out_avals, spread = jaxpr.out_avals, None
            if out_shardings is not None:
                spread = _layouts.spread(out_shardings, tree_unflatten(out_tree, list(range(len(results)))))
                results = _constrained(results, spread)
                out_avals = [_layouts.in_memory(a, s) for a, s in zip(out_avals, spread)]
            first = _first_placed(jaxpr, leaves) if wraps and spread is None else None
            if first is not None:
                results = [_layouts.placed_by(r, leaves[first]) for r in results]
            is_first = first is not None and not any(id(v) in _read(jaxpr) for v in jaxpr.jaxpr.invars[:first])  # JAX takes the first argument's spec
            return (*results, _Results(out_tree, out_avals, _kept(jaxpr, donated) if wraps else (), spread, first if is_first else None))

        donated, wraps = self._leaf_numbers(args, kwargs), self._wraps
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
        spread = _layouts.spread(given, args if isinstance(given, (tuple, list)) else tuple(args))
        return [_layouts.sharding_of(s) for s in spread] + [None] * len(jax.tree_util.tree_leaves(kwargs))


def _read(jaxpr):
    return {id(v) for v in jaxpr.jaxpr.outvars}.union(*({id(v) for v in e.invars} for e in jaxpr.eqns))


def _first_placed(jaxpr, leaves):
    """The number of the argument that says where results are that say nothing of it."""
    read = _read(jaxpr)
    return next((n for n, (v, x) in enumerate(zip(jaxpr.jaxpr.invars, leaves)) if x.committed and id(v) in read), None)


def _kept(jaxpr, donated):
    """Of the donated arguments those that JAX leaves alone: unread ones, and those for which no result of their size is left. Programs read them again."""
    read = _read(jaxpr)
    open_, results = [n for n in donated if id(jaxpr.jaxpr.invars[n]) in read], jaxpr.out_avals
    for alike in (lambda a: (a.shape, a.dtype), lambda a: a.size):  # JAX's two rounds
        waiting, rest = collections.defaultdict(collections.deque), []
        for n in open_:
            waiting[alike(jaxpr.in_avals[n])].append(n)
        for aval in results:
            found = waiting[alike(aval)]
            found.popleft() if found else rest.append(aval)
        open_, results = sorted(n for left in waiting.values() for n in left), rest
    unread = [n for n in donated if id(jaxpr.jaxpr.invars[n]) not in read]
    return unread + open_


# JAX's names of what a program needs.
for _name, _field in (("argument", "argument_bytes"), ("output", "output_bytes"), ("temp", "temporary_bytes"), ("alias", None), ("generated_code", None)):
    setattr(_core.MemoryAnalysis, f"{_name}_size_in_bytes", property(lambda self, field=_field: getattr(self, field) if field else 0))


def _both(fun, numbers, names):
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


def _check_hashable(statics):
    for name, value in (*statics[0], *statics[1]):
        try:
            hash(value)
        except TypeError as error:
            raise ValueError(f"Non-hashable static arguments are not supported. An error occurred while trying to hash an object of type {type(value)}, {value}. The error was:\n"
                             f"TypeError: {error}\nIt is the static argument {name!r}.") from None


def _found(programs, key):
    """The program of that key; of static arguments that cannot be compared JAX's error."""
    try:
        return programs.get(key)
    except Exception as error:
        statics = [value for part in key[1] or () for _, value in part]
        raise ValueError("static arguments should be comparable using __eq__. The following error was raised when comparing static arguments of the types "
                         f"{', '.join(str(type(value)) for value in statics)}:\n{type(error).__name__}: {error}") from None


def _note_of(leaf):
    """What the array of a leaf does not say of it: that it is weakly typed, a key, or a partial sum by its type."""
    kind = type(leaf)
    if kind in (int, float, complex, bool):
        return kind is not bool and "weak" or None
    if isinstance(leaf, jax.Array):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return leaf.dtype
        return "weak" if leaf.aval.weak_type else None
    return None


def _note_of_type(aval):
    if aval.weak_type:
        return "weak"
    return _layouts.typed_sharding_of(aval) if _layouts.is_ambiguous["yes"] else _layouts.partial_sharding_of(aval)


def _aval(x, note):
    if note == "weak":
        return jax.ShapeDtypeStruct(x.shape, _values.numpy_dtype(x.dtype.name), weak_type=True)
    if isinstance(note, jax.sharding.NamedSharding):
        return jax.ShapeDtypeStruct(x.shape, _values.numpy_dtype(x.dtype.name), sharding=note)
    if note is not None:
        return jax.ShapeDtypeStruct(x.shape[:x.ndim - len(note._impl.key_shape)], note)
    return jax.ShapeDtypeStruct(x.shape, jax.dtypes.canonicalize_dtype(_values.numpy_dtype(x.dtype.name)), sharding=_layouts.explicit_sharding_of(x))


def _constrained(results, shardings):
    found = map(_layouts.sharding_of, shardings)
    return [r if s is None else _core.with_sharding_constraint_leaf(r, s) for r, s in zip(results, found)]


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
