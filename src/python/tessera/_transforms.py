"""Transformations of functions: jit, gradients, maps."""
import difflib as _difflib
import functools as _functools
import inspect as _inspect

from . import _core
from ._core import jvp, linearize  # noqa: F401
from .tree_util import tree_map

__all__ = ["jit", "grad", "value_and_grad", "vjp", "jvp", "linearize", "jacrev", "jacfwd", "jacobian", "hessian", "vmap", "pmap", "shard_map", "checkpoint", "checkpoint_name", "remat", "custom_jvp", "custom_vjp", "eval_shape",
           "ShapeDtypeStruct", "make_jaxpr_text"]


def _named(function, like):
    """Its name and docstring, where it has some."""
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        try:
            setattr(function, attribute, getattr(like, attribute))
        except (AttributeError, TypeError):
            pass
    return function


def _numbers(given):
    return [] if given is None else [given] if isinstance(given, int) else list(given)


def _names_near(transform):
    """The transform, whose TypeError for an option that it does not have names the nearest one."""
    known = [name for name in _inspect.signature(transform).parameters if name != "fun"]

    @_functools.wraps(transform)
    def checked(*args, **options):
        for name in options:
            if name not in known:
                near = _difflib.get_close_matches(name, known, 1)
                raise TypeError(f"{transform.__name__}() got an unexpected keyword argument '{name}'" + (f". Did you mean '{near[0]}'?" if near else f"; its options are {', '.join(known)}"))
        return transform(*args, **options)

    return checked


@_names_near
def jit(fun=None, /, *, in_shardings=None, out_shardings=None, static_argnums=None, static_argnames=None, donate_argnums=None, reproducible=False, memory_limit_bytes=0):
    """fun, traced at the first call with a signature, planned as a whole, and only run afterwards.

    fun must not depend on values (see where and lax.cond) nor have effects but its results. The shardings of the arguments and
    out_shardings pull in both directions; tessera.auto, or NamedSharding(mesh, tessera.auto), is a layout that the planner searches: fun
    is traced for many, and the one of the least predicted time, within memory_limit_bytes a process, is kept (explain tells which and why). reproducible: what it traces is recorded in ts.reproducible(). Not collective; the calls
    are, over the ranks of the arguments' meshes.
    """
    if fun is None:
        return _functools.partial(jit, in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums,
                                  static_argnames=static_argnames, donate_argnums=donate_argnums, reproducible=reproducible, memory_limit_bytes=memory_limit_bytes)
    if not callable(fun):
        raise TypeError(f"jit takes a function, not {fun!r}")
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames or ())
    jitted = _core.JitFunction(fun, in_shardings, out_shardings, _numbers(donate_argnums), _numbers(static_argnums), names, reproducible, memory_limit_bytes)
    return _named(jitted, fun)


def _gradient(make):
    @_functools.wraps(make)
    def transform(fun=None, /, argnums=0, has_aux=False):
        if fun is None:
            return _functools.partial(transform, argnums=argnums, has_aux=has_aux)
        inner = make(fun, argnums, has_aux)
        return _functools.wraps(fun)(lambda *args, **kwargs: inner(*args, **kwargs))
    del transform.__wrapped__  # its signature is transform's
    return transform


@_gradient
def grad(fun, argnums, has_aux):
    """The gradient of the scalar fun(*args) with respect to the chosen arguments. Not collective: records."""
    return _core.grad(fun, argnums, has_aux)


@_gradient
def value_and_grad(fun, argnums, has_aux):
    """(fun(*args), gradient); with has_aux fun returns (value, aux)."""
    return _core.value_and_grad(fun, argnums, has_aux)


def jacrev(fun, argnums=0):
    """Per leaf of the chosen arguments the array d fun / d leaf of shape fun's shape + leaf's shape."""
    return _core.jacrev(fun, argnums)


def jacfwd(fun, argnums=0):
    """The result of jacrev, by one forward pass for all elements of an argument together: cheaper if arguments are smaller than the result."""
    return _core.jacfwd(fun, argnums)


jacobian = jacrev


