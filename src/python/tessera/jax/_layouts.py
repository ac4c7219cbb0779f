"""JAX's meshes and shardings as tessera's, and back. JAX's device k is rank k."""
import contextlib
import functools

import jax
import numpy as np
from jax._src import core, mesh as mesh_module
from jax.sharding import NamedSharding, PartitionSpec

from .. import _core


is_one_process = {"yes": False}  # what the runner shows a program: one process with all devices
# (names, sizes, ranks) -> the meshes of JAX that have them, by whether their axes are explicit, which no array of tessera knows.
_seen = {}
is_ambiguous = {"yes": False}  # whether there are both kinds of a mesh: what is explicit then stands in the types of arrays


@functools.lru_cache(maxsize=256)
def _mesh(names, shape, ranks):
    devices = _core.devices()
    return _core.make_mesh(shape, names, [devices[r] for r in ranks])


def _current_mesh(names, shape):
    """The program's mesh, if it has that form; otherwise None."""
    current = mesh_module.get_concrete_mesh()
    if current is None or current.empty or tuple(str(n) for n in current.axis_names) != names or tuple(current.axis_sizes) != shape:
        return None
    return current


def _ranks_of(names, shape):
    """Of a mesh without devices: those of the last mesh of that form, or all in order."""
    known = [ranks for seen_names, seen_shape, ranks in _seen if (seen_names, seen_shape) == (names, shape)]
    return known[-1] if known else tuple(range(int(np.prod(shape))))


def of_ranks(count):
    """How to start a program that needs that many devices."""
    return f"Start the program on {count}: tessera run -n {count} -m tessera.jax program.py"


def mesh_of(mesh):
    """A mesh of JAX, or an abstract one, which takes the ranks in order."""
    shape = tuple(mesh.axis_sizes if hasattr(mesh, "axis_sizes") else mesh.shape.values())
    names = tuple(str(n) for n in mesh.axis_names)
    if isinstance(mesh, jax.sharding.AbstractMesh):
        mesh = _current_mesh(names, shape) or mesh
    is_abstract = isinstance(mesh, jax.sharding.AbstractMesh)
    ranks = _ranks_of(names, shape) if is_abstract else tuple(int(d.id) for d in np.asarray(mesh.devices, object).flat)
    if max(ranks, default=0) >= _core.device_count():
        raise ValueError(f"a mesh of {len(ranks)} devices ({dict(zip(mesh.axis_names, shape))}), but the job has {_core.device_count()} ranks. {of_ranks(max(ranks) + 1)}")
    if not is_abstract:
        kinds = _seen.setdefault((names, shape, ranks), {})
        kinds[has_explicit_axes(mesh)] = mesh
        is_ambiguous["yes"] |= len(kinds) > 1
    return _mesh(names, shape, ranks)


def spec_of(spec, ndim=None):
    """A PartitionSpec of JAX. UNCONSTRAINED leaves a dim as it is: None, for the planner."""
    spec = getattr(spec, "partitions", spec)  # partial sums that a type names (unreduced) are summed already, as `reduced` has it
    parts = [None if p is None or p is PartitionSpec.UNCONSTRAINED else tuple(str(n) for n in p) if isinstance(p, (tuple, list)) else str(p) for p in spec]
    parts = [p if not isinstance(p, tuple) else None if not p else p[0] if len(p) == 1 else p for p in parts]
    return _core.PartitionSpec(*parts)


@functools.lru_cache(maxsize=1024)
def _sharding(sharding):
    if isinstance(sharding, NamedSharding):
        return _core.NamedSharding(mesh_of(sharding.mesh), spec_of(sharding.spec))
    if hasattr(sharding, "_device"):
        return _core.SingleDeviceSharding(_core.devices()[sharding._device.id])
    raise NotImplementedError(f"the sharding {sharding}: use a NamedSharding")


def _is_format(given):
    return type(given).__name__ == "Format"


def of_format(given):
    """The sharding of a Format of JAX, or what else was given: how a block lies in memory is tessera's, and the Format is only shown again."""
    return given.sharding if _is_format(given) else given


def in_the_mesh(given):
    """A spec alone, as in the options of a jitted function, is one of the program's mesh; other shardings are what they are."""
    if not isinstance(given, PartitionSpec):
        return given
    mesh = mesh_module.get_concrete_mesh()
    if mesh is None or mesh.empty:
        raise RuntimeError(f"jit requires a non-empty mesh in context for the spec {given}: set one by jax.set_mesh(mesh), or give a NamedSharding")
    return NamedSharding(mesh, given)


