"""JAX as this package needs it: on the CPU, with one device for each rank."""
import os

from .. import _core

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402


def _give_devices():
    """JAX's devices stand for the ranks in meshes; JAX itself computes on none of them."""
    try:
        jax.config.update("jax_num_cpu_devices", _core.device_count())
    except (RuntimeError, AttributeError):
        if len(jax.devices()) < _core.device_count():
            raise RuntimeError(f"JAX was started with {len(jax.devices())} devices before tessera.jax was imported, and the job has {_core.device_count()} ranks: "
                               "import tessera.jax first") from None


_give_devices()
