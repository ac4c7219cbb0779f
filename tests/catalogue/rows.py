#!/usr/bin/env python3
"""rows.py --cpp TABLE.tsv OUT.cpp: the rows of a table as C++. rows.py --check: every public function has a row (README.md)."""
import pathlib
import re
import sys

here = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(here.parents[1] / "scripts"))
import headers  # noqa: E402

# Headers whose functions have rows.
ROOMS = ("ops/", "linalg", "fft", "random", "nn", "sparse", "control/lax")
# Functions that no row can call, and where they are tested.
REASONS = {
    "is_reproducible": "says which scope holds: tests/reproducible",
    "random::threefry": "says which scope holds: tests/random",
    "nn::shuffled_batches": "gives batches, no array: tests/nn",
    "nn::split_in_pairs": "places a network, computes nothing: tests/nn",
    "sparse::open": "opens a file: tests/stream",
    "sparse::load_matrix_market": "reads a file: tests/sparse",
    "sparse::save_matrix_market": "writes a file: tests/sparse",
    **{f"sparse::load_{kind}": "reads a file: tests/sparse" for kind in ("npz", "hdf5", "zarr")},
    **{f"sparse::save_{kind}": "writes a file: tests/sparse" for kind in ("npz", "hdf5", "zarr")},
    "sparse::lobpcg": "eigenvectors with signs of their own: tests/sparse",
    "sparse::lanczos": "eigenvectors with signs of their own: tests/sparse",
}
OPERANDS = "abcde"


class Row:
    def __init__(self, table, line, text):
        self.table, self.line = table, line
        cells = text.split("\t")
        self.name, self.operands, self.laws, self.cpp, self.numpy, self.jax = cells[:6]
        self.function, _, self.variant = self.name.partition(".")
        self.refused = cells[6] if len(cells) > 6 else self.usual_refusal()
        if self.jax == "=":
            self.jax = self.numpy.replace("np.", "jnp.").replace("special.", "jsp.special.").replace("sp.linalg.", "jsp.linalg.").replace("sp.fft.", "jsp.fft.")

    @property
    def id(self):
        return re.sub(r"\W+", "_", self.name)

    def usual_refusal(self):
        """A call with an array that holds nothing, of a function of arrays alone."""
        wrong = {"a": "none", "a, b": "vector(), none", "a, b, c": "none, vector(), vector()"}
        found = re.fullmatch(re.escape(self.function) + r"\((a(?:, b)?(?:, c)?)\)", self.cpp)
        return f"{self.function}({wrong[found.group(1)]})" if found and not self.variant else "-"

    def operand_names(self):
        if self.operands.startswith("*"):
            return [name for name in OPERANDS if re.search(rf"\b{name}\b", self.cpp)]
        return list(OPERANDS[: 0 if self.operands == "-" else len(self.operands.split(";"))])


def rows_of(table):
    for number, line in enumerate(table.read_text().split("\n"), 1):
        if line and not line.startswith("#"):
            if line.count("\t") < 5:
                sys.exit(f"{table}:{number}: {line.count(chr(9)) + 1} cells; a row has 6 or 7 (README.md)")
            yield Row(table, number, line)


def rows():
    return [row for table in sorted(here.glob("*.tsv")) for row in rows_of(table)]


def calls_of(cell):
    """The calls of a cell, which commas separate."""
    return headers.split_commas(cell)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def cpp(table):
    """Errors of the compiler and of the library cite the line of the table."""
    text = ['#include "catalogue/calls.hpp"', f"namespace tessera::test::table_of_{table.stem} {{", "namespace {"]
    entries = []
    for row in rows_of(table):
        names = "".join(f"[[maybe_unused]] const Array& {name} = x[{i}]; " for i, name in enumerate(row.operand_names()))
        keys = "const random::Key k = random::key(7); "
        mark = f'#line {row.line} "{table.name}"'
        text += [mark, f"Out row_{row.line}([[maybe_unused]] In x) {{ {names}{keys if re.search(chr(92) + 'bk' + chr(92) + 'b', row.cpp) else ''}return outs({row.cpp}); }}"]
        if row.refused != "-":
            text += [mark, f"void refused_{row.line}() {{ {keys if re.search(chr(92) + 'bk' + chr(92) + 'b', row.refused) else ''}(void)({row.refused}); }}"]
        refused = f"refused_{row.line}" if row.refused != "-" else "nullptr"
        entries.append(f"    {{{quoted(row.name)}, {quoted(row.operands)}, {quoted(row.laws)}, row_{row.line}, {refused}, {quoted(table.name)}, {row.line}}},")
    text += ['#line 1 "generated"', "const Row rows_here[] = {", *entries, "};", "const bool are_known = know_rows(rows_here);", "}", "}"]
    return "\n".join(text) + "\n"


def check():
    """Public functions without a row; rows and reasons of functions that are gone."""
    known = {row.function for row in rows()}
    wanted, findings = {}, []
    for path in headers.public_headers():
        if str(path.relative_to(headers.include)).startswith(ROOMS):
            for d in headers.functions(path):
                wanted.setdefault(d.qualified, d)
    for name, d in wanted.items():
        if name not in known and name not in REASONS:
            findings.append(f"{d.path.relative_to(headers.root)}:{d.line}: {name} has no row in tests/catalogue; add one (tests/catalogue/README.md), or a reason to rows.py")
    findings += [f"tests/catalogue/rows.py: {name} has a reason, but {'a row, too' if name in known else 'is no function'}" for name in REASONS if name in known or name not in wanted]
    seen = {}
    for row in rows():
        if row.id in seen:
            findings.append(f"tests/catalogue/{row.table.name}:{row.line}: {row.name} stands in {seen[row.id]} as well; give it a variant: {row.name}.other")
        seen[row.id] = f"{row.table.name}:{row.line}"
    print(*findings, sep="\n", end="\n" if findings else "")
    print(f"{len(rows())} rows of {len(known & set(wanted))} public functions of {len(wanted)}; {len(REASONS)} have a reason instead")
    return bool(findings)


if __name__ == "__main__":
    if sys.argv[1] == "--cpp":
        pathlib.Path(sys.argv[3]).write_text(cpp(pathlib.Path(sys.argv[2]).resolve()))
    elif sys.argv[1] == "--check":
        sys.exit(check())
    else:
        sys.exit(__doc__)
