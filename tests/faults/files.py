#!/usr/bin/env python3
"""files.py --list | files.py MPIEXEC SAVER NAME: jobs that are killed, starved of space or disturbed while they save.

The state before or the state after must be there, whole, on every number of ranks. TESSERA_TEST_KILLS=200 makes as many random kills.
Status 77: this machine does not allow what the test needs (namespaces, strace)."""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

formats = ["npy", "hdf5", "writer", "zarr", "checkpoint", "manager", "streamed"]
restored_on = [1, 2, 3, 6, 8]
# Points that the first rank comes to, in their order; those of every rank are reached on another one too.
points_of_all = ["half_written", "written", "spill", "slab"]
points = {
    "npy": ["locked", "prepared", "half_written", "written", "renaming", "renamed", "saved"],
    "hdf5": ["locked", "half_prepared", "prepared", "half_written", "written", "renaming", "renamed", "saved"],
    "writer": ["locked", "half_written", "written", "closing", "renaming", "renamed", "saved"],
    "zarr": ["locked", "prepared", "half_written", "written", "renaming", "renamed", "saved"],
    "checkpoint": ["locked", "prepared", "half_written", "written", "renaming", "renamed", "saved"],
    "streamed": ["locked", "prepared", "spill", "slab", "half_written", "written", "renaming", "renamed", "saved"],
    "manager": ["locked", "prepared", "half_written", "written", "marked", "renaming", "renamed", "removed", "saved"],
}
after_the_rename = {"renamed", "removed", "saved"}
either = {"marked"}  # the first rank may have found all marks by then


class Bench:
    def __init__(self, mpiexec, saver):
        self.mpiexec, self.saver = mpiexec, saver
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-files-"))
        self.complaints = []

    def expect(self, fact, text):
        if not fact:
            self.complaints.append(text)

    def command(self, ranks, *words):
        return ([self.mpiexec, "-n", str(ranks)] if ranks else []) + [self.saver, *map(str, words)]

    def run(self, ranks, *words, before=(), seconds=60, **options):
        return subprocess.run([*before, *self.command(ranks, *words)], capture_output=True, text=True, timeout=seconds, **options)


def litter(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if ".tmp-" in p.name or p.name.endswith(".lock") or p.name.startswith(".tessera-spill-"))


def kills(bench, form):
    """SIGKILL at each point, of the first rank and of another: the old state or the new one on every number of ranks."""
    may_hold = {}
    for point in points[form]:
        for rank in [0, 2] if point in points_of_all else [2] if point == "marked" else [0]:
            place = bench.folder / f"{point}@{rank}"
            place.mkdir()
            done = bench.run(3, "fault", place, form, f"{point}@{rank}")
            bench.expect(done.returncode != 0 and "saved" not in done.stdout, f"{place.name}: was not killed: {done.returncode} {done.stdout}")
            may_hold[place.name] = "12" if point in either else "2" if point in after_the_rename else "1"
    judge(bench, form, may_hold)
    for place in bench.folder.iterdir():
        bench.expect(not litter(place), f"{place.name}: after another save there still are {litter(place)}")


def judge(bench, form, may_hold):
    for ranks in restored_on:
        last = ranks == restored_on[-1]
        done = bench.run(ranks, "again" if last else "check", bench.folder, form)
        bench.expect(done.returncode == 0, f"check on {ranks} ranks ends with {done.returncode}: {done.stderr}")
        found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        for name, versions in may_hold.items():
            right = [version + (" then 3" if last else "") for version in versions]
            bench.expect(found.get(name) in right, f"{name} on {ranks} ranks: {found.get(name)}, not {right}")


def throws(bench, form):
    """An error at each point, on one rank: the same error everywhere, the old state, and nothing left behind."""
    may_hold = {}
    for point in points[form][1:]:
        if point in after_the_rename | either:
            continue
        place = bench.folder / point
        place.mkdir()
        done = bench.run(3, "fault", place, form, f"{point}@0:throw")
        bench.expect(done.returncode == 0 and f"error rank 0: the fault at {point}@0" in done.stdout, f"{point}: {done.stdout} {done.stderr}")
        bench.expect(not litter(place), f"{point}: leaves {litter(place)}")
        may_hold[point] = "1"
    judge(bench, form, may_hold)


