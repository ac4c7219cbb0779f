// The words of a program's command line, read on every rank before MPI is up; one rank speaks.
#pragma once
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

namespace apps {

inline bool is_first_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"})
    if (const char* rank = std::getenv(name)) return std::atoi(rank) == 0;
  return true;
}

// Status 2, and what is wrong from one rank. The others wait a little: mpirun ends them all when the first
// one has gone.
inline int refuse_words(const std::string& program, const std::string& command, const std::string& what) {
  if (is_first_rank())
    std::fprintf(stderr, "%s: %s\nTry: %s --help\n", program.c_str(), what.c_str(), command.c_str());
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return 2;
}

// The status to leave with: 0 after --help, 2 for wrong usage; none when there is work to do.
inline std::optional<int> status_of_words(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      if (is_first_rank()) app.exit(error);
      return 0;
    }
    return refuse_words(app.get_name(), app.get_name(), error.what());
  }
}

}  // namespace apps
