#!/usr/bin/env python3
"""memory.py MPIEXEC PROGRAM SCENARIO.RANKS [TRIALS]: one rank finds no memory at its n-th allocation, for n over the whole program.
Each job must end in time, with right values, and with status 0 or with one failure that is told and its status."""
import os
import re
import subprocess
import sys

most_s = 25  # a rank that is left alone ends the job after 2 s; the rest is a busy machine


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=most_s, env=os.environ | {"TESSERA_TIMEOUT": "15"})
    except subprocess.TimeoutExpired:
        return None, "", "hangs"
    return done.returncode, done.stdout, done.stderr


def complaint(scenario, status, words):
    if status is None:
        return "hangs"
    if "wrong:" in words:
        return "computes a wrong value"
    if status == 76 and scenario == "stubborn" and "ranks disagree" in words:
        return ""  # who catches a failure and goes on does other things than the others
    if status not in (0, 71):
        return f"ends with status {status}"
    told = len(re.findall(r"MemoryError|out of memory|no memory|cannot allocate", words))
    if status == 71 and not told:
        return "does not say why it ends"
    return ""


def main():
    mpiexec, program, name = sys.argv[1:4]
    trials = int(sys.argv[4]) if len(sys.argv) > 4 else 14
    scenario, ranks = name.split(".")
    start = [mpiexec, "-n", ranks, program, scenario]
    status, counted, words = run(start + ["1", "-1"])
    if status != 0:
        print(f"without a fault: status {status}\n{words}")
        return 1
    total = int(counted)
    failed = 0
    for trial in range(trials):
        n = 1 + (total - 1) * trial // trials + 7 * trial  # 7: not always the same place of a loop
        for rank in ("0", "1") if trial % 2 else ("1",):
            status, _, words = run(start + [rank, str(n)])
            wrong = complaint(scenario, status, words)
            if wrong:
                failed += 1
                print(f"allocation {n} of {total} on rank {rank} of {ranks}: {wrong}\n{words}")
    return 1 if failed else 0


sys.exit(main())
