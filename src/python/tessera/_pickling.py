"""Pickling of descriptions: functions that create them again, in this job or another one."""
from . import _core


def mesh(ids, sizes, names):
    return _core.mesh_of_ids(ids, sizes, names)


def abstract_mesh(sizes, names):
    return _core.abstract_mesh(sizes, names)


def sharding(mesh, spec):
    return _core.NamedSharding(mesh, spec)


def device(number):
    return _core.device_of_id(number)


def key(data):
    return _core.key_of_data(data)
