// The words of tessera_bench's command line.
#pragma once
#include <string>
#include <vector>

namespace bench {

struct Options {
  std::string filter, row;   // a part of the name; the whole name
  std::string json_path;     // a line of JSON per row and peer is added here
  std::string choices_path;  // what best_choice() found, line by line
  std::string suffix;        // of every name that is written
  double seconds = 20;       // of a row's repetitions
  bool list = false;
  std::vector<void (*)()> groups;
};
Options& options();

}  // namespace bench
