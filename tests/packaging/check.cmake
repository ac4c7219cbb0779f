# cmake -D BUILD=<build tree> -D SOURCE=<consumer> -D WORK=<scratch> -D MPIEXEC=... -P check.cmake
# Installs, moves the installation elsewhere (it must not know where it was), builds a user's project with find_package and with
# pkg-config, runs both.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "status ${status} of: ${ARGV}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
foreach(component development tools)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first --component ${component})
endforeach()
file(RENAME ${WORK}/first ${WORK}/prefix)

file(GLOB_RECURSE texts ${WORK}/prefix/*.cmake ${WORK}/prefix/*.pc)
foreach(text IN LISTS texts)
  file(READ ${text} content)
  foreach(place ${WORK} ${BUILD})
    if(content MATCHES "${place}")
      message(FATAL_ERROR "${text} names ${place}: the installation cannot be moved")
    endif()
  endforeach()
endforeach()

run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${WORK}/cmake -D CMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/cmake)
file(GLOB_RECURSE pc ${WORK}/prefix/tessera.pc)
get_filename_component(pc_folder ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${pc_folder}:$ENV{PKG_CONFIG_PATH}")
run(sh -c "c++ '${SOURCE}/main.cpp' $(pkg-config --cflags --libs tessera) -o '${WORK}/by_pkg_config'")
foreach(program ${WORK}/cmake/consumer ${WORK}/by_pkg_config)
  run(${MPIEXEC} -n 3 ${program})
  if(NOT output MATCHES "Mesh\\('x': 3\\) \\(4, 4\\)")
    message(FATAL_ERROR "${program} printed: ${output}")
  endif()
endforeach()

# What lies beside the library: its texts, and examples that are a project against it.
foreach(file share/doc/tessera/README.md share/doc/tessera/LICENSE share/tessera/examples/CMakeLists.txt share/tessera/examples/heat.cpp
             share/man/man1/tessera.1 share/bash-completion/completions/tessera)
  if(NOT EXISTS ${WORK}/prefix/${file})
    message(FATAL_ERROR "the installation has no ${file}")
  endif()
endforeach()
run(${CMAKE_COMMAND} -G Ninja -S ${WORK}/prefix/share/tessera/examples -B ${WORK}/examples -D CMAKE_PREFIX_PATH=${WORK}/prefix)
