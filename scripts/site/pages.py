"""Stages the pages of the site for Sphinx: each source becomes one Markdown file in one folder, with links that lead there."""
import ast
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import blocks
import examples
import functions
import reference
import theme

GUIDES = ["install", "first-program", "python", "notebooks", "sharding", "explain", "advise", "simulate", "scaling", "gradients", "networks", "sparse", "files", "larger-than-memory", "clusters", "performance", "speed",
          "mixed-precision", "pictures", "command-line", "errors", "replay", "limits", "faq", "trust", "versions"]
COMING_FROM = ["from-jax", "stablehlo", "scalapack", "coming-from"]
CHEAT_SHEETS = {"jax": "JAX → tessera", "numpy": "NumPy → tessera"}
TUTORIALS = ["parallel_evaluation", "distributed_arrays_2022", "distributed_arrays_2024", "parallelism", "workshop"]
HEADERS = """runtime device error dtype shape mesh sharding array/handle array/create array/host array/index array/read ops/axes ops/elementwise
ops/reduce ops/reduce_named ops/reshape ops/index ops/contract tree jit jit/options jit/explain jit/simulate jit/stablehlo control grad maps collectives random fft
linalg sparse sparse/krylov nn optim io debug visualize multihost mpi""".split()
UMBRELLAS = {"tessera", "array", "ops", "transforms"}  # they only include others


def write(root, stage):
    """Fills `stage`; returns what is wrong with the sources."""
    return Stage(root, stage).write()


