"""Exchange of host data between processes. Collective over all processes."""
from ._core.multihost import *  # noqa: F401,F403
