"""jax.config's settings, as far as they apply here; and the path under which CMake finds the package's C++ files:

    cmake -B build -DCMAKE_PREFIX_PATH=$(python3 -m tessera.config --cmake)      # find_package(tessera)
"""
import argparse
import pathlib
import warnings

from . import _core

# `python3 -m tessera.config` reads this file a second time.
warnings.filterwarnings("ignore", message="'tessera.config' found in sys.modules", category=RuntimeWarning)


def update(name, value):
    """Sets jax_threefry_partitionable (how random bits come from keys; alike on all processes) or jax_debug_nans."""
    if name == "jax_threefry_partitionable":
        _core.set_threefry(bool(value))
    elif name == "jax_debug_nans":
        _core.debug.set_nan_check(bool(value))
    else:
        raise AttributeError(f"config: there is no setting {name!r}; there are jax_threefry_partitionable and jax_debug_nans")


def _main():
    package = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(prog="python3 -m tessera.config", description="Folders of tessera for C++")
    parser.add_argument("--cmake", action="store_true", help="for CMAKE_PREFIX_PATH")
    parser.add_argument("--include", action="store_true", help="the headers")
    asked = parser.parse_args()
    if not (package / "lib" / "cmake" / "tessera").is_dir():
        parser.exit(1, "tessera.config: this installation has the Python package alone; C++ programs take the prefix of cmake --install\n")
    if asked.include:
        print(package / "include")
    elif asked.cmake:
        print(package)
    else:
        parser.print_help()


if __name__ == "__main__":
    _main()
