// The command line options of tessera_bench.
#pragma once
#include <string>
#include <vector>

namespace bench {

struct Options {
  std::string filter, row;   // a part of the name; the complete name
  std::string json_path;     // receives a line of JSON per row and peer
  std::string choices_path;  // results of best_choice(), one per line
  std::string suffix;        // appended to every name that is written
  double seconds = 20;       // for a row's repetitions
  bool list = false;
  std::vector<void (*)()> groups;
};
Options& options();

}  // namespace bench
