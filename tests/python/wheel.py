#!/usr/bin/env python3
"""wheel.py SCRIPT BUILD: the wheel holds what a program and an editor need, and its package runs by itself."""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

script, build = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    made = subprocess.run([sys.executable, script, "-b", build, "-o", folder], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    wheel = pathlib.Path(made.stdout.strip())
    target = pathlib.Path(folder) / "site"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(target)
    for needed in ("tessera/__init__.py", "tessera/__init__.pyi", "tessera/_core.pyi", "tessera/py.typed", "tessera/lax.py"):
        assert needed in names, f"{needed} is missing in {names}"
    assert any(n.startswith("tessera/_core.cpython") for n in names) and any(n.endswith(".dist-info/RECORD") for n in names), names
    assert not any("__pycache__" in n for n in names), names
    environment = {**os.environ, "PYTHONPATH": str(target)}
    done = subprocess.run([sys.executable, "-c", "import tessera as ts; print(ts.__file__, float(ts.sum(ts.arange(4))))"], env=environment, capture_output=True, text=True, cwd=folder)
    assert done.stdout.split() == [str(target / "tessera/__init__.py"), "6.0"], done.stdout + done.stderr
print(wheel.name)
