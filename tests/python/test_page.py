"""The Python code of the pages runs as it stands there."""
import os
import pathlib
import re
import tempfile
import unittest

import numpy as np
import tessera as ts

pages = pathlib.Path(__file__).resolve().parents[2] / "scripts/site/pages"


def run_blocks(name):
    """How many blocks ran, each behind those before it, in a folder that all ranks share."""
    page = pages / name
    text, names, here = page.read_text(), {}, os.getcwd()
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M))
    folder = ts.multihost.broadcast_one_to_all(np.frombuffer(tempfile.mkdtemp().encode().ljust(200), np.uint8)).tobytes().decode().strip()
    os.chdir(folder)
    try:
        for block in blocks:
            line = text.count("\n", 0, block.start()) + 1
            exec(compile("\n" * line + block.group(1), str(page), "exec"), names)
    finally:
        os.chdir(here)
    return len(blocks)


class Page(unittest.TestCase):
    def test_every_block_of_the_page_on_python_runs(self):
        self.assertGreaterEqual(run_blocks("python.md"), 4)

    def test_the_advice_of_its_page_is_given(self):
        self.assertEqual(run_blocks("advise.md"), 2)

    def test_the_pictures_of_the_page_on_pictures_are_written(self):
        self.assertGreaterEqual(run_blocks("pictures.md"), 1)


if __name__ == "__main__":
    unittest.main()
