# libtessera.so: linked from the objects of the static library, so nothing is compiled twice. It shows what include/tessera names and hides
# the rest (exported_symbols.py).
#
# In a wheel the module and the command link it too, so there it shows all of tessera.
set(tessera_for_programs tessera)
if(NOT TESSERA_SHARED)
  return()
endif()
if(NOT tessera_python3)
  message(FATAL_ERROR "TESSERA_SHARED=ON: python3 was not found; it lists the symbols that the shared library shows")
endif()
set(tessera_exports ${PROJECT_BINARY_DIR}/exported_symbols.map)
if(TESSERA_WHEEL)
  set(tessera_for_programs tessera_shared)
  file(GENERATE OUTPUT ${tessera_exports} CONTENT "{ global: _Z*tessera*; local: *; };\n")
else()
  add_custom_command(
  OUTPUT ${tessera_exports}
  COMMAND ${tessera_python3} ${CMAKE_CURRENT_LIST_DIR}/exported_symbols.py $<TARGET_FILE:tessera> ${PROJECT_SOURCE_DIR}/include
          ${PROJECT_SOURCE_DIR}/src ${tessera_exports}
  DEPENDS tessera ${CMAKE_CURRENT_LIST_DIR}/exported_symbols.py
  VERBATIM)
endif()
add_custom_target(tessera_exported_symbols DEPENDS ${tessera_exports})

add_library(tessera_shared SHARED $<TARGET_OBJECTS:tessera>)
add_dependencies(tessera_shared tessera_exported_symbols)
target_compile_features(tessera_shared PUBLIC cxx_std_20)
set_target_properties(tessera_shared PROPERTIES
  OUTPUT_NAME tessera LINKER_LANGUAGE CXX
  LINK_DEPENDS ${tessera_exports} EXPORT_NAME tessera)
target_include_directories(tessera_shared PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${tessera_header_folder}>)
target_link_libraries(tessera_shared PUBLIC ${tessera_mpi} PRIVATE $<BUILD_INTERFACE:tessera_needs>)
if(NOT TESSERA_WHEEL)  # files of a wheel are no links, so there the library has one name
  set_target_properties(tessera_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
else()
  target_include_directories(tessera_shared PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_compile_definitions(tessera_shared PUBLIC $<BUILD_INTERFACE:TESSERA_MPI_BRIDGE=1>)
  target_link_options(tessera_shared PRIVATE LINKER:-Bsymbolic-functions)
endif()
target_link_options(tessera_shared PRIVATE LINKER:--version-script=${tessera_exports} LINKER:--no-undefined LINKER:--as-needed)
set_target_properties(tessera PROPERTIES EXPORT_NAME static)
