# cmake --install: headers, the library, tessera-config.cmake and tessera.pc. No absolute path of this machine goes in.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(tessera_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

install(TARGETS tessera EXPORT tessera-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tessera-targets NAMESPACE tessera:: DESTINATION ${tessera_cmake_dir})
configure_package_config_file(scripts/cmake/tessera-config.cmake.in ${PROJECT_BINARY_DIR}/tessera-config.cmake INSTALL_DESTINATION ${tessera_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tessera-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tessera-config.cmake ${PROJECT_BINARY_DIR}/tessera-config-version.cmake DESTINATION ${tessera_cmake_dir})

file(RELATIVE_PATH tessera_prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(scripts/cmake/tessera.pc.in ${PROJECT_BINARY_DIR}/tessera.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
