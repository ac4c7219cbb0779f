"""unchanged.py TESSERA [RANKS]: programs by JAX alone and by `tessera run -n RANKS -m tessera.jax`: the same lines, once.

Exit status 77 where JAX is not installed: skipped.
"""
import importlib.util
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

programs = ("unchanged_program.py", "unchanged_details.py", "unchanged_files.py", "unchanged_checkpoints.py", "unchanged_processes.py")
folder = pathlib.Path(__file__).resolve().parent


def lines_of(command, within, **settings):
    job = subprocess.run(command, cwd=within, env=os.environ | settings, capture_output=True, text=True, timeout=600)
    if job.returncode != 0:
        print(f"{command} ended with {job.returncode}\n{job.stdout}\n{job.stderr}")
        raise SystemExit(1)
    return job.stdout.splitlines()


def count_of_same_lines(tessera, ranks, program):
    """How many lines a program prints, by both alike; None where they differ."""
    with tempfile.TemporaryDirectory() as within:
        def alone():
            if program.name == "unchanged_processes.py":
                return lines_of_processes(program, within, ranks)
            return lines_of([sys.executable, program, "3"], within, JAX_PLATFORMS="cpu", XLA_FLAGS=f"--xla_force_host_platform_device_count={ranks}")
        if program.name == "unchanged_checkpoints.py":
            alone()  # the ranks restore what this run saves, and the next run what they save
        found = lines_of([tessera, "run", "-n", ranks, "-m", "tessera.jax", program, "3"], within, TESSERA_PYTHON=sys.executable)
        return same_lines(alone(), found, ranks)


def lines_of_processes(program, within, count):
    """What JAX's own processes print, as many as there are ranks."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        settings = {"JAX_PLATFORMS": "cpu", "JAX_ADDRESS": f"localhost:{free.getsockname()[1]}", "JAX_PROCESSES": count}
    jobs = [subprocess.Popen([sys.executable, program], cwd=within, env=os.environ | settings | {"JAX_PROCESS": str(n)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for n in range(int(count))]
    told = [job.communicate(timeout=600) for job in jobs]
    if any(job.returncode for job in jobs):
        print("JAX's processes:", *told)
        raise SystemExit(1)
    return [line for out, _ in told for line in out.splitlines() if not line.startswith("[Gloo]")]


def same_lines(alone, found, ranks):
    if found != alone:
        differing = [pair for pair in zip(alone, found) if pair[0] != pair[1]]
        print("by JAX alone:", *alone, f"by {ranks} ranks:", *found, "that differ:", *differing, sep="\n")
        return None
    return len(found)


_meshes = ("jax.make_mesh((40,), ('x',))", "jax.sharding.Mesh(np.array(jax.devices()).reshape(5, 8), ('x', 'y'))", "jax.pmap(lambda x: x)(np.ones((40, 2)))")


def says_how_many(tessera, ranks, mesh):
    """Whether the error of a mesh of 40 devices says how to start the program."""
    with tempfile.TemporaryDirectory() as within:
        program = pathlib.Path(within, "large.py")
        program.write_text(f"import jax\nimport numpy as np\n{mesh}\n")
        job = subprocess.run([tessera, "run", "-n", ranks, "-m", "tessera.jax", program], env=os.environ | {"TESSERA_PYTHON": sys.executable}, capture_output=True, text=True, timeout=600)
    if job.returncode == 0 or "tessera run -n 40" not in job.stderr or f" {ranks} ranks" not in job.stderr:
        print(mesh, "on too few ranks:", job.returncode, job.stderr)
        return False
    return True


def main(tessera, ranks="2"):
    if importlib.util.find_spec("jax") is None:
        print("JAX is not installed")
        return 77
    counts = [count_of_same_lines(tessera, ranks, folder / name) for name in programs]
    if None in counts:
        return 1
    failing = subprocess.run([tessera, "run", "-n", ranks, "-m", "tessera.jax", folder / "no_such_program.py"], env=os.environ | {"TESSERA_PYTHON": sys.executable},
                             capture_output=True, text=True, timeout=600)
    if failing.returncode == 0 or "no_such_program.py" not in failing.stderr:
        print("a program that is not there:", failing.returncode, failing.stderr)
        return 1
    if not all(says_how_many(tessera, ranks, mesh) for mesh in _meshes):
        return 1
    print(f"{sum(counts)} lines, the same")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
