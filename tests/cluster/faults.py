"""faults.py FAULT MPIRUN PROGRAM [TESSERA]: runs inside hosts.py on h1; does FAULT to a job of two ranks on each of two hosts, and judges its end.

    --list names all faults. Each is a row of `faults`: what is done, how the job may end, and what it says."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 4


class Job:
    def __init__(self, mpirun, program, seconds, *words, **settings):
        self.folder = tempfile.mkdtemp()
        self.record = os.path.join(self.folder, "flight")
        env = dict(os.environ, TESSERA_TIMEOUT="6", TESSERA_FLIGHT_RECORD=self.record, **settings)
        exported = [w for name in ("TESSERA_TIMEOUT", "TESSERA_FLIGHT_RECORD", *settings) for w in ("-x", name)]
        self.output = open(os.path.join(self.folder, "output"), "w+")
        self.start = time.time()
        self.process = subprocess.Popen([mpirun, "-H", "h1:2,h2:2", *exported, program, str(seconds), *words], env=env, stdout=self.output,
                                        stderr=subprocess.STDOUT)
        self.fault_at = self.start

    def text(self):
        self.output.flush()
        with open(self.output.name) as file:
            return file.read()

    def process_of(self, rank):
        """Once all ranks are at work."""
        deadline = time.time() + 60
        while time.time() < deadline and self.process.poll() is None:
            found = dict(re.findall(r"rank (\d+) process (\d+)", self.text()))
            if len(found) == RANKS:
                time.sleep(0.5)
                self.fault_at = time.time()
                return int(found[str(rank)])
            time.sleep(0.1)
        raise SystemExit("the ranks did not come up:\n" + self.text())

    def end(self, within):
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise SystemExit(f"the job hangs: {within} s after the fault it has not ended\n{self.text()}")
        return status, time.time() - self.fault_at, self.text()


def kill_host(name):
    for process in subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True).stdout.split():
        os.kill(int(process), signal.SIGKILL)


def cable(host, state):
    subprocess.run(["ip", "-n", "switch", "link", "set", f"cable{host}", state], check=True)


def a_rank_is_killed(job):
    os.kill(job.process_of(3), signal.SIGKILL)


def a_host_dies(job):
    job.process_of(3)
    kill_host("h2")


def a_cable_is_pulled(job):
    job.process_of(3)
    cable(2, "down")


def a_cable_is_loose_for_a_second(job):
    job.process_of(3)
    cable(2, "down")
    time.sleep(1)
    cable(2, "up")


def a_rank_is_stopped(job):
    os.kill(job.process_of(3), signal.SIGSTOP)


def a_rank_sleeps(job):
    job.process_of(0)


def a_rank_crashes(job):
    os.kill(job.process_of(3), signal.SIGSEGV)


def a_cable_is_slow(job):
    job.process_of(3)
    subprocess.run(["tc", "-n", "h2", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "10mbit", "burst", "32kb", "latency", "50ms"], check=True)


def asked_on_demand(job):
    """SIGUSR2 to mpirun reaches every rank of every host; the job goes on."""
    job.process_of(3)
    job.process.send_signal(signal.SIGUSR2)


# name: (what is done, seconds that the program runs, words for it, ends well, seconds within which it must end, what it or tessera doctor says)
faults = {
    "rank_killed": (a_rank_is_killed, 60, (), False, 20, "signal 9"),
    "host_dies": (a_host_dies, 60, (), False, 20, ""),
    "cable_pulled": (a_cable_is_pulled, 60, (), False, 40, ""),
    "cable_loose": (a_cable_is_loose_for_a_second, 8, (), True, 60, "done"),
    "cable_slow": (a_cable_is_slow, 8, (), True, 60, "done"),
    "rank_stopped": (a_rank_is_stopped, 60, (), False, 60, "shows no sign of life"),
    "rank_sleeps": (a_rank_sleeps, 60, ("2",), False, 60, "TESSERA_TIMEOUT"),
    "rank_crashes": (a_rank_crashes, 60, (), False, 30, "signal 11"),
    "on_demand": (asked_on_demand, 6, (), True, 60, "done"),
}
doctor_says = {
    "rank_sleeps": "rank 2 computes",
    "rank_crashes": r"rank 3 \(h2, process \d+\) ended by a crash SIGSEGV",
    "on_demand": r"4 records of 4 ranks on 2 hosts, written on SIGUSR2[^=]*=> every rank has begun",
}


def main():
    if sys.argv[1] == "--list":
        print(";".join(faults), end="")
        return
    name, mpirun, program = sys.argv[1:4]
    do, seconds, words, ends_well, within, says = faults[name]
    job = Job(mpirun, program, seconds, *words)
    do(job)
    status, took, text = job.end(within)
    print(f"{name}: status {status}, {took:.1f} s after the fault")
    print(text)
    if (status == 0) != ends_well:
        raise SystemExit(f"{name}: ended with status {status}")
    if says not in text:
        raise SystemExit(f"{name}: says nothing of {says!r}")
    if name in doctor_says and len(sys.argv) > 4:
        doctor = subprocess.run([sys.argv[4], "doctor", job.record], capture_output=True, text=True)
        print(doctor.stdout + doctor.stderr)
        if not re.search(doctor_says[name], doctor.stdout):
            raise SystemExit(f"{name}: the doctor says nothing like {doctor_says[name]!r}; records: {glob.glob(job.record + '/*')}")
    shutil.rmtree(job.folder)


main()
