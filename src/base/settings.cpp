#include "base/settings.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/session.hpp"
#include "base/text.hpp"

extern char** environ;

namespace tessera {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& takes) {
  throw ArgumentError(name + "=" + in_quotes(text) + " is not usable: it takes " + takes);
}

// Parses the whole text as a number, independent of the locale.
template <class Number> bool is_read(std::string_view text, Number& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

double parse_number(const std::string& name, const std::string& text, double low, double high,
                    const std::string& takes) {
  double value = 0;
  if (!is_read(text, value) || !(value >= low && value <= high)) refuse(name, text, takes);
  return value;
}

std::int64_t parse_integer(const std::string& name, const std::string& text, std::int64_t low,
                           std::int64_t high, const std::string& takes) {
  std::int64_t value = 0;
  if (!is_read(text, value) || value < low || value > high) refuse(name, text, takes);
  return value;
}

template <class Choice>
Choice parse_choice(const std::string& name, const std::string& text, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (text == words[i]) return static_cast<Choice>(i);
  refuse(name, text, join(words, " | ") + did_you_mean(text, words));
}

struct Row {
  const char* name;
  const char* fallback;  // the default as written in the environment
  const char* meaning;
  void (*set)(Settings&, const std::string& name, const std::string& text);
  bool may_differ = false;  // between ranks
};
constexpr bool may_differ = true;

const Row rows[] = {
    {"TESSERA_LOG", "warn",
     "what goes to stderr: error | warn | info | debug | compile (warn, and why jit traced and compiled)",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.log_compile = text == "compile";
       s.log = s.log_compile
                   ? LogLevel::warn
                   : parse_choice<LogLevel>(name, text, {"error", "warn", "info", "debug", "compile"});
     },
     may_differ},
    {"TESSERA_CHECK", "1",
     "do the ranks say the same? 0 never asked | 1 before each evaluation | 2 before each collective, and "
     "replicated values are compared",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.check = parse_choice<int>(name, text, {"0", "1", "2"});
     }},
    {"TESSERA_CHECK_DATA", "1",
     "1: data that every rank brings (array, asarray, arguments of jit) must be the same on all of them; 0: "
     "taken to be so, which saves a hash of their bytes",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.check_data = parse_choice<int>(name, text, {"0", "1"}) == 1;
     }},
    {"TESSERA_TIMEOUT", "300",
     "seconds that a rank may wait for others while no rank of its host goes on, before the job is ended "
     "with "
     "a report; 0 waits for ever",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.timeout_s = parse_number(name, text, 0, 1e9, "seconds, 0 or more");
     }},
    {"TESSERA_WORK_LIMIT", "1800",
     "seconds that a rank may work in the program's own code while others wait for it, before the job is "
     "ended with a report; what the library computes does not count; 0: as long as it takes",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.work_limit_s = parse_number(name, text, 0, 1e9, "seconds, 0 or more");
     }},
    {"TESSERA_DUMP", "",
     "how the names of files begin that receive every program's text after each stage (dumps/p makes "
     "dumps/p.0001.1-recorded.txt); empty: "
     "none",
     [](Settings& s, const std::string&, const std::string& text) { s.dump = text; }, may_differ},
    {"TESSERA_MEM_LIMIT", "0",
     "bytes a rank may use (64M, 1.5G); a plan that needs more is refused; 0: what the machine has",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.memory_limit_bytes = parse_bytes(name, text);
     },
     may_differ},
    {"TESSERA_MESSAGE_LIMIT", "1073741824", "elements in one MPI message at most; longer ones are split",
     [](Settings& s, const std::string& name, const std::string& text) {
       const std::int64_t most = std::numeric_limits<int>::max();
       const std::int64_t least = 16;  // bytes of complex128: an element travels in one message
       s.message_limit =
           std::max(least, parse_integer(name, text, 1, most, "a number from 1 to " + std::to_string(most)));
     }},
    {"TESSERA_THREADS", "0",
     "threads of one rank's kernels, at most the cores that it may run on; 0: one (a BLAS with threads of "
     "its own: the host's "
     "cores divided by its ranks)",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.threads = static_cast<int>(parse_integer(name, text, 0, 4096, "a number from 0 to 4096"));
     },
     may_differ},
    {"TESSERA_CPU", "",
     "the widest vectors that a rank uses: avx2 | baseline; empty: what its CPU has. Ranks of one job use "
     "what all of them have",
     [](Settings&, const std::string& name, const std::string& text) {
       if (!text.empty()) parse_choice<int>(name, text, {"avx2", "baseline"});
     },
     may_differ},
    {"TESSERA_NAN_CHECK", "0", "1: the first op that makes a NaN is an error that names it",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.nan_check = parse_choice<int>(name, text, {"0", "1"}) == 1;
     }},
    {"TESSERA_COLLECTIVES", "auto", "algorithms of large collectives: auto | mpi (the MPI library's) | own",
     [](Settings& s, const std::string& name, const std::string& text) {
       parse_choice<int>(name, text, {"auto", "mpi", "own"});
       s.collectives = text;
     }},
    {"TESSERA_MPI", "auto",
     "the MPI that a build for any MPI loads (the Python wheel): auto (what the process has, else the "
     "launcher's) | none | openmpi | mpich | mpiabi | path of a libmpi",
     [](Settings& s, const std::string&, const std::string& text) { s.mpi = text; }, may_differ},
    {"TESSERA_MATH", "fast",
     "log, sin, cos, tan, their inverses, sinh, cosh and tanh of real numbers: fast (3.5 ulp) | precise (1 "
     "ulp, "
     "two to three times the time)",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.precise_math = parse_choice<int>(name, text, {"fast", "precise"}) == 1;
     }},
    {"TESSERA_REPRODUCIBLE", "0",
     "1: every value has the same bits on any number of ranks and in any layout, as inside of a "
     "ReproducibleScope; 0: where a scope says so",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.reproducible = parse_choice<int>(name, text, {"0", "1"}) == 1;
     }},
    {"TESSERA_FFT_PLAN", "auto",
     "how FFTW plans: auto (estimate a shape's first transform, measure at its second) | estimate (the same "
     "bits every time) | measure",
     [](Settings& s, const std::string& name, const std::string& text) {
       parse_choice<int>(name, text, {"auto", "estimate", "measure"});
       s.fft_plan = text;
     }},
    {"TESSERA_FFT_WISDOM", "",
     "folder in which measured FFT plans are kept; empty: $XDG_CACHE_HOME/tessera, else ~/.cache/tessera; "
     "off: not kept",
     [](Settings& s, const std::string&, const std::string& text) { s.fft_wisdom = text; }, may_differ},
    {"TESSERA_MACHINE", "",
     "file with the rates of the machine that is planned for (`tessera machine`); reference: the built-in "
     "ones; "
     "empty: measured at the first start and kept in the user's cache",
     [](Settings& s, const std::string&, const std::string& text) { s.machine = text; }},
    {"TESSERA_PROFILE", "",
     "folder that receives a profile of the whole program when it ends: report.txt, trace.json; empty: none",
     [](Settings& s, const std::string&, const std::string& text) { s.profile = text; }},
    {"TESSERA_FLIGHT_RECORD", "",
     "folder in which each rank writes down its last calls on a time-out, a crash or SIGUSR2, for tessera "
     "doctor; empty: on SIGUSR2 alone, in tessera-flight",
     [](Settings& s, const std::string&, const std::string& text) { s.flight_record = text; }},
    {"TESSERA_RECORD", "",
     "folder that receives what arrives at each rank, for tessera replay; ranks of a host then share no "
     "memory, and FFTs are planned by estimate; empty: none",
     [](Settings& s, const std::string&, const std::string& text) { s.record = text; }, may_differ},
    {"TESSERA_RECORD_LIMIT", "1G",
     "bytes that the recording of one rank may have (64M, 1.5G); there it ends, and the program goes on",
     [](Settings& s, const std::string& name, const std::string& text) {
       s.record_limit_bytes = parse_bytes(name, text);
     },
     may_differ},
    {"TESSERA_REPLAY", "", "file of a rank's recording that this process replays; set by tessera replay",
     [](Settings& s, const std::string&, const std::string& text) { s.replay = text; }, may_differ},
};