def hessian(fun, argnums=0):
    """Per leaf x of the chosen arguments the array d2 fun / dx2 of shape x.shape + x.shape."""
    return _core.hessian(fun, argnums)


def vjp(fun, *primals, has_aux=False):
    """(fun(*primals), pullback): pullback(cotangents) gives a tuple of cotangents, one per argument."""
    return _core.vjp(fun, has_aux, *primals)


@_names_near
def vmap(fun=None, /, in_axes=0, out_axes=0, axis_name="", axis_size=None):
    """fun on every example along the mapped dimensions at once. Not collective: calls record."""
    if fun is None:
        return _functools.partial(vmap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name, axis_size=axis_size)
    return _named(_core.vmap(fun, in_axes, out_axes, axis_name or "", axis_size), fun)


@_names_near
def pmap(fun=None, /, axis_name="", *, in_axes=0, out_axes=0, devices=None, donate_argnums=None, static_broadcasted_argnums=()):
    """Example i of the mapped dimensions on device i. Not collective: calls record."""
    if fun is None:
        return _functools.partial(pmap, axis_name=axis_name, in_axes=in_axes, out_axes=out_axes, devices=devices, donate_argnums=donate_argnums,
                                  static_broadcasted_argnums=static_broadcasted_argnums)
    options = (out_axes, list(devices or []), _numbers(donate_argnums))
    if static_broadcasted_argnums != () and static_broadcasted_argnums is not None:
        return _functools.wraps(fun)(_pmap_with_statics(fun, axis_name or "", in_axes, options, _numbers(static_broadcasted_argnums)))
    return _named(_core.pmap(fun, axis_name or "", in_axes, *options), fun)


def _pmap_with_statics(fun, axis_name, in_axes, options, static):
    """One mapped function for each set of static values."""
    known = {}

    def call(*args):
        fixed = {n % len(args): args[n] for n in static}
        mapped = known.get(key := tuple(fixed.items()))
        if mapped is None:
            def whole(*rest):
                values = iter(rest)
                return fun(*(fixed[n] if n in fixed else next(values) for n in range(len(args))))
            axes = in_axes if isinstance(in_axes, int) else tuple(a for n, a in enumerate(in_axes) if n not in fixed)
            mapped = known[key] = _core.pmap(whole, axis_name, axes, *options)
        return mapped(*(a for n, a in enumerate(args) if n not in fixed))

    return call


@_names_near
def shard_map(fun=None, /, mesh=None, in_specs=None, out_specs=None, check_vma=True, axis_names=(), check_rep=None):
    """fun written for one rank: it gets this rank's block of each argument, according to its spec, and returns this rank's blocks of the results."""
    if fun is None:
        return _functools.partial(shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_vma, axis_names=axis_names, check_rep=check_rep)
    if mesh is None or in_specs is None or out_specs is None:
        raise TypeError("shard_map needs mesh, in_specs and out_specs")
    specs = in_specs if isinstance(in_specs, (tuple, list)) else (in_specs,)
    check = check_vma if check_rep is None else check_rep
    return _named(_core.shard_map(fun, mesh, specs, out_specs, check, list(axis_names)), fun)


def checkpoint(fun=None, *, prevent_cse=True, policy=None):
    """fun with a backward pass that computes fun's intermediate values again instead of keeping them; prevent_cse has no effect.

    policy: one of checkpoint_policies, which names the values that are kept. explain(grad(...)).kept lists them.
    """
    if fun is None:
        return _functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy)
    if policy is None:
        policy = _core.checkpoint_policies.nothing_saveable
    if not isinstance(policy, _core.checkpoint_policies.CheckpointPolicy):
        raise TypeError(f"checkpoint: policy is one of tessera.checkpoint_policies, as dots_saveable; not {policy!r}")
    return _functools.wraps(fun)(lambda *args: _core.checkpointed(fun, policy, *args))


def checkpoint_name(x, name):
    """The tree unchanged, its arrays under a name for checkpoint_policies.save_only_these_names."""
    return tree_map(lambda leaf: _core.checkpoint_name_leaf(leaf, name), x)


remat = checkpoint


