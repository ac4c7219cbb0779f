"""tessera: arrays that are spread over the processes of an MPI job, with the names of NumPy, the array API standard and JAX.

    import tessera as ts                                        # starts MPI, unless mpi4py has
    mesh = ts.make_mesh((4, 2), ("x", "y"))                     # 8 processes as a grid
    a = ts.device_put(ts.ones((64, 1000)), ts.NamedSharding(mesh, ts.P("x", None)))
    b = ts.matmul(a, a.T)                                       # recorded; its sharding is known at once
    print(ts.device_get(ts.mean(b)))                            # computed now

Start it as `tessera run -n 8 python3 program.py`, or `mpirun -n 8 python3 program.py`; by itself it has one device.
Every process runs the whole program. What reads a value (float(x), print(x), numpy.asarray(x)) is collective.
"""
import sys as _sys

from . import _runtime  # noqa: F401  starts the runtime before anything else asks for devices
from . import _core
from ._runtime import attach  # noqa: F401
from ._core import (  # noqa: F401
    Array, Compiled, Device, Explanation, Key, Lowered, MatmulScope, Mesh, NamedSharding, PartitionSpec, PositionalSharding, Progress,
    ReproducibleScope, Shard, Sharding,
    SingleDeviceSharding, abstract_mesh, create_device_mesh, device_count, devices, is_main_process, local_devices, make_array_from_callback,
    make_array_from_process_local_data, make_mesh, process_count, process_index)
from ._core.errors import (  # noqa: F401
    ArgumentError, AxisNameError, CommError, DisagreementError, DtypeError, Error, FailedJobError, InternalError, IoError, LinAlgError, NanError,
    Preempted, ShapeError, ShardingError, ThreadError, UserError)
from ._core.errors import IndexError, MemoryError, SystemError  # noqa: A004,F401  as they print; not in __all__, since Python has these names
from ._core.errors import IndexError as TesseraIndexError, MemoryError as TesseraMemoryError, SystemError as TesseraSystemError  # noqa: F401
from ._ops import *  # noqa: F401,F403
from ._create import *  # noqa: F401,F403
from ._device import *  # noqa: F401,F403
from ._standard import *  # noqa: F401,F403
from . import _at, _methods, _protocols  # noqa: F401  give Array its methods
from ._methods import gathering  # noqa: F401
from ._reproducible import is_reproducible, reproducible  # noqa: F401
from ._transforms import *  # noqa: F401,F403
from ._custom import *  # noqa: F401,F403
from ._vectorize import *  # noqa: F401,F403
from ._place import *  # noqa: F401,F403
from ._named import Dataset, NamedArray, open_netcdf, open_zarr  # noqa: F401
from . import config, debug, fft, io, lax, linalg, multihost, nn, ops, optim, random, scipy, sharding, signal, sparse, special, stablehlo, stats, tree_util, viz  # noqa: F401
from .debug import CommStats, advise, explain, simulate  # noqa: F401
from .lax import stop_gradient  # noqa: F401
from .nn import one_hot  # noqa: F401
from .tree_util import tree_map  # noqa: F401

tree = tree_util
_sys.modules.update({"tessera.numpy": _sys.modules[__name__], "tessera.tree": tree_util})  # jax.numpy's and jax.tree's names

P = PartitionSpec
auto = PartitionSpec.automatic
checkpoint_policies = _core.checkpoint_policies
ndarray = Array


def local_device_count():
    """1: one process is one device."""
    return 1


def default_backend():
    """"cpu"."""
    return "cpu"


# The standard's constants and dtypes.
from math import e, inf, nan, pi  # noqa: E402,F401
newaxis = None
bool = _core.bool  # noqa: A001
int8, int16, int32, int64 = _core.int8, _core.int16, _core.int32, _core.int64
uint8, uint16, uint32, uint64 = _core.uint8, _core.uint16, _core.uint32, _core.uint64
float32, float64, complex64, complex128 = _core.float32, _core.float64, _core.complex64, _core.complex128
bfloat16, float16 = _core.bfloat16, _core.float16
bool_ = bool
dtype = _core.dtype

__version__ = "0.1.0"
__array_api_version__ = "2024.12"


def _names():
    """What `from tessera import *` takes: not the names of Python's own functions (sum, max, abs, round, pow, ...), which it would hide; tessera.sum has them."""
    import builtins
    from types import ModuleType
    hidden = {"annotations", "tree"}
    return sorted(name for name, value in globals().items()
                  if not name.startswith("_") and not hasattr(builtins, name) and name not in hidden and not (isinstance(value, ModuleType) and not value.__name__.startswith("tessera")))


__all__ = _names()
