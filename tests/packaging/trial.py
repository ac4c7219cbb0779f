"""What the trials of the wheel share: environments, jobs without the settings of this shell, and checks that are counted."""
import os
import pathlib
import resource
import subprocess
import sys
import time

failures = []


class Trial:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)

    def program(self, name, text):
        path = self.folder / f"{name}.py"
        path.write_text(text)
        return path

    def environment(self, name, *packages):
        """A fresh virtual environment with these packages from pip."""
        prefix = self.folder / name
        subprocess.run([sys.executable, "-m", "venv", "--clear", prefix], check=True)
        if packages:
            subprocess.run([prefix / "bin/pip", "install", "-q", "--disable-pip-version-check", *map(str, packages)], check=True)
        return prefix

    def run(self, *words, limit=300, **variables):
        """Status, output, errors. One rank per core is more than a small machine has; root may start ranks where this runs."""
        settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1",
                    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
                    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PRTE_MCA_hwloc_default_binding_policy": "none"}
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "TESSERA_", "PYTHONPATH"))}
        try:
            done = subprocess.run([str(word) for word in words], env={**clean, **settings, **variables}, capture_output=True, text=True,
                                  cwd=self.folder, timeout=limit)
        except subprocess.TimeoutExpired as late:
            texts = [text.decode(errors="replace") if text else "" for text in (late.stdout, late.stderr)]
            return 124, texts[0], texts[1] + f"\nnot ended after {limit} s"
        return done.returncode, done.stdout, done.stderr


class Watch:
    """Seconds on the clock and of CPU, this process's children among it: of a busy machine the second number is the one that counts."""

    def __init__(self):
        self.began, self.worked = time.monotonic(), self._cpu()

    @staticmethod
    def _cpu():
        return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))

    def read(self):
        return time.monotonic() - self.began, self._cpu() - self.worked

    def text(self):
        return "{:.1f} s, {:.1f} of CPU".format(*self.read())


def check(what, passes, shown=""):
    print(f"{'passed' if passes else 'FAILED'}  {what}", flush=True)
    if not passes:
        failures.append(what)
        print(shown, flush=True)


def end():
    print(f"{len(failures)} failed")
    sys.exit(1 if failures else 0)
