"""The tutorials' notebooks over 8 ranks, driven as Jupyter drives them: notebooks.py TESSERA [--keep] [--small] NOTEBOOK ... Exits 77 without ipykernel.

Each cell must run. With --keep its outputs are written into the notebook, without times; without it they must be those that are kept: numbers by
value, the devices of pictures by name. --small makes the arrays smaller: then values are compared only in notebooks that it does not change.
"""
import argparse
import atexit
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_output import same  # noqa: E402

try:
    import ipykernel  # noqa: F401
    from jupyter_client.manager import KernelManager
except ModuleNotFoundError as missing:
    print(f"{missing.name} is not installed")
    sys.exit(77)

SMALLER = [(r"\b8192\b", "256"), (r"\b4096\b", "64"), (r"\b1024\b", "64"), (r"range\(30\)", "range(5)"), (r"-n \d+ -r \d+|-r \d+ -n \d+", "-n 1 -r 1")]
TIME = re.compile(r"^\S+ \S+ ± \S+ \S+ per loop .*\n?", re.M)


class Kernel:
    def __init__(self, tessera):
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["JUPYTER_PATH"] = os.environ["JUPYTER_DATA_DIR"] = folder
        subprocess.run([sys.executable, "-m", "tessera.notebook", "-n", "8", "--install", "--tessera", tessera], check=True, stdout=subprocess.DEVNULL)
        self.manager = KernelManager(kernel_name="tessera-8")
        self.manager.start_kernel(cwd=folder)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=300)

    def run(self, code):
        """The outputs of a cell, as a notebook has them; an error is an output too."""
        asked, outputs = self.client.execute(code, stop_on_error=False), []
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=5)
            except queue.Empty:
                if not self.manager.is_alive():
                    return [*outputs, {"output_type": "error", "ename": "the kernel has gone", "evalue": "", "traceback": []}]
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                if outputs and outputs[-1].get("name") == content["name"]:
                    outputs[-1]["text"] += content["text"]
                else:
                    outputs.append({"output_type": "stream", "name": content["name"], "text": content["text"]})
            elif kind in ("display_data", "execute_result"):
                number = {"execution_count": None} if kind == "execute_result" else {}
                outputs.append({"output_type": kind, "data": content["data"], "metadata": {}, **number})
            elif kind == "error":
                outputs.append({"output_type": "error", **{key: content[key] for key in ("ename", "evalue", "traceback")}})
            elif kind == "status" and content["execution_state"] == "idle":
                return outputs


def neutral(text):
    """The text without the numbers of cells."""
    return re.sub(r"cell\[\d+\]", "cell", text)


def lines_of(outputs):
    """What is compared: lines of text, and of a picture the names of its devices."""
    lines = []
    for output in outputs:
        data = output.get("data", {})
        text = "".join(output.get("text") or data.get("text/plain", ""))
        if "image/svg+xml" in data:
            lines += re.findall(r"CPU [\d,-]+", text) or [text.split(" ")[0]]
        else:
            lines += [line for line in neutral(TIME.sub("", text)).split("\n") if line.strip()]
    return lines


def differences(name, number, got, kept):
    got, kept = lines_of(got), lines_of(kept)
    if len(got) != len(kept):
        yield f"{name}, cell {number}: {len(got)} lines, {len(kept)} are kept\n" + "\n".join(got)
    for a, b in zip(got, kept):
        if not same(a, b):
            yield f"{name}, cell {number}\n  kept:    {b}\n  printed: {a}"


def without_times(outputs):
    for output in outputs:
        if "text" in output:
            output["text"] = TIME.sub("", output["text"])
    return [output for output in outputs if output.get("text", "x")]


def run(kernel, path, options):
    """What is wrong with a notebook."""
    book = json.loads(path.read_text())
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    smaller = {i: code for i, cell in enumerate(cells) if (code := small(cell["source"])) != cell["source"]} if options.small else {}
    changes = any(not cells[i]["source"].startswith("%timeit") for i in smaller)
    for number, cell in enumerate(cells, 1):
        outputs = kernel.run(smaller.get(number - 1, cell["source"]))
        for error in (output for output in outputs if output["output_type"] == "error"):
            yield f"{path.name}, cell {number}: {error['ename']}: {error['evalue']}\n" + "\n".join(error["traceback"])
        if options.keep:
            cell["outputs"] = without_times(outputs)
        elif not changes:
            yield from differences(path.name, number, outputs, cell["outputs"])
        else:
            pictures = lambda those: [output for output in those if "image/svg+xml" in output.get("data", {})]
            yield from differences(path.name, number, pictures(outputs), pictures(cell["outputs"]))
    if options.keep:
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def small(code):
    for pattern, word in SMALLER:
        code = re.sub(pattern, word, code)
    return code


def is_valid(path):
    """Whether nbformat, where it is installed, finds nothing."""
    try:
        import nbformat
    except ModuleNotFoundError:
        return True
    nbformat.validate(nbformat.read(path, as_version=4))
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tessera")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("notebooks", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    found = []
    kernel = Kernel(options.tessera)
    for path in options.notebooks:
        kernel.run("%reset -f")
        found += [*run(kernel, path, options), *([] if is_valid(path) else [path.name])]
        print(f"{path.stem}: {'ran' if not found else f'{len(found)} findings'}", flush=True)
    kernel.manager.shutdown_kernel(now=True)
    print("\n".join(found[:20]) or "all cells as kept")
    sys.exit(bool(found))


main()
