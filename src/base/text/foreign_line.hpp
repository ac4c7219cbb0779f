// Lines that no C++ compiler has seen, of Python's files and of programs as text, for errors and plans.
#pragma once
#include <bit>
#include <source_location>
#include <string>

namespace tessera {

// The struct that libstdc++'s source_location points to. The tests of cited lines fail if its layout changes.
struct ForeignLine {
  const char* file;
  const char* function;
  unsigned line, column;
};
static_assert(sizeof(std::source_location) == sizeof(const ForeignLine*));

// The one record of a line. It is never moved or freed, since nodes point to it. On one thread at a time.
const ForeignLine* foreign_line(const std::string& file, int line);

// nullptr: no line.
inline std::source_location location_of(const ForeignLine* line) {
  return std::bit_cast<std::source_location>(line);
}

}  // namespace tessera
