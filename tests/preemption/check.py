#!/usr/bin/env python3
"""check.py MPIEXEC PROGRAM TESSERA NAME | check.py --list: jobs that are asked to stop, by a signal to one of their ranks.

Each ends with the status of its own, after one save, and its next start goes on to what an undisturbed run reaches."""
import atexit
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TERM, USR1, INT = int(signal.SIGTERM), int(signal.SIGUSR1), int(signal.SIGINT)
saved_and_ended = 85
endless = 10**7
scenarios = {}


def scenario(f):
    scenarios[f.__name__] = f
    return f


class Job:
    def __init__(self, mpiexec, program, tessera):
        self.mpiexec, self.program, self.tessera = mpiexec, program, tessera
        self.folder = tempfile.mkdtemp(prefix="tessera-preemption-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)

    def run(self, *words, ranks=3, **settings):
        command = [self.mpiexec, "-n", str(ranks)] if ranks else []
        return subprocess.run([*command, self.program, *map(str, words)], capture_output=True, text=True, timeout=50, env=os.environ | settings)


def expect(fact, done):
    if not fact:
        sys.exit(f"status {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}")


def stops_once_and_goes_on(job, how, number, rank, ranks=3, then_on=2, after_ms=300, **settings):
    """The signal reaches one rank; then the job runs again, on another number of ranks, to ten steps more."""
    done = job.run(how, job.folder, endless, number, rank, after_ms, ranks=ranks, **settings)
    expect(done.returncode == saved_and_ended and len(re.findall("^saved", done.stdout, re.M)) == 1 and "Preempted: " in done.stderr, done)
    step = int(re.search(r"saved (\d+)", done.stdout)[1])
    again = job.run(how, job.folder, step + 10, ranks=then_on)
    expect(again.returncode == 0 and again.stdout.splitlines() == [f"goes on at {step}", "counts", f"reached {step + 10} after 0 calls"], again)


@scenario
def usr1_to_one_of_three(job):
    stops_once_and_goes_on(job, "callback", USR1, 1)


@scenario
def a_loop_on_a_part_is_told_how_to_stop(job):
    """Ranks 0 and 1 work on a mesh of their own: nobody can save, until all ranks ask."""
    done = job.run("part", job.folder, 8, TERM, 1, 100)
    expect(done.returncode == saved_and_ended and len(re.findall(r"\[rank 1\] tessera: this rank was asked to stop 5 s ago.*calls preempted\(\)", done.stderr)) == 1
           and "saved 8" in done.stdout, done)


@scenario
def term_to_the_command(job):
    """`tessera run` hands SIGTERM on in a form that its launcher does not answer itself."""
    with subprocess.Popen([job.tessera, "run", "-n", "3", "-q", job.program, "callback", job.folder, str(endless)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        for line in started.stdout:
            if "counts" in line:
                break
        time.sleep(0.5)
        started.terminate()
        out, err = started.communicate(timeout=40)
    expect(started.returncode == saved_and_ended and "saved" in out, subprocess.CompletedProcess([], started.returncode, out, err))


@scenario
def term_to_the_command_of_a_program_that_does_not_listen(job):
    with subprocess.Popen([job.tessera, "run", "-n", "2", "-q", "sh", "-c", "echo here; exec sleep 100"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        started.stdout.readline()
        time.sleep(0.3)
        started.terminate()
        out, err = started.communicate(timeout=40)
    expect(started.returncode == 128 + TERM, subprocess.CompletedProcess([], started.returncode, out, err))


@scenario
def term_to_the_last(job):
    stops_once_and_goes_on(job, "callback", TERM, 2, then_on=4)


@scenario
def the_loop_asks(job):
    stops_once_and_goes_on(job, "asks", USR1, 2, then_on=1)


@scenario
def during_saves(job):
    stops_once_and_goes_on(job, "saving", USR1, 1)


@scenario
def killed_while_it_saves(job):
    done = job.run("killed", job.folder, endless)
    expect(done.returncode not in (0, saved_and_ended), done)
    again = job.run("saving", job.folder, 20, ranks=4)
    left = sorted(os.listdir(job.folder))
    expect(again.returncode == 0 and again.stdout.splitlines() == ["goes on at 5", "counts", "reached 20 after 0 calls"] and left == ["step_00000019", "step_00000020"], again)


@scenario
def one_rank(job):
    stops_once_and_goes_on(job, "callback", INT, 0, ranks=0)


@scenario
def without_agreements(job):
    stops_once_and_goes_on(job, "callback", USR1, 1, TESSERA_CHECK="0")


@scenario
def a_save_that_fails(job):
    done = job.run("fails", job.folder, endless, USR1, 0, 300)
    expect(done.returncode == 74 and "the disk of this rank is full" in done.stderr and "saved" not in done.stdout, done)


@scenario
def a_handler_of_the_program(job):
    done = job.run("own", job.folder, endless, USR1, 0, 300, ranks=0)
    expect(done.returncode == 0 and "heard it itself" in done.stdout and "after 0 calls" in done.stdout, done)


@scenario
def who_catches_goes_on(job):
    done = job.run("catches", job.folder, 400, USR1, 1, 100)
    expect(done.returncode == 0 and done.stdout.count("caught") == 1 and re.search(r"reached \d+ after 1 calls", done.stdout), done)


def at_terminal(job, when, *words):
    """`tessera run` behind a terminal on which Ctrl-C is typed once `when` was shown: its status and what was shown."""
    command = [job.tessera, "run", "-n", "3", *map(str, words)]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    shown, start, typed = "", time.monotonic(), False
    while time.monotonic() < start + 40:
        if not typed and when in shown:
            time.sleep(0.5)
            os.write(terminal, b"\x03")
            typed = True
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                part = os.read(terminal, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part.decode(errors="replace")
    ended, status = os.waitpid(pid, os.WNOHANG if time.monotonic() > start + 39 else 0)
    if ended == 0:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status) if ended else "none"
    return subprocess.CompletedProcess(command, code, shown, "")


@scenario
def ctrl_c_saves_once(job):
    done = at_terminal(job, "counts", "-q", job.program, "callback", job.folder, endless)
    expect(done.returncode == saved_and_ended and done.stdout.count("saved ") == 1 and done.stdout.count("Preempted: ") == 1, done)


@scenario
def ctrl_c_ends_other_programs(job):
    done = at_terminal(job, "here", "-q", "sh", "-c", "echo here; exec sleep 100")
    expect(done.returncode == 130 and done.stdout.count("tessera: interrupted") == 1, done)


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print(";".join(scenarios))
    else:
        scenarios[sys.argv[4]](Job(*sys.argv[1:4]))
