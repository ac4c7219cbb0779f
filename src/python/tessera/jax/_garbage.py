"""Python's collection of cycles, at the same op on every rank.

A cycle of objects may hold an array that is not computed yet. Python collects cycles when enough objects were made, which prints, paths
and times make differ between ranks: then one rank still holds an array that the others have dropped, and the ranks disagree on what
comes next. In a program that the runner runs, collections happen by the count of ops and calls instead, which is alike.
"""
import gc

_counts = {"passed": 0, "is_on": False}
_young, _all = 256, 8192  # ops between collections of young objects, and of all


def collect_by_count():
    """From now on: Python's own collections are off."""
    gc.collect()
    gc.freeze()  # what was imported stays
    gc.disable()
    _counts["is_on"] = True


def passed():
    """One more op or call."""
    n = _counts["passed"] = _counts["passed"] + 1
    if n % _young == 0 and _counts["is_on"]:
        gc.collect(2 if n % _all == 0 else 1)
