#!/usr/bin/env python3
"""check.py MPIEXEC PROGRAM TESSERA NAME: records a program on four ranks and replays each rank alone."""
import atexit
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

mpiexec, program, tessera, name = sys.argv[1:5]
ranks = 4
folder = pathlib.Path(tempfile.mkdtemp(prefix="replay-"))
atexit.register(shutil.rmtree, folder, ignore_errors=True)
tape = folder / "tape"


def fail(what):
    print(f"{name}: {what}\nin {folder}")
    sys.exit(1)


def environment(results, **more):
    return {**os.environ, "RESULTS": str(folder / results), **more}


def record(words, **more):
    return subprocess.run([mpiexec, "-n", str(ranks), *words], env=environment("recorded", TESSERA_RECORD=str(tape), **more), capture_output=True, text=True, timeout=100)


def replay(rank, *words):
    return subprocess.run([tessera, "replay", str(tape), "--rank", str(rank), *words], env=environment("replayed"), capture_output=True, text=True, timeout=60)


def results(of, rank):
    path = folder / f"{of}.{rank}"
    return path.read_text() if path.exists() else ""


def same(rank, was_killed):
    recorded, replayed = results("recorded", rank), results("replayed", rank)
    if not recorded or not (replayed.startswith(recorded) if was_killed else recorded == replayed):
        fail(f"rank {rank}: recorded\n{recorded}replayed\n{replayed}")


def remove():
    for file in tape.iterdir():
        file.unlink()
    tape.rmdir()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


# name: the recorded status, {rank: (status of its replay, words that it and the recorded run have)}
failures = {
    "linalg_error": (70, {rank: (70, "LinAlgError: .*cholesky") if rank == 0 else (70, "") for rank in range(ranks)}),
    "own_error": (70, {2: (70, "broken sensor of rank 2")}),
    "abort": (None, {1: (-signal.SIGABRT, "")}),
    "python": (70, {rank: (70, "LinAlgError: .*cholesky at program.py:25" if rank == 0 else "") for rank in range(ranks)}),
    "left_waiting": (70, {rank: (70, "broken sensor of rank 0") for rank in range(ranks)}),
    "left_busy": (70, {rank: (0, "") if rank else (70, "broken sensor of rank 0") for rank in range(ranks)}),
    "early": (76, {3: (76, "")}),
}

if name == "other_program":
    if record([program, "ops"]).returncode != 0:
        fail("the recorded program failed")
    for words, what in ((["ops", "2"], "other values"), (["exchanges"], "recorded is: "), (["sorts"], "recorded is: ")):
        answer = replay(1, "--", program, *words)
        if answer.returncode != 76 or "this program differs from the recorded one" not in answer.stderr or what not in answer.stderr:
            fail(f"{words}: status {answer.returncode}, {answer.stderr}")
    if not re.search(r"It does: all-reduce number \d+ of \d+ bytes among 4 ranks, for sort", answer.stderr):
        fail(f"no call of the program: {answer.stderr}")
    answer = replay(9)
    if answer.returncode != 2 or "the recordings of 4 ranks, 0 to 3" not in answer.stderr:
        fail(f"a rank that is not there: status {answer.returncode}, {answer.stderr}")
    remove()
    sys.exit(0)

if name == "limit":
    run = record([program, "overlapping"], TESSERA_RECORD_LIMIT="200K")
    if run.returncode != 0 or "TESSERA_RECORD_LIMIT" not in run.stderr:
        fail(f"status {run.returncode}, {run.stderr}")
    for rank in range(ranks):
        if (tape / f"rank-{rank}.tape").stat().st_size > 210 * 1024:
            fail(f"rank {rank}: more than the limit")
        answer = replay(rank)
        if answer.returncode != 0 or "was stopped by TESSERA_RECORD_LIMIT" not in answer.stderr:
            fail(f"rank {rank}: status {answer.returncode}, {answer.stderr}")
    remove()
    sys.exit(0)


def python_of_environment():
    """A virtual environment's interpreter, which finds its packages by the path that starts it."""
    place = tempfile.mkdtemp(prefix="replay-venv-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", place], check=True, timeout=60)
    return f"{place}/bin/python"


run = record([python_of_environment(), program] if name == "python" else [program, name])
status, of_ranks = failures.get(name, (0, {rank: (0, "") for rank in range(ranks)}))
if status is not None and run.returncode != status:
    fail(f"status {run.returncode} of the recorded program: {run.stderr}")
for rank in range(ranks):
    answer = replay(rank)
    same(rank, was_killed=(name == "abort" and rank != 1) or (name == "left_busy" and rank != 0))  # perhaps before it had written down its last value
    if rank in of_ranks:
        expected, words = of_ranks[rank]
        if answer.returncode != expected:
            fail(f"rank {rank}: status {answer.returncode}, not {expected}: {answer.stderr}")
        if words and (not re.search(words, run.stderr) or not re.search(words, answer.stderr)):
            fail(f"rank {rank}: no {words!r} in\n{run.stderr}\nor\n{answer.stderr}")
    if "differs from the recorded one" in answer.stderr:
        fail(f"rank {rank}: {answer.stderr}")
    if name == "left_busy" and rank != 0 and "the recording ends here: the rank's job ended while it waited in the " not in answer.stderr:
        fail(f"rank {rank} was ended by the launcher, and reports nothing: {answer.stderr}")
remove()
