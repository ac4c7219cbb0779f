#!/usr/bin/env python3
"""Writes golden/NAME.stablehlo, a program as JAX prints it, and golden/NAME.json: arguments, and the results that JAX gives for them. Run it where
`import jax` works; the tests only read the files. `make_goldens.py NAME...` writes those alone.

A file: {"arguments": [{"dtype", "shape", "values"}, ...], "results": [...], "tolerance": relative to the largest element of a result}.
Complex values stand as re, im, re, im, ...
"""
import json
import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax  # noqa: E402
import numpy as np  # noqa: E402

from programs import programs  # noqa: E402

folder = pathlib.Path(__file__).resolve().parent / "golden"


def number(x, dtype):
    if dtype == bool or np.issubdtype(dtype, np.integer):
        return int(x)
    x = np.float32(x) if dtype.name in ("bfloat16", "float16") else x
    return float(str(x)) if np.isfinite(x) else str(x)


def described(x):
    x = np.asarray(x)
    values = np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x
    return {"dtype": x.dtype.name, "shape": list(x.shape), "values": [number(v, values.dtype) for v in values.ravel()]}


def text_of(program, arguments):
    if hasattr(program.function, "lower"):  # jitted already, with layouts of its arguments and results
        return program.function.lower(*arguments).as_text()
    if program.exported:
        return jax.export.export(jax.jit(program.function))(*arguments).mlir_module()
    return jax.jit(program.function).lower(*arguments).as_text()


def write(program):
    jax.config.update("jax_use_shardy_partitioner", program.shardy)
    with jax.enable_x64(program.x64):
        arguments = [np.asarray(a) for a in program.arguments()]
        text = text_of(program, arguments)
        results = jax.tree_util.tree_leaves(jax.jit(program.function)(*arguments))
    text = text.replace(f"{folder.parent}/", "")  # locations name files without the folder of whoever wrote them
    (folder / f"{program.name}.stablehlo").write_text(text)
    parts = [json.dumps(name) + ": [\n" + ",\n".join(json.dumps(described(x), separators=(",", ":")) for x in values) + "\n]"
             for name, values in (("arguments", arguments), ("results", results))]
    parts.append(f'"tolerance": {program.tolerance}')
    if program.devices > 1:
        parts.append(f'"devices": {program.devices}')
    (folder / f"{program.name}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


folder.mkdir(exist_ok=True)
wanted = sys.argv[1:]
for program in programs:
    if not wanted or program.name in wanted:
        write(program)
