"""The five tutorials: one source each (apps/tutorial/NAME/tutorial.md) gives its page, its notebook and its rows of the table of cells.

A source is Markdown. <!-- step 5 6 --> stands for the C++ code of these steps, cut from the program, and for what it prints; <!-- code f g -->
for definitions of the program. ```python fences are cells of the notebook: `cell=7` says which of the original's it is, `solved` that it was
an exercise. A line "> **Differs** (7, 8): reason" explains what is not as in the original. Directives and fences without prose between them are one
example in two languages.
"""
import hashlib
import json
import re

NAMES = ["parallel_evaluation", "distributed_arrays_2022", "distributed_arrays_2024", "parallelism", "workshop"]
FENCE = re.compile(r"```python([^\n]*)\n(.*?)\n?```", re.S)
DIRECTIVE = re.compile(r"<!-- (step|code) (.*?) -->")
PIECE = re.compile(rf"^(?:{FENCE.pattern}|{DIRECTIVE.pattern})$", re.S | re.M)
KEPT = re.compile(r"^```text step=([^\n]*)\n(.*?)\n```$", re.S | re.M)
DIFFERS = re.compile(r"^> \*\*Differs\*\* \(([\d, ]+)\): (.*)$", re.M)


def pieces_of(text):
    """[("prose", text) or ("python", words, code) or ("step" or "code", names)] in order."""
    at = 0
    for found in PIECE.finditer(text):
        if prose := text[at : found.start()].strip():
            yield "prose", apart(prose)
        if found[3]:
            yield found[3], found[4].split()
        else:
            yield "python", found[1].split(), found[2]
        at = found.end()
    if prose := text[at:].strip():
        yield "prose", apart(prose)


def apart(prose):
    """Reasons behind each other as paragraphs of their own."""
    return re.sub(r"^(> .*)\n(?=> )", r"\1\n>\n", prose, flags=re.M)


def of_any_machine(text):
    """What a program printed, without times and hosts."""
    return re.sub(r"^~ .*(time of|GFLOP/s| on \S+$).*\n", "", text, flags=re.M)


class Program:
    """The C++ sources of a tutorial, and what it printed: `output`, or what its page keeps of an earlier run."""

    def __init__(self, folder, output=None):
        files = [*sorted(folder.glob("*.hpp")), *sorted(folder.glob("*.cpp")), folder.parent / "distributed.hpp"]
        self.sources = [file.read_text().split("\n") for file in files]
        steps = self.sections((folder / "output.txt").read_text())
        self.titles = {step: title for step, (title, _) in steps.items()}
        self.output = output and self.sections(of_any_machine(output))
        page = folder / "README.md"
        self.kept = dict(KEPT.findall(page.read_text())) if page.exists() else {}

    @staticmethod
    def sections(text):
        """{step: (title, lines)}."""
        found, step = {}, None
        for line in text.split("\n"):
            if heading := re.fullmatch(r"\[(\d\S*)\] (.*)", line):
                step = heading[1]
                found[step] = (heading[2], [])
            elif step and line != "all steps checked":
                found[step][1].append(line)
        return found

    def code(self, names):
        return "\n\n".join(self.definition(name) for name in names)

    def definition(self, name):
        for lines in self.sources:
            for i, line in enumerate(lines):
                if re.match(rf"(?:[A-Za-z][^()=;]*[ *&]{name}\(|(?:struct|class) {name}\b)", line) and not self.is_declaration(lines, i):
                    end = next(j for j in range(i, len(lines)) if re.match(r"\};?$", lines[j]) or (j == i and re.search(r"\}$", line)))
                    while i and re.match(r"//(?! ----)|template", lines[i - 1]):
                        i -= 1
                    return "\n".join(lines[i : end + 1])
        raise ValueError(f"no definition of {name} in the program")

    @staticmethod
    def is_declaration(lines, i):
        first = next(line for line in lines[i:] if re.search(r"[{;]", line)).split("//")[0]
        return first.rstrip().endswith(";") and "{" not in first

    def steps(self, numbers):
        """The code behind the step() calls, and what they print."""
        code = [found for number in numbers if (found := self.step(number))]
        if not self.output:
            return "\n\n".join(dict.fromkeys(code)), self.kept.get(" ".join(numbers), "")
        printed = [("\n".join(self.output[n][1])).strip("\n") for n in numbers]
        return "\n\n".join(dict.fromkeys(code)), "\n".join(p for p in printed if p)

    def step(self, number):
        title = self.titles[number]
        for lines in self.sources:
            for i, line in enumerate(lines):
                if not (call := re.match(r"\s+(?:step|automatic|draw|list_devices)\((.*)", line)):
                    continue
                whole = call[1] + " ".join(lines[i + 1 : i + 3])
                literals = re.findall(r'"((?:[^"\\]|\\.)*)"', whole.split(");")[0])
                texts = [text.replace('\\"', '"') for text in literals]
                if texts and (texts[0] == number or ((texts[-1] == title or len(texts[-1]) > 8 and title.startswith(texts[-1])) and not re.match(r'"\d', call[1]))):
                    return self.body(lines, i)
        return ""

    @staticmethod
    def body(lines, start):
        """The statements from the call at `start` to the next step or the function's end, without the call itself."""
        first = start
        while not lines[first].rstrip().endswith(";"):
            first += 1
        if not re.match(r"\s+step\(", lines[start]):  # a helper makes the step: the call is the code
            first = start - 1
        indent = len(lines[start]) - len(lines[start].lstrip())
        taken = []
        for line in lines[first + 1 :]:
            if re.match(r"\s+step\(", line) or (line.strip() and len(line) - len(line.lstrip()) < indent):
                break
            if first < start and taken and re.match(r"\s{%d}\S" % indent, line):
                break
            taken.append(line[indent:])
        return "\n".join(taken).strip("\n")


