"""jax.config's settings, as far as they mean something here."""
from . import _core


def update(name, value):
    """Sets jax_threefry_partitionable (how random bits come from keys; alike on all processes) or jax_debug_nans."""
    if name == "jax_threefry_partitionable":
        _core.set_threefry(bool(value))
    elif name == "jax_debug_nans":
        _core.debug.set_nan_check(bool(value))
    else:
        raise AttributeError(f"config: there is no setting {name!r}; there are jax_threefry_partitionable and jax_debug_nans")
