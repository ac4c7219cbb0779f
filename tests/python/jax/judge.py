"""JAX's own op tests: judge.py FOLDER_OF_TESTS [module ...] [--count 40 | --share 0.05] [--unchanged] [--reasons FILE] [--times].

Each test compiles what it checks by tj.jit instead of jax.jit: the values that JAX's tests compare with NumPy's, and with JAX's own
without jit, are tessera's then. With --unchanged the runner stands behind jax, as in `tessera run -m tessera.jax`: jax.jit and all that
runs outside of it. Of a file's tests a fixed sample is drawn, by their names. Exit status 1 where a test fails that the list of reasons
(reasons.txt: a pattern of names, then why) does not have.
"""
import argparse
import collections
import fnmatch
import hashlib
import importlib.util
import os
import pathlib
import random
import sys
import time
import traceback
import unittest

os.environ.setdefault("JAX_NUM_GENERATED_CASES", "2")  # read by what is imported next

import tessera as ts  # noqa: E402
import tessera.jax as tj  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax._src import test_util as jtu  # noqa: E402
from tessera.jax import _eager  # noqa: E402
from tessera.jax._sharded import ShardedArray  # noqa: E402

modules = ("lax_test", "lax_numpy_test", "lax_numpy_operators_test", "lax_numpy_reducers_test", "lax_numpy_indexing_test", "lax_numpy_einsum_test", "lax_numpy_setops_test",
           "lax_numpy_ufuncs_test", "lax_numpy_vectorize_test", "lax_scipy_test", "lax_scipy_special_functions_test", "lax_scipy_sparse_test", "lax_control_flow_test", "linalg_test",
           "fft_test", "scipy_fft_test", "random_test", "random_lax_test", "nn_test", "lax_vmap_op_test", "lax_vmap_test", "lax_autodiff_test", "scipy_stats_test",
           "scipy_signal_test", "scipy_ndimage_test", "scipy_interpolate_test", "scipy_spatial_test", "scipy_optimize_test", "image_test", "svd_test", "eigh_test", "ann_test",
           "custom_linear_solve_test", "polynomial_test", "sparse_bcoo_bcsr_test", "ode_test", "lobpcg_test")
# Files whose tests call jax.jit and the like themselves: only the runner stands behind those.
modules_of_the_runner = ("jet_test", "stax_test", "optimizers_test", "custom_root_test", "cholesky_update_test", "experimental_rnn_test", "batching_test", "sparsify_test",
                         "generated_fun_test", "random_impl_test", "qdwh_test", "scaled_dot_test", "checkify_test", "tree_util_test", "custom_api_test", "api_test", "python_callback_test",
                         "array_test", "layout_test", "linalg_sharding_test", "multi_device_test", "pjit_test", "pmap_test", "shard_alike_test", "shard_map_test")


def whole(tree):
    """tessera's arrays as NumPy's: collective, as every rank runs the same test."""
    return jax.tree_util.tree_map(lambda x: ts.device_get(x) if isinstance(x, ts.Array) else x, tree)


def jitted(function, **options):
    called = tj.jit(function, **options)
    return lambda *args, **kwargs: whole(called(*args, **kwargs))


def by_op(function):
    """Without jit: every primitive is an op of tessera."""
    def call(*args, **kwargs):
        _eager.take_all()
        try:
            return jax.tree_util.tree_map(lambda x: np.asarray(x) if isinstance(x, ShardedArray) else x, function(*args, **kwargs))
        finally:
            _eager.take_all(False)
    return call


def jitted_or_by_op(function):
    """What JAX itself cannot trace, since it depends on values, runs without jit."""
    def call(*args, **kwargs):
        try:
            return jitted(function)(*args, **kwargs)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError, TypeError, ValueError):
            return by_op(function)(*args, **kwargs)
    return call


def patch():
    case = jtu.JaxTestCase
    against_numpy, _, = case._CheckAgainstNumpy, case._CompileAndCheck

    def check_against_numpy(self, numpy_fun, lax_fun, args_maker, *args, **kwargs):
        if type(lax_fun) is type(np.sum) or isinstance(getattr(lax_fun, "__self__", lax_fun), np.ufunc):  # some tests name the two the other way round, and jax.jit of NumPy's ends the process
            numpy_fun, lax_fun = lax_fun, numpy_fun
        return against_numpy(self, numpy_fun, jitted_or_by_op(lax_fun), args_maker, *args, **kwargs)

    def compile_and_check(self, fun, args_maker, *, check_dtypes=True, tol=None, rtol=None, atol=None, check_cache_misses=True):
        arguments = args_maker()
        plain = fun(*arguments)
        ours = jitted(fun)(*arguments)
        self.assertAllClose(plain, ours, check_dtypes=check_dtypes, atol=atol or tol, rtol=rtol or tol)

    case._CheckAgainstNumpy, case._CompileAndCheck = check_against_numpy, compile_and_check


