// Requirements on the compiler, checked before other errors. The files in the second #include lines do not
// exist: a fatal error ends the compilation before the hundred errors that would follow.
#pragma once
#if !defined(__cplusplus) || __cplusplus < 202002L
#error \
    "tessera needs C++20: compile with -std=c++20 or newer (CMake: target_compile_features with cxx_std_20)"
#include "tessera needs C++20"
#endif
#include <version>
#ifndef __cpp_lib_source_location
#error "tessera needs a standard library with <source_location>: libstdc++ 11, libc++ 16, or newer"
#include "tessera needs <source_location>"
#endif
