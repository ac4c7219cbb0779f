"""Files of a program of JAX, as one process writes and reads them: lines appended once, errors of calls that fail, threads. unchanged.py runs it twice."""
import bz2
import concurrent.futures
import json
import os
import pathlib
import pickle
import shutil
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

shutil.rmtree("out", ignore_errors=True)
os.makedirs("out/logs")
out = pathlib.Path("out")
state = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3)}


def told(function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        return type(error).__name__, error.filename


# ---- what arrays are written into ----
np.savez(out / "state.npz", **state)
print("npz", {name: x.sum() for name, x in np.load(out / "state.npz").items()})
(out / "state.pickle").write_bytes(pickle.dumps(state))
with open("out/state.pickle", "rb") as file:
    print("pickle", jax.tree.map(lambda x, y: bool((x == y).all()), pickle.load(file), state))
jnp.save("out/w.npy", state["w"])
mapped = np.lib.format.open_memmap("out/mapped.npy", mode="w+", dtype="f4", shape=(4,))
mapped[:] = 7
mapped.flush()
print("npy", jnp.load("out/w.npy"), np.load("out/mapped.npy"))
with bz2.open("out/w.bz2", "wt") as file:
    file.write(str(state["w"]))
print("bz2", bz2.open("out/w.bz2", "rt").read())

# ---- lines, once ----
for n in range(3):
    with open("out/logs/steps", "a") as file:
        file.write(f"step {n}: {float(jnp.exp(-n)):.3f}\n")
        print("at", file.tell(), file.name)
print(open("out/logs/steps").read().splitlines(), os.path.getsize("out/logs/steps"))
with open("out/logs/steps", "r+") as file:
    first = file.readline()
    file.seek(0)
    file.write(first.upper())
print(pathlib.Path("out/logs/steps").read_text().split("\n")[:2])
json.dump({"loss": float(state["w"].sum())}, open("out/loss.json", "w"))
print(json.load(open("out/loss.json")))

# ---- folders and errors ----
print("errors", told(os.mkdir, "out/logs"), told(os.remove, "out/none"), told(open, "out/loss.json", "x"), told(open, "out/none/file", "w"), told(os.rmdir, "out/logs"))
for _ in range(3):
    n = 0
    while os.path.exists(f"out/run{n}"):
        n += 1
    os.mkdir(f"out/run{n}")
os.rename("out/w.npy", "out/run0/w.npy")
shutil.copytree("out/run0", "out/copied")
shutil.move("out/loss.json", "out/logs")
os.replace("out/copied/w.npy", "out/logs/w.npy")
print(sorted(str(path) for path in out.rglob("*")))

# ---- temporary files are moved to their place ----
with tempfile.TemporaryDirectory() as folder:
    np.save(os.path.join(folder, "x.npy"), np.arange(3))
    shutil.move(os.path.join(folder, "x.npy"), "out/x.npy")
    print("temporary", os.listdir(folder), np.load("out/x.npy"))
with tempfile.NamedTemporaryFile("w", delete=False) as file:
    file.write("kept")
os.replace(file.name, "out/kept")
print(open("out/kept").read(), os.path.exists(file.name))

# ---- threads ----
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print("threads", [float(x) for x in pool.map(lambda n: jnp.sum(jnp.arange(n)), range(3, 9))])
    list(pool.map(lambda n: (out / f"thread{n}").write_text(str(n)), range(3)))
print(sorted(path.read_text() for path in out.glob("thread*")))
host = np.asarray(state["w"])
print("of its own", host.flags.writeable, np.array(state["w"]).flags.writeable)
