#!/usr/bin/env python3
"""same_bits.py MPIEXEC RANKS PROGRAM: a C++ and a Python program with one seed give the same bits and the same compiled text."""
import difflib
import os
import re
import subprocess
import sys

program = '''
import tessera as ts

def show(what, x):
    total = 1469598103934665603
    for byte in ts.device_get(x).tobytes():
        total = (total ^ byte) * 1099511628211 % 2 ** 64
    ts.debug.print(what + " {}", f"{total:016x}")

mesh = ts.make_mesh((ts.device_count(),), ("x",))
keys = ts.random.split(ts.random.key(42))
a = ts.device_put(ts.random.normal(keys[0], (12, 8)), ts.NamedSharding(mesh, ts.P("x", None)))
b = ts.device_put(ts.random.uniform(keys[1], (8, 12)), ts.NamedSharding(mesh, ts.P(None, "x")))
f = ts.jit(lambda a, b: ts.sum(ts.tanh(ts.matmul(a, b)), 0))
show("a", a)
show("b", b)
show("f", f(a, b))
if ts.is_main_process(): print(f.lower(a, b).compile().as_text(), end="")
'''


def output(*command):
    done = subprocess.run([sys.argv[1], "-n", sys.argv[2], *command], capture_output=True, text=True, env=os.environ)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr}")
    # The lines of both programs differ, and so do their files' names.
    return re.sub(r"[\w<>.]+:\d+", "LINE", done.stdout).splitlines()


cpp, python = output(sys.argv[3]), output(sys.executable, "-c", program)
if cpp != python or len(cpp) < 5:
    sys.exit("\n".join(difflib.unified_diff(cpp, python, "C++", "Python", lineterm="")) or "nothing was printed")
print(f"{len(cpp)} lines are the same")
