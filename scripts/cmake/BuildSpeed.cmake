# Build types, warnings, and what makes a build quick. Nothing here reaches a project that only uses tessera.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug (quick to compile, checks on) or Release" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(tessera_warnings -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms of optimised builds: std::string (GCC bug 105651; -O3 gives it another name), std::optional (GCC bug 80635).
  list(APPEND tessera_warnings -Wno-restrict $<$<NOT:$<CONFIG:Debug>>:-Wno-stringop-overflow$<SEMICOLON>-Wno-array-bounds$<SEMICOLON>-Wno-maybe-uninitialized>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  list(APPEND tessera_warnings -Wno-dangling-reference)  # false alarms: any function that takes a temporary and returns a reference
endif()
set(tessera_verify $<$<CONFIG:Debug>:TESSERA_VERIFY=1>)  # verifiers between the stages

if(PROJECT_IS_TOP_LEVEL)
  list(APPEND tessera_warnings $<$<CONFIG:Debug>:-Werror>)  # not where another compiler's optimiser may raise a false alarm
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -D_GLIBCXX_ASSERTIONS -fstack-protector-strong")
  if(NOT TESSERA_SANITIZE)  # the address sanitizer sees what these checks see, and is confused by them
    string(APPEND CMAKE_CXX_FLAGS_DEBUG " -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2")
  endif()

  find_program(tessera_ccache ccache)
  if(tessera_ccache AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Precompiled headers are found again by their contents, not by when they were written. Paths count from the root of the sources, so that
    # another copy of the same sources finds what this one compiled.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
                                        CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${tessera_ccache})
  endif()
  if(tessera_ccache)  # __FILE__ and debug information are the same whether ccache calls the compiler by a relative path or not
    file(RELATIVE_PATH tessera_root ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${tessera_root}=)
  endif()
  find_program(tessera_mold mold)
  if(tessera_mold AND NOT CMAKE_CROSSCOMPILING AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
    add_link_options(-fuse-ld=mold)
  endif()

  if(TESSERA_SANITIZE)
    set(tessera_sanitizers -fsanitize=address,undefined)
    if(TESSERA_SANITIZE STREQUAL "thread")
      set(tessera_sanitizers -fsanitize=thread)
      list(APPEND tessera_warnings -Wno-tsan)  # fences: ours order memory between processes, which the sanitizer does not follow
    endif()
    add_compile_options(${tessera_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(${tessera_sanitizers})
    list(APPEND tessera_warnings -Wno-maybe-uninitialized)  # GCC: its false alarms grow with the instrumentation
  endif()
endif()
