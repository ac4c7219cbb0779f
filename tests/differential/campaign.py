#!/usr/bin/env python3
"""campaign.py MPIEXEC [COUNT]: COUNT new random programs (TESSERA_TEST_PROGRAMS) against NumPy on 1, 2 and 3 ranks, with one and two threads.

The first number is today's date and time, so that every run tries others; TESSERA_TEST_FIRST takes a number that a run has printed. A job that
dies is named by the program that it was in, and the others go on behind it. Status 1 if any program differed, died or did not end.
"""
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
CONFIGURATIONS = [  # ranks, settings, share of the programs
    (1, {}, 0.2), (2, {"TESSERA_TEST_STREAMED": "1"}, 0.1), (2, {}, 0.15), (3, {}, 0.15), (1, {"TESSERA_THREADS": "2"}, 0.1),
    (2, {"TESSERA_THREADS": "2", "TESSERA_MATH": "precise"}, 0.1),
    # what large arrays alone would take: streams, threads, reads without messages (base/thresholds.hpp)
    (1, {"TESSERA_TEST_THRESHOLDS": "1000", "TESSERA_THREADS": "2"}, 0.1), (3, {"TESSERA_TEST_THRESHOLDS": "500"}, 0.1)]  # beyond, sums of 32 MiB go in pieces of 64 bytes: minutes
LIMIT_S = 120  # without a new program


def job_of(mpiexec, ranks, words, first, count, progress):
    """Ends with how the job ended: None, or what is wrong with it."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": words.get("TESSERA_THREADS", "1"), "TESSERA_TEST_FOLDER": str(progress.parent), **words}
    launch = [mpiexec, "-n", str(ranks)] if ranks > 1 else []
    job = subprocess.Popen([*launch, sys.executable, str(here / "programs.py"), str(first), str(count), str(progress)],
                           env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while True:
        reached = progress.read_text() if progress.exists() else ""
        try:
            text, _ = job.communicate(timeout=LIMIT_S)
            return None if job.returncode == 0 else f"status {job.returncode}\n{text[-4000:]}"
        except subprocess.TimeoutExpired:
            if (progress.read_text() if progress.exists() else "") == reached:
                job.kill()
                text, _ = job.communicate()
                return f"no program ended within {LIMIT_S} s\n{text[-4000:]}"


def run(mpiexec, ranks, words, first, count, folder):
    """How many programs failed; each is told with the words that run it again."""
    failures, end = 0, first + count
    progress = folder / f"progress-{ranks}"
    while first < end:
        progress.unlink(missing_ok=True)
        wrong = job_of(mpiexec, ranks, words, first, end - first, progress)
        if wrong is None:
            break
        number = int(progress.read_text()) if progress.exists() and progress.read_text() else first
        settings = "".join(f"{name}={value} " for name, value in words.items())
        print(f"FAILED program {number}: {settings}mpirun -n {ranks} python3 tests/differential/programs.py {number} 1 /tmp/progress\n{wrong}", flush=True)
        failures, first = failures + 1, number + 1
        if failures == 20:
            print("20 programs failed: the others are not tried", flush=True)
            break
    return failures


def main():
    mpiexec = sys.argv[1]
    count = int(os.environ.get("TESSERA_TEST_PROGRAMS") or (sys.argv[2] if len(sys.argv) > 2 else 100))
    first = int(os.environ.get("TESSERA_TEST_FIRST") or datetime.datetime.now().strftime("%Y%m%d%H%M") + "000000")
    print(f"{count} programs from TESSERA_TEST_FIRST={first}", flush=True)
    failures = done = 0
    with tempfile.TemporaryDirectory() as folder:
        for ranks, words, share in CONFIGURATIONS:
            programs = max(1, round(count * share))
            failures += run(mpiexec, ranks, words, first + done, programs, pathlib.Path(folder))
            done += programs
    print(f"{done} programs, {failures} failed")
    sys.exit(1 if failures else 0)


main()
