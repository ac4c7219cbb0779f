#!/usr/bin/env python3
"""Writes options_golden.inc: what NumPy gives for the calls of options_test.cpp. Run it where `import numpy` works; the test only reads
the file. One row per call: {name, shape, values}.
"""
import pathlib

import numpy as np

x = ((np.arange(35) * 11) % 17 - 8).reshape(7, 5).astype(np.float64)
n = ((np.arange(35) * 11) % 17 - 8).reshape(7, 5).astype(np.int32)
counts = [2, 0, 3, 1, 0, 0, 4]
table = np.array([5, 1, 4, 1, 9, 2, 6, 5])
MODES = ["edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum", "mean", "median"]

rows = {
    "sum_dtype": n.sum(0, dtype=np.float64),
    "prod_dtype": (n % 5 + 1).prod(1, dtype=np.int64),
    "var_correction": x.var(0, ddof=1),
    "std_correction": x.std(1, ddof=2.5),
    "clip_below": np.clip(x, -3, None),
    "clip_above": np.clip(x, None, 2),
    "linspace": np.linspace(-1, 2, 13),
    "linspace_open": np.linspace(-1, 2, 12, endpoint=False),
    "linspace_integers": np.linspace(-7, 9, 11, dtype=np.int64),
    "roll_axes": np.roll(x, (2, -1), (0, 1)),
    "roll_flat": np.roll(x, 8),
    "repeat_counts": np.repeat(x, counts, 0),
    "cumsum_flat": np.cumsum(n),
    "cumprod_dtype": np.cumprod(n % 4 + 1, 1, dtype=np.float64),
    "cumsum_initial": np.concatenate([np.zeros((1, 5)), np.cumsum(x, 0)]),
    "cumsum_reverse_initial": np.concatenate([np.cumsum(x[::-1], 0)[::-1], np.zeros((1, 5))]),
    "cummax": np.maximum.accumulate(x, 0),
    "cummax_reverse": np.maximum.accumulate(x[::-1], 0)[::-1],
    "cummin": np.minimum.accumulate(x, 1),
    "cumlogsumexp": np.logaddexp.accumulate(x, 0),
    "sort_descending": -np.sort(-x, 0),
    "argsort_descending": np.argsort(-(x % 3), 0, kind="stable"),
    "searchsorted_sorter": np.searchsorted(table, np.arange(12), "right", np.argsort(table, kind="stable")),
}
for mode in MODES:
    rows["pad_" + mode] = np.pad(x, ((2, 3), (0, 4)), mode)
    rows["pad_far_" + mode] = np.pad(x[:3], ((7, 5), (1, 0)), mode)
    rows["pad_integers_" + mode] = np.pad(n, ((1, 2), (3, 1)), mode)

with open(pathlib.Path(__file__).parent / "options_golden.inc", "w") as out:
    out.write(f"// From NumPy {np.__version__} by make_goldens.py.\n")
    for name, value in rows.items():
        value = np.asarray(value)
        values = ", ".join(repr(float(v)) for v in value.ravel())
        out.write(f'{{"{name}", Shape{{{", ".join(map(str, value.shape))}}}, {{{values}}}}},\n')
