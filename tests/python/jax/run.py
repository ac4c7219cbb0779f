"""The tests of tessera.jax on every process; the first one reports. Exit status 77 where JAX is not installed: skipped."""
import importlib.util
import os
import pathlib
import sys
import unittest

if importlib.util.find_spec("jax") is None:
    print("JAX is not installed")
    raise SystemExit(77)

import tessera as ts  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:] or ["test_jax", "test_primitives", "test_explicit", "test_loops"])
report = sys.stderr if ts.is_main_process() or os.environ.get("TESSERA_TEST_ALL_RANKS") else open(os.devnull, "w")
result = unittest.TextTestRunner(stream=report, verbosity=1).run(suite)
if not suite.countTestCases():
    raise SystemExit("no tests")
if not result.wasSuccessful():
    raise SystemExit(1)