def tests_of(folder, name):
    path = os.path.join(folder, name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = []
    for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
        found += list(suite)
    return found


def name_of(test):
    """Without its parameters, which print addresses."""
    return f"{type(test).__module__}.{type(test).__name__}.{test._testMethodName}"


def chosen_of(tests, options):
    """A sample that depends on the tests' names alone: the same on every rank, and in each version that has them."""
    tests = [t for t in tests if options.only in name_of(t)]
    if options.only:
        return tests
    tests.sort(key=lambda t: hashlib.sha256(f"{options.seed} {name_of(t)}".encode()).digest())
    return tests[:max(options.count, int(len(tests) * options.share))]


def reasons_of(path):
    """[(pattern of names, reason)]: one a line, comments begin with #."""
    lines = [line.split(None, 1) for line in pathlib.Path(path).read_text().splitlines()] if path else []
    return [(pattern, reason.strip()) for pattern, reason in (line for line in lines if len(line) == 2 and not line[0].startswith("#"))]


class Judge:
    """Counts, and failures by kind."""

    def __init__(self, options):
        self.options, self.known = options, reasons_of(options.reasons)
        self.counts, self.kinds, self.told, self.unknown = collections.Counter(), collections.Counter(), {}, 0
        self.needed = {pattern: [0, 0] for pattern, _ in self.known}  # how many tests of a reason ran, and failed
        self.speaks = ts.is_main_process()

    def say(self, text):
        if self.speaks:
            sys.__stdout__.write(text + "\n")
            sys.__stdout__.flush()

    def run_module(self, name):
        try:
            tests = chosen_of(tests_of(self.options.folder, name), self.options)
        except (ImportError, FileNotFoundError) as error:
            return self.say(f"{name}: not read: {error}")
        begin, counts = time.monotonic(), collections.Counter()
        for test in tests:
            counts[self.run(test)] += 1
        self.counts.update(counts)
        return self.say(f"{name}: {counts['pass']} pass, {counts['fail']} fail, {counts['reason']} fail with a reason, {counts['skip']} skipped; {time.monotonic() - begin:.0f} s")

    def run(self, test):
        drawn = int.from_bytes(hashlib.sha256(name_of(test).encode()).digest()[:4], "little")  # some tests draw without a seed, and all ranks have to draw alike
        np.random.seed(drawn)
        random.seed(drawn)
        result, begin = unittest.TestResult(), (time.monotonic(), time.process_time())
        test.run(result)
        if self.options.times:
            self.say(f"{test.id()}: {time.monotonic() - begin[0]:.1f} s, CPU {time.process_time() - begin[1]:.1f} s")
        wrong = result.failures + result.errors
        why, pattern = next(((reason, pattern) for pattern, reason in self.known if fnmatch.fnmatchcase(name_of(test), pattern)), (None, None))
        if why is not None and not result.skipped:
            self.needed[pattern][0] += 1
            self.needed[pattern][1] += bool(wrong)
        if not wrong:
            return "skip" if result.skipped else "pass"
        for _, text in wrong:
            lines = [line for line in text.strip().splitlines() if line.strip()]
            told = next((line for line in reversed(lines) if "Error" in line or "NotCarried" in line), lines[-1])[:170]
            self.kinds[told] += 1
            self.told.setdefault(told, name_of(test))
            if self.options.traces:
                self.say(f"{test.id()}\n{text}")
        if why is None and not self.options.traces:
            self.say(f"  {test.id()}: {told}")
        return "fail" if why is None else "reason"

    def end(self):
        ran = sum(self.counts.values()) - self.counts["skip"]
        self.say(f"all: {self.counts['pass']} of {ran} pass ({100 * self.counts['pass'] / max(ran, 1):.1f} %), {self.counts['reason']} fail with a reason, "
                 f"{self.counts['fail']} without; {self.counts['skip']} skipped by JAX's own conditions; {ts.process_count()} ranks, JAX {jax.__version__}")
        for told, count in self.kinds.most_common(60):
            self.say(f"  {count:4d}  {told}  ({self.told[told]})")
        for pattern, (ran, failed) in self.needed.items():
            if ran and not failed:
                self.say(f"{pattern} stands in the list of reasons, and none of its {ran} tests failed")
        return 1 if self.counts["fail"] else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--count", type=int, default=25, help="tests of each file, at least")
    parser.add_argument("--share", type=float, default=0.0, help="of each file's tests, at least")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="all tests whose names contain this")
    parser.add_argument("--unchanged", action="store_true", help="by the runner: jax.jit, and all outside of it")
    parser.add_argument("--reasons", default=str(pathlib.Path(__file__).with_name("reasons.txt")))
    parser.add_argument("--traces", action="store_true")
    parser.add_argument("--times", action="store_true", help="tell each test's seconds, and the first rank's CPU seconds")
    options = parser.parse_args()
    sys.argv = sys.argv[:1]
    from absl import flags
    flags.FLAGS.mark_as_parsed()
    sys.path.insert(0, options.folder)
    if options.unchanged:
        from tessera.jax import runner
        runner.install()
    else:
        patch()
    judge = Judge(options)
    for name in options.modules or modules + (modules_of_the_runner if options.unchanged else ()):
        judge.run_module(name)
    return judge.end()


if __name__ == "__main__":
    try:
        status = main()
    except Exception:
        traceback.print_exc()
        raise
    sys.exit(status)
