"""unchanged.py TESSERA [RANKS]: unchanged_program.py by JAX alone and by `tessera run -n RANKS -m tessera.jax`: the same lines, once.

Exit status 77 where JAX is not installed: skipped.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

program = pathlib.Path(__file__).resolve().parent / "unchanged_program.py"


def lines_of(command, **settings):
    job = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=600)
    if job.returncode != 0:
        print(f"{command} ended with {job.returncode}\n{job.stdout}\n{job.stderr}")
        raise SystemExit(1)
    return job.stdout.splitlines()


def main(tessera, ranks="2"):
    if importlib.util.find_spec("jax") is None:
        print("JAX is not installed")
        return 77
    alone = lines_of([sys.executable, program, "3"], JAX_PLATFORMS="cpu", XLA_FLAGS=f"--xla_force_host_platform_device_count={ranks}")
    found = lines_of([tessera, "run", "-n", ranks, "-m", "tessera.jax", program, "3"], TESSERA_PYTHON=sys.executable)
    if found != alone:
        print("by JAX alone:", *alone, f"by {ranks} ranks:", *found, sep="\n")
        return 1
    failing = subprocess.run([tessera, "run", "-n", ranks, "-m", "tessera.jax", program.parent / "no_such_program.py"], env=os.environ | {"TESSERA_PYTHON": sys.executable},
                             capture_output=True, text=True, timeout=600)
    if failing.returncode == 0 or "no_such_program.py" not in failing.stderr:
        print("a program that is not there:", failing.returncode, failing.stderr)
        return 1
    print(f"{len(found)} lines, the same")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
