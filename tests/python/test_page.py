"""The code of the page on Python runs as it stands there."""
import pathlib
import re
import unittest

page = pathlib.Path(__file__).resolve().parents[2] / "scripts/site/pages/python.md"


class Page(unittest.TestCase):
    def test_every_block_runs_behind_those_before_it(self):
        text = page.read_text()
        blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M))
        self.assertGreaterEqual(len(blocks), 4)
        names = {}
        for block in blocks:
            line = text.count("\n", 0, block.start()) + 1
            exec(compile("\n" * line + block.group(1), str(page), "exec"), names)


if __name__ == "__main__":
    unittest.main()