def fenced(language, text):
    return f"```{language}\n{text}\n```" if text else ""


def printed_by(cell):
    """A notebook cell's output as text, without times and colours."""
    texts = []
    for output in cell["outputs"]:
        text = output.get("text") or output.get("data", {}).get("text/plain", "")
        texts.append("".join(text))
    texts = [t for t in texts if not t.startswith("<IPython.")]
    return re.sub(r"\x1b\[[\d;]*m", "", "".join(t if t.endswith("\n") else t + "\n" for t in texts)).rstrip("\n")


def page(folder, output=None):
    """The page as Markdown: each example in C++ and in Python, with what they print."""
    program = Program(folder, output)
    notebook = json.loads((folder / f"{folder.name}.ipynb").read_text())
    cells = iter(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    parts, cpp, python = [], [], []

    def close():
        if cpp:
            parts.append("**C++**\n\n" + "\n\n".join(filter(None, cpp)))
        if python:
            parts.append("**Python**\n\n" + "\n\n".join(filter(None, python)))
        cpp.clear(), python.clear()

    for kind, *rest in pieces_of((folder / "tutorial.md").read_text()):
        if kind == "prose":
            close()
            parts.append(rest[0])
        elif kind == "code":
            cpp.append(fenced("cpp", program.code(rest[0])))
        elif kind == "step":
            code, text = program.steps(rest[0])
            cpp += [fenced("cpp", code), fenced(f"text step={' '.join(rest[0])}", text)]
        else:
            python += [fenced("python", rest[1]), fenced("text", printed_by(next(cells)))]
    close()
    name = folder.name
    start = (f"Python: `tessera notebook -n 8` and [{name}.ipynb]({name}.ipynb). C++: `tessera run -n 8 build/apps/tutorial/{name}`.\n"
             "Each `checked:` is a fact that the program tests: it stops at the first that does not hold. Outputs are of a run at the sizes that are shown; times are left out.")
    parts[0] = parts[0].replace("\n\n## ", f"\n\n{start}\n\n## ", 1) if "\n\n## " in parts[0] else f"{parts[0]}\n\n{start}"
    return "<!-- Made by scripts/tutorial_pages of tutorial.md. -->\n" + "\n\n".join(parts) + "\n"


def notebook(folder, kept=None):
    """The notebook; outputs are those of `kept`, an older form of it, where the code is the same."""
    old = {}
    for cell in (kept or {"cells": []})["cells"]:
        old.setdefault("".join(cell["source"]), []).append(cell.get("outputs", []))
    cells = []
    for kind, *rest in pieces_of((folder / "tutorial.md").read_text()):
        if kind == "prose":
            cells.append(dict(cell_type="markdown", metadata={}, source=rest[0]))
        elif kind == "python":
            outputs = old[rest[1]].pop(0) if old.get(rest[1]) else []
            cells.append(dict(cell_type="code", execution_count=None, metadata={}, outputs=outputs, source=rest[1]))
    for number, cell in enumerate(cells):
        cell["id"] = f"{folder.name[:20]}-{number}"
    kernel = {"display_name": "tessera (8 ranks)", "language": "python", "name": "tessera-8"}
    return {"cells": cells, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def text_of(made):
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def left_out(folder):
    """Steps that the program prints and the page does not have."""
    shown = [step for kind, *rest in pieces_of((folder / "tutorial.md").read_text()) if kind == "step" for step in rest[0]]
    return [f"{folder.name}: step {step} is not on the page" for step in Program(folder).titles if step not in shown]


# ---- the cells of the originals ----
def digest(code):
    """The code without imports and blanks."""
    return hashlib.sha256(re.sub(r"\s+", "", re.sub(r"^(import|from) .*$", "", code, flags=re.M)).encode()).hexdigest()[:12]


def table(tutorials):
    """(Markdown table of the originals' cells, what is wrong): a cell is exact where its code is the original's but for imports, and nothing says that it differs."""
    original = [row.split("\t") for row in (tutorials / "cells.tsv").read_text().split("\n") if row]
    wrong, rows, counts = [], [], dict(exact=0, solved=0, differs=0)
    for name in NAMES:
        text = (tutorials / name / "tutorial.md").read_text()
        wrong += left_out(tutorials / name)
        why = {int(n): reason for numbers, reason in DIFFERS.findall(text) for n in numbers.split(",")}
        ours = {}
        for kind, *rest in pieces_of(text):
            if kind == "python":
                words = dict(word.partition("=")[::2] for word in rest[0])
                if "cell" in words:
                    if int(words["cell"]) in ours:
                        wrong.append(f"{name}: cell {words['cell']} is there twice")
                    ours[int(words["cell"])] = ("solved" in words, rest[1])
        for number, theirs in ((int(row[1]), row[2]) for row in original if row[0] == name):
            if number not in ours:
                wrong.append(f"{name}: cell {number} is missing")
                continue
            solved, code = ours.pop(number)
            if digest(code) != theirs and number not in why and not solved:
                wrong.append(f"{name}: cell {number} is not the original's; write > **Differs** ({number}): why")
            verdict = "differs" if number in why else "solved" if solved else "exact"
            counts[verdict] += 1
            rows.append(f"| {name} | {number} | {verdict} | {why.get(number, '')} |")
        wrong += [f"{name}: the original has no cell {number}" for number in ours]
    head = (f"Of the {len(rows)} cells of the originals {counts['exact']} have the same code but for imports, {counts['solved']} are exercises with their blanks filled in,\n"
            f"and {counts['differs']} differ, in code or in what they print, each with its reason.\n\n| tutorial | cell | verdict | why |\n| --- | --- | --- | --- |\n")
    return head + "\n".join(rows) + "\n", wrong
