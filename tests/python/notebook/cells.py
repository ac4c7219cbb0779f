"""A kernel over ranks, driven as Jupyter drives it: cells.py RANKS TESSERA. Exits 77 without ipykernel."""
import atexit
import json
import os
import pathlib
import queue
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import time

try:
    import ipykernel  # noqa: F401
    from jupyter_client.manager import KernelManager
except ModuleNotFoundError as missing:
    print(f"{missing.name} is not installed")
    sys.exit(77)

ranks, command = int(sys.argv[1]), sys.argv[2]
failures = []


def check(what, holds, seen):
    if not holds:
        failures.append(what)
        print(f"FAILED {what}\n{seen}", flush=True)


class Kernel:
    def __init__(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        name = f"tessera-{ranks}"
        os.environ["JUPYTER_PATH"] = os.environ["JUPYTER_DATA_DIR"] = str(folder)
        sys.argv[1:] = ["-n", str(ranks), "--install", "--tessera", command]
        runpy.run_module("tessera.notebook", run_name="__main__")
        spec = json.loads((folder / "kernels" / name / "kernel.json").read_text())
        check("the spec asks for interrupts by message", spec["interrupt_mode"] == "message", spec)
        self.manager = KernelManager(kernel_name=name)
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def run(self, code, interrupt_after=None, timeout=120):
        """(status, text, pictures) of a cell; status "gone" where the kernel ended in it."""
        asked = self.client.execute(code, stop_on_error=False)
        text, pictures, end, until = [], [], False, time.monotonic() + timeout
        if interrupt_after:
            time.sleep(interrupt_after)
            self.client.control_channel.send(self.client.session.msg("interrupt_request", {}))
        while not end:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                if time.monotonic() > until or not self.manager.is_alive():
                    return "gone", "".join(text), pictures
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                text.append(content["text"])
            elif kind in ("execute_result", "display_data"):
                text.append(content["data"].get("text/plain", ""))
                pictures += [content["data"][k] for k in content["data"] if k.startswith("image/")]
            elif kind == "error":
                text.append("\n".join(content["traceback"]))
            elif kind == "status" and content["execution_state"] == "idle":
                end = True
        reply = self.client.get_shell_msg(timeout=60)
        while reply["parent_header"].get("msg_id") != asked:
            reply = self.client.get_shell_msg(timeout=60)
        status = reply["content"]["status"]
        return status, re.sub(r"\x1b\[[\d;]*m", "", "".join(text)), pictures

    def ok(self, what, code, *expected, **more):
        status, text, pictures = self.run(code, **more)
        check(what, status == "ok" and all(e in text for e in expected), (status, text, expected))
        return text, pictures

    def refused(self, what, code, *expected, **more):
        status, text, _ = self.run(code, **more)
        check(what, status == "error" and all(e in text for e in expected), (status, text, expected))
        return text


def check_the_server():
    """What Jupyter gets when `tessera notebook` starts it: a kernel whose job can start under it."""
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "jupyter-lab").write_text("#!/bin/sh\necho \"$@\"\nls $JUPYTER_PATH/kernels\nenv\n")
    (folder / "jupyter-lab").chmod(0o755)
    environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")
    done = subprocess.run([sys.executable, "-m", "tessera.notebook", "-n", str(ranks), "--tessera", command, "--no-browser"], env=environment, capture_output=True, text=True, timeout=120)
    check("jupyter gets its words and the kernel", done.returncode == 0 and "--no-browser" in done.stdout and f"\ntessera-{ranks}\n" in done.stdout, done)
    check("and no variables of this process's MPI", not re.search(r"^(PMIX_(RANK|NAMESPACE)|OMPI_MCA_ess)=", done.stdout, re.M), done.stdout)


