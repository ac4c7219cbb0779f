#!/usr/bin/env python3
"""same_bits.py: random programs in ts.reproducible() on several rank counts and layouts, compared to the last bit.

    same_bits.py campaign MPIRUN COUNT      runs COUNT new programs on 1, 2 (with two threads), 3, 5, 6, 7 and 8 ranks and compares the
                                            hashes of all results
    same_bits.py hashes FIRST COUNT FILE    what each rank of such a run does; rank 0 writes a line per program

The program is a function of its number alone, the layouts of its number and the rank count. TESSERA_TEST_PROGRAMS=1000 runs as many. PLANT=sum
makes one reduction ignore the scope, which the campaign must find: it does so first, and fails where it does not.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

RANKS = (1, 2, 3, 5, 6, 7, 8)


def hashes(first, count, file):
    import numpy as np

    import tessera as ts

    import expressions
    import steps
    import wide_steps

    class Program(expressions.Builder):
        """Layouts come from a generator of their own."""

        def __init__(self, number):
            super().__init__(number)
            self.layouts = np.random.default_rng([number, ts.device_count()])

        def sharding(self, ndim):
            self.draw, kept = self.layouts, self.draw
            try:
                return super().sharding(ndim)
            finally:
                self.draw = kept

    def resharded(b, x):
        """A new value in any case, or programs of other layouts would go on otherwise."""
        sharding = b.sharding(x.host.ndim)
        array = x.array if sharding is None else ts.device_put(x.array, sharding)
        return b.result(f"device_put({x.name}, {sharding and sharding.spec})", array, x.host, [x])

    wide_steps.STEPS[:] = []  # the scope refuses some of them
    steps.STEPS[:] = [resharded if step is steps.resharded else step for step in steps.STEPS]
    if os.environ.get("PLANT") == "sum":
        def ignoring(*args, **kwargs):
            with ts.reproducible(False):
                return ts.sum(*args, **kwargs)
        steps.REDUCTIONS["sum"] = (ignoring, np.sum)
        steps.STEPS += [steps.reduced] * 30  # few programs sum many floats along a split dim

    lines = []
    for number in range(first, first + count):
        program, found = Program(number), []
        try:
            with ts.reproducible():
                for name, value, _, _ in program.results():
                    value = np.ascontiguousarray(value)
                    found.append([name, str(value.dtype), list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()[:16]])
        except Exception as error:
            found.append(["raised", type(error).__name__, str(error)[:2000]])
        lines.append(json.dumps({"number": number, "results": found, "text": program.text()}))
        if ts.is_main_process():
            pathlib.Path(file).write_text("\n".join(lines) + "\n")


def run(mpirun, ranks, first, count, folder, plant=""):
    file = pathlib.Path(folder) / f"{ranks}{plant}"
    done = subprocess.run([mpirun, "-n", str(ranks), sys.executable, __file__, "hashes", str(first), str(count), str(file)],
                          env={**os.environ, "PLANT": plant, "TESSERA_THREADS": "2" if ranks == 2 else "1"}, capture_output=True, text=True, timeout=20 + 60 * count)
    if done.returncode != 0:
        sys.exit(f"{ranks} ranks ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return [json.loads(line) for line in file.read_text().splitlines()]


def differences(alone, others, ranks):
    """Programs whose results differ, or that raised anything on some rank count."""
    found = []
    for a, b in zip(alone, others, strict=True):
        if a["results"] != b["results"] or any(r[0] == "raised" for r in a["results"]):
            pairs = [(x, y) for x, y in zip(a["results"], b["results"]) if x != y or x[0] == "raised"]
            found.append(f"program {a['number']} on {ranks} ranks: {pairs[:3]}\n{b['text']}")
    return found


def campaign(mpirun, count):
    first = int(time.strftime("%Y%m%d%H%M%S")) * 10_000
    print(f"{count} programs from {first} on {RANKS} ranks", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        planted = differences(run(mpirun, 1, 7, 60, folder, "sum"), run(mpirun, 3, 7, 60, folder, "sum"), 3)
        if not planted:
            sys.exit("a sum that ignores the scope was not found")
        print(f"a sum that ignores the scope shows in {len(planted)} of 60 programs")
        wrong, at_once = [], 50
        for start in range(first, first + count, at_once):
            some = min(at_once, first + count - start)
            alone = run(mpirun, 1, start, some, folder)
            for ranks in RANKS[1:]:
                wrong += differences(alone, run(mpirun, ranks, start, some, folder), ranks)
            print(f"{start - first + some} programs, {len(wrong)} differences", flush=True)
            if len(wrong) > 5:
                break
    if wrong:
        sys.exit("\n\n".join(wrong[:5]))


if sys.argv[1] == "campaign":
    campaign(sys.argv[2], int(os.environ.get("TESSERA_TEST_PROGRAMS", sys.argv[3])))
else:
    hashes(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
