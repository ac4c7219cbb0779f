# A source file for each table: the compiler and the errors of the library cite the table's lines.
file(GLOB tables CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/catalogue/*.tsv)
foreach(table IN LISTS tables)
  cmake_path(GET table STEM name)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/catalogue/${name}_rows.cpp)
  add_custom_command(OUTPUT ${made} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/catalogue/rows.py --cpp ${table} ${made}
                     DEPENDS ${table} ${CMAKE_CURRENT_SOURCE_DIR}/catalogue/rows.py VERBATIM)
  list(APPEND sources ${made})
endforeach()
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/catalogue)
