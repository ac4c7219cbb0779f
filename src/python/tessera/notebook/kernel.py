"""python -m tessera.notebook.kernel -f connection.json, on all ranks: rank 0 is the kernel, the others run its cells."""
import builtins
import contextlib
import io
import os
import queue
import signal
import sys
import threading
import time
import traceback

import numpy as np

import tessera as ts

from .channel import Follower, Leader
from .magics import TesseraMagics


long_wait_s = 2.0  # a rank that waits longer in one call may wait for ranks that have finished the cell


def interrupted():
    """What on_preemption calls on all ranks at the same step."""
    raise KeyboardInterrupt("the cell was interrupted, on all ranks at the same step")


def share_address(address):
    """Rank 0's address, on all ranks."""
    size = 512
    words = np.zeros(size, np.int32)
    if ts.process_index() == 0:
        text = "\0".join(map(str, address)).encode()
        words[: len(text)] = list(text)
    words = np.asarray(ts.multihost.broadcast_one_to_all(words))
    host, port, token = bytes(int(w) for w in words).rstrip(b"\0").decode().split("\0")
    return host, int(port), token


def name_cells(shell):
    """The file of a cell's lines, in errors: the same on all ranks."""
    shell.compile.get_code_name = lambda raw_code, transformed_code, number: f"cell[{number}]"


def list_of(ranks):
    ranks = sorted(ranks)
    runs, start = [], 0
    for i in range(1, len(ranks) + 1):
        if i == len(ranks) or ranks[i] != ranks[i - 1] + 1:
            runs.append(f"{ranks[start]}" if i - start == 1 else f"{ranks[start]}-{ranks[i - 1]}")
            start = i
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(runs)


# ---- rank 0 ----
def draw(text, svg):
    """Pictures of layouts: both forms, so that a front end without pictures shows the text."""
    from IPython.display import display

    display({"text/plain": text.rstrip("\n"), "image/svg+xml": svg}, raw=True)


def lead(leader):
    from ipykernel.ipkernel import IPythonKernel
    from ipykernel.kernelapp import IPKernelApp

    class Kernel(IPythonKernel):
        banner = f"tessera over {ts.process_count()} ranks"
        implementation = "tessera"

        def __init__(self, **given):
            super().__init__(**given)
            self.magics = TesseraMagics(self.shell, is_first=True)
            self.shell.register_magics(self.magics)
            name_cells(self.shell)
            self.number, self.is_running, self.reports = 0, False, {}
            self.asked_at = 0.0

        # -- a cell --
        async def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **more):
            shows_all = code.startswith("%%ranks")
            if shows_all:
                code = code.partition("\n")[2]
            self.number, self.reports, self.is_running, self.asked_at = self.number + 1, {}, True, 0.0
            leader.send_all({"cell": self.number, "code": code, "history": store_history and not silent})
            is_done = threading.Event()
            threading.Thread(target=self.watch, args=(is_done,), daemon=True).start()
            try:
                reply = await super().do_execute(code, silent, store_history, user_expressions, allow_stdin, **more)
                mine = reply if reply["status"] == "error" else None
                self.reports[0] = {"ename": mine["ename"], "evalue": mine["evalue"]} if mine else {}
                while len(self.reports) < leader.ranks:
                    try:
                        is_done.wait(0.02)
                    except KeyboardInterrupt:
                        pass
            finally:
                is_done.set()
                self.is_running = False
                ts._core.forget_preemption()
            self.magics.last_texts = {rank: report.get("text", "") for rank, report in self.reports.items() if rank}
            if shows_all:
                self.magics.ranks("")
            return self.judged(reply)

        def judged(self, reply):
            """The reply of rank 0, unless another rank alone has failed."""
            failed = {rank: report for rank, report in self.reports.items() if report.get("ename")}
            alike = len({(r["ename"], r["evalue"]) for r in failed.values()}) == 1 and len(failed) == leader.ranks
            if not failed or alike:
                return reply
            first = min(failed)
            fine = list_of(set(self.reports) - set(failed))
            if len(failed) < leader.ranks:
                self.tell(f"{list_of(failed)} alone failed in this cell; {fine} did not.")
            else:
                self.tell("the ranks failed in different ways in this cell: " + "; ".join(f"rank {r}: {failed[r]['ename']}" for r in sorted(failed)))
            if first != 0:
                trace = failed[first]["traceback"]
                trace[0] = f"[rank {first}] " + trace[0]
                content = {"ename": failed[first]["ename"], "evalue": failed[first]["evalue"], "traceback": trace}
                self.send_response(self.iopub_socket, "error", content)
                return {"status": "error", "execution_count": self.execution_count - 1, "user_expressions": {}, "payload": [], **content}
            return reply

        def tell(self, text):
            self.send_response(self.iopub_socket, "stream", {"name": "stderr", "text": f"tessera: {text}\n"})

        def watch(self, is_done):
            """Collects the reports of a cell; ends the job where ranks wait for others that have failed or finished."""
            failed_at, told, waits, stuck_at = 0.0, False, {}, 0.0
            while not is_done.is_set():
                try:
                    rank, message = leader.heard.get(timeout=0.2)
                except queue.Empty:
                    rank, message = -1, None
                if rank >= 0 and message is None:
                    self.tell(f"rank {rank} has gone. The kernel restarts; all values are lost.")
                    self.end()
                if message and message.get("cell") == self.number:
                    if "waits" in message:
                        waits[rank] = message["waits"]
                    else:
                        self.reports[rank] = message
                if any(report.get("ename") for report in self.reports.values()) and not failed_at:
                    failed_at = time.monotonic()
                missing = set(range(leader.ranks)) - set(self.reports)
                if missing and self.reports and not failed_at and rank < 0:
                    stuck_at = self.stuck_since(missing, waits, stuck_at)
                late = failed_at and time.monotonic() - failed_at
                if missing and late and late > min(2.0, self.magics.patience) and not told:
                    told = True
                    bad = {rank: report for rank, report in self.reports.items() if report.get("ename")}
                    first = min(bad)
                    self.tell(f"{list_of(bad)} failed in this cell ({bad[first]['ename']}: {bad[first]['evalue']}), and {list_of(missing)} "
                              f"still run it. If they wait for a rank that has failed, the kernel restarts in {self.magics.patience:.0f} s (%patience).")
                    if first != 0:
                        self.tell(f"rank {first}: " + "\n".join(bad[first]["traceback"]))
                if missing and late and late > self.magics.patience:
                    self.tell(f"{list_of(missing)} wait for what a failed rank did not do. The kernel restarts; all values are lost.")
                    self.end()

        def stuck_since(self, missing, waits, since):
            """When all ranks that still run the cell were first seen to wait, 0.0: some go on. None of the others comes to their call any more."""
            leader.send_all({"asks": self.number})
            if 0 in missing:
                waits[0] = ts._core.long_wait(long_wait_s)
            if not all(waits.get(rank) for rank in missing):
                return 0.0
            if not since:
                first = min(missing)
                self.tell(f"{list_of(set(self.reports))} finished cell[{self.number}], in which {list_of(missing)} cannot go on alone: rank {first} {waits[first]}. "
                          f"A call on arrays of several ranks must be made by all of them. The kernel restarts in {self.magics.patience:.0f} s (%patience).")
            elif time.monotonic() - since > self.magics.patience:
                self.tell(f"{list_of(missing)} did not go on. The kernel restarts; all values are lost.")
                self.end()
            return since or time.monotonic()

        def end(self):
            sys.stdout.flush()
            time.sleep(0.5)  # the message reaches the notebook
            os._exit(76)

        # -- interrupts --
        async def interrupt_request(self, stream, ident, parent):
            self.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)
            if not self.is_running:
                return
            now = time.monotonic()
            if not self.asked_at:  # all ranks stop before the same evaluation
                self.asked_at = now
                os.kill(os.getpid(), signal.SIGUSR1)
                threading.Thread(target=self.interrupt_python, args=(self.number,), daemon=True).start()
            else:
                self.interrupt_now()

        def interrupt_python(self, number):
            time.sleep(2.0)
            if self.is_running and self.number == number and not self.reports:
                self.interrupt_now()  # no evaluation came: Python's own loops

        def interrupt_now(self):
            leader.send_all({"interrupt": self.number})
            if 0 not in self.reports:
                os.kill(os.getpid(), signal.SIGINT)

        def raw_input(self, prompt=""):
            value = super().raw_input(prompt)
            leader.send_all({"input": value})
            return value

        def do_shutdown(self, restart):
            leader.send_all({"end": True})
            return super().do_shutdown(restart)

    ts.debug._draw = draw
    IPKernelApp.launch_instance(kernel_class=Kernel, argv=sys.argv[1:])


