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

// Reads one number of the file; returns whether it was there.
bool take(const nlohmann::json& json, const char* key, double& value, const std::string& what) {
  const auto found = json.find(key);
  if (found == json.end()) return false;
  const double number = found->is_number() ? found->get<double>() : 0;
  if (!(std::isfinite(number) && number > 0))
    throw ArgumentError(what + ": " + key + " is " + found->dump() + ", and must be a number above 0");
  value = number;
  return true;
}

int whole_number(const nlohmann::json& json, const char* key, const std::string& what) {
  double number = 0;
  constexpr double most = 1e6;
  if (!take(json, key, number, what)) return 0;
  if (number != std::floor(number) || number > most)
    throw ArgumentError(what + ": " + key + " is " + json[key].dump() +
                        ", and must be a whole number to 1000000");
  return static_cast<int>(number);
}

// A group of one level consists of complete groups of the level below.
Topology topology_of(const nlohmann::json& json, const std::string& what) {
  Topology t;
  t.ranks_per_host = whole_number(json, "ranks_per_host", what);
  take(json, "message_s", t.message_s, what);
  take(json, "contention", t.contention, what);
  take(json, "rendezvous_bytes", t.rendezvous_bytes, what);
  if (const auto found = json.find("overlaps"); found != json.end()) {
    if (!found->is_boolean())
      throw ArgumentError(what + ": overlaps is " + found->dump() + ", and must be true or false");
    t.overlaps = found->get<bool>();
  }
  const auto levels = json.find("levels");
  if (levels == json.end()) return t;
  if (!levels->is_array() || levels->size() > t.level.size())
    throw ArgumentError(what + ": levels must be a list of at most 3 objects, the smallest groups first");
  for (const auto& each : *levels) {
    auto& level = t.level[static_cast<std::size_t>(t.levels)];
    const auto name = what + ": level " + std::to_string(t.levels);
    if (!each.is_object() || !each.contains("hosts") || !each.contains("bytes_per_s"))
      throw ArgumentError(name + " lacks hosts or bytes_per_s");
    level.hosts = whole_number(each, "hosts", name);
    take(each, "bytes_per_s", level.bytes_per_s, name);
    take(each, "latency_s", level.latency_s, name);
    const int below = t.levels > 0 ? t.level[static_cast<std::size_t>(t.levels) - 1].hosts : 1;
    if (level.hosts % below != 0)
      throw ArgumentError(name + " has groups of " + std::to_string(level.hosts) +
                          " hosts, which are not whole groups of the " + std::to_string(below) +
                          " hosts of the level below");
    ++t.levels;
  }
  return t;
}

nlohmann::ordered_json levels_json(const Topology& t) {
  auto list = nlohmann::ordered_json::array();
  for (int n = 0; n < t.levels; ++n) {
    const auto& level = t.level[static_cast<std::size_t>(n)];
    list.push_back({{"hosts", level.hosts}, {"bytes_per_s", level.bytes_per_s}});
    if (level.latency_s > 0) list.back()["latency_s"] = level.latency_s;
  }
  return list;
}

Rates read_given(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw ArgumentError("TESSERA_MACHINE=" + path +
                        " cannot be read; name a file that `tessera machine` has written, or `reference`");
  return parse_rates(text.str(), "TESSERA_MACHINE=" + path);
}

struct KnownRates {
  Rates rates;
  KnownRates() {
    const auto& given = settings().machine;
    if (given.empty())
      rates = kept_rates(cache_path());
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
  const auto take_both = [&](const char* first, double& a, const char* second, double& b) {
    const bool has_first = take(json, first, a, what), has_second = take(json, second, b, what);
    return has_first && has_second;
  };
  r.has_inside = take_both("latency_s", r.inside.latency_s, "bytes_per_s", r.inside.bytes_per_s);
  r.has_between = take_both("host_latency_s", r.between.latency_s, "host_bytes_per_s", r.between.bytes_per_s);
  r.has_compute = take_both("flops_per_s", r.flops_per_s, "memory_bytes_per_s", r.memory_bytes_per_s);
  if (take(json, "cache_bytes", r.cache_bytes, what) !=
      take(json, "cache_bytes_per_s", r.cache_bytes_per_s, what))
    throw ArgumentError(what + ": cache_bytes and cache_bytes_per_s go together; give both or neither");
  r.topology = topology_of(json, what);
  return r;
}

std::string rates_text(const Rates& r) {
  nlohmann::ordered_json json;
  if (r.has_compute) json["flops_per_s"] = r.flops_per_s, json["memory_bytes_per_s"] = r.memory_bytes_per_s;
  if (r.has_inside) json["latency_s"] = r.inside.latency_s, json["bytes_per_s"] = r.inside.bytes_per_s;
  if (r.has_between)
    json["host_latency_s"] = r.between.latency_s, json["host_bytes_per_s"] = r.between.bytes_per_s;
  if (r.cache_bytes > 0) json["cache_bytes"] = r.cache_bytes, json["cache_bytes_per_s"] = r.cache_bytes_per_s;
  if (r.topology.ranks_per_host > 0) json["ranks_per_host"] = r.topology.ranks_per_host;
  if (r.topology.message_s > 0) json["message_s"] = r.topology.message_s;
  if (r.topology.contention > 0) json["contention"] = r.topology.contention;
  if (r.topology.rendezvous_bytes > 0) json["rendezvous_bytes"] = r.topology.rendezvous_bytes;
  if (!r.topology.overlaps) json["overlaps"] = false;
  if (r.topology.levels > 0) json["levels"] = levels_json(r.topology);
  return json.dump(2) + "\n";
}

Rates without_implausible(Rates r) {
  const Rates built_in;
  const auto& [latency_s, bytes_per_s] = r.inside;
  if (latency_s > 200e-6 || bytes_per_s < 1e8 || bytes_per_s > 1e12)
    r.inside = built_in.inside, r.has_inside = false;
  if (r.flops_per_s < 1e8 || r.memory_bytes_per_s < 1e8) {
    r.flops_per_s = built_in.flops_per_s;
    r.memory_bytes_per_s = built_in.memory_bytes_per_s;
    r.has_compute = false;
  }
  return r;
}

Rates of_shared_cores(Rates r, double ranks_per_core) {
  if (ranks_per_core <= 1) return r;
  // A message waits until its receiver has the core: 2.4 to 3.0 us for each further rank of a core on a Xeon
  // (6/207), 1.4 us on an EPYC (26).
  constexpr double switch_s = 2e-6;
  r.inside.latency_s += (ranks_per_core - 1) * switch_s;
  for (double* rate : {&r.inside.bytes_per_s, &r.flops_per_s, &r.memory_bytes_per_s, &r.cache_bytes_per_s})
    *rate /= ranks_per_core;
  return r;
}

Rates kept_rates(const std::string& path) {
  const auto text = path.empty() ? std::nullopt : read_own_file(path);
  if (!text) return {};
  try {
    return without_implausible(parse_rates(*text, path));
  } catch (const ArgumentError&) {
    return {};
  }
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
