"""MPI up when the package is imported; down, in order, when the process ends."""
import atexit
import os
import sys
import traceback

from . import _core

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
    """Saves that are under way are finished. MPI that mpi4py has started ends with the interpreter: tessera has to end before it. Otherwise
    exit's own hook ends it, which knows the status."""
    if os.getpid() != _process:
        return
    _core.checkpoint.finish_managers(_has_failed)
    if "mpi4py.MPI" in sys.modules:
        status = _core.end()
        if status and not _has_failed:  # a save that was the program's last act, or another process
            sys.stdout.flush()
            os._exit(status)


def attach(communicator):
    """tessera on an mpi4py communicator, whose processes become the devices. Before anything else of tessera is used. Collective over it."""
    from mpi4py import MPI
    _core.end()
    _core.attach(MPI._addressof(communicator))


_core.start()
atexit.register(_finish)
sys.excepthook = _report
