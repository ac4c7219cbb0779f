"""Names that JAX had when programs of their time were written, as its newer names."""
import sys
import types

import jax
import numpy as np



def _module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    owner, _, leaf = name.rpartition(".")
    if owner in sys.modules:
        setattr(sys.modules[owner], leaf, made)
    return made


def _mesh(devices, axis_names):
    return jax.sharding.Mesh(np.asarray(devices, object), axis_names)


class _PositionalSharding:
    """What PositionalSharding was: devices in the shape of the array's blocks, reshaped, transposed and made whole by dims."""

    def __init__(self, devices, dims=None, replicated=()):
        """dims: which dim of the devices splits each dim of the array. A transpose keeps the devices' order."""
        self._devices, self._replicated = np.asarray(devices, object), frozenset(replicated)
        self._dims = tuple(range(self._devices.ndim)) if dims is None else tuple(dims)

    shape = property(lambda self: tuple(self._devices.shape[d] for d in self._dims))
    ndim = property(lambda self: len(self._dims))

    @property
    def T(self):
        return _PositionalSharding(self._devices, self._dims[::-1], {self.ndim - 1 - n for n in self._replicated})

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return _PositionalSharding(self._devices.transpose(self._dims).reshape(shape))

    def replicate(self, axis=None, keepdims=True):
        axes = range(self.ndim) if axis is None else [axis % self.ndim] if isinstance(axis, int) else axis
        return _PositionalSharding(self._devices, self._dims, self._replicated | set(axes))

    def named(self, ndim):
        """For an array of that many dims: the last ones count, as they did."""
        names = tuple(f"d{n}" for n in range(self._devices.ndim))
        spec = [None if n in self._replicated or size == 1 else names[d] for n, (d, size) in enumerate(zip(self._dims, self.shape))]
        spec = [None] * max(ndim - self.ndim, 0) + spec
        return jax.sharding.NamedSharding(_mesh(self._devices, names), jax.sharding.PartitionSpec(*spec[len(spec) - ndim:]))


def _each(place):
    """place(x, sharding, ...), which knows tessera.jax's sharding by position: per leaf, whose dims it is read for."""
    def of_tree(x, sharding=None, **options):
        if not isinstance(sharding, _PositionalSharding):
            return place(x, sharding, **options)
        return jax.tree_util.tree_map(lambda leaf: place(leaf, sharding.named(np.ndim(leaf)), **options), x)
    return of_tree


def _update(original):
    gone = ("jax_array", "jax_parallel_functions_output_gda", "jax_spmd_mode")

    def update(name, value):
        return None if name in gone else original(name, value)
    return update


def install():
    """jax.experimental.maps, .pjit and .PartitionSpec, jax.tools.colab_tpu, config.update("jax_array") and what else programs of that time name."""
    import jax.experimental
    import jax.experimental.mesh_utils  # noqa: F401
    from jax.sharding import Mesh, PartitionSpec
    _module("jax.experimental.maps", Mesh=Mesh, mesh=lambda devices, names: _mesh(devices, names), SerialLoop=None)
    _module("jax.experimental.pjit", pjit=_pjit, PartitionSpec=PartitionSpec, with_sharding_constraint=jax.lax.with_sharding_constraint)
    jax.experimental.PartitionSpec = PartitionSpec
    _module("jax.tools", colab_tpu=None)
    _module("jax.tools.colab_tpu", setup_tpu=lambda *_: None)
    jax.config.update = _update(jax.config.update)
    for name, old in (("tree_map", "map"), ("tree_leaves", "leaves"), ("tree_flatten", "flatten"), ("tree_unflatten", "unflatten")):
        if not hasattr(jax, name):
            setattr(jax, name, getattr(jax.tree, old))
    _install_shardings()


def _install_shardings():
    if not hasattr(jax.sharding, "PositionalSharding"):
        jax.sharding.PositionalSharding = _PositionalSharding
    if not hasattr(jax.sharding, "MeshPspecSharding"):
        jax.sharding.MeshPspecSharding = jax.sharding.NamedSharding
    put, constrain = _each(jax.device_put), _each(jax.lax.with_sharding_constraint)
    jax.device_put = lambda x, device=None, **options: put(x, device, **options)
    jax.lax.with_sharding_constraint = lambda x, shardings: constrain(x, shardings)
    sys.modules["jax.experimental.pjit"].with_sharding_constraint = jax.lax.with_sharding_constraint


def of_their_time():
    """What newer versions of JAX do otherwise than those that the programs were written for: axes of make_mesh are automatic ones."""
    original = jax.make_mesh

    def make_mesh(axis_shapes, axis_names, **options):
        types = getattr(jax.sharding, "AxisType", None)
        if types is not None and "axis_types" not in options:
            options["axis_types"] = (types.Auto,) * len(axis_shapes)
        return original(axis_shapes, axis_names, **options)
    jax.make_mesh = make_mesh


def _pjit(fun, in_shardings=None, out_shardings=None, *, in_axis_resources=None, out_axis_resources=None, **options):
    """jax.jit with specs of the mesh that is entered, by the options' names of both times."""
    def specs(given):
        from jax._src import mesh as mesh_lib
        mesh = mesh_lib.thread_resources.env.physical_mesh
        P = jax.sharding.PartitionSpec
        if given is None or mesh.empty:
            return given
        return jax.tree_util.tree_map(lambda s: jax.sharding.NamedSharding(mesh, s) if isinstance(s, P) else s, given, is_leaf=lambda s: isinstance(s, P) or s is None)

    known = {}

    def jitted():
        asked = {"in_shardings": in_axis_resources if in_shardings is None else in_shardings,  # P() is false
                 "out_shardings": out_axis_resources if out_shardings is None else out_shardings}
        given = {name: specs(of) for name, of in asked.items() if of is not None}
        if str(given) not in known:
            known[str(given)] = jax.jit(fun, **given, **options)
        return known[str(given)]

    def call(*args, **kwargs):
        return jitted()(*args, **kwargs)
    call.lower = lambda *args, **kwargs: jitted().lower(*args, **kwargs)
    return call


