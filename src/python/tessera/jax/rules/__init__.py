"""The rules of JAX's primitives, by family."""
from . import arithmetic, bits, calls, control, convolve, effects, index, keys, mapped, matrices, place, products, reduce, scatter, shapes, special, tokens, window  # noqa: F401
