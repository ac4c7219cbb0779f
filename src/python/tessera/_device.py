"""The standard's devices: one value for all arrays of a job, whatever their shape and layout."""
from . import _core
from ._core import Array

__all__ = ["all_devices"]


class AllDevices:
    """All devices of the job together: the device of every array that is not on a single device.

    x.device is this value for arrays of any shape and sharding, and device= takes it back: asarray(0., device=x.device). An array created with it is uncommitted,
    so that it follows the layout of what it is used with. x.sharding says how an array is split. In a job of one device it equals that device.
    """

    platform = "cpu"

    def __repr__(self):
        return "AllDevices()"

    def __eq__(self, other):
        return isinstance(other, AllDevices) or (_core.device_count() == 1 and isinstance(other, _core.Device))

    def __hash__(self):
        return hash(_core.devices()[0]) if _core.device_count() == 1 else hash(AllDevices)

    def __reduce__(self):
        return (AllDevices, ())


_all = AllDevices()


def all_devices():
    """The devices of the job as one value, as x.device returns it and device= takes it."""
    return _all


def device_of(x):
    """The device that holds x if it is only one of several; otherwise all devices."""
    if not x.committed or _core.process_count() == 1:
        return _all
    devices = x.devices()
    return next(iter(devices)) if len(devices) == 1 else _all


def placed(x, device):
    """x on the device of device=: None and all devices change nothing, unless x is on a single one of several devices."""
    if device is None:
        return x
    if not isinstance(device, AllDevices):
        return _core.device_put_leaf(x, device)
    if device_of(x) == device:
        return x
    everywhere = _core.NamedSharding(_core.make_mesh((_core.device_count(),), ("all",)), _core.PartitionSpec())
    return _core.device_put_leaf(x, everywhere)


Array.device = property(device_of, doc="all_devices(), or the one device of several that holds the array alone. See sharding for its layout.")
