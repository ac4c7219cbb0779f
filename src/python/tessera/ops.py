"""jax.ops's names: reductions of segments."""
from ._segments import segment_max, segment_min, segment_prod, segment_sum  # noqa: F401
