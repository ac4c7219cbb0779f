"""What several processes do together outside of arrays. Collective over all processes."""
import numpy as _np

from . import _core
from ._core.multihost import broadcast_one_to_all, process_allgather, sync_global_devices  # noqa: F401


def assert_equal(x):
    """Whether all processes hold the same: ArgumentError, on every process, naming the first one that differs from process 0. NaNs are equal to themselves."""
    host = _np.asarray(x)
    everything = process_allgather(host).reshape((-1,) + host.shape)
    for rank, other in enumerate(everything):
        if not _np.array_equal(everything[0], other, equal_nan=host.dtype.kind in "fc"):
            raise _core.errors.ArgumentError(f"assert_equal at {_core.here()}: process {rank} holds other values than process 0")
