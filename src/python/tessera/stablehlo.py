"""Programs in StableHLO text, as jax.jit(f).lower(...).as_text() and jax.export give them: run without JAX."""
from ._core.stablehlo import LoadedProgram, LoadedValue, load, parse  # noqa: F401

__all__ = ["LoadedProgram", "LoadedValue", "load", "parse"]
