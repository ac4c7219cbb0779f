# TESSERA_MPI_BRIDGE: the library links no MPI, and loads the one that is there when a program starts (src/comm/mpi/bridge). Needed are
# the headers of each MPI that it shall know; Debian's libopenmpi-dev and libmpich-dev can both be installed. Sets tessera_bridge_sources.
file(GLOB tessera_bridge_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/comm/mpi/bridge/*.cpp)
set(TESSERA_MPI_INCLUDE "" CACHE STRING "Folders of <mpi.h> and <mpi_abi.h>, of the MPIs that the bridge shall know; looked at before the usual ones")
find_package(MPI QUIET COMPONENTS CXX)  # the one that mpicxx names, wherever it is; tests are linked with it
set(tessera_usual_mpi ${MPI_CXX_INCLUDE_DIRS} /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include
                      /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich /usr/include/openmpi-${CMAKE_SYSTEM_PROCESSOR}
                      /usr/include/mpich-${CMAKE_SYSTEM_PROCESSOR} /usr/include /usr/local/include)

# tessera_bridge(interface header what it defines): compiles the adapter where a folder has such a header.
set(tessera_bridge_knows "")
function(tessera_bridge interface header defines)
  set(source ${PROJECT_SOURCE_DIR}/src/comm/mpi/bridge/${interface}.cpp)
  foreach(folder IN LISTS TESSERA_MPI_INCLUDE tessera_usual_mpi)
    if(NOT EXISTS ${folder}/${header})
      continue()
    endif()
    file(STRINGS ${folder}/${header} found REGEX "^ *# *define +${defines}( |$)" LIMIT_COUNT 1)
    if(found)
      set_source_files_properties(${source} PROPERTIES INCLUDE_DIRECTORIES ${folder} SKIP_PRECOMPILE_HEADERS ON
                                                       COMPILE_DEFINITIONS "OMPI_SKIP_MPICXX;MPICH_SKIP_MPICXX")
      set(tessera_bridge_knows ${tessera_bridge_knows} ${interface} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  list(REMOVE_ITEM tessera_bridge_sources ${source})
  set(tessera_bridge_sources ${tessera_bridge_sources} PARENT_SCOPE)
endfunction()
tessera_bridge(openmpi mpi.h OPEN_MPI)
tessera_bridge(mpich mpi.h MPICH_VERSION)
tessera_bridge(mpiabi mpi_abi.h MPI_ABI_VERSION)

if(NOT tessera_bridge_knows)
  tessera_need("<mpi.h> of each MPI that the library shall load (folders of others: TESSERA_MPI_INCLUDE)" "libopenmpi-dev libmpich-dev" "openmpi-devel mpich-devel"
               "openmpi, mpich" "openmpi, mpich" "openmpi, mpich")
  tessera_tell_what_is_missing()
endif()
list(TRANSFORM tessera_bridge_knows PREPEND TESSERA_KNOWS_ OUTPUT_VARIABLE tessera_bridge_definitions)
string(TOUPPER "${tessera_bridge_definitions}" tessera_bridge_definitions)
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/comm/mpi/bridge/choice.cpp APPEND PROPERTY COMPILE_DEFINITIONS ${tessera_bridge_definitions})
list(JOIN tessera_bridge_knows ", " tessera_bridge_text)
message(STATUS "The library loads its MPI; it knows: ${tessera_bridge_text}")
