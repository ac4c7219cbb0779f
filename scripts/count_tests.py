#!/usr/bin/env python3
"""Prints `N passed, M failed` for ctest's JUnit files: test cases where the program is a GoogleTest, whole runs elsewhere."""
import re
import sys
import xml.etree.ElementTree as ElementTree

passed = failed = skipped = 0
for run in (case for path in sys.argv[1:] for case in ElementTree.parse(path).getroot().iter("testcase")):
    output = run.findtext("system-out") or ""
    run_passed = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) tests?\.", output))
    run_failed = sum(int(n) for n in re.findall(r"\[  FAILED  \] (\d+) tests?, listed below", output))
    if run.get("status") == "run":
        passed += run_passed or (0 if run_failed else 1)
        failed += run_failed
    elif (run.find("skipped") is not None) and (run.find("skipped").get("message") or "").startswith("SKIP_"):
        skipped += 1
    else:
        passed += run_passed
        failed += run_failed or 1
print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(1 if failed else 0)