class Stage:
    def __init__(self, root, stage):
        self.root, self.stage, self.site = root, stage, root / "scripts/site"
        self.findings = []

    def write(self):
        names = self.page_names()
        read = self.read_headers()
        for source, name in names.items():
            (self.stage / f"{name}.md").write_text(self.converted(self.root / source, names))
        catalogue = functions.Catalogue(self.root)

        def linked(function, call):
            return f"[{code_cell(call)}]({read.names[function]})" if function in read.names else code_cell(call)

        for name, title in CHEAT_SHEETS.items():
            text = self.cheat_sheet(name, title, read.names) + functions.cheat_sheet(catalogue, name, linked, code_cell)
            (self.stage / f"cheatsheet-{name}.md").write_text(text)
        (self.stage / "functions.md").write_text(functions.table(catalogue, self.rules(), linked, code_cell))
        for header in read.entries:
            (self.stage / f"{address_of(header)}.md").write_text(read.page(header))
        self.findings += read.findings
        self.check_names(names)
        self.write_index(names, list(read.entries))
        shutil.copy(self.site / "conf.py", self.stage)
        (self.stage / "_static").mkdir(exist_ok=True)
        shutil.copy(self.site / "tessera.css", self.stage / "_static")
        theme.mend(self.stage / "_static")
        return self.findings

    # ---- which source becomes which page ----
    def headers(self):
        """Those of HEADERS that are there, then the others."""
        folder = self.root / "include/tessera"
        here = sorted(str(p.relative_to(folder))[:-4] for p in folder.rglob("*.hpp") if "detail" not in p.parts)
        return [h for h in HEADERS if h in here] + [h for h in here if h not in HEADERS and h not in UMBRELLAS]

    def page_names(self):
        names = {"README.md": "readme", "CHANGELOG.md": "changelog", "include/README.md": "headers", "apps/tutorial/README.md": "tutorials",
                 "apps/tutorial/JAX.md": "tutorials-jax", "apps/tutorial/CELLS.md": "tutorials-cells", "src/ops/elementwise/TABLE.md": "table-elementwise", "src/ops/TABLE.md": "table-ops", "src/README.md": "glossary"}
        for file in sorted((self.site / "pages").glob("*.md")):
            names[str(file.relative_to(self.root))] = file.stem
        for file in sorted((self.root / "apps/tutorial").glob("*/README.md")):
            names[str(file.relative_to(self.root))] = f"tutorial-{file.parent.name}"
        for top, prefix in (("src", "room-"), ("tests", "tests-")):
            for file in sorted((self.root / top).glob("*/**/README.md")):
                names[str(file.relative_to(self.root))] = prefix + "-".join(file.parent.relative_to(self.root / top).parts)
        return {source: name for source, name in names.items() if (self.root / source).exists()}

    def write_index(self, names, headers):
        here = set(names.values())
        guides = [g for g in GUIDES if g in here]
        others = sorted(f.stem for f in (self.site / "pages").glob("*.md") if f.stem not in GUIDES + COMING_FROM + ["contributing"])
        rooms = sorted(n for n in here if n.startswith("room-"))
        trees = {
            "Guides": guides + others + ["glossary"],
            "Coming from": [c for c in COMING_FROM if c in here] + [f"cheatsheet-{name}" for name in CHEAT_SHEETS],
            "Tutorials": ["tutorials"] + [f"tutorial-{t}" for t in TUTORIALS] + ["tutorials-cells", "tutorials-jax"],
            "Reference": ["headers"] + [address_of(h) for h in headers] + ["functions", "table-ops", "table-elementwise"],
            "Development": ["contributing"] + rooms + sorted(n for n in here if n.startswith("tests-")) + ["changelog"],
        }
        listed = {page for pages in trees.values() for page in pages} | {"readme"}
        self.findings += [f"{name} is not in the navigation" for name in sorted(here - listed)]
        text = (self.stage / "readme.md").read_text()
        (self.stage / "readme.md").unlink()
        for heading, pages in trees.items():
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n:maxdepth: 1\n\n" + "\n".join(pages) + "\n```\n"
        (self.stage / "index.md").write_text(text)

    # ---- Markdown ----
    def converted(self, source, names):
        text = source.read_text()
        self.copy_notebooks(source, text)
        if not re.match(r"(<!--.*?-->\s*)?# ", text, re.S):
            if source.name == "TABLE.md":  # made by a test
                text = ("# Elementwise ops\n\n" if source.parent.name == "elementwise" else "# Ops on split dims\n\n") + text
            else:
                self.findings.append(f"{source.relative_to(self.root)}: no title (# ...)")
        text = re.sub(r"^```(\w+)[ \t]+[^\n]*$", r"```\1", text, flags=re.M)  # words for the tests
        text = re.sub(r"^\[([^\]\n]+)\]: (\S+)$", lambda found: self.definition(found, source, names), text, flags=re.M)
        return tabs(outside_code(text, lambda part: re.sub(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", lambda found: self.link(found, source, names), part)))

    def copy_notebooks(self, source, text):
        """A page's notebooks lie beside it, to be downloaded."""
        for name in re.findall(r"\]\(([\w-]+\.ipynb)\)", text):
            (self.stage / "_static").mkdir(exist_ok=True)
            shutil.copy(source.parent / name, self.stage / "_static")

    def link(self, found, source, names):
        picture, words, link = found.groups()
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            return found.group(0)
        path, _, anchor = link.partition("#")
        place = os.path.relpath((source.parent / path).resolve(), self.root)
        if place in names:
            name = "index" if names[place] == "readme" else names[place]
            return f"{picture}[{words}]({name}.md{'#' + anchor if anchor else ''})"
        if pathlib.PurePath(place).suffix in (".svg", ".png") and (self.root / place).exists():
            copy = "-".join(pathlib.PurePath(place).parts)
            shutil.copy(self.root / place, self.stage / copy)
            return f"{picture}[{words}]({copy})"
        if place.endswith(".ipynb") and (self.root / place).exists():
            return f"<a href='_static/{pathlib.PurePath(place).name}' download>{words}</a>"
        if not (self.root / place).exists():
            self.findings.append(f"{source.relative_to(self.root)}: {link} does not exist")
        return words  # a file of the tree without a page

    def definition(self, found, source, names):
        """[5]: path, a link's address that stands apart."""
        led = re.fullmatch(r"\[x\]\((.*)\)", self.link(re.match(r"(!?)\[(x)\]\((.*)\)", f"[x]({found.group(2)})"), source, names))
        return f"[{found.group(1)}]: {led.group(1)}" if led else ""

    def check_names(self, sources):
        """Commands, scripts and settings that pages speak of are there."""
        read = lambda files: "".join(p.read_text() for p in files)
        settings = set(re.findall(r'\{"(TESSERA_\w+)"', (self.root / "src/base/settings.cpp").read_text()))
        options = set(re.findall(r"\b(?:option|set)\((TESSERA_\w+)", read([self.root / "CMakeLists.txt", *(self.root / "scripts/cmake").glob("*.cmake")])))
        commands = set(re.findall(r'(?:add_subcommand\(\s*|\{)"(\w+)",', read((self.root / "apps/cli").glob("*.cpp"))))
        for source in sources:
            text = (self.root / source).read_text()
            fenced = [found.group(3) for found in blocks.FENCE.finditer(text) if found.group(1) in (None, "sh", "text")]
            code = "\n".join(fenced + re.findall(r"`[^`\n]+`", blocks.FENCE.sub("", text)))
            for word in sorted(set(re.findall(r"(?:^|`|\$ |bin/)tessera (\w+)", code, re.M)) - commands):
                self.findings.append(f"{source}: there is no command 'tessera {word}'")
            for word in sorted(set(re.findall(r"(?<![\w/])scripts/([a-z_0-9]+)", code))):
                if not (self.root / "scripts" / word).exists():
                    self.findings.append(f"{source}: there is no scripts/{word}")
            for word in sorted(set(re.findall(r"\bTESSERA_[A-Z_]+", code)) - settings - options):
                if not self.is_spoken_of(word):
                    self.findings.append(f"{source}: there is no setting {word}")

    def is_spoken_of(self, word):
        """Whether any file of the tree but its pages has the word."""
        files = (path for folder in ("src", "tests", "scripts", "apps") for path in (self.root / folder).rglob("*") if path.is_file())
        return any(word in path.read_text(errors="ignore") for path in files if path.suffix in {"", ".cpp", ".hpp", ".py", ".txt", ".cmake"})

    # ---- cheat sheets ----
    def cheat_sheet(self, theirs, title, known):
        column = {"jax": 0, "numpy": 1}[theirs]
        text = (self.site / "cheatsheet.tsv").read_text()
        about = " ".join(line[1:].strip() for line in text.split("\n## ")[0].split("\n") if line.startswith("#") and "with tabs" not in line)
        parts, section = [f"# {title}", about], None
        for _number, heading, *cells in blocks.rows_of(text):
            their, ours, note = cells[column], cells[2], cells[3]
            if their == "-":
                continue
            if heading != section:
                section = heading
                parts.append(f"\n## {section}\n\n| {title.split()[0]} | tessera | |\n| --- | --- | --- |")
            named = [known[word] for word in re.findall(r"[A-Za-z_][\w:]*", ours) if word in known]
            shown = code_cell(ours)
            parts.append(f"| {code_cell(their)} | {f'[{shown}]({named[0]})' if named else shown} | {note.replace('|', chr(92) + '|')} |")
        return "\n\n".join(parts[:2]) + "\n" + "\n".join(parts[2:]) + "\n"

    # ---- the reference ----
    def read_headers(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = (self.site / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {folder}\n"
            done = subprocess.run(["doxygen", "-"], cwd=self.root, input=settings, capture_output=True, text=True, check=True)
            self.findings += [line.replace(f"{self.root}/", "") for line in done.stderr.split("\n") if line.strip()]
            headers = [header + ".hpp" for header in self.headers()]
            read = reference.Reference(pathlib.Path(folder) / "xml", self.root / "include/tessera", headers, self.rules(), self.python(), self.examples())
            read.address_all(address_of)
            return read

    def rules(self):
        """What each op does on a split dim, from the table that a test writes."""
        table = (self.root / "src/ops/TABLE.md").read_text()
        return {row[1].strip(): row[3].strip() for line in table.split("\n") if len(row := re.split(r"(?<!\\)\|", line)) > 5 and row[3].strip() not in ("on a split dim", "---")}

    def examples(self):
        """Function -> its example from the catalogue, and the error of a call that is refused."""
        catalogue = functions.Catalogue(self.root)
        first = [row for rows in catalogue.sections.values() for row in rows]
        shown, refused = examples.Examples(self.root, first), examples.refusals(self.root, first)

        told = set()

        def of(function):
            """For the first of the overloads that stand apart."""
            if function in told:
                return ""
            told.add(function)
            example = shown.of(function, catalogue.rows.calls_of)
            parts = [f"*Example*\n\n```text\n{example}\n```"] if example else []
            return "\n\n".join(parts + ([f"*Error*\n\n```text\n{refused[function]}\n```"] if function in refused else []))

        return of

    def python(self):
        """{C++'s name with dots: Python's signatures}, from the stubs of the newest build that has them."""
        folders = sorted((p for p in self.root.glob("build*/python/tessera") if any(p.glob("*.pyi"))), key=os.path.getmtime)
        found = {}
        for stub in sorted(folders[-1].glob("*.pyi")) if folders else ():
            module = "" if stub.stem.startswith("_") else stub.stem + "."
            for node in ast.parse(stub.read_text()).body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    node.body, node.decorator_list = [ast.Expr(ast.Constant(...))], []
                    found.setdefault(module + node.name, []).append(ast.unparse(node).split("\n")[0])
        return {name: "\n".join(dict.fromkeys(lines)) for name, lines in found.items()}


def code_cell(words):
    words = words.replace("|", "\\|")
    return f"`` {words} ``" if "`" in words else f"`{words}`"


FENCED = r"```(?:%s)[^\n]*\n.*?^```\n"
CODE = re.compile(r"(?:^\*\*C\+\+\*\*\n\n)?((?:%s\n*)+)(?:^\*\*Python\*\*\n\n)?((?:%s\n*)+)" % (FENCED % "cpp|text", FENCED % "python|text"), re.S | re.M)


def tabs(text):
    """What stands in C++ and then in Python, as tabs: under the words **C++** and **Python**, or one block of each behind the other."""
    def tab(found):
        cpp, python = found[1].strip("\n"), found[2].strip("\n")
        is_named = found[0].startswith("**C++**") and "\n**Python**\n" in found[0]
        if not (is_named or re.fullmatch(r"```cpp[^`]*```", cpp) and re.fullmatch(r"```python[^`]*```", python)):
            return found[0]
        return "".join(f"````{{tab}} {name}\n{blocks}\n````\n\n" for name, blocks in (("C++", cpp), ("Python", python)))
    return CODE.sub(tab, text)


def outside_code(text, change):
    parts = re.split(r"(^```.*?^```[ \t]*$)", text, flags=re.S | re.M)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def address_of(header):
    return "ref-" + header.removesuffix(".hpp").replace("/", "-")
