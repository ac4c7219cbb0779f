# TESSERA_WHEEL: what `pip install .` and scripts/wheel build. The library loads its MPI, and the module, the command and programs that
# find_package finds share one libtessera.so; all of it stands in the package's folder:
#   tessera/*.py, _core*.so   bin/tessera   lib/libtessera.so, cmake/tessera   include/tessera   share/
option(TESSERA_WHEEL "Build the Python wheel's tree" OFF)
if(TESSERA_WHEEL)
  set(TESSERA_MPI_BRIDGE ON)
  set(TESSERA_SHARED ON)
  set(TESSERA_PYTHON ON)
  set(TESSERA_BUILD_TESTS OFF CACHE BOOL "Build the tests")
  set(TESSERA_BUILD_APPS ON)
  set(CMAKE_INSTALL_LIBDIR lib)
  set(TESSERA_PYTHON_INSTALL_DIR "." CACHE STRING "" FORCE)
endif()
