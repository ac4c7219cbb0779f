#!/usr/bin/env python3
"""programs.py FIRST COUNT PROGRESS: random programs of tessera beside the same programs of NumPy, on every rank count.

All ranks build program number FIRST, FIRST + 1, … from its number alone, run it by tessera on random layouts, and compare with NumPy's value
of the same expression, computed in the dtype that tessera gives to each result. PROGRESS is a file that names the program under way: a process
that dies has told by then which one it was. A difference prints the program as Python and ends with status 1.
"""
import os
import sys

import numpy as np

import tessera as ts
from expressions import Builder, Mismatch

if "TESSERA_TEST_STREAMED" in os.environ:
    from streamed import Streamed as Program
else:
    Program = Builder

ROUNDING = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 3e-4, "float64": 1e-9, "complex64": 3e-4, "complex128": 1e-9}


def tolerance_of(dtypes):
    """The coarsest rounding that a value went through decides."""
    return max((ROUNDING.get(name, 0.0) for name in dtypes), default=0.0)


def compare(name, found, expected, rounding):
    """Values of one result; integers and bools to the last bit."""
    found = np.asarray(found)
    if found.shape != expected.shape:
        raise Mismatch(f"{name}: shape {found.shape} is not {expected.shape}")
    if found.dtype.kind in "biu" and rounding == 0.0:
        wrong = found != expected.astype(found.dtype)
    else:
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        left, right = found.astype(wide), expected.astype(wide)
        finite = np.abs(right[np.isfinite(right)])
        scale = 1.0 + (np.max(finite) if finite.size else 0.0)
        with np.errstate(invalid="ignore"):
            wrong = ~((left == right) | (np.abs(left - right) <= rounding * scale))
        wrong &= np.isfinite(right)  # behind an overflow NumPy and tessera may differ in what is infinite and what NaN
        if rounding == ROUNDING["float16"]:  # near its largest number, rounding decides between a number and infinity
            wrong &= ~((np.abs(left) > 6e4) & (np.abs(right) > 6e4))
    if np.any(wrong):
        at = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0])
        raise Mismatch(f"{name}: {int(np.sum(wrong))} of {found.size} elements differ, the first at {at}: "
                       f"{np.atleast_1d(found)[at]!r}, NumPy has {np.atleast_1d(expected)[at]!r}")


def run_program(number):
    """Builds and runs one program; raises Mismatch with its text."""
    builder = Program(number)
    try:
        for name, found, expected, dtypes in builder.results():
            compare(name, found, expected, tolerance_of(dtypes))
    except Exception as error:
        raise Mismatch(f"program {number} on {ts.device_count()} ranks: {type(error).__name__}: {error}\n{builder.text()}") from error


def main():
    first, count = int(sys.argv[1]), int(sys.argv[2])
    # Overwritten, not truncated: on some file systems that would wait for the disk at each program, and a reader would find it empty.
    progress = open(sys.argv[3], "w") if ts.is_main_process() else None
    for number in range(first, first + count):
        if progress:
            progress.seek(0)
            progress.write(f"{number:020}")
            progress.flush()
        try:
            run_program(number)
        except Mismatch as mismatch:
            if ts.is_main_process():
                print(mismatch, flush=True)
            sys.exit(1)
    Program.check_all(count)


main()
