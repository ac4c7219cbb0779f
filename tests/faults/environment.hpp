// Settings of a library that is loaded into each rank. Static, so that they replace nothing in the program.
#pragma once
#include <cstdlib>
#include <string>

[[maybe_unused]] static std::string setting(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}
[[maybe_unused]] static int own_rank() { return std::atoi(setting("OMPI_COMM_WORLD_RANK").c_str()); }
