"""The command `tessera` of the wheel: the program in the package's folder, with the interpreter and the mpirun of this environment."""
import os
import pathlib
import sys
import sysconfig


def main():
    program = pathlib.Path(__file__).resolve().parent / "tessera" / "bin" / "tessera"
    os.environ.setdefault("TESSERA_PYTHON", sys.executable)
    mpirun = pathlib.Path(sysconfig.get_path("scripts")) / "mpirun"
    if mpirun.exists() and sys.prefix != sys.base_prefix:
        os.environ.setdefault("TESSERA_MPIRUN", str(mpirun))
    os.execv(program, ["tessera", *sys.argv[1:]])


if __name__ == "__main__":
    main()