def main():
    check_the_server()
    k = Kernel()
    k.ok("an array is made over all ranks", "import tessera as ts, numpy as np\nmesh = ts.make_mesh((ts.process_count(),), ('x',))\n"
         "x = ts.device_put(ts.arange(1000.0), ts.NamedSharding(mesh, ts.P('x')))\nts.process_count()", str(ranks))
    k.ok("the last expression is shown", "ts.sum(x)", "499500")
    text, _ = k.ok("rank 0 alone prints", "print('here', ts.process_index())", "here 0")
    check("no other rank prints", text.count("here") == 1, text)
    k.ok("%%ranks prints every rank", "%%ranks\nprint('here', ts.process_index())", *[f"here {r}" for r in range(ranks)])
    text = k.refused("an error on all ranks is one traceback", "ts.reshape(x, (7, 7))", "ShapeError", "1000")
    check("one traceback", text.count("Traceback") == 1 and "alone" not in text, text)
    k.ok("and the next cell works", "float(ts.max(x))", "999.0")
    if ranks > 1:
        k.refused("a rank that fails alone is named", f"if ts.process_index() == {ranks - 1}: raise RuntimeError('only here')",
                  f"rank {ranks - 1} alone failed", "only here")
        k.ok("and the next cell works behind it", "float(ts.min(x))", "0.0")
    k.ok("%explain", "f = lambda v: ts.sum(v * 2)\n%explain f(x)", "all-reduce" if ranks > 1 else "total")
    if ranks > 1:
        k.ok("%explain cites the cell", "%explain ts.sum(x)", "sum at cell[")
    k.ok("%bytes", "%bytes y = ts.sum(x)", "all-reduce" if ranks > 1 else "nothing was sent")
    k.ok("%memory", "%memory", "(1000,)", "arrays")
    _, pictures = k.ok("%shard", "%shard x")
    check("%shard is a picture", any("<svg" in p for p in pictures), pictures)
    k.ok("%timeit", "%timeit ts.block_until_ready(x + 1)", "per loop")
    k.ok("!command runs once", "!echo from the shell", "from the shell")
    k.refused("an interrupt stops all ranks", "i = 0\nwhile True:\n    i += 1\n    ts.block_until_ready(x + i)", "KeyboardInterrupt", interrupt_after=2, timeout=60)
    k.ok("at one step", "ts.multihost.assert_equal(ts.asarray(i)); 'equal'", "equal")
    k.refused("a second interrupt", "while True:\n    ts.block_until_ready(x + 1)", "KeyboardInterrupt", interrupt_after=2, timeout=60)
    k.refused("an interrupt of Python's own loop", "while True: pass", "KeyboardInterrupt", interrupt_after=1, timeout=60)
    k.ok("and the next cell works behind that", "float(ts.sum(x))", "499500")
    reply = k.client.complete("ts.device_p", reply=True, timeout=60)["content"]["matches"]
    check("completion", any("device_put" in m for m in reply), reply)
    if ranks > 1:
        k.ok("%patience", "%patience 3")
        status, text, _ = k.run("if ts.process_index() > 0: raise ValueError('left')\nts.block_until_ready(ts.sum(x * 3))", timeout=60)
        check("a rank that waits for failed ones ends the kernel with a word", status == "gone" and "left" in text and "restarts" in text, (status, text))
        for some in ("== 0", f"== {ranks - 1}"):
            k = Kernel()
            k.ok("an array over all ranks", "import tessera as ts\nx = ts.device_put(ts.arange(1000.0), ts.NamedSharding(ts.make_mesh((ts.process_count(),), ('x',)), ts.P('x')))")
            k.ok("%patience", "%patience 3")
            status, text, _ = k.run(f"if ts.process_index() {some}: ts.block_until_ready(ts.sum(x * 3))", timeout=60)
            check("a rank that comes alone to a call is named with the cell and the kernel ends", status == "gone" and "finished cell[3], in which rank" in text and "for sum" in text and "restarts" in text, (status, text))
    k.manager.shutdown_kernel(now=True)
    print(f"{len(failures)} of the kernel's checks failed at {ranks} ranks" if failures else f"a notebook over {ranks} ranks: all checks passed")
    sys.exit(bool(failures))


main()
