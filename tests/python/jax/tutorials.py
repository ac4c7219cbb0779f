"""The cells of JAX's tutorials, statement by statement, unchanged: tutorials.py FOLDER [--shrink 4096=256 8192=512] [--list].

Each file is a program of its own: a notebook (JSON), MyST, or a page with "In [3]:" before each cell. A statement that raises is
counted, told, and the rest goes on. Run by 8 ranks; what is told is told once.
"""
import argparse
import ast
import json
import os
import re
import sys
import traceback
import warnings

import tessera as ts
from tessera.jax import runner, tutorials


def cells_of(text):
    """The code of a file's cells, whatever its format."""
    if text.lstrip().startswith("{"):
        return ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    if "```{code-cell}" in text:
        found = re.findall(r"```\{code-cell\}[^\n]*\n(.*?)```", text, re.S)
        return [re.sub(r"^:[^\n]*\n", "", re.sub(r"^(:[^\n]*\n|---\n.*?---\n)*", "", cell, flags=re.S), flags=re.M) if cell.startswith((":", "---")) else cell for cell in found]
    return [without_output(part) for part in re.split(r"In \[[\d ]*\]:\n", text)[1:]]


def plain(code):
    """IPython's lines as Python: %timeit runs its statement once."""
    lines = []
    for line in code.splitlines():
        timed = re.match(r"(\s*)%timeit(?:\s+-\w\s*\d+)*\s+(.*)", line)
        lines.append(timed[1] + timed[2] if timed else re.sub(r"^(\s*)[%!].*", r"\1pass", line))
    return "\n".join(lines)


def without_output(part):
    """A page has a cell's output behind it: the code is the longest run of lines that parses."""
    lines = plain(part.split("\n### ")[0].split("\n## ")[0]).splitlines()
    for end in range(len(lines), 0, -1):
        code = "\n".join(lines[:end])
        try:
            tree = ast.parse(code)
        except SyntaxError:
            continue
        if tree.body:
            return code
    return ""


def statements_of(code):
    code = plain(code)
    return [(ast.get_source_segment(code, node), node) for node in ast.parse(code).body]


def run_statement(node, source, name, namespace):
    if isinstance(node, ast.Expr):
        value = eval(compile(ast.Expression(node.value), name, "eval"), namespace)
        if value is not None and not isinstance(value, type(os)):
            repr(value)
        return
    exec(compile(ast.Module([node], []), name, "exec"), namespace)


def names_in(node, kind):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kind)}


def is_left_out(source, node, unknown):
    """A pasted output, a package for GPUs that one tutorial brings along (jaxdecomp), and what reads its results."""
    if re.match(r"(Sharded)?(Device)?Array\(|array\(|\[?(Cpu|Tpu)Device\(", source):
        return True
    return "jaxdecomp" in source or bool(names_in(node, ast.Load) & (unknown | {"jd"}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--shrink", nargs="*", default=["4096=256", "8192=512"])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runner.install()
    tutorials.of_their_time()
    runner._speak(False)
    out = sys.__stdout__ if ts.is_main_process() else open(os.devnull, "w")
    good = total = skipped = 0
    for file in sorted(os.listdir(options.folder)):
        if options.only not in file:
            continue
        with open(os.path.join(options.folder, file)) as opened:
            text = opened.read()
        for pair in options.shrink:
            big, small = pair.split("=")
            text = re.sub(rf"\b{big}\b", small, text)
        unknown = set()  # names that a statement would have set which is left out
        namespace, counts = {"__name__": "__main__"}, [0, 0]
        for cell in cells_of(text):
            try:
                statements = statements_of(cell)
            except SyntaxError as error:
                print(f"{file}: a cell that is no Python: {error.text!r}", file=out, flush=True)
                skipped += 1
                continue
            for source, node in statements:
                if is_left_out(source, node, unknown):
                    unknown |= names_in(node, ast.Store)
                    skipped += 1
                    continue
                unknown -= names_in(node, ast.Store)
                counts[1] += 1
                try:
                    run_statement(node, source, file, namespace)
                    counts[0] += 1
                except BaseException as error:  # the tutorials end cells by exceptions, too
                    where = traceback.format_exc().strip().splitlines()[-3:]
                    print(f"{file}: {source.splitlines()[0][:90]!r}: {type(error).__name__}: {str(error)[:200]!r} {where[0].strip()[-80:]}", file=out, flush=True)
        print(f"{file}: {counts[0]} of {counts[1]} statements", file=out, flush=True)
        good, total = good + counts[0], total + counts[1]
    print(f"all: {good} of {total} statements, {skipped} left out", file=out, flush=True)
    return 0 if good == total else 1


if __name__ == "__main__":
    sys.exit(main())
