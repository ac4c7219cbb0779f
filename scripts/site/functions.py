"""The tables of all functions, from the rows of tests/catalogue: tessera's call, NumPy's and JAX's, and what each does on a split dim."""
import re
import sys


def rows_module(root):
    sys.path.insert(0, str(root / "tests/catalogue"))
    import rows

    return rows


# JAX's functions whose calls cannot stand in the catalogue's cells: collectives need an axis, the others have other parameters or dtypes there.
# tests/python/jax/test_primitives.py looks each of them up.
JAX_NAMES = {
    **{f"fft::{name}": f"jax.scipy.fft.{name}" for name in ("dct", "idct", "dctn", "idctn")},
    **{name: f"jax.lax.{name}" for name in ("psum", "pmean", "pmax", "pmin", "all_gather", "psum_scatter", "all_to_all", "ppermute", "pbroadcast", "conv_transpose")},
    **{name: f"jax.numpy.{name}" for name in ("unique_all", "intersect1d", "setdiff1d", "setxor1d", "bartlett", "blackman", "hamming", "hanning", "kaiser")},
    **{name: f"jax.ops.{name}" for name in ("segment_sum", "segment_prod", "segment_max", "segment_min")},
    **{f"random::{name}": f"jax.random.{name}" for name in ("wrap_key_data", "binomial", "multinomial")},
    **{f"sparse::{name}": f"jax.scipy.sparse.linalg.{name}" for name in ("cg", "gmres", "bicgstab")},
    "checkpoint": "jax.checkpoint", "device_put": "jax.device_put", "fft::convolve": "jax.scipy.signal.fftconvolve", "fft::correlate": "jax.scipy.signal.correlate",
    "linalg::cholesky_solve": "jax.scipy.linalg.cho_solve", "linalg::svd": "jax.numpy.linalg.svd", "linalg::schur": "jax.scipy.linalg.schur",
    "linalg::sqrtm": "jax.scipy.linalg.sqrtm", "linalg::qr_pivoted": "jax.scipy.linalg.qr", "nn::exact_gelu": "jax.nn.gelu",
}


class Catalogue:
    """The first row of each function, in the sections of the tables: a line `# Title. ...` begins one."""

    def __init__(self, root):
        self.rows = rows_module(root)
        self.sections = {}
        seen = set()
        for table in sorted((root / "tests/catalogue").glob("*.tsv")):
            titles = {n: re.split(r"[.:;]", line[2:])[0] for n, line in enumerate(table.read_text().split("\n"), 1) if line.startswith("# ") and "\t" not in line}
            for row in self.rows.rows_of(table):
                if row.function not in seen and not row.variant:
                    seen.add(row.function)
                    self.sections.setdefault(titles[max(n for n in titles if n < row.line)], []).append(row)

    def of(self, row, column):
        """The first call of a cell, without the helpers that make its operand fit; nothing where there is no such call."""
        call = self.rows.calls_of({"tessera": row.cpp, "numpy": row.numpy, "jax": row.jax}[column])[0].strip()
        call = re.sub(r"\b(?:regular|hermitian|definite|stop_gradient|with_nan)\((\w)(?:, \d)?\)", r"\1", call)
        if column == "tessera":
            return call if call.startswith((row.function + "(", row.function.split("::")[-1] + "(")) or re.match(r"a\W", call) else row.function
        if column == "jax" and row.function in JAX_NAMES:
            return JAX_NAMES[row.function]
        if "ts." in call or re.match(r"\w+\(", call) or not re.search(r"\b(np|sp|special|jnp|jax|jsp)\.", call):
            return ""
        return re.sub(r"\b(jsp|sp|special)\.", lambda found: {"jsp": "jax.scipy.", "sp": "scipy.", "special": "scipy.special."}[found[1]], call)


ABOUT = "a, b and c are arrays, k is a random key. The calls are those of tests/catalogue, which compares their values."


def cheat_sheet(catalogue, column, linked, code_cell):
    """The sections of a cheat sheet: functions that `column` has, too."""
    parts = []
    for title, rows in catalogue.sections.items():
        lines = [f"| {code_cell(catalogue.of(row, column))} | {linked(row.function, catalogue.of(row, 'tessera'))} |" for row in rows if catalogue.of(row, column)]
        if lines:
            parts.append(f"\n### {title}\n\n| {column} | tessera |\n| --- | --- |\n" + "\n".join(lines))
    return f"\n## All functions\n\n{ABOUT}\n" + "\n".join(parts) + "\n"


def table(catalogue, rules, linked, code_cell):
    """The page of all functions and layouts: what each does where a dim is split."""
    parts = ["# All functions", f"What NumPy and JAX call them, and what each does on a split dim. {ABOUT}"]
    for title, rows in catalogue.sections.items():
        parts.append(f"## {title}\n\n| tessera | NumPy, SciPy | JAX | on a split dim |\n| --- | --- | --- | --- |")
        for row in rows:
            cells = [code_cell(text) if text else "" for text in (catalogue.of(row, "numpy"), catalogue.of(row, "jax"))]
            rule = "local" if row.operands.startswith("*") else rules.get(row.function.split("::")[-1], "")
            parts[-1] += f"\n| {linked(row.function, catalogue.of(row, 'tessera'))} | {cells[0]} | {cells[1]} | {rule} |"
    return "\n\n".join(parts) + "\n"
