// The environment variables TESSERA_*, in one table: name, default, meaning, check. `tessera env` prints it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

enum class LogLevel { error, warn, info, debug };

struct Settings {
  LogLevel log = LogLevel::warn;
  bool log_compile = false;  // logs why jit traced and compiled, at any level
  int check = 1;
  bool check_data = true;
  double timeout_s = 300;
  double work_limit_s = 1800;
  std::string dump;
  std::int64_t memory_limit_bytes = 0;
  std::int64_t message_limit = std::int64_t{1} << 30;
  int threads = 0;
  bool nan_check = false;
  std::string collectives = "auto";
  std::string mpi = "auto";
  bool precise_math = false;
  bool reproducible = false;
  std::string fft_plan = "auto";
  std::string fft_wisdom;
  std::string profile;        // folder
  std::string machine;        // file of rates, or "reference"
  std::string flight_record;  // folder
  std::string record;         // folder
  std::int64_t record_limit_bytes = std::int64_t{1} << 30;
  std::string replay;  // file of one rank
};

// The settings as the environment had them at the first call. A bad value is an ArgumentError that names the
// variable and the values that it takes.
const Settings& settings();

struct SettingRow {
  std::string name, value, fallback, meaning;
  bool is_set = false;  // by the environment or a SettingScope
};
std::vector<SettingRow> settings_table();

// The settings of the environment, as lines NAME=VALUE: sent by rank 0 to the others.
std::string settings_text();
// Applies another rank's text and returns the names of settings whose value here was replaced. For most
// settings the other's value applies, since ranks with different values would hang or give wrong results.
// Settings that may differ between ranks (log, threads, memory, folders) are applied only if they are not set
// here.
std::vector<std::string> adopt_settings(const std::string& text);

// TESSERA_* variables of the environment that no setting reads, each with the nearest known name; reported at
// start-up.
std::vector<std::string> unknown_settings();

// Another value for the lifetime of the scope: SettingScope limit("TESSERA_MESSAGE_LIMIT", "1000").
class SettingScope {
 public:
  SettingScope(const std::string& name, const std::string& value);
  ~SettingScope();
  SettingScope(const SettingScope&) = delete;
  SettingScope& operator=(const SettingScope&) = delete;

 private:
  Settings before_;
};

// 12, 64M, 1.5G (powers of 1024) -> bytes; ArgumentError that names `what`.
std::int64_t parse_bytes(const std::string& what, const std::string& text);

}  // namespace tessera
