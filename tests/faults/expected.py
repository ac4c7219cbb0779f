#!/usr/bin/env python3
"""expected.py --list | expected.py MPIEXEC PROGRAM NAME: one way to go wrong, and how the job must end: status, words, time."""
import atexit
import os
import re
import signal
import subprocess
import sys
import time

# Without AVX-512 a rank that is held to AVX2 is none of another type.
has_avx512 = "avx512dq" in open("/proc/cpuinfo").read()



def ended_by(number, name):
    """What the launcher says of a rank that a signal ended: Open MPI's words or MPICH's."""
    return rf"(?:exited on signal {number} |EXIT STRING: {name} \(signal {number}\))"


# name: (ranks; 0 starts without mpirun, settings, status or those of different launchers, seconds at most, {regular expression: how often it stands in stderr})
# "some": mpirun may end the other ranks before they speak.
faults = {
    "nothing": (4, {}, 0, 5, {"tessera": 0}),
    "nothing_alone": (0, {}, 0, 5, {"tessera": 0}),
    "throw_on_one": (4, {}, 70, 8, {r"\[rank 2\] tessera: uncaught exception: broken sensor": 1}),
    "throw_on_one_alone": (0, {}, 0, 5, {}),
    "throw_an_int": (3, {}, 70, 8, {r"\[rank 0\] .*not a std::exception": 1}),
    "throw_on_all": (4, {}, 70, 5, {r"^tessera: ShardingError: spec P\('q'\)": 1, r"\[rank": 0}),
    "throw_on_all_alone": (0, {}, 70, 5, {r"^tessera: ShardingError: spec P\('q'\)": 1}),
    "throw_own_words": (3, {}, 74, 5, {r"\[rank 0\] tessera: IoError: cannot open part 0": 1, "cannot open part 1": 1, "cannot open part 2": 1}),
    "throw_on_some": (4, {}, 70, 5, {r"\[rank 0\] tessera: \(ranks 0, 1\) ShapeError": 1, "ShapeError": 1}),
    "memory": (2, {}, 71, 5, {"MemoryError: needs 37 GiB": 1}),
    "return_early": (4, {}, 76, 5, {"rank 1: the program has ended": 1, r"ranks 0, 2, 3: x \* y": 1}),
    "return_early_into_a_collective": (
        4, {"TESSERA_TIMEOUT": "2", "TESSERA_CHECK": "0"}, 76, 9,
        {r"rank 1 waits since [\d.]+ s in #1 the end of the program": 1, r"rank [023] waits since [\d.]+ s in #1 barrier": 3}),
    "different_records": (4, {}, 76, 5, {r"ranks 0-2: sum\(x, axis=0\)": 1, r"rank 3: sum\(x, axis=1\)": 1}),
    "sleeper": (
        3, {"TESSERA_TIMEOUT": "2"}, 76, 9,
        {r"rank 1 computes since [\d.]+ s; its last call was #2 barrier": 1, r"rank [02] waits .* for matmul at model.cpp:12$": 2}),
    "settings_of_each": (3, {}, 0, 20, {"not so": 0, "settings that must be equal differ between the ranks: rank 0's hold for all": 1,
                                         r"rank 1: TESSERA_MESSAGE_LIMIT=1000 TESSERA_COLLECTIVES=mpi": 1, r"ranks 0, 2: as rank 0": 1}),
    "unchecked_on_one": (3, {}, 0, 20, {"not so": 0, "rank 1: TESSERA_CHECK=0 TESSERA_NAN_CHECK=1": 1}),
    "replicas_differ": (4, {"TESSERA_CHECK": "2"}, 76, 20, {
        r"^tessera: DisagreementError: TESSERA_CHECK=2: ranks 0 and 2 hold the same block of operand \d+, float32\[2\], with different values": 1}),
    "different_collectives": (3, {"TESSERA_CHECK": "2"}, 76, 20, {r"ranks 0, 2: all-reduce": 1, r"rank 1: all-reduce": 1}),
    "different_jitted_functions": (4, {"TESSERA_TIMEOUT": "20"}, 76, 20, {r"ranks 0-2: evaluates": 1, "rank 3: evaluates": 1}),
    "too_much_for_one": (3, {}, 0, 20, {"not so": 0}),
    "address_space_of_one": (3, {}, 0, 20, {"not so": 0}),
    "group_of_little_memory": (3, {}, 0, 20, {"not so": 0}),
    "circle_of_parts": (3, {"TESSERA_TIMEOUT": "25"}, 76, 10, {
        r"DisagreementError: the ranks disagree on what comes next, and wait for each other": 1,
        r"^  rank 0: meets devices 0, 1 for the first time, for sum": 1, r"^  rank 1: meets devices 1, 2": 1, r"^  rank 2: meets devices 0, 2": 1, "TESSERA_TIMEOUT": 0}),
    "part_against_all": (4, {"TESSERA_TIMEOUT": "25"}, 76, 10, {
        r"DisagreementError: the ranks disagree": 1, r"^  rank 0: evaluates": 1, r"^  ranks 1-3: evaluates": 1, "TESSERA_TIMEOUT": 0}),
    "ended_beside_a_part": (3, {"TESSERA_TIMEOUT": "25"}, 76, 10, {
        r"DisagreementError: the ranks disagree": 1, r"^  ranks 0, 2: the program has ended": 1, r"^  rank 1: meets devices 0, 1": 1}),
    "error_on_a_part": (4, {}, 70, 8, {"LinAlgError: rank 0: .*cholesky": 1, "DisagreementError": 0}),
    "error_on_a_part_before_a_save": (4, {}, 70, 8, {"LinAlgError: rank 0: .*cholesky": 1, "DisagreementError": 0}),
    "error_on_a_part_at_the_end": (4, {}, 70, 8, {"LinAlgError: rank 0: .*cholesky": 1, "DisagreementError": 0}),
    "error_caught_on_a_part": (4, {}, 0, 8, {"not so": 0, "tessera": 0}),
    "part_that_differs": (3, {}, 76, 10, {"DisagreementError: the ranks disagree": 1, r"rank 1: .*\n(.*\n)+    after 5 evaluations on devices 0, 1 that send nothing": 1}),
    "part_that_differs_at_the_end": (3, {}, 76, 10, {"DisagreementError: the ranks disagree": 1, r"rank 0: the program has ended\n    after \d evaluations on devices 0, 1 that send nothing, the last: eval": 1}),
    "verdicts_differ": (4, {}, 0, 10, {"not so": 0, "tessera": 0}),
    "segmentation_fault": (3, {}, 139, 8, {ended_by(11, "Segmentation fault"): 1, r"\[rank [02]\]": 0}),
    "abort": (3, {}, 134, 8, {ended_by(6, "Aborted"): 1, r"\[rank [02]\]": 0}),
    "endless_loop": (3, {"TESSERA_TIMEOUT": "1"}, 0, 20, {
        r"\[rank 1\] tessera: waits since [\d.]+ s for rank 0 \(process \d+\), which computes": "some", r"\[rank 2\]": 0}),
    "own_barrier": (3, {"TESSERA_TIMEOUT": "3"}, 76, 15, {
        r"waits since [\d.]+ s for rank 0 \(process \d+\), which waits since [\d.]+ s in MPI_Barrier, a call of its own to the MPI library": 1,
        r"rank 0 waits since [\d.]+ s in MPI_Barrier, a call of its own": 1, r"rank [12] waits since [\d.]+ s in #\d+ barrier": 2}),
    "own_receive_beside_a_thread": (2, {"TESSERA_TIMEOUT": "3"}, 76, 15, {r"rank 1 waits since [\d.]+ s in MPI_Recv, a call of its own": 1}),
    "pause_beside_a_thread": (2, {"TESSERA_TIMEOUT": "3"}, 76, 15, {r"TESSERA_TIMEOUT of 3 s: rank 1 computes since": 1}),
    "own_messages": (3, {"TESSERA_TIMEOUT": "2", "TESSERA_LOG": "error"}, 0, 20, {"tessera": 0}),
    "many_short_waits": (3, {"TESSERA_TIMEOUT": "4"}, 0, 25, {"tessera": 0}),
    "works_too_long": (3, {"TESSERA_TIMEOUT": "2", "TESSERA_WORK_LIMIT": "4"}, 76, 15, {
        r"waits since [\d.]+ s for rank 0 \(process \d+\), which computes or works on files since [\d.]+ s without a call of the library": "some",
        r"TESSERA_WORK_LIMIT of 4 s: rank 0 computes since [\d.]+ s": 1, "TESSERA_WORK_LIMIT of 4 s: rank [12] waits": 2}),
    "works_within_the_limit": (3, {"TESSERA_TIMEOUT": "1.5", "TESSERA_WORK_LIMIT": "20", "TESSERA_LOG": "error"}, 0, 20, {"tessera": 0}),
    "long_kernel": (2, {"TESSERA_TIMEOUT": "1.5", "TESSERA_WORK_LIMIT": "2", "TESSERA_LOG": "error"}, 0, 50, {"tessera": 0}),
    "first_notice": (2, {}, 0, 25, {r"\[rank 0\] tessera: waits since 1\d\.\d s for rank 1 \(process \d+\), which computes or works on files since 1": 1}),
    "works_alone": (3, {"TESSERA_TIMEOUT": "1.5", "TESSERA_LOG": "error"}, 0, 20, {"tessera": 0}),
    "long_epilogue": (3, {"TESSERA_TIMEOUT": "1.5", "TESSERA_LOG": "error"}, 0, 20, {"tessera": 0}),
    "stopped": (4, {"TESSERA_TIMEOUT": "2"}, 76, 20, {r"rank 1 \(process \d+\) shows no sign of life since [\d.]+ s": 1, r"rank [023] waits since": "some"}),
    "exit_zero": (3, {}, 76, 5, {"ranks 0, 2: x": 1, "rank 1: the program has ended": 1, "terminate called": 0}),
    "exit_three": (3, {}, 3, 8, {r"\[rank 1\] tessera: std::exit\(3\) was called while": 1, "terminate called": 0}),
    "exit_on_all": (3, {}, 5, 5, {r"^tessera: std::exit\(5\) was called while": 1, r"\[rank": 0, "terminate called": 0}),
    "exit_zero_on_all": (3, {}, 0, 5, {"tessera": 0, "terminate called": 0}),
    "exit_alone": (0, {}, 5, 5, {r"^tessera: std::exit\(5\)": 1}),
    "save_on_one": (3, {}, 76, 5, {"rank 0: save_npy to 'x.npy'": 1, "ranks 1, 2: x": 1}),
    "callback_on_one": (3, {}, 70, 5, {r"^tessera: ArgumentError: rank 1: make_array_from_callback at program\.cpp:\d+: the callback failed at .*: no such part": 1, r"\[rank": 0}),
    "different_constants": (3, {}, 76, 5, {r"ranks 0, 2: evaluates\n.*parameter = 2\.5": 1, r"rank 1: evaluates\n.*parameter = 3\.5": 1}),
    "interrupted": (3, {}, (1, 130), 10, {"terminate called": 0, "tessera": 0}),
    "terminated": (3, {}, (1, 143), 10, {"terminate called": 0, "tessera": 0}),
    "no_single_copy": (3, {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}, 0, 20, {"not so": 0}),
    "small_shared_memory": (3, {}, 0, 20, {"not so": 0}),
    "refused_reads": (3, {"TEST_REFUSES": "read"}, 0, 30, {"not so": 0, "refused: read": 3}),
    "refused_files": (3, {"TEST_REFUSES": "files"}, 0, 30, {"not so": 0, "refused: files": 3}),
    "refused_proc": (3, {"TEST_REFUSES": "proc"}, 0, 30, {"not so": 0, "refused: proc": 3}),
    "refused_code": (3, {"TEST_REFUSES": "code"}, 0, 30, {"not so": 0, "refused: code": 3}),
    "refused_all": (3, {"TEST_REFUSES": "read,files,proc,code"}, 0, 30, {"not so": 0, "refused: read": 3, "refused: files": 3, "refused: code": 3}),
    "equal_process_numbers": (3, {"OMPI_MCA_btl": "self,tcp"}, 0, 30, {"not so": 0}),  # Open MPI's shared memory goes by the number too
    "unlike_hosts": (3, {"OPENBLAS_NUM_THREADS": "1"}, 0, 15, {"the ranks compute with different kernels": 1, r"^  rank 1: .*, 2 threads$": 1, r"^  ranks 0, 2: .*, 1 thread$": 1}),
    "weaker_cpu_on_one": (3, {"TESSERA_LOG": "info"}, 0, 30, {"not so": 0, "CPUs of several types; all ranks compute with AVX2": int(has_avx512), "compute with different kernels": 0}),
    "old_cpu_on_one": (2, {"TESSERA_LOG": "info"}, 0, 30, {"not so": 0, "CPUs of several types; all ranks compute with baseline vectors": 1, "compute with different kernels": 0}),
    "callback_calls_tessera": (3, {}, 70, 10, {r"rank 0\] tessera: ArgumentError: .*called inside of a function given to debug::callback": 1}),
    "callback_calls_tessera_in_jit": (3, {}, 70, 10, {r"ArgumentError: .*called inside of a function given to debug::callback": "some"}),
    "killed": (3, {}, 137, 8, {ended_by(9, "Killed"): 1, r"\[rank [02]\]": 0}),
    "slow_but_right": (3, {"TESSERA_TIMEOUT": "6", "TESSERA_LOG": "error"}, 0, 8, {"tessera": 0}),
    "second_runtime": (2, {}, 0, 5, {"not so": 0}),
    "unwind_on_one": (3, {}, 70, 8, {r"\[rank 1\] tessera: an exception left the scope": 1}),
    "unwind_on_all": (3, {}, 5, 5, {"caught: thrown through the scope": "some"}),
    "inside_application": (4, {}, 0, 8, {"not so": 0}),
    "finalized_too_soon": (2, {}, 0, 8, {"MPI was finalized while": 2}),
    "different_builds": (2, {}, 2, 5, {"different builds of tessera": 1, "rank 0: build 0": 1, "rank 1: build 1": 1}),
    "before_start": (2, {}, 0, 5, {"not so": 0}),
    "bad_setting": (3, {"TESSERA_TIMEOUT": "soon"}, 2, 5, {"TESSERA_TIMEOUT='soon' is not usable": 1}),
    "misspelt_setting": (3, {"TESSERA_TIMOUT": "3"}, 0, 5, {r"no setting TESSERA_TIMOUT \(did you mean 'TESSERA_TIMEOUT'\?\)": 1}),
    "launcher_of_another_mpi": (0, {"SLURM_STEP_NUM_TASKS": "4"}, 2, 5, {r"started 4 processes \(SLURM_STEP_NUM_TASKS\) but MPI knows 1": 1}),
    "log_of_the_start": (2, {"TESSERA_LOG": "info"}, 0, 5, {"2 ranks, .* threads? each, build ": 1}),
}
# What one rank alone finds in its environment.
settings_of_rank_1 = {
    "settings_of_each": {"TESSERA_MESSAGE_LIMIT": "1000", "TESSERA_COLLECTIVES": "mpi"},
    "unchecked_on_one": {"TESSERA_CHECK": "0", "TESSERA_NAN_CHECK": "1"},
    "too_much_for_one": {"TESSERA_MEM_LIMIT": "5M"},
    "unlike_hosts": {"OPENBLAS_NUM_THREADS": "2"},
    "weaker_cpu_on_one": {"TESSERA_CPU": "avx2"}, "old_cpu_on_one": {"TESSERA_CPU": "baseline"},
}
# Sent to mpirun while the ranks work.
signal_of = {"interrupted": signal.SIGINT, "terminated": signal.SIGTERM}
# A /dev/shm of 1 MiB, of its own: for root only.
in_small_memory = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"', "sh"]
# Each rank is the first process of a namespace of its own: for root only.
in_own_namespace = ["unshare", "-p", "-f", "--mount-proc"]
# What the program is told to do, where that is not the name.
scenario_of = {
    **{f"refused_{what}": "moves_and_computes" for what in ("reads", "files", "proc", "code", "all")},
    "unlike_hosts": "nothing", "weaker_cpu_on_one": "computes_alike", "old_cpu_on_one": "computes_alike", "equal_process_numbers": "moves_and_computes",
    "endless_loop": "works_alone", "works_within_the_limit": "works_alone", "first_notice": "sleeps_12_s", "interrupted": "works_alone", "terminated": "works_alone", "no_single_copy": "settings_of_each",
    "small_shared_memory": "settings_of_each", "nothing_alone": "nothing", "throw_on_one_alone": "throw_on_one", "throw_on_all_alone": "throw_on_all", "bad_setting": "nothing",
    "misspelt_setting": "nothing", "launcher_of_another_mpi": "nothing", "exit_alone": "exit_on_all", "unchecked_on_one": "settings_of_each", "log_of_the_start": "nothing",
}