struct Environment {
  Settings values;
  std::vector<std::pair<std::string, std::string>> texts;  // the set values, by name

  Environment() {
    for (const Row& row : rows)
      if (const char* text = std::getenv(row.name)) {
        row.set(values, row.name, text);
        texts.emplace_back(row.name, text);
      }
    // FFTW's measurements may choose another algorithm, with other last bits, each time.
    const bool must_repeat = !values.record.empty() || !values.replay.empty();
    if (must_repeat && values.fft_plan == "auto") values.fft_plan = "estimate";
  }
};
Environment& environment() { return state<Environment>(); }

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Row& row : rows) all.emplace_back(row.name);
  return all;
}

}  // namespace

const Settings& settings() { return environment().values; }

namespace {
// Whether a recorded run and its replay may differ in this setting.
bool is_of_recording(std::string_view name) {
  return name.starts_with("TESSERA_RECORD") || name == "TESSERA_REPLAY";
}
}  // namespace

std::vector<SettingRow> settings_table() {
  std::vector<SettingRow> table;
  for (const Row& row : rows) {
    SettingRow out{row.name, row.fallback, row.fallback, row.meaning, false};
    for (const auto& [name, text] : environment().texts)
      if (name == row.name) out.value = text, out.is_set = true;
    table.push_back(std::move(out));
  }
  return table;
}

