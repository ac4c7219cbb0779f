"""Other libraries' own benchmark programs beside rows of tessera's. Built by whoever has them: a folder is given, its program found below."""
import os
import pathlib
import re
import subprocess
import tempfile


class Peer:
    """name; program: what is looked for below the folder; goal: the ratio asked for; rows: which rows it serves (a regular expression)."""

    def __init__(self, folder):
        self.kept = {}
        found = [p for p in sorted(pathlib.Path(folder).rglob(self.program)) if p.is_file() and os.access(p, os.X_OK)]
        if not found:
            raise ValueError(f"{folder}: no program {self.program} below it. Build {self.name} there first, as its own documentation says")
        self.path = found[0].resolve()

    def samples(self, name, ranks, start):
        """Seconds, one per repetition; None: it has no such row. start(ranks, words, folder) runs words on so many ranks: its output."""
        match = re.fullmatch(self.rows, name)
        if not match:
            return None
        key = (match.groups(), ranks)
        if key not in self.kept:
            self.kept[key] = self.measure(match, ranks, start)
        return self.kept[key]


class Cosma(Peer):
    name, program, goal = "COSMA", "cosma_miniapp", 1.0
    rows = r"product_(?:f64_(\d+)|(\d+)x(\d+)x(\d+))_(?!memory)\w+"

    def measure(self, match, ranks, start):
        square, *sizes = match.groups()
        m, n, k = [square] * 3 if square else sizes
        out = start(ranks, [self.path, "-m", m, "-n", n, "-k", k, "-r", "5", "-t", "double"])
        times = re.search(r"COSMA TIMES \[ms\] = ([\d ]+)", out)
        if not times:
            raise ValueError("COSMA printed no times")
        return [max(int(ms), 0.5) / 1e3 for ms in times[1].split()[:-1]]  # ascending: the last one is the first, which allocates


class Heffte(Peer):
    name, program, goal = "heFFTe", "speed3d_c2c", 1.5
    rows = r"fft_(\d+)\^3_(complex128|complex64|float64|float32)_natural"

    def measure(self, match, ranks, start):
        """The best of its ways to send, between the slabs that tessera has too; forward and backward alike."""
        n, dtype = match.groups()
        program = self.path if dtype.startswith("complex") else self.path.with_name("speed3d_r2c")
        precision = "double" if dtype in ("complex128", "float64") else "float"
        slabs = ["1", "1", str(ranks)]
        best = None
        for ways in [["-slabs", "-a2av"], ["-slabs", "-p2p_pl"], ["-pencils", "-a2av"]]:
            out = start(ranks, [program, "fftw", precision, n, n, n, "-nruns5", "-no-error", "-ingrid", *slabs, "-outgrid", *slabs, *ways])
            seconds = re.search(r"Time per run: ([\d.e+-]+)", out)
            if seconds and (best is None or float(seconds[1]) < best):
                best = float(seconds[1])
        if best is None:
            raise ValueError("heFFTe printed no time")
        return [best]


class Hpl(Peer):
    name, program, goal = "HPL", "xhpl", 1.05
    rows = r"linalg_solve_f64_(\d+)"

    def measure(self, match, ranks, start):
        """The best of three block sizes and of all grids with no more rows than columns."""
        n = int(match[1])
        repetitions, blocks = (3, [128, 192, 256]) if n <= 4096 else (2, [192, 256])
        grids = [(p, ranks // p) for p in range(1, ranks + 1) if ranks % p == 0 and p <= ranks // p]
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "HPL.dat").write_text(self.settings([n] * repetitions, blocks, grids))
            out = start(ranks, [self.path], folder)
        times = {}
        for block, p, q, seconds in re.findall(r"^W\w+\s+\d+\s+(\d+)\s+(\d+)\s+(\d+)\s+([\d.]+)\s", out, re.MULTILINE):
            times.setdefault((block, p, q), []).append(float(seconds))
        if not times:
            raise ValueError("HPL printed no times")
        return min(times.values(), key=min)

    @staticmethod
    def settings(sizes, blocks, grids):
        def line(values):
            return " ".join(map(str, values))

        return "\n".join(
            ["HPL", "tessera", "HPL.out", "6", str(len(sizes)), line(sizes), str(len(blocks)), line(blocks), "0", str(len(grids))]
            + [line(p for p, _ in grids), line(q for _, q in grids), "-16.0"]  # no check of the residual
            # one way each: right-looking, recursion stops at 4 columns, 2 panels, Crout inside, increasing ring, depth 1
            + ["1", "2", "1", "4", "1", "2", "1", "1", "1", "0", "1", "1", "2", "64", "0", "0", "1", "8", ""]
        )


ALL = {"cosma": Cosma, "heffte": Heffte, "hpl": Hpl}


def started(mpirun, environment, limit_s):
    """How a peer's program is run: its output. mpirun(ranks): the words before the program."""

    def start(ranks, words, folder=None):
        done = subprocess.run([*mpirun(ranks), *words], env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit_s)
        if done.returncode != 0:
            raise ValueError(f"{pathlib.Path(words[0]).name} ended with status {done.returncode}: {done.stdout[-300:]}")
        return done.stdout

    return start
