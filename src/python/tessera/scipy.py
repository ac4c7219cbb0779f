"""jax.scipy's modules under their names there: from tessera.scipy.special import expit."""
import sys

from . import fft, linalg, signal, special, stats

sys.modules.update({f"{__name__}.{room.__name__.rpartition('.')[2]}": room for room in (fft, linalg, signal, special, stats)})
