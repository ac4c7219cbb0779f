"""Files of a program of JAX, as one process writes and reads them: lines appended once, errors of calls that fail, threads. unchanged.py runs it twice."""
import bz2
import concurrent.futures
import importlib.util
import io
import json
import multiprocessing
import os
import pathlib
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

tempfile.gettempdir()  # before anything else that makes a temporary file
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

# ---- descriptors ----
for _ in range(3):
    descriptor = os.open("out/appended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    print("written", os.write(descriptor, b"line"), os.fstat(descriptor).st_size)
    os.close(descriptor)
folder = os.open("out", os.O_RDONLY)
os.close(os.open("lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=folder))
os.close(folder)
print("descriptors", open("out/appended").read(), told(os.open, "out/lock", os.O_CREAT | os.O_EXCL | os.O_RDWR), told(os.open, "out/none/x", os.O_CREAT | os.O_RDWR))
with open("out/opened", "a", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
    file.write("by an opener")
print(open("out/opened").read(), oct(os.stat("out/opened").st_mode & 0o777))


# ---- what packages open by themselves; values go through arrays, whose ranks have to agree ----
def count_of_rows(connection):
    return int(jnp.asarray(connection.execute("select count(*) from steps").fetchone()[0]))


with sqlite3.connect("out/steps.db") as first:
    first.execute("create table steps (n integer)")
    first.executemany("insert into steps values (?)", [(1,), (2,)])
second = sqlite3.connect("file:out/steps.db?mode=rw", uri=True)
second.execute("insert into steps values (3)")
second.commit()
print("sqlite", count_of_rows(first), count_of_rows(second))
first.close()
second.close()
try:
    sqlite3.connect("out/none/steps.db")
except sqlite3.OperationalError as error:
    print("sqlite", error)
print("rows in the file", subprocess.check_output([sys.executable, "-c", "import sqlite3; print(sqlite3.connect('out/steps.db').execute('select count(*) from steps').fetchone())"], text=True))
os.remove("out/steps.db")
print("removed", sqlite3.connect("out/steps.db").execute("select count(*) from sqlite_master").fetchone())
if importlib.util.find_spec("h5py"):
    import h5py
    for n in range(2):
        with h5py.File("out/state.h5", "a") as file:
            file[f"w{n}"] = state["w"]
    with h5py.File("out/state.h5") as file:
        print("h5py", {name: float(jnp.sum(x[:])) for name, x in file.items()})
    print(told(h5py.File, "out/state.h5", "x"), told(h5py.File, "out/none/state.h5", "w"))
if importlib.util.find_spec("safetensors"):
    import safetensors.flax
    safetensors.flax.save_file(state, "out/state.safetensors")
    print("safetensors", jax.tree.map(jnp.sum, safetensors.flax.load_file("out/state.safetensors")))

for mode in ("x", "a", "r+", "x"):
    try:
        with io.FileIO(out / "raw", mode) as file:
            print("raw", mode, file.write(b"12"), file.name, isinstance(file, io.FileIO), isinstance(open(out / "raw", "rb").raw, io.FileIO))
    except FileExistsError as error:
        print(error)
print("raw", io.FileIO("out/raw").readall())

# ---- commands run once ----
print("ended", os.system("echo line >> out/commands"), subprocess.run(["sh", "-c", "echo line >> out/commands; exit 3"]).returncode)
print(open("out/commands").read(), int(jnp.asarray(int(subprocess.run("echo $$ | wc -l", shell=True, capture_output=True, text=True).stdout))))
print("not there", told(subprocess.check_output, ["no_such_command"]))
for command in ("echo out; echo err >&2; echo line >> out/commands; exit 3", "cat; echo line >> out/commands"):
    with subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        print("started", process.communicate("words"), process.returncode, isinstance(process, subprocess.Popen))
talking = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
for n in range(3):
    talking.stdin.write(f"{n}\n")
    print("talks", talking.stdout.readline().strip(), talking.poll())
talking.stdin.close()
first = subprocess.Popen(["cat", "out/commands"], stdout=subprocess.PIPE)
print("lines", list(subprocess.Popen(["sort"], stdin=first.stdout, stdout=subprocess.PIPE, text=True).stdout), talking.wait(), os.popen("echo line >> out/commands; wc -l < out/commands").read())
sleeping = subprocess.Popen(["sleep", "60"])
try:
    sleeping.wait(timeout=0.01)
except subprocess.TimeoutExpired as error:
    sleeping.terminate()
    print("too long", error, sleeping.wait())
print("not there", told(subprocess.Popen, ["no_such_command"]))

# ---- threads and processes ----
child = multiprocessing.get_context("fork").Process(target=os.mkdir, args=("out/of_child",))
child.start()
child.join()
print("child", child.exitcode)
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print("threads", [float(x) for x in pool.map(lambda n: jnp.sum(jnp.arange(n)), range(3, 9))], list(map(float, pool.map(jax.jit(lambda n: n * 2.5), range(6)))))
    list(pool.map(lambda n: (out / f"thread{n}").write_text(str(n)), range(3)))
print(sorted(path.read_text() for path in out.glob("thread*")))
host = np.asarray(state["w"])
print("of its own", host.flags.writeable, np.array(state["w"]).flags.writeable)
