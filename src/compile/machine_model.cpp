// The calibration of the cost model, kept per user.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/session.hpp"
#include "compile/cost.hpp"

namespace tessera {

std::string machine_model_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string base =
      cache != nullptr && *cache != 0 ? cache : std::string(home != nullptr ? home : "/tmp") + "/.cache";
  return base + "/tessera/machine.json";
}

namespace {

MachineModel read_machine_model() {
  MachineModel m;
  std::ifstream file(machine_model_path());
  if (!file) return m;
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded()) return m;  // a damaged cache file: the defaults
  m.latency_s = json.value("latency_s", m.latency_s);
  m.bytes_per_s = json.value("bytes_per_s", m.bytes_per_s);
  m.flops_per_s = json.value("flops_per_s", m.flops_per_s);
  m.memory_bytes_per_s = json.value("memory_bytes_per_s", m.memory_bytes_per_s);
  return m;
}

struct Machine {
  MachineModel model = read_machine_model();
};

}  // namespace

MachineModel machine_model() { return state<Machine>().model; }

void save_machine_model(const MachineModel& m) {
  const std::filesystem::path path = machine_model_path();
  std::filesystem::create_directories(path.parent_path());
  const auto unfinished = path.string() + ".tmp";
  std::ofstream(unfinished) << nlohmann::json{{"latency_s", m.latency_s},
                                              {"bytes_per_s", m.bytes_per_s},
                                              {"flops_per_s", m.flops_per_s},
                                              {"memory_bytes_per_s", m.memory_bytes_per_s}}
                                   .dump(2)
                            << "\n";
  std::filesystem::rename(unfinished, path);
}

}  // namespace tessera
