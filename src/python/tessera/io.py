"""Files: every rank reads and writes only its own blocks. Collective over all ranks."""
from . import _core
from ._core.io import *  # noqa: F401,F403

checkpoint = _core.checkpoint


def load_safetensors(path, tensor=None, sharding=None):
    """Tensors of a .safetensors file: the one of that name, or without a name a dict of all, by name.

    With a sharding the arrays are committed to it, and each rank reads its own blocks; without one they are uncommitted, and every
    rank reads all of them. Collective. IoError: no such file or tensor, or the file is damaged.
    """
    place = () if sharding is None else (sharding,)
    if tensor is not None:
        return _core.io.load_safetensors(path, tensor, *place)
    return {name: _core.io.load_safetensors(path, name, *place) for name in sorted(_core.io.safetensors_info(path))}
