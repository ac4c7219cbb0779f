#!/usr/bin/env python3
"""blocks.py PAGE.md OUT.cpp: the ```cpp blocks of a page as one source file for tests/docs; blocks.py --rows TABLE.tsv OUT.cpp: its rows.

A block with a main of its own is a program. Any other is a part of one: it runs inside tessera::run, in its own scope, behind the
blocks of the page that declare functions or structs. Words behind ```cpp: `ranks=8` runs it at 8 ranks only, `throws=ShapeError` wants
that error, `declares` puts it before the others, outside of any function.
"""
import pathlib
import re
import sys

FENCE = re.compile(r"^```(\w+)?([^\n`]*)\n(.*?)^```[ \t]*$", re.S | re.M)


def blocks_of(text):
    """[(line, words, code)] of the ```cpp blocks."""
    for found in FENCE.finditer(text):
        if found.group(1) == "cpp":
            yield text.count("\n", 0, found.start()) + 2, found.group(2).split(), found.group(3)


def option(words, name, otherwise):
    return next((word.split("=")[1] for word in words if word.startswith(name + "=")), otherwise)


def source_of(page, text):
    includes, declared, functions, rows = [], [], [], []
    for line, words, code in blocks_of(text):
        includes += re.findall(r"^#include .*$", code, re.M)
        code = re.sub(r"^#include .*$", "", code, flags=re.M)
        place = f'#line {line} "{page}"\n'
        name = f"block_{line}"
        if "declares" in words:
            declared.append(place + code)
            continue
        if re.search(r"\bint main\(", code):
            code = re.sub(r"\bint main\(", "int start(", code)
            functions.append(f"namespace {name} {{\n{place}{code}}}\n")
            call = f"{name}::start"
        else:
            functions.append(f"void {name}() {{\n{place}{code}}}\n")
            call = f"[](int argc, char** argv) {{ return tessera::run(argc, argv, {name}); }}" if not option(words, "throws", "") else f"docs::throws<tessera::{option(words, 'throws', '')}>({name})"
        rows.append(f'  docs::add("{page}", {line}, {option(words, "ranks", "0")}, {call});')
    register = "const bool registered = [] {\n" + "\n".join(rows) + "\n  return true;\n}();\n"
    head = "\n".join(dict.fromkeys(["#include <tessera/tessera.hpp>", "#undef NDEBUG", "#include <cassert>", '#include "docs/blocks.hpp"', *includes]))
    return f"// Made by scripts/site/blocks.py of {page}.\n{head}\n\nnamespace {{\n\nusing namespace tessera;\n\n" + "\n".join(declared + functions) + "\n" + register + "\n}  // namespace\n"


def rows_of(text):
    """[(section, jax, numpy, tessera, note)] of the table."""
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("## "):
            section = line[3:].strip()
        elif line.strip() and not line.startswith("#"):
            cells = [cell.strip() for cell in line.split("\t") if cell.strip()]
            if len(cells) not in (3, 4):
                sys.exit(f"line {number} of the table has {len(cells)} cells; JAX, NumPy, tessera and perhaps a note, with tabs between: {line}")
            yield number, section, *cells, *[""] * (4 - len(cells))


def rows_source(page, text):
    sections = {}
    for number, section, _jax, _numpy, ours, _note in rows_of(text):
        statement = ours if ours.endswith(";") else f"docs::keep({ours});"
        sections.setdefault(section, []).append(f'#line {number} "{page}"\n  {{ {statement} }}')
    functions, rows = [], []
    for i, (section, statements) in enumerate(sections.items()):
        functions.append(f"void section_{i}() {{  // {section}\n  const docs::Prelude given;\n  [[maybe_unused]] const auto& [" + PRELUDE + "] = given;\n" + "\n".join(statements) + "\n}\n")
        rows.append(f'  docs::add("{page}: {section}", 0, 0, [](int argc, char** argv) {{ return tessera::run(argc, argv, section_{i}); }});')
    register = "const bool registered = [] {\n" + "\n".join(rows) + "\n  return true;\n}();\n"
    return f'// Made by scripts/site/blocks.py of {page}.\n#include <tessera/nn.hpp>\n#include <tessera/optim.hpp>\n#include <tessera/tessera.hpp>\n#include "docs/blocks.hpp"\n#include "docs/prelude.hpp"\n\nnamespace {{\n\nusing namespace tessera;\n\n' + "\n".join(functions) + "\n" + register + "\n}  // namespace\n"


PRELUDE = "mesh, x, y, a, b, v, n, mask, z, key, f, loss, params"


def main():
    words = [word for word in sys.argv[1:] if word != "--rows"]
    page, out = pathlib.Path(words[0]), pathlib.Path(words[1])
    made = (rows_source if "--rows" in sys.argv else source_of)(page.name, page.read_text())
    if not out.exists() or out.read_text() != made:
        out.write_text(made)


if __name__ == "__main__":
    main()
