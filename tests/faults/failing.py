#!/usr/bin/env python3
"""failing.py MPIEXEC PROGRAM LIBRARY RANKS [TRIALS]: one MPI call of one rank fails (failing_mpi.cpp), for n over a whole program.
Each job must end in time with one message that names the call and the rank, and its status; nobody else may speak for it."""
import os
import re
import subprocess
import sys

most_s = 25  # a rank that is left alone ends the job after 2 s; the rest is a busy machine


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=most_s, env=os.environ | {"TESSERA_TIMEOUT": "15"})
    except subprocess.TimeoutExpired:
        return None, "hangs"
    return done.returncode, done.stderr


def complaint(status, words, rank):
    if status is None:
        return "hangs"
    if "wrong:" in words:
        return "computes a wrong value"
    if status not in (2, 70):  # 2: MPI did not start
        return f"ends with status {status}"
    if "terminate called" in words:
        return "ends in std::terminate"
    told = re.findall(r"tessera: .*MPI_\w+ failed on", words)
    if len(told) != 1:
        return f"is told {len(told)} times"
    if status == 70 and not re.search(rf"rank {rank}\b", words):
        return f"does not name rank {rank}"
    return ""


def main():
    mpiexec, program, library, ranks = sys.argv[1:5]
    trials = int(sys.argv[5]) if len(sys.argv) > 5 else 8
    start = [mpiexec, "-n", ranks, "-x", f"LD_PRELOAD={library}"]
    work = [program, "plain", "1", "-1"]
    status, words = run(start + ["-x", "TEST_MPI_COUNT=1", "-x", "TEST_MPI_LEAKS=1"] + work)
    counted = re.search(r"any (\d+), (.*)", words)
    if status != 0 or not counted:
        print(f"without a fault: status {status}\n{words}")
        return 1
    total = int(counted.group(1))
    kinds = dict(pair.rsplit(" ", 1) for pair in counted.group(2).split(", "))
    faults = [("any", 1 + (total - 1) * trial // trials + 3 * trial, trial % 2) for trial in range(trials)]
    faults += [(kind, max(1, int(calls) // 2), 1) for kind, calls in sorted(kinds.items())] if trials > 20 else []
    failed = 0
    for kind, n, rank in faults:
        status, words = run(start + ["-x", f"TEST_MPI_FAIL={kind}:{n}:{rank}"] + work)
        if status == 0 and n > total - 5:
            continue  # rank 0 makes fewer calls than rank 1
        wrong = complaint(status, words, rank)
        if wrong:
            failed += 1
            print(f"{kind} call {n} of {total} on rank {rank} of {ranks}: {wrong}\n{words}")
    print(f"{len(faults)} trials, {failed} of them failed")
    return 1 if failed else 0


sys.exit(main())
