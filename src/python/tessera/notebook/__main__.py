"""tessera notebook -n 8 [--install] [words of jupyter]: Jupyter with a kernel that runs each cell on all ranks."""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import sys


def kernel_words(ranks, launcher):
    return [*launcher, "run", "-q", "-n", str(ranks), sys.executable, "-m", "tessera.notebook.kernel", "-f", "{connection_file}"]


def write_kernel(folder, ranks, launcher):
    folder.mkdir(parents=True, exist_ok=True)
    spec = kernel_spec(ranks, launcher)
    new = folder / f"kernel.{os.getpid()}"
    new.write_text(spec)
    new.replace(folder / "kernel.json")


def kernel_spec(ranks, launcher):
    import tessera  # noqa: F401  one rank: the path of the package

    paths = [str(pathlib.Path(tessera.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    spec = {"argv": kernel_words(ranks, launcher), "display_name": f"tessera ({ranks} rank{'s' if ranks > 1 else ''})", "language": "python",
            "interrupt_mode": "message", "env": {"PYTHONPATH": os.pathsep.join(paths), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}, "metadata": {"debugger": False}}
    return json.dumps(spec, indent=1) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="tessera notebook", description=__doc__)
    parser.add_argument("-n", type=int, default=2, metavar="ranks", help="ranks of the kernel (default 2)")
    parser.add_argument("--install", action="store_true", help="install the kernel for this user, and start nothing")
    parser.add_argument("--tessera", default=shutil.which("tessera"), help="the command tessera (default: on PATH)")
    options, words = parser.parse_known_args()
    if options.n < 1:
        parser.error(f"-n {options.n}: a kernel has at least one rank")
    if not options.tessera:
        parser.error("the command tessera is not on PATH; give --tessera FILE")
    options.tessera = os.path.abspath(options.tessera)  # the kernel starts in another folder
    try:
        import ipykernel  # noqa: F401
        from jupyter_core.paths import jupyter_data_dir
    except ModuleNotFoundError as missing:
        sys.exit(f"tessera notebook: {missing.name} is not installed: pip install ipykernel jupyterlab, or apt-get install python3-ipykernel jupyter-notebook")
    name = f"tessera-{options.n}"
    if options.install:
        folder = pathlib.Path(jupyter_data_dir()) / "kernels" / name
        write_kernel(folder, options.n, [options.tessera])
        print(f"installed the kernel 'tessera ({options.n} ranks)' as {folder}; choose it in Jupyter")
        return
    jupyter = next((c for c in (["jupyter-lab"], ["jupyter-notebook"]) if shutil.which(c[0])), None)
    if jupyter is None:
        sys.exit("tessera notebook: there is neither jupyter-lab nor jupyter-notebook: pip install jupyterlab, or apt-get install jupyter-notebook; or use --install")
    # The process becomes Jupyter, which reads the folder for as long as it lives: nobody could remove a temporary one.
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    shared = cache / "tessera/jupyter" / hashlib.sha256(kernel_spec(options.n, [options.tessera]).encode()).hexdigest()[:16]
    write_kernel(shared / "kernels" / name, options.n, [options.tessera])
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [str(shared), os.environ.get("JUPYTER_PATH")]))
    # os.environ is of the time before MPI started in this process: with MPI's own variables the kernel's mpirun would fail.
    os.execvpe(jupyter[0], [*jupyter, f"--MultiKernelManager.default_kernel_name={name}", *words], os.environ)


main()
