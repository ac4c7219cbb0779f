"""An example of each function with what it gives: the first row of the catalogue, its operands filled with values that a reader can follow.

The values are those of the row's NumPy cell. Tests compare the same call of tessera with it on other operands (tests/catalogue/golden_test.cpp).
"""
import base64
import re
import sys

# Operands of elementwise functions; the first with which all values are finite are taken.
ELEMENTWISE = (("5:-2..2", "5:0.5..2.5", "5:1..3"), ("5:0.1..0.9", "5:0.2..0.6", "5:1..3"), ("5:1.25..3",) * 3, ("i5:0..12", "i5:1..7", "i5"), ("b5", "b5", "b5"))
ELEMENTS = 40  # of what is printed for one call; larger results say their shape


class Examples:
    def __init__(self, root, rows):
        """`rows`: the first row of each function. Nothing is shown where NumPy or what a cell needs is missing."""
        sys.path.insert(0, str(root / "tests/catalogue"))
        try:
            import numpy as np
            import numpy_calls
        except ModuleNotFoundError:
            self.rows = {}
            return
        self.np = np
        self.names = {"np": np, **{n: v for n, v in vars(numpy_calls).items() if callable(v)}, **numpy_calls.base(np)}
        try:
            import scipy
            import scipy.fft
            import scipy.linalg
            import scipy.signal
            from scipy import special

            self.names.update(sp=scipy, special=special)
        except ModuleNotFoundError:
            pass
        self.rows = {row.function: row for row in rows}
        self.drawn = {}  # row -> values of rows without operands, random ones above all
        for line in (root / "tests/catalogue/goldens.txt").read_text().split("\n")[1:-1]:
            name, _, dtype, shape, data = line.split("\t")
            values = np.frombuffer(base64.b64decode(data), dtype).reshape([int(n) for n in shape.split(",") if n])
            self.drawn.setdefault(name, []).append(values)

    def of(self, function, calls_of):
        """Lines of text, or nothing: operands as they are made, then each call with its value."""
        row = self.rows.get(function)
        if row is None:
            return ""
        calls = calls_of(row.cpp)
        if row.operands == "-" and len(self.drawn.get(row.id, [])) == len(calls):
            key = ["k = random::key(7)"] if re.search(r"\bk\b", row.cpp) else []
            return "\n".join(key + [self.shown(call.strip(), value) for call, value in zip(calls, self.drawn[row.id])])
        if row.numpy == "-" or row.operands.startswith("@") or re.search(r"\bk\b", row.cpp):
            return ""
        if row.operands.startswith("*"):
            return next(filter(None, (self.text(row, wanted[: len(row.operand_names())], calls_of) for wanted in ELEMENTWISE)), "")
        return self.text(row, row.operands.split(";") if row.operands != "-" else [], calls_of)

    def text(self, row, wanted, calls_of):
        operands = [self.operand(text.strip()) for text in wanted]
        names = dict(self.names, **{"abcde"[i]: value for i, (_, value) in enumerate(operands)})
        lines = [f"{'abcde'[i]} = {made}" for i, (made, _) in enumerate(operands)]
        calls = calls_of(row.cpp)
        try:
            with self.np.errstate(all="ignore"):
                values = eval(f"[{row.numpy}]", names)  # noqa: S307: our own tables
        except (NameError, AttributeError, ValueError, TypeError, ImportError):  # a function of a newer NumPy, or values that do not suit it
            return ""
        if len(values) != len(calls):
            return ""
        if row.operands.startswith("*") and any(value.dtype.kind == "f" and not self.np.isfinite(value).all() for value in map(self.np.asarray, values)):
            return ""
        return "\n".join(lines + [self.shown(call.strip(), value) for call, value in zip(calls, values)])

    def operand(self, text):
        """How a reader makes an operand, and its value: equal steps over its range."""
        np = self.np
        letter = text[0] if text[0].isalpha() else ""
        extents, _, limits = text[len(letter):].partition(":")
        shape = tuple(int(n) for n in extents.split(",") if n.strip())
        low, high = (float(x) for x in limits.split("..")) if limits else {"i": (0, 9), "u": (0, 9), "v": (0, 255), "b": (0, 1)}.get(letter, (-2, 2))
        count = int(np.prod(shape)) if shape else 1
        braces = "{" + ", ".join(map(str, shape)) + "}"
        shaped = (lambda made: made) if len(shape) == 1 else (lambda made: f"reshape({made}, {braces})")
        if letter == "b":
            return shaped(f"arange({count}) % 3 == 0"), (np.arange(count) % 3 == 0).reshape(shape)
        if letter and letter in "iuv":
            dtype = {"i": "int32", "u": "uint32", "v": "uint8"}[letter]
            made = f"arange({count}) * 5 % {int(high - low) + 1}" + (f" - {int(-low)}" if low < 0 else f" + {int(low)}" if low > 0 else "")
            values = (np.arange(count) * 5 % (int(high - low) + 1) + int(low)).astype(dtype).reshape(shape)
            return shaped(made if dtype == "int32" else f"astype({made}, {dtype})"), values
        line, values = f"linspace({low:g}, {high:g}, {count}, float64)", np.linspace(low, high, count)
        if letter == "c":
            return shaped(f"make_complex({line}, flip({line}))"), (values + 1j * values[::-1]).reshape(shape)
        return shaped(line), values.reshape(shape)

    def shown(self, call, value):
        np = self.np
        if isinstance(value, (tuple, list)):
            return "\n".join([f"{call}:", *("  " + self.shown(f"[{i}]", part).replace("\n", "\n  ") for i, part in enumerate(value))])
        value = np.asarray(value)
        if value.size > ELEMENTS:
            return f"{call}: {value.dtype}{list(value.shape)}"
        text = np.array2string(np.round(value, 4) + 0 if value.dtype.kind in "fc" else value, precision=3, suppress_small=True, max_line_width=96)
        head = f"{call} = "
        return head + text.replace("\n", "\n" + " " * len(head)) if "\n" not in text or len(head) < 30 else f"{call} =\n{text}"


def refusals(root, rows):
    """{function: the error of the call that its row refuses}, as tests/catalogue/refusals.txt has it."""
    texts = {}
    for block in (root / "tests/catalogue/refusals.txt").read_text().split("\n\n"):
        name, _, text = block.strip("\n").partition("\n")
        texts[name] = text
    return {row.function: f"{row.refused}\n{texts[row.name]}" for row in rows if row.name in texts}