def layout_of(given, ndim):
    """The layout that a Format names, for arrays to show; None where it leaves that to the compiler, or names no Format."""
    layout = given.layout if _is_format(given) else None
    if not hasattr(layout, "check_compatible_aval"):
        return None
    layout.check_compatible_aval((0,) * ndim)
    return layout


def check_concrete(given, what):
    """JAX's error of a Format that leaves to the compiler how or where blocks lie, where there is no compiler to choose."""
    if _is_format(given) and (given.layout is not None or given.sharding is not None) and (given.sharding is None or type(given.layout).__name__ == "AutoLayoutSingleton"):
        raise ValueError(f"sharding and layout in `Layout` instance should be concrete. Got layout: {given} for {what}")


def sharding_of(sharding):
    """A sharding, or device, of JAX or of tessera; None stays None."""
    if sharding is None or isinstance(sharding, _core.Sharding):
        return sharding
    if isinstance(sharding, jax.Device):
        return _core.SingleDeviceSharding(_core.devices()[sharding.id])
    if _space is not None and isinstance(sharding, _space):
        return None
    if _is_format(sharding):
        return sharding_of(sharding.sharding)
    if isinstance(sharding, PartitionSpec):
        return _sharding(in_the_mesh(sharding))
    if isinstance(getattr(sharding, "mesh", None), jax.sharding.AbstractMesh):  # what it stands for depends on the program's mesh
        return _sharding.__wrapped__(sharding)
    return _sharding(sharding)


def _is_sharding(s):
    return s is None or isinstance(s, (jax.sharding.Sharding, _core.Sharding, jax.Device, PartitionSpec)) or _is_format(s)


def spread(given, tree):
    """One sharding per leaf: one stands for all leaves below it."""
    if _is_sharding(given):
        return [given] * len(jax.tree_util.tree_leaves(tree))
    return jax.tree_util.tree_leaves(jax.tree_util.tree_map(lambda s, part: [s] * len(jax.tree_util.tree_leaves(part)), given, tree, is_leaf=_is_sharding),
                                     is_leaf=_is_sharding)


_space = getattr(core, "MemorySpace", None)  # of the types of arrays, in newer versions


def in_memory(aval, target):
    """The type of a value that was put there: a memory that is not the device's is a part of it. The ranks have one, so nothing moves."""
    if _space is None or target is None or not hasattr(aval, "memory_space"):
        return aval
    kind = getattr(target, "memory_kind", None)
    space = target if isinstance(target, _space) else core.mem_kind_to_space(kind) if kind else aval.memory_space
    return aval if space == aval.memory_space else aval.update(memory_space=space)


def shown_sharding(x, aval, spec, device):
    """Where an array is, in JAX's words: by the spec that the program has written, or else by its type's, or else without None at the end."""
    typed = typed_sharding_of(aval)
    spec = spec if spec is not None or typed is None else typed.spec
    sharding = jax_sharding(x.sharding, typed is not None, _brief(x.sharding) if spec is None else spec) if x.committed else jax.sharding.SingleDeviceSharding(device if isinstance(device, jax.Device) else jax.devices()[0])
    return sharding.with_memory_kind("pinned_host") if _space is not None and getattr(aval, "memory_space", None) == _space.Host else sharding


def _brief(sharding, spec=None):
    """The shortest spec that says the same on that sharding's mesh: without axes of one device, and without None at the end."""
    parts, sizes = [], getattr(sharding.mesh, "shape", {})
    for part in getattr(sharding, "spec", ()) if spec is None else getattr(spec, "partitions", spec):
        names = [part] if isinstance(part, str) else part or ()
        parts.append(tuple(n for n in names if sizes.get(n) != 1) or None)
    while parts and parts[-1] is None:
        parts.pop()
    return PartitionSpec(*parts)


def written_spec(sharding):
    """The spec of a sharding of JAX, as it was written; None of all others, and where it leaves a dim free."""
    sharding = in_the_mesh(of_format(sharding))
    return sharding.spec if isinstance(sharding, NamedSharding) and not has_free_dims(sharding) else None


