# Compiles comm as the wheel does, where MPI's names are those of the bridge alone: what a linked MPI accepts may have no name there.
# -D COMPILER= -D ROOT= -D WORK=
set(failed "")
foreach(folder collectives host mpi mpi/bridge tape watch)
  file(GLOB sources ${ROOT}/src/comm/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "(bridge/(openmpi|mpich|mpiabi)|own_mpi_calls).cpp$")  # these need <mpi.h>
  list(TRANSFORM sources REPLACE "(.+)" "#include \"\\1\"\n")
  list(JOIN sources "" together)
  string(REPLACE "/" "_" name ${folder})
  file(WRITE ${WORK}/${name}.cpp "${together}")
  execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -DTESSERA_MPI_BRIDGE=1 -I${ROOT}/include -I${ROOT}/src ${WORK}/${name}.cpp
                  RESULT_VARIABLE code ERROR_VARIABLE errors)
  if(code)
    message("src/comm/${folder} does not compile for the bridge:\n${errors}")
    list(APPEND failed ${folder})
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "not compiled: ${failed}")
endif()