def random_kills(bench, form):
    """SIGKILL of a random rank at a random time while versions are saved one after the other."""
    chance = random.Random(int(os.environ.get("TESSERA_TEST_FIRST", "1")))
    for trial in range(int(os.environ.get("TESSERA_TEST_KILLS", "4"))):
        place = bench.folder / f"trial{trial}" / "x"
        place.mkdir(parents=True)
        job = subprocess.Popen(bench.command(3, "loop", place, form, 20), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not (place / "saved").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(chance.random() * 0.3)
        os.kill(int((place / f"rank.{chance.randrange(3)}").read_text()), signal.SIGKILL)
        bench.expect(job.wait(timeout=30) != 0, f"trial {trial}: the job ends well")
        saved = int((place / "saved").read_text())
        done = bench.run(chance.choice(restored_on), "check", place.parent, form)
        found = re.fullmatch(r"x (\d+)\n", done.stdout)
        bench.expect(found and int(found.group(1)) in (saved, saved + 1, saved + 2), f"trial {trial}: {saved} was saved, found: {done.stdout}{done.stderr}")


def full_disk(bench, form):
    """A disk of 4 MiB: an error that says so, the old state, nothing left behind."""
    script = 'mount -t tmpfs -o size=4m none "$0" && exec "$@"'
    before = ["unshare", "-m", "sh", "-c", script, str(bench.folder)]
    if subprocess.run([*before, "true"], capture_output=True).returncode != 0:
        return 77
    done = bench.run(3, "full", bench.folder, form, before=before)
    lines = done.stdout.splitlines()
    bench.expect(done.returncode == 0 and any(re.match("error .*(No space left|failed)", line) for line in lines), f"{done.stdout}{done.stderr}")
    bench.expect("holds 1" in lines, done.stdout)
    left = [line for line in lines if line.startswith("left ") and (".tmp-" in line or ".lock" in line)]
    bench.expect(not left, f"{left}")


def same_process_number(bench, form):
    """Two jobs in process namespaces of their own, so both are process 1, that save to one path."""
    before = ["unshare", "-p", "-f", "--mount-proc"]
    if subprocess.run([*before, "true"], capture_output=True).returncode != 0:
        return 77
    jobs = []
    for job in (1, 2):
        own = bench.folder / f"tmp{job}"
        own.mkdir()
        shared = bench.folder / "shared"
        shared.mkdir(exist_ok=True)
        jobs.append(subprocess.Popen([*before, *bench.command(0, "share", shared, form, job)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     text=True, env=os.environ | {"TMPDIR": str(own)}))
    for job in jobs:
        words, _ = job.communicate(timeout=60)
        bench.expect(job.returncode == 0 and "done" in words and "mixed" not in words, words)
    bench.expect(not litter(bench.folder / "shared"), f"{litter(bench.folder / 'shared')}")


def order_of_calls(bench, form):
    """What is renamed is on the disk before, and its folder after: a power failure finds the old or the new state."""
    if shutil.which("strace") is None:
        return 77
    place = bench.folder / "x"
    place.mkdir()
    trace = bench.folder / "trace"
    done = bench.run(0, "fault", place, form, "none", before=["strace", "-f", "-y", "-o", str(trace), "-e", "trace=fsync,rename,pwrite64"])
    if done.returncode != 0 and "ptrace" in done.stderr:
        return 77
    events = []
    for line in trace.read_text(errors="replace").splitlines():
        found = re.search(r"\b(fsync|pwrite64)\(\d+<([^>]*)>|\b(rename)\(\"([^\"]*)\"", line)
        if found and str(place) in line:
            events.append((found.group(1) or found.group(3), found.group(2) or found.group(4)))
    renames = [i for i, (call, path) in enumerate(events) if call == "rename" and ".tmp-" in path]
    bench.expect(len(renames) == 2, f"two saves rename twice: {events}")
    for at in renames:
        temporary = events[at][1]
        written = {path for call, path in events[:at] if call == "pwrite64" and path.startswith(temporary)}
        bench.expect(written, f"nothing is written to {temporary}")
        for path in written:
            last_write = max(i for i, event in enumerate(events[:at]) if event == ("pwrite64", path))
            bench.expect(("fsync", path) in events[last_write:at], f"{path} is renamed before it is on the disk")
        bench.expect(("fsync", str(pathlib.Path(temporary).parent)) in events[at:], f"the folder of {temporary} is not brought to the disk")


def last_save(bench, form):
    """The error of a save that nothing follows in the program: the job ends with it, and its words are told."""
    for ranks in (1, 3):
        place = bench.folder / str(ranks)
        place.mkdir()
        done = bench.run(ranks, "last", place, form)
        bench.expect(done.returncode == 0 and (place / "steps" / "step_00000001" / "manifest.json").exists(), f"{done.returncode} {done.stderr}")
        shutil.rmtree(place / "steps")
        done = bench.run(ranks, "last", place, form, 1 << 20)
        bench.expect(done.returncode == 74 and "File too large" in done.stderr, f"on {ranks} ranks: {done.returncode} {done.stderr}")
        bench.expect(not (place / "steps" / "step_00000001").exists(), "there is a step")


def lost_output(bench, form):
    """What a program prints and nobody can keep is a failure of the program: a full disk, a closed output, a pipe that nobody reads."""
    for name, options, status in [
        ("full", {"stdout": open("/dev/full", "w")}, 74),
        ("closed", {"preexec_fn": lambda: os.close(1)}, 74),
    ]:
        place = bench.folder / name
        place.mkdir()
        done = subprocess.run(bench.command(0, "fault", place, form, "none"), stderr=subprocess.PIPE, text=True, timeout=60, **options)
        bench.expect(done.returncode == status, f"{name}: {done.returncode}, not {status}")
        bench.expect("what was printed could not be written to the standard output" in done.stderr, f"{name}: {done.stderr}")
        bench.expect(not litter(place), f"{name}: leaves {litter(place)}")
    place = bench.folder / "pipe"
    place.mkdir()
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(bench.command(0, "fault", place, form, "none"), stdout=writer, stderr=subprocess.PIPE, timeout=60)
    bench.expect(done.returncode == -signal.SIGPIPE, f"pipe: {done.returncode}")


scenarios = {f.__name__: f for f in (kills, throws, random_kills, full_disk, same_process_number, order_of_calls, last_save, lost_output)}
only = {"last_save": ["manager"]}
# A store's folder takes the place of the old one in one call (renameat2), which order_of_calls does not follow.
left_out = {"same_process_number": ["manager"],  # two jobs that remove each other's steps
            "order_of_calls": ["zarr", "streamed"]}  # the latter saves what it reads, too


def main():
    if sys.argv[1] == "--list":
        print(";".join(f"{name}.{form}" for name in scenarios for form in only.get(name, formats) if form not in left_out.get(name, [])))
        return 0
    name, form = sys.argv[3].split(".")
    bench = Bench(*sys.argv[1:3])
    try:
        if scenarios[name](bench, form) == 77:
            print("not allowed on this machine")
            return 77
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)
    for complaint in bench.complaints:
        print(f"{name}.{form}: {complaint}")
    return 1 if bench.complaints else 0


sys.exit(main())
