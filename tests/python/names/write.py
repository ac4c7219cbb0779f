"""write.py EXPRESSIONS: the values of expressions, a line each, by JAX, as expressions.tsv for test_names.py. Needs JAX; run it where one is installed."""
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import jax.scipy.linalg as sl
import jax.scipy.signal as sg
import jax.scipy.special as sp
import jax.scipy.stats as st
import numpy as np
from inputs import inputs, leaves
from jax import lax, nn, random, tree_util

names = {"jax": jax, "jnp": jnp, "lax": lax, "nn": nn, "random": random, "tree_util": tree_util, "sp": sp, "st": st, "sl": sl, "sg": sg, "np": np, "A": jnp.asarray, "key": random.key(7), **inputs(jnp.asarray)}
lines = []
for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
    expression = line.split("\t")[0].strip()
    if expression and not expression.startswith("#"):
        lines.append(expression + "\t" + json.dumps(leaves(eval(expression, dict(names))), separators=(",", ":")))
pathlib.Path(__file__).with_name("expressions.tsv").write_text("\n".join(lines) + "\n")
