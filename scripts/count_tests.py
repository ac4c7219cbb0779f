#!/usr/bin/env python3
"""Prints `N passed, M failed` for ctest's JUnit files: test cases where the program is a GoogleTest, whole runs elsewhere.

A skipped test that scripts/allowed_skips.txt does not name counts as failed. A test that a file called junit_again.xml holds as well was run a
second time: the second result counts, and a test that passed only then is named."""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

lines = (pathlib.Path(__file__).parent / "allowed_skips.txt").read_text().splitlines()
allowed = [line.split()[0] for line in lines if line and not line.startswith("#")]
passed = failed = skipped = 0
runs = {}
for path in map(pathlib.Path, sys.argv[1:]):
    for run in ElementTree.parse(path).getroot().iter("testcase"):
        test = path.parent, run.get("name")
        if test in runs and run.get("status") == "run":
            print(f"{run.get('name')} failed, and passed when it was run again alone with the numbers that every tree has: see its first output")
        runs[test] = run
for run in runs.values():
    output = run.findtext("system-out") or ""
    run_passed = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) tests?\.", output))
    run_failed = sum(int(n) for n in re.findall(r"\[  FAILED  \] (\d+) tests?, listed below", output))
    if run.get("status") == "run":
        passed += run_passed or (0 if run_failed else 1)
        failed += run_failed
    elif (run.find("skipped") is not None) and (run.find("skipped").get("message") or "").startswith("SKIP_"):
        if any(re.fullmatch(pattern, run.get("name")) for pattern in allowed):
            skipped += 1
        else:
            print(f"{run.get('name')} was skipped, and is not in scripts/allowed_skips.txt")
            failed += 1
    else:
        passed += run_passed
        failed += run_failed or 1
print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(1 if failed else 0)
