"""Convolution in JAX's own form: lax's."""
from ..._convolutions import conv_general_dilated
from .._interpret import rule

rule("conv_general_dilated")(conv_general_dilated)
