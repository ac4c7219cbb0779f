"""run.py FOLDER [pytest's options]: data-apis/array-api-tests, checked out in FOLDER, on every process of the job.

Every process runs the same tests on the same examples, which the seed of --hypothesis-seed draws; the first one reports. tests/python/standard/skips.txt says what
is left out, and why.
"""
import os
import pathlib
import random
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))
import spread  # noqa: E402  starts tessera
import tessera as ts  # noqa: E402


class SameOnAllRanks:
    """Examples that depend on nothing but the test, so that all processes try the same ones: no clock, no stored failures."""

    def pytest_configure(self, config):
        from hypothesis import HealthCheck, Phase, settings
        settings.register_profile("all ranks alike", parent=settings.get_profile("array-api-tests"), derandomize=False, database=None, deadline=None,
                                  suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate, Phase.shrink])
        settings.load_profile("all ranks alike")

    def pytest_runtest_setup(self, item):
        random.seed(item.nodeid)  # of examples that are drawn outside of a test
        spread.test = item.nodeid


def main():
    folder, options = sys.argv[1], sys.argv[2:]
    sys.path.insert(0, folder)
    os.chdir(folder)
    os.environ["ARRAY_API_TESTS_MODULE"] = "exec('import spread; xp = spread.namespace()')"
    if not ts.is_main_process():
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
    import pytest
    pytest.hookimpl(trylast=True)(SameOnAllRanks.pytest_configure)
    tests = [o for o in options if o.startswith("array_api_tests")]
    options = [o for o in options if o not in tests]
    status = pytest.main(["-p", "no:cacheprovider", f"--confcutdir={folder}", *(tests or ["array_api_tests"]), "--disable-deadline", "--skips-file", str(here / "skips.txt"), *options],
                         plugins=[SameOnAllRanks()])
    sys.stdout.flush()
    raise SystemExit(int(status))


main()
