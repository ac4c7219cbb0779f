"""Random programs on files (TESSERA_TEST_STREAMED=1): operands that ts.io.open opened, results that ts.io.compute streams within a small limit."""
import os
import pathlib
import shutil

import steps
import tessera as ts
from expressions import Builder

LIMITS = [300_000, 800_000, 3_000_000]
WHOLE = (steps.jitted, steps.evaluated, steps.resharded, steps.dropped)  # they compute their operand in memory


class Streamed(Builder):
    """The first operand of a program lies in a file, and about half of the others."""
    refused = read_results = 0

    def __init__(self, number):
        super().__init__(number)
        self.limit, self.folder = self.pick(LIMITS), pathlib.Path(os.environ.get("TESSERA_TEST_FOLDER", "/tmp"), "streamed")
        if ts.is_main_process():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()

    def size(self):
        return int(self.draw.integers(1, self.pick([500, 10_000, 50_000, 200_000])))

    def steps(self):
        return [step for step in super().steps() if step not in WHOLE]

    def operand(self, shape=None, dtype=None):
        value = super().operand(shape, dtype)
        if value.host.ndim > 0 and value.host.size > 0 and (len(self.values) == 1 or self.draw.random() < 0.5):
            path = str(self.folder / f"{value.name}.{self.pick(['npy', 'zarr'])}")
            if path.endswith("npy"):
                ts.io.save_npy(path, value.array)
            else:
                chunks = [int(self.draw.integers(1, extent + 1)) for extent in value.host.shape]
                ts.io.save_zarr(path, value.array, chunks=[max(n, (extent + 7) // 8) for n, extent in zip(chunks, value.host.shape)])
            value.array = ts.io.open(path)
            self.lines.append(f"{value.name} = io.open({os.path.basename(path)!r})")
        return value

    def read(self, value):
        Streamed.read_results += 1
        try:
            return ts.device_get(ts.io.compute(value.array, memory_limit=self.limit))
        except (ts.ArgumentError, ts.MemoryError) as error:
            if "no dim of the files can be streamed" not in str(error) and "may use" not in str(error):
                raise
            Streamed.refused += 1
            return None

    @staticmethod
    def check_all(count):
        if count >= 10 and 2 * Streamed.refused > Streamed.read_results:
            raise SystemExit(f"{Streamed.refused} of {Streamed.read_results} results were refused")
