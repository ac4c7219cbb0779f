// The calibration of the cost model, kept per user.
#include <tessera/error.hpp>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/own_file.hpp"
#include "base/session.hpp"
#include "base/text.hpp"
#include "comm/host/links.hpp"
#include "comm/mpi/environment.hpp"
#include "compile/cost.hpp"

namespace tessera {

std::string machine_model_path() {
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const std::string cache = text("XDG_CACHE_HOME"), home = text("HOME");
  if (!cache.empty()) return cache + "/tessera/machine.json";
  return home.empty() ? "" : home + "/.cache/tessera/machine.json";
}

namespace {

// A cache file that is damaged, or somebody else's: the defaults.
MachineModel read_machine_model() {
  MachineModel m;
  const auto text = read_own_file(machine_model_path());
  const auto json = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!json.is_object()) return m;
  m.is_measured = true;
  const auto take = [&](const char* key, double& value) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number()) return;
    const auto number = found->get<double>();
    if (std::isfinite(number) && number > 0) value = number;
  };
  take("latency_s", m.inside.latency_s);
  take("bytes_per_s", m.inside.bytes_per_s);
  take("host_latency_s", m.between.latency_s);
  take("host_bytes_per_s", m.between.bytes_per_s);
  take("flops_per_s", m.flops_per_s);
  take("memory_bytes_per_s", m.memory_bytes_per_s);
  return m;
}

// What rooms below choose by is what explain predicts with, also on meshes without a runtime.
struct Machine {
  MachineModel model = read_machine_model();
  Machine() { comm::set_links(model); }
};

}  // namespace

MachineModel machine_model() { return state<Machine>().model; }

void share_machine_model() {
  auto& model = state<Machine>().model;
  comm::broadcast_at_start(&model, sizeof model);
  comm::set_links(model);
}

void save_machine_model(const MachineModel& m) {
  const nlohmann::json values = {
      {"latency_s", m.inside.latency_s},       {"bytes_per_s", m.inside.bytes_per_s},
      {"host_latency_s", m.between.latency_s}, {"host_bytes_per_s", m.between.bytes_per_s},
      {"flops_per_s", m.flops_per_s},          {"memory_bytes_per_s", m.memory_bytes_per_s}};
  const auto path = machine_model_path();
  if (path.empty() || !replace_own_file(path, values.dump(2) + "\n"))
    throw IoError("the machine model cannot be kept in " + tessera::quoted(path) +
                  "; set XDG_CACHE_HOME to a folder that you may write to");
}

}  // namespace tessera
