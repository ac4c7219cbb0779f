"""JAX's meshes and shardings as tessera's, and back. JAX's device k is rank k."""
import functools

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from .. import _core


@functools.lru_cache(maxsize=256)
def _mesh(names, shape, ranks):
    devices = _core.devices()
    return _core.make_mesh(shape, names, [devices[r] for r in ranks])


def mesh_of(mesh):
    """A mesh of JAX, or an abstract one, which takes the ranks in order."""
    shape = tuple(mesh.axis_sizes if hasattr(mesh, "axis_sizes") else mesh.shape.values())
    ranks = tuple(range(int(np.prod(shape)))) if not hasattr(mesh, "devices") else tuple(int(d.id) for d in np.asarray(mesh.devices, object).flat)
    if max(ranks, default=0) >= _core.device_count():
        raise ValueError(f"a mesh of {len(ranks)} devices ({dict(zip(mesh.axis_names, shape))}), but the job has {_core.device_count()} ranks")
    return _mesh(tuple(str(n) for n in mesh.axis_names), shape, ranks)


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


@functools.lru_cache(maxsize=256)
def _jax_mesh(names, shape, ranks):
    devices = jax.devices()
    return jax.sharding.Mesh(np.array([devices[r] for r in ranks], object).reshape(shape), names)


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
    """The sharding that is part of an array's type: where its mesh is the current one and has explicit axes."""
    current = jax.sharding.get_abstract_mesh() if hasattr(jax.sharding, "get_abstract_mesh") else None
    if current is None or current.empty or not _has_explicit_axes(current):
        return None
    spec = PartitionSpec(*_parts(x.sharding.spec)) if x.committed and tuple(x.sharding.mesh.axis_names) == tuple(current.axis_names) else PartitionSpec(*[None] * x.ndim)
    return NamedSharding(current, spec)


def _has_explicit_axes(mesh):
    return any("Explicit" in str(t) for t in getattr(mesh, "axis_types", ()))