def spec_of_first(spec, ndim, sharding, aval):
    """A result's spec: JAX has the first operand's, as it was written, where the result has as many dims that are split alike; otherwise None."""
    if spec is None or ndim != aval.ndim or typed_sharding_of(aval) is not None:
        return None
    return spec if _brief(sharding) == _brief(sharding, spec) else None


def arguments_shardings(given, leaves):
    """How a program's arguments are placed, as it was written: in in_shardings, or by the arguments themselves; None of all others."""
    placed = lambda x: isinstance(x, jax.ShapeDtypeStruct) or getattr(x, "committed", False)  # noqa: E731
    return [(in_the_mesh(of_format(s)) if s is not None else getattr(x, "sharding", None) if placed(x) else None) for s, x in zip([*(given or ()), *[None] * len(leaves)], leaves)]


def shown_as_written(shardings, written):
    """Shardings of tessera in JAX's words, as the program has written them; those that it has not are of the mesh of the others."""
    mesh = next((w.mesh for w in written if isinstance(w, NamedSharding)), None)
    shown = lambda s: NamedSharding(mesh, PartitionSpec()) if mesh is not None and s.is_fully_replicated else jax_sharding(s)  # noqa: E731
    return [w if isinstance(w, jax.sharding.Sharding) else shown(s) for s, w in zip(shardings, written)]


def results_shardings(shardings, avals, first, ndim, written):
    """Those of a compiled program whose first argument, if there is one, has that sharding and that many dims, in JAX's words."""
    spec = next((getattr(s, "spec", None) for s in first), None)
    return [w or jax_sharding(s, None, spec_of_first(spec, ndim, s, a) or _brief(s)) for s, a, w in zip(shardings, avals, written)]


def has_free_dims(sharding):
    """Whether a dim is UNCONSTRAINED."""
    return isinstance(sharding, NamedSharding) and any(p is PartitionSpec.UNCONSTRAINED for p in getattr(sharding.spec, "partitions", sharding.spec))


def _jax_mesh(names, shape, ranks, is_explicit):
    kinds = _seen.setdefault((names, shape, ranks), {})
    if not kinds:
        devices = jax.devices()
        kinds[False] = jax.sharding.Mesh(np.array([devices[r] for r in ranks], object).reshape(shape), names)
    if len(kinds) > 1 and is_explicit is None:
        is_explicit = has_explicit_axes(jax.sharding.get_abstract_mesh())
    return kinds.get(is_explicit) or next(iter(kinds.values()))


def jax_sharding_of(x, is_explicit=None):
    """Where an array of tessera is, in JAX's words. Whether its mesh's axes are explicit, where both kinds are known, says its type."""
    return jax_sharding(x.sharding, is_explicit) if x.committed else jax.sharding.SingleDeviceSharding(jax.devices()[0])


def jax_sharding(s, is_explicit=None, spec=None):
    """A sharding of tessera in JAX's words, with its spec or another wording of that."""
    mesh = s.mesh
    if s.num_devices == 1 and not mesh.axis_names:
        return jax.sharding.SingleDeviceSharding(jax.devices()[next(iter(s.device_set)).id])
    ranks = tuple(d.id for d in np.asarray(mesh.devices, object).flat)
    return NamedSharding(_as_here(_jax_mesh(tuple(mesh.axis_names), tuple(mesh.shape[n] for n in mesh.axis_names), ranks, is_explicit)), PartitionSpec(*_parts(s.spec)) if spec is None else spec)


def _as_here(mesh):
    """Within auto_axes the program's mesh has the same axes, none of them explicit."""
    current = jax.sharding.get_abstract_mesh() if has_explicit_axes(mesh) else None
    if current is None or current.axis_names != mesh.axis_names or current.axis_sizes != mesh.axis_sizes or has_explicit_axes(current):
        return mesh
    return jax.sharding.Mesh(mesh.devices, mesh.axis_names, axis_types=current.axis_types)


def _parts(spec):
    return [tuple(p) if isinstance(p, list) else p for p in spec]


def explicit_sharding_of(x):
    """The sharding that is part of an array's type: where the axes of its mesh are explicit ones."""
    current = jax.sharding.get_abstract_mesh() if hasattr(jax.sharding, "get_abstract_mesh") else None
    if x.committed and (x.sharding.num_devices > 1 or has_explicit_axes(current)):
        sharding = jax_sharding_of(x)
        if isinstance(sharding, NamedSharding) and has_explicit_axes(sharding.mesh):
            return sharding
    if not has_explicit_axes(current):
        return None
    return NamedSharding(current, PartitionSpec(*[None] * x.ndim))


