# A hash of the library's sources and how they are compiled. Ranks compare it when they start: two builds in one job are refused.
file(GLOB_RECURSE tessera_headers CONFIGURE_DEPENDS include/*.hpp src/*.hpp)
set(tessera_build_id ${PROJECT_BINARY_DIR}/build_id.cpp)
add_custom_command(
  OUTPUT ${tessera_build_id}
  COMMAND ${CMAKE_COMMAND} -D OUT=${tessera_build_id} -D ROOT=${PROJECT_SOURCE_DIR} -D VERSION=${PROJECT_VERSION}
          -D "HOW=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE}" -P ${CMAKE_CURRENT_LIST_DIR}/write_build_id.cmake
  DEPENDS ${tessera_sources} ${tessera_headers}
  VERBATIM)
target_sources(tessera PRIVATE ${tessera_build_id})