class custom_vjp:
    """fun with a backward pass of its own: defvjp(fwd, bwd), fwd(*args) -> (result, residuals), bwd(residuals, cotangent) -> one cotangent per argument."""

    def __init__(self, fun, nondiff_argnums=()):
        self.fun, self.nondiff = fun, tuple(nondiff_argnums)
        self.fwd = self.bwd = None
        _functools.update_wrapper(self, fun)

    def defvjp(self, fwd, bwd):
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args):
        if self.fwd is None:
            raise AttributeError(f"custom_vjp: {self.__name__} has no backward pass yet; call {self.__name__}.defvjp(fwd, bwd)")
        if not self.nondiff:
            return _core.with_own_backward(self.fun, self.fwd, self.bwd, *args)
        fixed = {n: args[n] for n in self.nondiff}
        watched = [a for n, a in enumerate(args) if n not in fixed]

        def whole(values):
            rest = iter(values)
            return [fixed[n] if n in fixed else next(rest) for n in range(len(args))]

        return _core.with_own_backward(lambda *v: self.fun(*whole(v)), lambda *v: self.fwd(*whole(v)),
                                       lambda residuals, cotangent: self.bwd(*fixed.values(), residuals, cotangent), *watched)


class custom_jvp:
    """fun with a derivative of its own: defjvp(rule), rule(primals, tangents) -> (result, tangent of the result), linear in the tangents.

    Gradients are the rule's transpose; arguments named by nondiff_argnums are passed to the rule first, as in JAX.
    """

    def __init__(self, fun, nondiff_argnums=()):
        self.fun, self.nondiff, self.rule = fun, tuple(nondiff_argnums), None
        _functools.update_wrapper(self, fun)

    def defjvp(self, rule):
        self.rule = rule
        return rule

    def defjvps(self, *rules):
        """One rule per argument, rule(tangent, result, *primals) -> what it adds to the result's tangent; None adds nothing."""
        def together(primals, tangents):
            result = self.fun(*primals)
            parts = [rule(t, result, *primals) for rule, t in zip(rules, tangents) if rule is not None]
            return result, _functools.reduce(_core.add, parts)
        self.rule = together

    def __call__(self, *args):
        if self.rule is None:
            raise AttributeError(f"custom_jvp: {self.__name__} has no derivative yet; call {self.__name__}.defjvp(rule)")
        fixed = {n: args[n] for n in self.nondiff}
        watched = [a for n, a in enumerate(args) if n not in fixed]

        def whole(values):
            rest = iter(values)
            return [fixed[n] if n in fixed else next(rest) for n in range(len(args))]

        return _core.with_own_forward(lambda *v: self.fun(*whole(v)), lambda primals, tangents: self.rule(*fixed.values(), primals, tangents), *watched)


class ShapeDtypeStruct:
    """Shape, dtype and sharding of an array without its value."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), _core.dtype(dtype)
        self.ndim = len(self.shape)

    def __repr__(self):
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self):
        return hash((self.shape, str(self.dtype)))


def eval_shape(fun, *args, **kwargs):
    """Shapes and dtypes of fun(*args) without computing it. Not collective."""
    from .tree_util import tree_map
    args = [tree_map(lambda leaf: leaf, a) if not isinstance(a, ShapeDtypeStruct) else _core.zeros(a.shape, a.dtype) for a in args]
    types, definition = _core.eval_shape(fun, *args, **kwargs)
    return definition.unflatten([ShapeDtypeStruct(shape, dtype) for shape, dtype in types])


def make_jaxpr_text(fun, *args, **kwargs):
    """The ops that fun records for these arguments, as text."""
    return jit(fun).lower(*args, **kwargs).as_text()


# checkpoint is JAX's transformation; files of the same name are kept beside it: checkpoint.save(directory, step, tree).
checkpoint.save, checkpoint.restore = _core.checkpoint.save, _core.checkpoint.restore
checkpoint.Manager = _core.checkpoint.Manager
checkpoint.latest_step, checkpoint.latest_whole_step = _core.checkpoint.latest_step, _core.checkpoint.latest_whole_step
