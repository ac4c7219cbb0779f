"""JAX's meshes and shardings as tessera's, and back. JAX's device k is rank k."""
import functools

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from .. import _core


_seen = {}  # (names, sizes, ranks) -> the mesh of JAX that had them last: whether its axes are explicit is known to it alone


@functools.lru_cache(maxsize=256)
def _mesh(names, shape, ranks):
    devices = _core.devices()
    return _core.make_mesh(shape, names, [devices[r] for r in ranks])


def _ranks_of(names, shape):
    """Of a mesh without devices: those of the program's mesh of that form, or all in order."""
    known = [ranks for seen_names, seen_shape, ranks in _seen if (seen_names, seen_shape) == (names, shape)]
    return known[-1] if known else tuple(range(int(np.prod(shape))))


def mesh_of(mesh):
    """A mesh of JAX, or an abstract one, which takes the ranks in order."""
    shape = tuple(mesh.axis_sizes if hasattr(mesh, "axis_sizes") else mesh.shape.values())
    names = tuple(str(n) for n in mesh.axis_names)
    is_abstract = isinstance(mesh, jax.sharding.AbstractMesh)
    ranks = _ranks_of(names, shape) if is_abstract else tuple(int(d.id) for d in np.asarray(mesh.devices, object).flat)
    if max(ranks, default=0) >= _core.device_count():
        raise ValueError(f"a mesh of {len(ranks)} devices ({dict(zip(mesh.axis_names, shape))}), but the job has {_core.device_count()} ranks")
    if not is_abstract:
        _seen[names, shape, ranks] = mesh
    return _mesh(names, shape, ranks)


def spec_of(spec, ndim=None):
    """A PartitionSpec of JAX. UNCONSTRAINED leaves a dim as it is: None, for the planner."""
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


def sharding_of(sharding):
    """A sharding, or device, of JAX or of tessera; None stays None."""
    if sharding is None or isinstance(sharding, _core.Sharding):
        return sharding
    if isinstance(sharding, jax.Device):
        return _core.SingleDeviceSharding(_core.devices()[sharding.id])
    return _sharding(sharding)


def has_free_dims(sharding):
    """Whether a dim is UNCONSTRAINED."""
    return isinstance(sharding, NamedSharding) and any(p is PartitionSpec.UNCONSTRAINED for p in sharding.spec)


def _jax_mesh(names, shape, ranks):
    known = _seen.get((names, shape, ranks))
    if known is None:
        devices = jax.devices()
        known = _seen[names, shape, ranks] = jax.sharding.Mesh(np.array([devices[r] for r in ranks], object).reshape(shape), names)
    return known


def jax_sharding_of(x):
    """Where an array of tessera is, in JAX's words."""
    if not x.committed:
        return jax.sharding.SingleDeviceSharding(jax.devices()[0])
    s = x.sharding
    if s.num_devices == 1:
        return jax.sharding.SingleDeviceSharding(jax.devices()[next(iter(x.devices())).id])
    mesh = s.mesh
    ranks = tuple(d.id for d in np.asarray(mesh.devices, object).flat)
    return NamedSharding(_jax_mesh(tuple(mesh.axis_names), tuple(mesh.shape[n] for n in mesh.axis_names), ranks), PartitionSpec(*_parts(s.spec)))


def _parts(spec):
    return [tuple(p) if isinstance(p, list) else p for p in spec]


def explicit_sharding_of(x):
    """The sharding that is part of an array's type: where the axes of its mesh are explicit ones."""
    current = jax.sharding.get_abstract_mesh() if hasattr(jax.sharding, "get_abstract_mesh") else None
    if x.committed and x.sharding.num_devices > 1 or x.committed and _has_explicit_axes(current):
        sharding = jax_sharding_of(x)
        if isinstance(sharding, NamedSharding) and _has_explicit_axes(sharding.mesh):
            return sharding
    if not _has_explicit_axes(current):
        return None
    return NamedSharding(current, PartitionSpec(*[None] * x.ndim))


def _has_explicit_axes(mesh):
    return mesh is not None and any("Explicit" in str(t) for t in getattr(mesh, "axis_types", None) or ())


def typed_sharding_of(aval):
    """What an array's type says of its sharding: of a mesh with explicit axes; otherwise None."""
    sharding = getattr(aval, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.mesh.empty or not _has_explicit_axes(sharding.mesh):
        return None
    return sharding
