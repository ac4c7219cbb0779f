# libtessera.so: its symbols are what include/tessera declares, and nothing else. Every source of it reads the public headers first, with
# their declarations visible; whatever it declares afterwards is hidden.
if(NOT TESSERA_SHARED)
  return()
endif()
file(WRITE ${PROJECT_BINARY_DIR}/public_first.hpp.in
     "#pragma GCC visibility push(default)\n#include <tessera/tessera.hpp>\n#pragma GCC visibility pop\n")
configure_file(${PROJECT_BINARY_DIR}/public_first.hpp.in ${PROJECT_BINARY_DIR}/public_first.hpp COPYONLY)

add_library(tessera_shared SHARED ${tessera_sources} ${tessera_build_id})
target_compile_features(tessera_shared PUBLIC cxx_std_20)
set_target_properties(tessera_shared PROPERTIES
  OUTPUT_NAME tessera VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} CXX_EXTENSIONS OFF
  CXX_VISIBILITY_PRESET hidden EXPORT_NAME tessera)
target_include_directories(tessera_shared PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include> PRIVATE src)
target_link_libraries(tessera_shared PUBLIC MPI::MPI_CXX PRIVATE $<BUILD_INTERFACE:tessera_needs> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
target_compile_options(tessera_shared PRIVATE ${tessera_warnings} -include ${PROJECT_BINARY_DIR}/public_first.hpp)
target_link_options(tessera_shared PRIVATE LINKER:--no-undefined LINKER:--as-needed LINKER:--exclude-libs,ALL)
set_target_properties(tessera PROPERTIES EXPORT_NAME static)
