# cmake --install: headers, the library, tessera-config.cmake and tessera.pc. No absolute path of this machine goes in.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(tessera_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(TARGETS tessera EXPORT tessera-static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tessera-static NAMESPACE tessera:: DESTINATION ${tessera_cmake_dir})
if(TESSERA_SHARED)
  install(EXPORT tessera-shared NAMESPACE tessera:: DESTINATION ${tessera_cmake_dir})
  install(TARGETS tessera_shared EXPORT tessera-shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
                                                                NAMELINK_COMPONENT development)
endif()
install(DIRECTORY include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
configure_package_config_file(scripts/cmake/tessera-config.cmake.in ${PROJECT_BINARY_DIR}/tessera-config.cmake INSTALL_DESTINATION ${tessera_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tessera-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tessera-config.cmake ${PROJECT_BINARY_DIR}/tessera-config-version.cmake
              scripts/cmake/tessera-dependencies.cmake DESTINATION ${tessera_cmake_dir})

# What a user looks for beside it, and examples to begin with.
install(FILES README.md LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY apps/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/examples)
install(DIRECTORY src/simulate/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera)
install(FILES apps/picture.hpp DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/examples)

# For pkg-config: the MPI by the name that it has there. A program that links the shared library needs nothing else.
string(APPEND tessera_pc_libs " -fopenmp -pthread")
if(TESSERA_SHARED)
  set(tessera_pc_requires "")
  set(tessera_pc_libs "")
endif()
if(tessera_mpi_name STREQUAL "mpich")
  pkg_search_module(tessera_pc_mpi QUIET mpich)
else()
  pkg_search_module(tessera_pc_mpi QUIET ompi-c)
endif()
if(tessera_pc_mpi_FOUND)
  string(PREPEND tessera_pc_requires "${tessera_pc_mpi_MODULE_NAME}")
else()
  string(APPEND tessera_pc_libs " ${MPI_CXX_LIBRARIES}")
endif()
file(RELATIVE_PATH tessera_prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(scripts/cmake/tessera.pc.in ${PROJECT_BINARY_DIR}/tessera.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What install put there goes with `cmake --build build --target uninstall`, file by file from the list that install wrote.
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D LIST=${PROJECT_BINARY_DIR}/install_manifest.txt
                                    -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake VERBATIM)
include(Packages)  # cpack
