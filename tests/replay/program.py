"""A Python program that check.py records and replays: values go to the file RESULTS.rank, then a factorization fails."""
import hashlib
import os
import sys

import numpy as np
import tessera as ts

results = open(f"{os.environ['RESULTS']}.{ts.process_index()}", "w")


def note(name, x):
    parts = [np.asarray(shard.data).tobytes() for shard in x.addressable_shards]
    print(name, hashlib.sha256(b"".join(parts)).hexdigest(), file=results, flush=True)


mesh = ts.make_mesh((2, 2), ("x", "y"))
x = ts.device_put(ts.random.normal(ts.random.key(7), (31, 45)), ts.NamedSharding(mesh, ts.P("x", "y")))
note("fft", ts.fft.fftn(x))
note("sort", ts.sort(x, axis=0))
note("gradient", ts.grad(lambda v: ts.sum(ts.tanh(v @ v.T)))(x))
print("environment", sys.prefix, file=results, flush=True)
note("take", ts.take(x, ts.asarray([3, 30, 7]), axis=0))
print("median", float(ts.median(x)), file=results, flush=True)
note("cholesky", ts.linalg.cholesky(x @ x.T - 40 * ts.eye(31)))
