"""extra.py FOLDER [pytest's options]: array-api-extra's own tests, checked out in FOLDER, with tessera as the backend, on every process of the job.

At several processes every array that a test makes lies on a layout drawn at random, and all of them run the same tests together.
tests/python/clients/extra.txt says what fails, and why.
"""
import enum
import os
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here.parent / "standard")]
import spread  # noqa: E402  starts tessera
import tessera as ts  # noqa: E402


def backends_with_tessera():
    """The project's list of backends, with one more."""
    from array_api_extra._lib import _backends
    known = _backends.Backend
    made = enum.Enum("Backend", {"TESSERA": "tessera", **{b.name: b.value for b in known}}, module=known.__module__, type=None)
    for name in ("modname", "like", "pytest_param"):
        setattr(made, name, vars(known)[name])
    _backends.Backend = made


def draw_alike():
    """Tests that draw numbers without a seed draw the same ones on every rank."""
    import numpy
    generator = numpy.random.default_rng
    numpy.random.default_rng = lambda seed=None: generator(0 if seed is None else seed)


def compare_gathered_arrays():
    """The project's assertions convert to NumPy what they compare: the only place where a split array is gathered."""
    from array_api_extra.testing import _testing
    convert = _testing._as_numpy_array

    def as_numpy_array(array, *, xp):
        with ts.gathering():
            return convert(array, xp=xp)
    _testing._as_numpy_array = as_numpy_array


class Knowing:
    """What is in the list of failures is expected to fail; a test in it that passes is a failure, so that the list stays short."""

    def __init__(self):
        lines = (here / "extra.txt").read_text().split("\n")
        own = [line.removeprefix("split: ") for line in lines if ts.device_count() > 1 or not line.startswith("split: ")]
        self.known = [line for line in own if line and not line.startswith("#")]

    def pytest_collection_modifyitems(self, config, items):
        import pytest
        kept = [i for i in items if "tessera" in i.name]
        config.hook.pytest_deselected(items=[i for i in items if i not in kept])
        items[:] = kept
        for item in items:
            if any(item.nodeid.endswith(name) or ("[" not in name and item.nodeid.split("[")[0].endswith(name)) for name in self.known):
                item.add_marker(pytest.mark.xfail(strict=True))

    def pytest_runtest_setup(self, item):
        spread.test = item.nodeid


def main():
    folder, options = pathlib.Path(sys.argv[1]), sys.argv[2:]
    sys.path[:0] = [str(folder / "src"), str(folder)]
    os.chdir(folder)
    backends_with_tessera()
    if ts.device_count() > 1:
        names = spread.namespace()
        ts.Array.__array_namespace__ = lambda self, /, *, api_version=None: names
        compare_gathered_arrays()
        draw_alike()
    if not ts.is_main_process():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import pytest
    tests = [o for o in options if o.startswith("tests")] or ["tests/main"]
    options = [o for o in options if not o.startswith("tests")]
    status = pytest.main(["-p", "no:cacheprovider", "-p", "no:randomly", "-q", "--tb=short", "-W", "error::DeprecationWarning", f"--rootdir={folder}", "-c", os.devnull, *tests, *options], plugins=[Knowing()])
    sys.stdout.flush()
    raise SystemExit(int(status))


main()
