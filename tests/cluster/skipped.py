"""skipped.py JUNIT: says which cluster tests this machine could not run, and why."""
import collections
import re
import sys
import xml.etree.ElementTree

reasons = collections.defaultdict(list)
for case in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    skipped = case.get("status") in ("notrun", "skipped") or case.find("skipped") is not None
    if skipped:
        said = re.search(r"skipped: (.*)", case.findtext("system-out") or "")
        reasons[said.group(1) if said else "its program is not there"].append(case.get("name"))
for reason, names in reasons.items():
    print(f"skipped {len(names)}: {reason}\n  {' '.join(names)}")
if not reasons:
    print("skipped: nothing")