std::string settings_text() {
  std::string text;
  for (const auto& [name, value] : environment().texts)
    if (!is_of_recording(name)) text += name + "=" + value + "\n";
  return text;
}

namespace {
// The environment's text for a row; nullptr if it is not set.
std::string* text_of(const Row& row) {
  for (auto& [name, text] : environment().texts)
    if (name == row.name) return &text;
  return nullptr;
}
std::optional<std::string> value_in(const std::string& lines, const Row& row) {
  const std::string start = std::string(row.name) + "=";
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with(start)) return line.substr(start.size());
  return std::nullopt;
}
}  // namespace

std::vector<std::string> adopt_settings(const std::string& lines) {
  std::vector<std::string> replaced;
  for (const Row& row : rows) {
    const auto theirs = value_in(lines, row);
    std::string* const own = text_of(row);
    if (row.may_differ && (own != nullptr || !theirs)) continue;
    if (own == nullptr && !theirs) continue;
    const std::string value = theirs.value_or(row.fallback);
    if (own != nullptr && *own == value) continue;
    row.set(environment().values, row.name, value);
    if (own != nullptr) {
      replaced.push_back(std::string(row.name) + "=" + *own);
      *own = value;
    } else {
      environment().texts.emplace_back(row.name, value);
    }
  }
  return replaced;
}

std::vector<std::string> unknown_settings() {
  std::vector<std::string> unknown;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("TESSERA_") || text.starts_with("TESSERA_TEST_")) continue;
    const std::string name(text.substr(0, text.find('=')));
    bool known = name == "TESSERA_MPIRUN" || name == "TESSERA_PYTHON";  // used by the command line
    for (const Row& row : rows) known = known || name == row.name;
    if (!known) unknown.push_back(name + did_you_mean(name, names()));
  }
  return unknown;
}

SettingScope::SettingScope(const std::string& name, const std::string& value) : before_(settings()) {
  for (const Row& row : rows)
    if (name == row.name) {
      row.set(environment().values, name, value);
      return;
    }
  throw ArgumentError("there is no setting " + name + did_you_mean(name, names()));
}

SettingScope::~SettingScope() { environment().values = std::move(before_); }

std::int64_t parse_bytes(const std::string& what, const std::string& text) {
  std::string digits = text;
  double unit = 1;
  if (!digits.empty() && (digits.back() == 'B' || digits.back() == 'b')) digits.pop_back();
  if (!digits.empty() && digits.back() == 'i') digits.pop_back();
  if (!digits.empty()) {
    const auto power = std::string_view("KMGT").find(static_cast<char>(std::toupper(digits.back())));
    if (power != std::string_view::npos)
      unit = std::pow(1024.0, static_cast<double>(power + 1)), digits.pop_back();
  }
  double number = 0;
  if (!is_read(digits, number) || !(number >= 0 && number <= 9e18 / unit))
    refuse(what, text, "a number of bytes such as 1000000, 64M or 1.5G");
  return static_cast<std::int64_t>(number * unit);
}

}  // namespace tessera
