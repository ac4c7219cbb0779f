"""A program of several processes, by jax.experimental.multihost_utils. unchanged.py runs it by JAX's processes, which have an address and a number, and by ranks."""
import os

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

if "JAX_PROCESS" in os.environ:
    jax.distributed.initialize(os.environ["JAX_ADDRESS"], int(os.environ["JAX_PROCESSES"]), int(os.environ["JAX_PROCESS"]))
else:
    jax.distributed.initialize()
count, number = jax.process_count(), jax.process_index()
mesh = Mesh(np.array(jax.devices()), ("x",))
lines = []


def tell(name, function, *arguments, **options):
    """Every process calls it; the last one prints: its own values are not the first one's."""
    try:
        found = function(*arguments, **options)
    except (AssertionError, ValueError) as error:
        found = type(error).__name__, str(error)
    lines.append(f"{name} {found}")


mine = {"a": np.full((2, 3), number + 1.0), "b": np.arange(4.0)}
for tiled in (False, True):
    tell("gathered", multihost_utils.process_allgather, {"row": np.array([number, number * 10]), "scalar": number}, tiled=tiled)
tell("of the first", multihost_utils.broadcast_one_to_all, {"a": np.array([number + 5.0, 2]), "n": np.int32(number)})
tell("of the last", multihost_utils.broadcast_one_to_all, np.array([number + 5.0]), is_source=number == count - 1)
tell("equal", multihost_utils.assert_equal, mine["b"])
tell("not equal", multihost_utils.assert_equal, mine, "they differ")
tell("together", multihost_utils.sync_global_devices, "here")
whole = multihost_utils.host_local_array_to_global_array(mine, mesh, {"a": P("x"), "b": P()})
tell("global", lambda: jax.tree.map(lambda x: (x.shape, x.sharding.spec, float(x.sum())), whole))
tell("local", lambda: jax.tree.map(np.asarray, multihost_utils.global_array_to_host_local_array(whole, mesh, {"a": P("x"), "b": P()})))
tell("one spec", lambda: jax.tree.map(lambda x: x.shape, multihost_utils.host_local_array_to_global_array([mine["a"], mine["a"]], mesh, P("x", None))))
tell("whole", multihost_utils.process_allgather, whole["a"], tiled=True)
tell("whole", multihost_utils.process_allgather, whole["a"])
made = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), mine["a"])
tell("norm", lambda: float(jax.jit(lambda x: (x ** 2).sum())(made)))
if number == count - 1:
    print(*lines, sep="\n", flush=True)
