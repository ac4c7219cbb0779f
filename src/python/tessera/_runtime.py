"""Starts MPI when the package is imported, and ends it in order when the process ends."""
import atexit
import os
import sys
import time
import traceback

from . import _core, _mpi4py

_core.set_package_folder(os.path.dirname(os.path.abspath(__file__)) + os.sep)
_has_failed = False
_process = os.getpid()  # a child after fork() has nothing to end


def _report(kind, error, trace, print_it=sys.__excepthook__):
    """An exception has left the program on this process: its traceback is printed once per job, and the job ends."""
    global _has_failed
    is_interactive = hasattr(sys, "ps1") or sys.flags.interactive
    _has_failed = not is_interactive
    if is_interactive or _core.process_count() == 1 or os.getpid() != _process:
        print_it(kind, error, trace)
        return
    words = "".join(traceback.format_exception(kind, error, trace)).rstrip()
    _core.fail(words, getattr(error, "exit_status", 1))


def _finish():
    """Finishes running saves and the profile of the program. MPI started by mpi4py ends with the interpreter, so tessera must end before it. Otherwise
    exit's own hook ends it, which knows the status."""
    if os.getpid() != _process:
        return
    _core.checkpoint.finish_managers(_has_failed)
    if not _has_failed:
        try:
            _core.finish_job_profile()
        except _core.errors.Error as error:
            _report(type(error), error, error.__traceback__)
    if "mpi4py.MPI" in sys.modules:
        status = _core.end()
        if status and not _has_failed:  # a save that was the program's last act, or another process
            sys.stdout.flush()
            os._exit(status)


def attach(communicator):
    """tessera on an mpi4py communicator, whose processes become the devices. Before anything else of tessera is used. Collective over it."""
    from mpi4py import MPI
    _core.detach()
    _core.attach(MPI._addressof(communicator))


def _start():
    """A start that cannot work says so once per job. The other processes wait a second, since a launcher ends the job at the first that fails."""
    try:
        _core.start()
    except _core.errors.ArgumentError as error:
        rank = _core.launched_rank()
        if rank < 0:
            raise
        if rank == 0:
            print(f"tessera: cannot start: {error}", file=sys.stderr, flush=True)
        else:
            time.sleep(1)
        raise SystemExit(2) from None


_start()
_mpi4py.follow()
atexit.register(_finish)
sys.excepthook = _report
