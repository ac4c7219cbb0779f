"""run.py test_x.py ...: the tests of these files on every process of the job; the first one reports."""
import os
import pathlib
import sys
import unittest

import tessera as ts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
suite = unittest.defaultTestLoader.loadTestsFromNames([pathlib.Path(name).stem for name in sys.argv[1:]])
report = sys.stderr if ts.is_main_process() or os.environ.get("TESSERA_TEST_ALL_RANKS") else open(os.devnull, "w")
result = unittest.TextTestRunner(stream=report, verbosity=1).run(suite)
if not suite.countTestCases():
    raise SystemExit("no tests")
if not result.wasSuccessful():
    raise SystemExit(1)
