# Standard headers are parsed once per target instead of once per file. No header of this project is among the library's and the tests':
# an edit of one rebuilds the files that include it and no others. scripts/check_includes finds the files that lean on this list.
option(TESSERA_PCH "Parse the standard headers once per target" ${PROJECT_IS_TOP_LEVEL})
set(tessera_standard_headers
    <algorithm> <array> <bit> <cmath> <complex> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring> <functional> <initializer_list> <limits> <map>
    <memory> <numeric> <optional> <set> <source_location> <span> <sstream> <string> <string_view> <tuple> <type_traits> <unordered_map>
    <utility> <variant> <vector>)

# tessera_precompile_headers(target [more headers]): the target's sources find the standard headers, and these, already parsed.
function(tessera_precompile_headers target)
  if(TESSERA_PCH)
    target_precompile_headers(${target} PRIVATE ${tessera_standard_headers} ${ARGN})
    tessera_through_ccache(${target})
  endif()
endfunction()

# The same from another target, which is compiled with the same options.
function(tessera_reuse_headers target from)
  if(TESSERA_PCH)
    target_precompile_headers(${target} REUSE_FROM ${from})
    tessera_through_ccache(${target})
  endif()
endfunction()

# ccache reads the preprocessed source, where this option leaves one line instead of all the headers' text. It must not stand in the command
# that precompiles the headers: ccache would take their text of yesterday, which still lies there, for that of today.
function(tessera_through_ccache target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      get_source_file_property(together ${source} UNITY_GROUP)
      if(NOT together)  # a file with options of its own is compiled alone
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -fpch-preprocess)
      endif()
    endforeach()
  endif()
endfunction()
