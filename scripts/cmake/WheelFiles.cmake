# Component `wheel`: the files of the wheel, below the folder that Python looks in.
set_target_properties(tessera_python PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
set_target_properties(tessera_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
set(python_files ${PROJECT_SOURCE_DIR}/src/python)
target_sources(tessera_shared PRIVATE ${CMAKE_CURRENT_LIST_DIR}/wheel_symbols.cpp)  # for systems older than this one
install(TARGETS tessera_python LIBRARY DESTINATION tessera COMPONENT wheel)
install(TARGETS tessera_cli RUNTIME DESTINATION tessera/bin COMPONENT wheel)
install(TARGETS tessera_shared EXPORT tessera-wheel LIBRARY DESTINATION tessera/lib COMPONENT wheel)
install(DIRECTORY ${python_files}/tessera/ DESTINATION tessera COMPONENT wheel FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY ${PROJECT_BINARY_DIR}/python/tessera/ DESTINATION tessera COMPONENT wheel FILES_MATCHING PATTERN "*.pyi" PATTERN "__pycache__" EXCLUDE)
install(FILES ${python_files}/tessera_command.py DESTINATION . COMPONENT wheel)

# For C++ programs: python3 -m tessera.config --cmake
install(DIRECTORY include/tessera DESTINATION tessera/include COMPONENT wheel)
install(EXPORT tessera-wheel NAMESPACE tessera:: FILE tessera-shared.cmake DESTINATION tessera/lib/cmake/tessera COMPONENT wheel)
install(FILES ${PROJECT_BINARY_DIR}/tessera-config.cmake ${PROJECT_BINARY_DIR}/tessera-config-version.cmake
              scripts/cmake/tessera-dependencies.cmake DESTINATION tessera/lib/cmake/tessera COMPONENT wheel)
install(DIRECTORY apps/examples/ DESTINATION tessera/share/tessera/examples COMPONENT wheel)
install(FILES apps/picture.hpp DESTINATION tessera/share/tessera/examples COMPONENT wheel)
install(DIRECTORY src/simulate/machines DESTINATION tessera/share/tessera COMPONENT wheel)  # for tessera simulate --machine
