#!/usr/bin/env python3
"""against_zarr_python.py MUTANTS: what zarr-python 3 says of the metadata that fuzz_test wrote (TESSERA_TEST_MUTANTS=MUTANTS).

What it refuses must be refused by tessera, and what both read must be the same. tessera may refuse more: other data types, codecs and filters, and what zarr-python
takes loosely (numbers as texts, true as 1). Prints the counts and each disagreement; exit status 1 if there is one."""
import json
import math
import pathlib
import sys
import warnings

import numpy as np
from zarr.core.metadata.v2 import ArrayV2Metadata
from zarr.core.metadata.v3 import ArrayV3Metadata

warnings.simplefilter("ignore")


def fill_of(value):
    if value is None:
        return None
    if isinstance(value, (complex, np.complexfloating)):
        return [fill_of(float(value.real)), fill_of(float(value.imag))]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    value = float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value == math.inf else "-Infinity" if value == -math.inf else value


def of_zarr_python(version, text):
    """What it reads, as tessera writes it down; None where it refuses."""
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            return None
        read = (ArrayV3Metadata if version == 3 else ArrayV2Metadata).from_dict(document)
        dtype = read.dtype.to_native_dtype()
        dims = (read.dimension_names or ()) if version == 3 else ()
        chunks = read.chunk_grid.chunk_shape
        codecs = [type(codec).__name__.removesuffix("Codec").lower() for codec in read.codecs] if version == 3 else None
        return {"shape": list(read.shape), "chunks": [max(n, 1) for n in chunks], "dtype": dtype.name, "dims": [dim or "" for dim in dims], "codecs": codecs,
                "key": read.encode_chunk_key((1,) * len(read.shape)), "attributes": dict(read.attributes), "fill": fill_of(read.fill_value)}
    except Exception:
        return None


def same(ours, theirs):
    theirs = dict(theirs)
    if theirs["codecs"] is None:  # version 2 has one compressor, and an order
        ours, theirs = {k: v for k, v in ours.items() if k not in ("codecs", "attributes")}, {k: v for k, v in theirs.items() if k not in ("codecs", "attributes")}
    else:
        ours = ours | {"codecs": [name.removesuffix("_indexed") for name in ours["codecs"]]}
    return json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True) or numbers(ours) == numbers(theirs)


def numbers(value):
    """1 and 1.0 are one number, NaN is itself."""
    if isinstance(value, dict):
        return {key: numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [numbers(part) for part in value]
    if isinstance(value, float) and math.isnan(value):
        return "a number that is none"
    return value


def main():
    data = pathlib.Path(sys.argv[1]).read_bytes()
    counts = {"both read": 0, "both refuse": 0, "tessera alone refuses": 0, "zarr-python alone refuses": 0, "read differently": 0}
    at = 0
    while at < len(data):
        line = data.index(b"\n", at)
        version, length, verdict = data[at:line].split(b" ", 2)
        text = data[line + 1:line + 1 + int(length)]
        at = line + 2 + int(length)
        ours, theirs = json.loads(verdict), of_zarr_python(int(version), text)
        word = "both refuse"
        if ours is not None:
            word = "zarr-python alone refuses" if theirs is None else "both read" if same(ours, theirs) else "read differently"
        elif theirs is not None:
            word = "tessera alone refuses"
        counts[word] += 1
        if word in ("zarr-python alone refuses", "read differently") and counts[word] <= 20:
            print(word, text, ours, theirs, sep="\n  ")
    print(counts)
    return 1 if counts["zarr-python alone refuses"] or counts["read differently"] else 0


if __name__ == "__main__":
    sys.exit(main())
