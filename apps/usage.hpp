// The parsing of a program's command line, on every rank before MPI starts; one rank prints.
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

// Prints the error on one rank and returns status 2. The others wait a little, since mpirun ends all ranks
// when the first one exits.
inline int refuse_words(const std::string& program, const std::string& command, const std::string& what) {
  if (is_first_rank())
    std::fprintf(stderr, "%s: %s\nTry: %s --help\n", program.c_str(), what.c_str(), command.c_str());
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return 2;
}

// The exit status after parsing: 0 after --help, 2 for wrong usage; nullopt if there is work to do.
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
