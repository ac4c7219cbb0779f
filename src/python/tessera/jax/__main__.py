"""Runs an unchanged program of JAX on all ranks: tessera run -n 8 -m tessera.jax program.py arguments."""
import sys

from .runner import main

main(sys.argv[1:])
