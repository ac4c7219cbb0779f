// clang before 16 has libFuzzer but no std::source_location; the parsers only need the type to exist.
#pragma once
#include <cstdint>
#include <version>
#ifndef __cpp_lib_source_location
namespace std {
struct source_location {
  static constexpr source_location current() { return {}; }
  constexpr const char* file_name() const { return ""; }
  constexpr uint_least32_t line() const { return 0; }
};
}  // namespace std
#define __cpp_lib_source_location 201907L
#endif
