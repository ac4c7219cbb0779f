#!/usr/bin/env python3
"""make_goldens.py FOLDER: writes goldens.txt, what the NumPy cells of the tables give, and where there is none the JAX cells.

    WRITE_CATALOGUE=FOLDER build/tests/catalogue_test --gtest_filter='Goldens.operands*'
    python3 tests/catalogue/make_goldens.py FOLDER      # where `import scipy, jax` works

The tests only read goldens.txt. --compare-jax tells where NumPy's cell and JAX's differ.
"""
import base64
import pathlib
import sys

import jax
import numpy as np
import scipy
import scipy.fft
import scipy.linalg
import scipy.signal
from scipy import special

import numpy_calls
import rows

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def arrays_of(path):
    """{name: arrays}, and {name: table}."""
    found, tables = {}, {}
    for line in path.read_text().split("\n"):
        if line.startswith("# "):
            _, name, table = line.split()
            found[name], tables[name] = [], table
        elif line:
            name, _, dtype, shape, data = line.split("\t")
            values = np.frombuffer(base64.b64decode(data), dtype).reshape([int(n) for n in shape.split(",") if n])
            found.setdefault(name, []).append(values)
    return found, tables


def flat(value):
    """Arrays of tuples, lists and keys."""
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in flat(part)]
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return [np.asarray(value)]


def line_of(name, number, value):
    shape = ",".join(map(str, value.shape))
    return f"{name}\t{number}\t{value.dtype.name}\t{shape}\t{base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()}\n"


shared = {name: value for name, value in vars(numpy_calls).items() if callable(value)}
of_numpy = {"np": np, "sp": scipy, "special": special, **shared, **numpy_calls.base(np)}
of_jax = {"jax": jax, "jnp": jax.numpy, "jsp": jax.scipy, **numpy_calls.base(jax.numpy), "k": jax.random.key(7)}


def evaluated(cell, names, operands):
    return flat(eval(f"[{cell}]", dict(names, **dict(zip(rows.OPERANDS, operands)))))  # noqa: S307: our own tables


def drawn(cell, operands):
    """By JAX: draws of 32 bits as it draws them by default, those of 64 bits as with jax_enable_x64."""
    found = []
    for part in rows.calls_of(cell):
        with jax.enable_x64("64" in part or bool(operands) and "float32" not in part):
            found += evaluated(part, dict(of_jax, k=jax.random.key(7)), operands)
    return found


def main():
    operands, tables = arrays_of(pathlib.Path(sys.argv[1]) / "operands.tsv")
    by_name = {**{row.operands[1:]: row for row in rows.rows() if row.operands.startswith("*")}, **{row.id: row for row in rows.rows()}}
    written, without, differ = {}, [], []
    for name in sorted(operands):
        row = by_name.get(name) or by_name.get(name.removesuffix("_other_way").removesuffix("_complex"))
        if row is None or row.numpy == "-" and (row.jax == "-" or "ts." in row.jax):
            without.append(name)
            continue
        values = operands[name]
        if name.startswith(("isnan", "isinf", "isfinite")) and values[0].dtype == np.int32:
            values = [np.log(values[0].astype(np.float32))]
        try:
            with np.errstate(all="ignore"):
                written[name] = drawn(row.jax, values) if row.numpy == "-" else evaluated(row.numpy, of_numpy, values)
            if row.operands.startswith("*") and all(v.dtype.kind == "i" for v in values):  # NumPy makes float64 of integers
                written[name] = [v.astype(np.float32) if v.dtype == np.float64 else v for v in written[name]]
            if "--compare-jax" in sys.argv and row.numpy != "-" and row.jax != "-" and "ts." not in row.jax:
                for got, wanted in zip(evaluated(row.jax, of_jax, [jax.numpy.asarray(v) for v in values]), written[name], strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)
        except Exception as error:  # noqa: BLE001: each row is told
            differ.append(f"{row.table.name}:{row.line}: {name}: {type(error).__name__} {str(error).strip()[:300]}")
    path = pathlib.Path(__file__).parent / "goldens.txt"
    with open(path, "w") as out:
        out.write(f"# By make_goldens.py from NumPy {np.__version__}, SciPy {scipy.__version__}, JAX {jax.__version__}: name, number, dtype, shape, bytes in base64.\n")
        for name, values in written.items():
            out.writelines(line_of(name, i, value) for i, value in enumerate(values))
    print(*differ, sep="\n")
    print(f"{len(written)} samples; without a golden: {' '.join(without)}")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
