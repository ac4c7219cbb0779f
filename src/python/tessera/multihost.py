"""What several processes do together outside of arrays. Collective over all processes."""
from ._core.multihost import *  # noqa: F401,F403