def make_memory_group(limit):
    """The folder of a cgroup of this process's own; None where that is not allowed."""
    for root, limit_name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = f"{root}/tessera-test-{os.getpid()}"
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(f"{group}/{limit_name}", "w") as file:
                file.write(str(limit))
            return group
        except OSError:
            os.rmdir(group)
    return None


def main():
    if sys.argv[1] == "--list":
        print(";".join(faults))
        return 0
    mpiexec, program, name = sys.argv[1:]
    ranks, settings, status, most_s, words = faults[name]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TESSERA_")} | settings
    work = [program, scenario_of.get(name, name)]
    command = ([mpiexec, "-n", str(ranks)] if ranks else []) + work
    if name in settings_of_rank_1:
        own = [word for key, value in settings_of_rank_1[name].items() for word in ("-x", f"{key}={value}")]
        command = [mpiexec, "-n", "1"] + work + [":", "-n", "1"] + own + work + [":", "-n", str(ranks - 2)] + work
    if "TEST_REFUSES" in settings:
        command[1:1] = ["-x", f"LD_PRELOAD={os.path.dirname(program)}/librefusing.so"]
    if name == "equal_process_numbers":
        if subprocess.run(in_own_namespace + ["true"], capture_output=True).returncode != 0:
            return 77
        command = [mpiexec, "-n", str(ranks)] + in_own_namespace + work
    if name == "small_shared_memory":
        if subprocess.run(in_small_memory + ["true"], capture_output=True).returncode != 0:
            return 77
        command = in_small_memory + command
    if name == "group_of_little_memory":
        group = make_memory_group(600 << 20)
        if group is None:
            return 77
        command = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"] + command
        atexit.register(os.rmdir, group)
    start = time.monotonic()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as done:
        if name in signal_of:
            time.sleep(1.5)
            done.send_signal(signal_of[name])
        try:
            _, stderr = done.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            done.kill()
            print(f"{name}: hangs\n{done.communicate()[1]}")
            return 1
    took_s = time.monotonic() - start
    complaints = []
    if done.returncode not in (status if isinstance(status, tuple) else (status,)):
        complaints.append(f"status {done.returncode}, not {status}")
    if took_s > most_s:
        complaints.append(f"took {took_s:.1f} s, more than {most_s}")
    for pattern, times in words.items():
        found = len(re.findall(pattern, stderr, re.MULTILINE))
        if found != times and not (times == "some" and found > 0):
            complaints.append(f"/{pattern}/ stands {found} times in stderr, not {times}")
    for complaint in complaints:
        print(f"{name}: {complaint}")
    if complaints:
        print(stderr)
    return 1 if complaints else 0


sys.exit(main())
