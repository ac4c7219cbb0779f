"""jax.sharding's names."""
from ._core import Mesh, NamedSharding, PartitionSpec, PositionalSharding, Sharding, SingleDeviceSharding  # noqa: F401
