"""Files: every rank reads and writes only its own blocks. Collective over all ranks."""
from . import _core
from ._core.io import *  # noqa: F401,F403

checkpoint = _core.checkpoint
