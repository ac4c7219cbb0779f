# A Spack recipe. Put it into a repository of your own:
#
#   spack repo create ~/spack-tessera && mkdir -p ~/spack-tessera/packages/tessera && cp package.py ~/spack-tessera/packages/tessera/
#   spack repo add ~/spack-tessera && spack dev-build tessera@main        # from the root of the sources
#
# Not tried with Spack itself, which was not at hand: checked as Python, and its CMake options by tests of this project. Names of packages are
# those of Spack 0.23's builtin repository.
from spack.package import *


class Tessera(CMakePackage):
    """Distributed arrays for C++20 over MPI, with JAX's shardings and NumPy's names."""

    license("BSD-3-Clause")

    version("main")

    variant("shared", default=True, description="Build the shared library besides the static one")
    variant("hdf5", default=True, description="Read and write .h5 files")
    variant("zarr", default=True, description="Zarr stores packed by zstd and Blosc")
    variant("python", default=False, description="The Python package")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11", type="build")
    depends_on("nlohmann-json@3:", type="build")
    depends_on("xxhash@0.8:", type="build")

    depends_on("mpi@3.1:")
    depends_on("blas")
    depends_on("lapack")
    depends_on("fftw@3: precision=float,double")
    depends_on("highway@1.0:")
    depends_on("sleef@3.5:")
    depends_on("libpng@1.6:")
    depends_on("zlib-api")
    depends_on("hdf5@1.10:", when="+hdf5")
    depends_on("zstd", when="+zarr")
    depends_on("c-blosc", when="+zarr")
    depends_on("python@3.9:", when="+python", type=("build", "link", "run"))
    depends_on("py-numpy", when="+python", type=("build", "run"))
    depends_on("py-pybind11@2.10:", when="+python", type="build")

    conflicts("%gcc@:11", msg="tessera needs C++20 with <source_location>: GCC 12 or newer")
    conflicts("%clang@:15", msg="tessera needs C++20 with <source_location>: clang 16 or newer")

    generator("ninja")

    def cmake_args(self):
        blas = (self.spec["lapack"].libs + self.spec["blas"].libs).ld_flags
        return [
            self.define_from_variant("TESSERA_SHARED", "shared"),
            self.define_from_variant("TESSERA_HDF5", "hdf5"),
            self.define_from_variant("TESSERA_ZARR", "zarr"),
            self.define_from_variant("TESSERA_PYTHON", "python"),
            self.define("TESSERA_BLAS", blas),
            self.define("TESSERA_BUILD_TESTS", False),
        ]
