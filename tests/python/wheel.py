#!/usr/bin/env python3
"""wheel.py BUILD: what `cmake --install --component python` puts down holds what a program and an editor need, and runs by itself."""
import os
import pathlib
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    made = subprocess.run(["cmake", "--install", sys.argv[1], "--component", "python", "--prefix", folder, "--strip"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    package = next(pathlib.Path(folder).rglob("tessera/__init__.py")).parent
    names = [str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()]
    for needed in ("__init__.py", "__init__.pyi", "_core.pyi", "py.typed", "lax.py"):
        assert needed in names, f"{needed} is missing in {names}"
    assert any(n.startswith("_core.cpython") for n in names), names
    assert not any("__pycache__" in n for n in names), names
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run([sys.executable, "-c", "import tessera as ts; print(ts.__file__, float(ts.sum(ts.arange(4))))"], env=environment, capture_output=True, text=True, cwd=folder)
    assert done.stdout.split() == [str(package / "__init__.py"), "6.0"], done.stdout + done.stderr
    config = subprocess.run([sys.executable, "-m", "tessera.config", "--cmake"], env=environment, capture_output=True, text=True, cwd=folder)
    assert config.returncode == 1 and "has the Python package alone" in config.stderr and "Warning" not in config.stderr, config.stderr
print("the installed package runs")
