"""The functions of functions.py, sciences.py, breadth.py, trial.py and packages.py by JAX alone and by tj.jit: the same values, gradients included.

programs.py [--expect FILE] [--no-packages] [name ...]: what is not installed is left out and told. Arrays are split over the ranks where their first extent
allows it. FILE keeps JAX's values: the first run with a file computes them, those with other numbers of ranks read them, so that not
every rank compiles every function. Functions of a mesh depend on the number of ranks and are always computed. A function that fails has to stand in `failing`.
"""
import argparse
import pickle
import sys
import time

import numpy as np
import tessera as ts
import tessera.jax as tj
import jax

from functions import made, mesh, programs
import sciences  # noqa: F401
import breadth  # noqa: F401
import trial
from packages import packages

failing = {}  # name -> the reason


def split(x):
    if isinstance(x, np.ndarray) and x.ndim and x.shape[0] >= mesh.size:
        return ts.device_put(ts.asarray(x), ts.NamedSharding(tj._layouts.mesh_of(mesh), ts.P("x")))
    return x


class Expected:
    """JAX's own values, kept in a file."""

    def __init__(self, path):
        self.path, self.known, self.is_new = path, {}, False
        if path:
            try:
                with open(path, "rb") as file:
                    self.known, kept = pickle.load(file)
                    made.update(kept)
            except FileNotFoundError:
                self.is_new = True

    def of(self, name, function, arguments):
        if name in self.known:
            return self.known[name]
        values = [np.asarray(x) for x in jax.tree_util.tree_leaves(jax.jit(function)(*arguments))]
        if self.is_new and name not in ("psum", "ring", "shard_map_gradient", "shard_map_ring"):
            self.known[name] = values
        return values

    def write(self):
        if self.is_new and ts.is_main_process():
            with open(self.path, "wb") as file:
                pickle.dump((self.known, made), file)


def check(name, expected):
    function, arguments, tolerance = programs[name]
    theirs_of_all = expected.of(name, function, arguments)
    found = jax.tree_util.tree_leaves(tj.jit(function)(*jax.tree_util.tree_map(split, arguments)))
    assert len(found) == len(theirs_of_all), f"{len(found)} results instead of {len(theirs_of_all)}"
    for ours, theirs in zip(found, theirs_of_all):
        ours = ts.device_get(ours)
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, f"{ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}"
        np.testing.assert_allclose(*[x.astype("f") if x.dtype.name == "bfloat16" else x for x in (ours, theirs)], rtol=tolerance, atol=tolerance)


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--expect", default="")
    parser.add_argument("--no-packages", action="store_true", help="the documentation's and the sciences' alone")
    parser.add_argument("--times", action="store_true", help="tell each function's seconds")
    options = parser.parse_args(arguments)
    expected, failed, missing = Expected(options.expect), [], []
    for package, define in () if options.no_packages else (*packages.items(), *trial.packages.items()):  # all or none: arguments are drawn in turn
        try:
            define()
        except ImportError as error:
            missing.append(f"{package} ({error})")
    chosen = [n for n in programs if not options.names or any(n.startswith(wanted) for wanted in options.names)]
    say = print if ts.is_main_process() else (lambda *_, **__: None)
    for name in chosen:
        begin = time.monotonic()
        try:
            check(name, expected)
        except Exception as error:
            failed.append(name)
            say(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
        if options.times:
            say(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
    expected.write()
    say(f"{len(chosen) - len(failed)} of {len(chosen)} programs have JAX's values on {ts.process_count()} ranks; not installed: {', '.join(dict.fromkeys(missing)) or 'nothing'}")
    for name in failing:
        if name in chosen and name not in failed:
            say(f"{name} stands in the list of failures, and does not fail")
    return 1 if set(failed) - set(failing) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