def typed(aval, sharding):
    """The type of a value that was put there: a sharding of explicit axes is a part of it."""
    aval = in_memory(aval, sharding)
    if not isinstance(sharding, NamedSharding) or not hasattr(core, "update_aval_with_sharding"):
        return aval
    if has_explicit_axes(sharding.mesh):
        return core.update_aval_with_sharding(aval, sharding)
    return aval if typed_sharding_of(aval) is None else aval.update(sharding=None)


def unreduced_axes(sharding):
    """The mesh's axes over which the sums of an array are still to come. Arrays here have theirs; the first device along such axes has all of it."""
    return sorted(getattr(getattr(sharding, "spec", sharding), "unreduced", ()))


def without_unreduced(sharding):
    """The same blocks, of an array that has its sums."""
    return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec.partitions)) if unreduced_axes(sharding) else sharding


def is_first_along(sharding, axes, device):
    """Whether a device is the first one along these axes of a sharding's mesh."""
    mesh = sharding.mesh
    place = np.argwhere(np.vectorize(lambda d: d.id)(mesh.devices) == device.id)[0]
    return not any(place[mesh.axis_names.index(axis)] for axis in axes)


def partial_sharding_of(aval):
    """A type's sharding that names partial sums (unreduced) or sums to come of its gradient (reduced), which no array says of itself."""
    sharding = typed_sharding_of(aval)
    if sharding is None or not (getattr(sharding.spec, "unreduced", None) or getattr(sharding.spec, "reduced", None)):
        return None
    return sharding


def placed_by(x, first):
    """A program's result is where its arguments are, whether it depends on them or not: whole on each device, unless it is split."""
    if not isinstance(x, _core.Array) or x.committed:
        return x
    sharding = first.sharding
    return _core.with_sharding_constraint_leaf(x, _core.NamedSharding(sharding.mesh, _core.PartitionSpec()) if sharding.mesh.axis_names else sharding)


def whole_from(x, dim):
    """The array without splits of that dim and later ones, as JAX has the words of keys."""
    parts = _parts(getattr(x.sharding, "spec", ())) if x.committed else ()
    return _core.with_sharding_constraint_leaf(x, _core.NamedSharding(x.sharding.mesh, _core.PartitionSpec(*parts[:dim]))) if any(parts[dim:]) else x


def as_typed(x, aval):
    """In programs with explicit axes a type says where its values are."""
    sharding = typed_sharding_of(aval)
    if sharding is None or not isinstance(x, _core.Array):
        return x
    return _core.with_sharding_constraint_leaf(x, sharding_of(sharding))


@contextlib.contextmanager
def meshes_of_types(avals):
    """The types of one op's operands, all of one mesh, which is the current one inside: that of the explicit types, if there are any."""
    current = jax.sharding.get_abstract_mesh() if hasattr(jax.sharding, "get_abstract_mesh") else None
    if current is None or not any(hasattr(a, "sharding") for a in avals):
        yield avals
        return
    explicit = next((t.mesh for t in map(typed_sharding_of, avals) if t is not None), None)
    # Within auto_axes and shard_map the program's own mesh rules: the types of values from outside do not count there.
    mesh = current if explicit is None or (not current.empty and current.axis_names == explicit.axis_names) else explicit
    avals = [_of_mesh(a, mesh) for a in avals]
    if mesh is current or mesh == current:
        yield avals
    else:
        with jax.sharding.use_abstract_mesh(mesh):
            yield avals


def _of_mesh(aval, mesh):
    sharding = getattr(aval, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.mesh == mesh:
        return aval
    return aval.update(sharding=NamedSharding(mesh, PartitionSpec(*[None] * aval.ndim)))


def has_explicit_axes(mesh):
    return mesh is not None and any("Explicit" in str(t) for t in getattr(mesh, "axis_types", None) or ())


def typed_sharding_of(aval):
    """What an array's type says of its sharding: of a mesh with explicit axes; otherwise None."""
    sharding = getattr(aval, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.mesh.empty or not has_explicit_axes(sharding.mesh):
        return None
    return sharding
