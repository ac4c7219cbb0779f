// The output of the demo: headings, tables, pictures side by side. Only rank 0 prints.
#pragma once
#include <tessera/tessera.hpp>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace demo {

void heading(int number, const std::string& title);
void say(const std::string& text);      // wrapped at 96 columns, indented
void show(const std::string& picture);  // unchanged, indented
// Left-aligned columns below a line of names.
void table(const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& rows);

std::string beside(const std::vector<std::string>& pictures, int gap = 3);
std::string under(const std::string& title, const std::string& picture);

std::string bytes_text(std::int64_t);
std::string seconds_text(double);
// "all-reduce 32 KiB + all-gather 4 KiB", "nothing"
std::string traffic_text(const tessera::debug::CommStats&);
// The text printed by <<.
template <class T> std::string text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// Median seconds of `work` over some repetitions on the slowest rank. Collective.
double time_of(const std::function<void()>& work, int repetitions = 7);

}  // namespace demo
