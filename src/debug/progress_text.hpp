// The lines that Progress writes, as functions of its figures.
#pragma once
#include <cstdint>
#include <string>

namespace tessera {

struct ProgressState {
  std::string what, note;
  std::int64_t done = 0, total = 0;  // total 0: unknown
  double seconds = 0;
};

// One line of at most `columns` characters.
std::string progress_bar(const ProgressState&, int columns);
std::string progress_line(const ProgressState&);

}  // namespace tessera