# ---- the other ranks ----
def follow(follower):
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    shell = InteractiveShell.instance(config=config, user_ns={"__name__": "__main__"})
    shell.register_magics(TesseraMagics(shell, is_first=False))
    name_cells(shell)
    shell.system = lambda command: None  # rank 0 runs !commands
    sys.modules["__main__"].__dict__.update(shell.user_ns)
    messages, inputs, state = queue.Queue(), queue.Queue(), {"running": 0}
    builtins.input = lambda prompt="": inputs.get()

    def listen():
        while (message := follower.receive()) is not None:
            if "interrupt" in message:
                if state["running"] == message["interrupt"]:
                    os.kill(os.getpid(), signal.SIGINT)
            elif "asks" in message:
                follower.send({"cell": message["asks"], "waits": ts._core.long_wait(long_wait_s)})
            elif "input" in message:
                inputs.put(message["input"])
            else:
                messages.put(message)
        messages.put({"end": True})

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            message = messages.get()
            if "end" in message:
                return
            state["running"] = message["cell"]
            report = run(shell, message["code"], message["history"])
        except KeyboardInterrupt:
            if not state["running"]:
                continue
            report = {"ename": "KeyboardInterrupt", "evalue": "", "traceback": ["KeyboardInterrupt"], "text": ""}
        cell, state["running"] = state["running"], 0
        ts._core.forget_preemption()
        follower.send({"cell": cell, **report})


def run(shell, code, history):
    """What a cell did here: text, and the error if there was one."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        result = shell.run_cell(code, store_history=history)
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return {"text": text.getvalue()}
    lines = [line for line in traceback.format_exception(type(error), error, error.__traceback__) if "IPython/core/interactiveshell.py" not in line]
    return {"ename": type(error).__name__, "evalue": str(error), "traceback": lines, "text": text.getvalue()}


def main():
    ranks, rank = ts.process_count(), ts.process_index()
    leader = Leader(ranks) if rank == 0 else None
    address = share_address(leader.address if leader else None)
    if leader is None:
        follower = Follower(rank, address)
    else:
        leader.accept_all()
    with ts.on_preemption(interrupted):
        if leader is None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            follow(follower)
        else:
            lead(leader)


if __name__ == "__main__":
    main()
