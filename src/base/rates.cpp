#include "base/rates.hpp"

#include <tessera/error.hpp>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/own_file.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"

namespace tessera {
namespace {

std::string of_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string cache_path() {
  const std::string cache = of_environment("XDG_CACHE_HOME"), home = of_environment("HOME");
  if (!cache.empty()) return cache + "/tessera/machine.json";
  return home.empty() ? "" : home + "/.cache/tessera/machine.json";
}

// One number of the file. Whether it was there.
bool take(const nlohmann::json& json, const char* key, double& value, const std::string& what) {
  const auto found = json.find(key);
  if (found == json.end()) return false;
  const double number = found->is_number() ? found->get<double>() : 0;
  if (!(std::isfinite(number) && number > 0))
    throw ArgumentError(what + ": " + key + " is " + found->dump() + ", and must be a number above 0");
  value = number;
  return true;
}

Rates read_given(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw ArgumentError("TESSERA_MACHINE=" + path +
                        " cannot be read; name a file that `tessera machine` has written, or `reference`");
  return parse_rates(text.str(), "TESSERA_MACHINE=" + path);
}

// A cache file that is damaged, or somebody else's, stands for none.
Rates read_cache() {
  const auto path = cache_path();
  const auto text = path.empty() ? std::nullopt : read_own_file(path);
  if (!text) return {};
  try {
    return parse_rates(*text, path);
  } catch (const ArgumentError&) {
    return {};
  }
}

struct KnownRates {
  Rates rates;
  KnownRates() {
    const auto& given = settings().machine;
    if (given.empty())
      rates = read_cache();
    else if (given != "reference")
      rates = read_given(given);
  }
};

}  // namespace

const Rates& rates() { return state<KnownRates>().rates; }
void set_rates(const Rates& rates) { state<KnownRates>().rates = rates; }

Rates parse_rates(std::string_view text, const std::string& what) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw ArgumentError(what + " holds no JSON object of rates");
  Rates r;
  r.has_inside = take(json, "latency_s", r.inside.latency_s, what) &
                 take(json, "bytes_per_s", r.inside.bytes_per_s, what);
  r.has_between = take(json, "host_latency_s", r.between.latency_s, what) &
                  take(json, "host_bytes_per_s", r.between.bytes_per_s, what);
  r.has_compute = take(json, "flops_per_s", r.flops_per_s, what) &
                  take(json, "memory_bytes_per_s", r.memory_bytes_per_s, what);
  return r;
}

std::string rates_text(const Rates& r) {
  nlohmann::ordered_json json;
  if (r.has_compute) json["flops_per_s"] = r.flops_per_s, json["memory_bytes_per_s"] = r.memory_bytes_per_s;
  if (r.has_inside) json["latency_s"] = r.inside.latency_s, json["bytes_per_s"] = r.inside.bytes_per_s;
  if (r.has_between)
    json["host_latency_s"] = r.between.latency_s, json["host_bytes_per_s"] = r.between.bytes_per_s;
  return json.dump(2) + "\n";
}

std::string machine_path() {
  const auto& given = settings().machine;
  return given.empty() ? cache_path() : given;
}

bool keep_rates(const Rates& r) {
  const auto path = cache_path();
  return settings().machine.empty() && !path.empty() && replace_own_file(path, rates_text(r));
}

}  // namespace tessera
