"""Programs that move much between hosts, measured beside what explain and simulate predict for them (scripts/judge_hosts).

    mpirun -H h1,h2 python3 host_programs.py ROWS.json ROUNDS
"""
import json
import statistics
import sys
import time

import tessera as ts
from tessera import fft

P = ts.P
mesh = ts.make_mesh((ts.device_count(),), ("x",))
by_rows, by_columns, replicated = (ts.NamedSharding(mesh, spec) for spec in (P("x"), P(None, "x"), P()))
one_each = ts.device_put(ts.zeros((ts.device_count(),)), by_rows)


def normal(shape, sharding, dtype="float32"):
    return ts.device_put(ts.random.normal(ts.random.key(1), shape, dtype=dtype), sharding)


def gradient_step(w, x, y):
    return w - 0.1 * ts.grad(lambda w: ts.mean(ts.square(x @ w - y)))(w)


def programs():
    a = normal((2048, 2048), by_rows)
    yield "rows to columns, 16 MiB", lambda a: ts.device_put(a, by_columns), (a,)
    yield "replicate 4 MiB", lambda a: ts.device_put(a, replicated), (normal((1024, 1024), by_rows),)
    yield "sum over ranks, 4 MiB", lambda a: ts.device_put(ts.sum(a, 0), replicated), (normal((ts.device_count(), 1024, 1024), by_rows),)
    yield "FFT of 2048 x 2048", fft.fft2, (normal((2048, 2048), by_rows, "complex64"),)
    yield "FFT of a line of 2^21", fft.fft, (normal((1 << 21,), by_rows, "complex64"),)
    yield "product of rows by rows, float64", lambda a, b: a @ b, (normal((1024, 1024), by_rows, "float64"), normal((1024, 1024), by_rows, "float64"))
    yield "gradient step", gradient_step, (normal((512, 512), replicated), normal((1024, 512), by_rows), normal((1024, 512), by_rows))


def barrier():
    float(ts.sum(one_each))


def seconds(run):
    barrier()
    start = time.perf_counter()
    run()
    barrier()
    return time.perf_counter() - start


rounds, rows = int(sys.argv[2]), []
for name, f, arrays in programs():
    jitted = ts.jit(f)
    for _ in range(2):
        jitted(*arrays).block_until_ready()
    taken = [seconds(lambda: jitted(*arrays).block_until_ready()) for _ in range(rounds)]
    idle = [seconds(lambda: None) for _ in range(rounds)]
    rows.append({"name": name, "measured_s": statistics.median(taken) - statistics.median(idle), "explain_s": ts.explain(f, *arrays).predicted_seconds,
                 "simulate_s": ts.simulate(f, *arrays).seconds})
if ts.process_index() == 0:
    with open(sys.argv[1], "w") as file:
        json.dump(rows, file)
