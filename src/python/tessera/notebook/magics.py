"""Magics that every rank has: the same words run everywhere."""
import ast
import sys
import time

from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class

import numpy as np

import tessera as ts


def _cell_of_caller():
    """The name of the cell that runs and its line, for tables to cite instead of a line of IPython."""
    frame = sys._getframe()
    while frame is not None and not frame.f_code.co_filename.startswith("cell["):
        frame = frame.f_back
    return ("<magic>", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


@magics_class
class TesseraMagics(Magics):
    """Results are shown by rank 0."""

    def __init__(self, shell, is_first):
        super().__init__(shell)
        self.is_first = is_first
        self.patience = 15.0  # seconds that other ranks may go on with a cell in which one has failed
        self.last_texts = {}  # on rank 0: rank -> what the last cell printed there

    def say(self, text):
        if self.is_first:
            print(text)

    @line_magic
    def explain(self, line):
        """%explain f(x, y): what the call would move, and why. Nothing is computed."""
        call = ast.parse(line.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            raise ValueError(f"%explain {line}: write a call, as in %explain f(x, y)")
        value = lambda node: eval(compile(ast.Expression(node), "<%explain>", "eval"), self.shell.user_ns)
        names = {"explain": ts.explain, "given": [value(call.func), *map(value, call.args)], "named": {k.arg: value(k.value) for k in call.keywords}}
        cell, line_of_cell = _cell_of_caller()
        self.say(str(eval(compile("\n" * (line_of_cell - 1) + "explain(*given, **named)", cell, "eval"), names)))

    @line_cell_magic
    def bytes(self, line, cell=None):
        """%bytes statement, %%bytes: runs it, and says what arrived at each rank."""
        with ts.debug.CommStats() as stats:
            self.shell.run_cell(cell if cell is not None else line).raise_error()
            pending = [v for v in self.shell.user_ns.values() if isinstance(v, ts.Array)]
            ts.block_until_ready(pending)
        kinds = stats.kinds()
        rows = [f"{kind}: {stats.bytes(kind):,} bytes in {stats.calls(kind)} calls" for kind in kinds]
        self.say("\n".join(rows + [f"rank 0 received {stats.bytes():,} bytes"]) if kinds else "nothing was sent")

    @line_magic
    def memory(self, line):
        """%memory: arrays of the notebook: shape, dtype, layout, and bytes on rank 0."""
        device, rows, total = ts.devices()[0], [], 0
        for name, value in sorted(self.shell.user_ns.items()):
            if isinstance(value, ts.Array) and not name.startswith("_"):
                held = value.sharding.memory_bytes(value.shape, value.dtype, device)
                total += held
                rows.append(f"{name:12} {str(tuple(value.shape)):18} {str(value.dtype):10} {held:>14,}  {value.sharding}")
        self.say("\n".join([*rows, f"{len(rows)} arrays, {total:,} bytes on rank 0"]))

    @line_magic
    def shard(self, line):
        """%shard x: a picture of where the blocks of x are."""
        x = self.shell.user_ns[line.strip()] if line.strip() in self.shell.user_ns else eval(line, self.shell.user_ns)
        picture = ts.debug.sharding_svg(x.shape, x.sharding)
        if self.is_first:
            from IPython.display import SVG, display

            display(SVG(data=picture))

    @line_magic
    def patience(self, line):
        """%patience 60: seconds that other ranks may go on with a cell in which one has failed, before the kernel restarts."""
        seconds = float(line)
        if not seconds > 0:
            raise ValueError(f"%patience {line}: give a positive number of seconds")
        self.patience = seconds

    @line_magic
    def ranks(self, line):
        """%ranks: what the last cell printed on the other ranks."""
        for rank, text in sorted(self.last_texts.items()):
            self.say(f"[rank {rank}] " + text.rstrip("\n").replace("\n", f"\n[rank {rank}] ") if text else f"[rank {rank}] (nothing)")

    @line_cell_magic
    def timeit(self, line, cell=None):
        """%timeit [-n loops] [-r runs] statement: rank 0 chooses how often, so that all ranks run it equally often."""
        options, statement = self.parse_options(line, "n:r:", posix=False, strict=False)
        code = compile(cell if cell is not None else statement, "<%timeit>", "exec")

        def once(count):
            start = time.perf_counter()
            for _ in range(count):
                exec(code, self.shell.user_ns)
            return time.perf_counter() - start

        if "n" not in options:
            options["n"] = ts.multihost.broadcast_one_to_all(np.int32(max(1, min(10000, int(0.2 / max(once(1), 1e-7))))))
        count, runs = int(options["n"]), int(options.get("r", 5))
        if count < 1 or runs < 1:
            raise ValueError(f"%timeit -n {count} -r {runs}: there is at least one loop and one run")
        times = np.array([once(count) / count for _ in range(runs)])
        self.say(f"{seconds(times.mean())} ± {seconds(times.std())} per loop (mean ± std. dev. of {runs} run{'s' if runs > 1 else ''}, {count} loop{'s' if count > 1 else ''} each)")


def seconds(value):
    scale, unit = next((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")) if value >= s or u == "ns")
    return f"{value / scale:.3g} {unit}"
