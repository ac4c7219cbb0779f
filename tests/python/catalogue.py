#!/usr/bin/env python3
"""catalogue.py MPIEXEC RANKS PROGRAM: each row of tests/catalogue gives the same bits through Python as in C++.

PROGRAM is the catalogue's test program: it writes operands and results; then the JAX cells run on as many processes with
`jnp` as the package.
"""
import base64
import os
import pathlib
import subprocess
import sys
import tempfile
import types

# Rows whose Python function is another composition of ops.
OTHER_BITS = {"associative_scan", "linalg::qr.complete"}
here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "catalogue"))


def arrays_of(path, np):
    found = {}
    for line in path.read_text().split("\n"):
        if line and not line.startswith("#"):
            name, _, dtype, shape, data = line.split("\t")
            kind = np.uint8 if dtype == "bfloat16" else dtype
            found.setdefault(name, []).append(np.frombuffer(base64.b64decode(data), kind).reshape([int(n) for n in shape.split(",") if n]))
    return found


def compare(folder):
    import numpy as np

    import numpy_calls
    import rows
    import tessera as ts

    operands, results = arrays_of(folder / "operands.tsv", np), arrays_of(folder / "results.tsv", np)
    shared = {name: value for name, value in vars(numpy_calls).items() if callable(value)}
    names = {**shared, "ts": ts, "jnp": ts, "jax": types.SimpleNamespace(nn=ts.nn, lax=ts.lax, random=ts.random),
             "jsp": types.SimpleNamespace(special=ts, linalg=ts.linalg, fft=ts.fft), **numpy_calls.base(ts), "k": ts.random.key(7)}

    def flat(value):
        if isinstance(value, (list, tuple)):
            return [leaf for part in value for leaf in flat(part)]
        return [np.asarray(value.data if isinstance(value, type(names["k"])) else value)]

    wrong, seen = [], 0
    for row in rows.rows():
        if row.jax == "-" or "python:no" in row.laws.split() or row.name in OTHER_BITS or row.id not in results:
            continue
        try:
            found = flat(eval(f"[{row.jax}]", dict(names, **{n: ts.array(x) for n, x in zip(rows.OPERANDS, operands.get(row.id, []))})))
        except Exception as error:  # noqa: BLE001: each row is told
            wrong.append(f"{row.table.name}:{row.line}: {row.name}: {type(error).__name__}: {str(error).strip()[:200]}")
            continue
        wanted, seen = results[row.id], seen + 1
        same = len(found) == len(wanted) and all(f.shape == w.shape and f.dtype == w.dtype and f.tobytes() == w.tobytes() for f, w in zip(found, wanted))
        if not same:
            wrong.append(f"{row.table.name}:{row.line}: {row.name}: {[(f.shape, str(f.dtype)) for f in found]}, in C++ {[(w.shape, str(w.dtype)) for w in wanted]}"
                         f"{' (other bits)' if [f.shape for f in found] == [w.shape for w in wanted] else ''}")
    if ts.process_index() == 0:
        print(*wrong, sep="\n")
        print(f"{seen} rows of the catalogue through Python, {len(wrong)} differ")
    return bool(wrong) or seen < 300


def main():
    if sys.argv[1] == "--compare":
        return compare(pathlib.Path(sys.argv[2]))
    mpiexec, ranks, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        written = subprocess.run([mpiexec, "-n", ranks, program, "--gtest_filter=Goldens.operands*"], env=dict(os.environ, WRITE_CATALOGUE=folder), capture_output=True, text=True)
        if written.returncode != 0:
            sys.exit(written.stdout + written.stderr)
        return subprocess.run([mpiexec, "-n", ranks, sys.executable, __file__, "--compare", folder]).returncode


if __name__ == "__main__":
    sys.exit(main())
