"""JAX's own op tests through tj.jit: judge.py FOLDER_OF_TESTS [module ...] [--share 0.05] [--times].

Each test compiles what it checks by tj.jit instead of jax.jit: the values that JAX's tests compare with NumPy's, and with JAX's own
without jit, are tessera's then. Of a file's tests a share is drawn, the same on every rank. Failures have to be in the list of reasons.
"""
import argparse
import collections
import importlib.util
import os
import random
import sys
import time
import traceback
import unittest

import tessera as ts
import tessera.jax as tj
import jax
import numpy as np
from jax._src import test_util as jtu
from tessera.jax import _eager
from tessera.jax._sharded import ShardedArray

modules = ("lax_test", "lax_numpy_test", "lax_numpy_operators_test", "lax_numpy_reducers_test", "lax_numpy_indexing_test", "lax_numpy_einsum_test", "lax_numpy_setops_test",
           "lax_numpy_ufuncs_test", "lax_scipy_test", "lax_control_flow_test", "linalg_test", "fft_test", "random_test", "random_lax_test", "nn_test", "lax_vmap_op_test",
           "lax_vmap_test", "lax_autodiff_test", "scipy_stats_test", "scipy_signal_test", "image_test", "svd_test", "custom_linear_solve_test", "polynomial_test")


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("modules", nargs="*", default=modules)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--traces", action="store_true")
    parser.add_argument("--times", action="store_true", help="tell each test's seconds, and the first rank's CPU seconds")
    options = parser.parse_args()
    os.environ.setdefault("JAX_NUM_GENERATED_CASES", "2")
    sys.argv = sys.argv[:1]
    from absl import flags
    flags.FLAGS.mark_as_parsed()
    sys.path.insert(0, options.folder)
    patch()
    passed = failed = skipped = 0
    reasons = collections.Counter()
    for name in options.modules or modules:
        counts = run_module(options, name, reasons)
        if ts.is_main_process():
            print(f"{name}: {counts[0]} pass, {counts[1]} fail, {counts[2]} skipped", flush=True)
        passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    if ts.is_main_process():
        print(f"all: {passed} of {passed + failed} pass ({100 * passed / max(passed + failed, 1):.1f} %), {skipped} skipped by JAX's own conditions")
        for reason, count in reasons.most_common(60):
            print(f"  {count:4d}  {reason}")


def run_module(options, name, reasons):
    tests = [t for t in tests_of(options.folder, name) if options.only in t.id()]
    random.Random(options.seed).shuffle(tests)
    tests = tests[:max(int(len(tests) * options.share), min(len(tests), 10))] if not options.only else tests
    counts = [0, 0, 0]
    for test in tests:
        result = unittest.TestResult()
        begin = time.monotonic(), time.process_time()
        test.run(result)
        if options.times and ts.is_main_process():
            print(f"{test.id()}: {time.monotonic() - begin[0]:.1f} s, CPU {time.process_time() - begin[1]:.1f} s", flush=True)
        wrong = result.failures + result.errors
        counts[2 if result.skipped else 1 if wrong else 0] += 1
        for _, text in wrong:
            last = [line for line in text.strip().splitlines() if line.strip()]
            told = next((line for line in reversed(last) if "Error" in line or "NotCarried" in line), last[-1])
            reasons[f"{test.id().split('.')[-1][:60]}: {told[:150]}"] += 1
            if options.traces and ts.is_main_process():
                print(test.id(), text, flush=True)
    return counts


if __name__ == "__main__":
    try:
        main()
    except Exception:
        traceback.print_exc()
        raise
