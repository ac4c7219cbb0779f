#include "io/fault_point.hpp"

#ifdef TESSERA_VERIFY
#include <tessera/error.hpp>
#include <tessera/runtime.hpp>

#include <csignal>
#include <cstdlib>

namespace tessera::io {
namespace {

std::string wanted() {
  const char* text = std::getenv("TESSERA_TEST_FAULT");
  return text == nullptr ? "" : text;
}
std::string here(const char* name) { return std::string(name) + "@" + std::to_string(process_index()); }

}  // namespace

bool is_faulty(const char* name) {
  const auto fault = wanted();
  return !fault.empty() && fault.substr(0, fault.find(':')) == here(name);
}
void fault_point(const char* name) {
  if (!is_faulty(name)) return;
  if (wanted().ends_with(":throw")) throw IoError("the fault at " + here(name));
  std::raise(SIGKILL);
}

}  // namespace tessera::io
#endif
