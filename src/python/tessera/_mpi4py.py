"""mpi4py imported after tessera: it uses the MPI that tessera has loaded, or raises an error if it cannot."""
import importlib.machinery
import pathlib
import sys

from . import _core

_names = {"openmpi": "Open MPI", "mpich": "MPICH", "mpiabi": "an MPI of the standard ABI"}
_needs = {b"libmpi.so.40": "openmpi", b"libmpi.so.12": "mpich", b"libmpich.so.12": "mpich", b"libmpi_abi.so": "mpiabi"}


def _linked_with(file):
    """The MPI that a module names as its library, or None."""
    text = pathlib.Path(file).read_bytes()
    return next((kind for name, kind in _needs.items() if name in text), None)


class _SameMpi:
    """Asked before mpi4py's module is loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "mpi4py.MPI":
            return None
        kind, library = _core.mpi_in_use()
        if kind not in _names:
            return None
        choice = sys.modules.get("mpi4py._mpiabi")  # wheels of mpi4py have a module per MPI
        if choice is not None and choice.MPIABI is None:
            choice.MPIABI, choice.LIBMPI = kind, library
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        other = None if spec is None or spec.origin is None else _linked_with(spec.origin)
        if other not in (None, kind):
            raise ImportError(f"mpi4py was built for {_names[other]}, but tessera has started {_names[kind]} ({library}): a process has one MPI. "
                              f"Start the program with the mpirun of {_names[other]}, or install an mpi4py for {_names[kind]}")
        return None


def follow():
    sys.meta_path.insert(0, _SameMpi)
