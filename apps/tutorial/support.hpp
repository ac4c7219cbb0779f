// Helpers shared by the five tutorials: printing steps, checking facts, timing.
//
// Machine-dependent output (times, host names, source locations) is on lines that begin with "~", which
// comparisons of two outputs ignore.
#pragma once
#include <tessera/tessera.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "usage.hpp"

namespace tutorial {

using namespace tessera;

template <class T> std::string text_of(const T& x) {
  std::ostringstream text;
  text << std::boolalpha << x;
  return text.str();
}

/// Prints once per job, on rank 0.
inline void say(const std::string& text) {
  if (is_main_process()) std::cout << text << std::endl;
}

/// Prints each line of the text after "~".
inline void say_of_this_machine(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) say("~ " + line);
}

/// The lines that --facts writes for scripts/compare_jax: "step kind JSON" per fact, on rank 0.
struct Facts {
  std::ofstream file;
  std::string step;
};
inline Facts& facts() {
  static Facts facts;
  return facts;
}
inline void record(const std::string& kind, const std::string& json) {
  if (is_main_process() && facts().file.is_open())
    facts().file << facts().step << " " << kind << " " << json << "\n" << std::flush;
}

/// The heading of a step: its number in the program's table, and what it does.
inline void step(const std::string& number, const std::string& title) {
  facts().step = number;
  say("\n[" + number + "] " + title);
}

/// Records up to a few hundred values as a fact.
inline void record_values(const std::vector<double>& values) {
  std::ostringstream json;
  json.precision(9);
  for (std::size_t i = 0; i < values.size(); ++i) json << (i == 0 ? "[" : ",") << values[i];
  record("values", json.str() + "]");
}

/// Records the layout of an array as a fact: {"device": [[start, stop], ...], ...}.
inline void record_layout(const Array& x) {
  std::string json;
  for (const auto& [device, index] : x.sharding().devices_indices_map(x.shape())) {
    std::string box;
    for (const auto& range : index)
      box +=
          (box.empty() ? "[" : ",[") + std::to_string(range.start) + "," + std::to_string(range.stop) + "]";
    json += (json.empty() ? "{\"" : ",\"") + std::to_string(device.id) + "\":[" + box + "]";
  }
  record("layout", json + "}");
}

/// Prints the value of an expression, NumPy-like. Collective.
inline void show(const std::string& caption, const Array& x) {
  say(caption + ":\n" + to_string(x));
  if (x.size() <= 256) record_values(to_vector<double>(x));
}

/// Draws the layout of an array, in colours at a terminal. Not collective, since its value is not needed.
inline void picture(const std::string& caption, const Array& x) {
  std::string text = debug::visualize_array_sharding(x, {.use_color = isatty(STDOUT_FILENO) == 1});
  text.erase(text.find_last_not_of('\n') + 1);
  say(caption + ":\n" + text);
  record_layout(x);
}

/// The type of an array and its devices, in one line.
inline std::string description(const Array& x) {
  const std::string type = text_of(x.dtype()) + text_of(x.shape());
  if (!x.is_committed()) return type + ", uncommitted: lies wherever it is used";
  return type + ", " + text_of(x.sharding().spec()) + " over " + std::to_string(x.devices().size()) +
         " devices";
}

/// Ends the program with an error if a fact does not hold.
inline void check(bool holds, const std::string& fact) {
  if (!holds) throw ArgumentError("tutorial: it does not hold that " + fact);
  say("  checked: " + fact);
}

/// Whether all elements agree, in any layouts. Collective over all ranks.
inline bool close(const Array& a, const Array& b, double tolerance = 1e-5) {
  const auto x = to_vector<double>(a), y = to_vector<double>(b);
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [&](double p, double q) {
           return std::abs(p - q) <= tolerance + tolerance * std::abs(q);
         });
}

/// The same for complex arrays.
inline bool close_complex(const Array& a, const Array& b, double tolerance = 1e-5) {
  return close(real(a), real(b), tolerance) && close(imag(a), imag(b), tolerance);
}

/// Runs f, which must raise an E, and prints its type and text, without the places in the program.
template <class E>
void show_error(const std::string& type, const std::string& fact, const std::function<void()>& f) {
  std::string text;
  try {
    f();
  } catch (const E& error) {
    text = std::regex_replace(error.what(), std::regex(R"( (at|from) \S+\.[ch]pp:\d+)"), "");
  }
  say(type + ": " + text);
  check(!text.empty(), fact);
}

/// Times of the runs of a measurement, each the mean over its loops.
struct Times {
  std::vector<double> runs_ms;
  int loops = 1;
  double mean() const {
    return std::accumulate(runs_ms.begin(), runs_ms.end(), 0.0) / static_cast<double>(runs_ms.size());
  }
  double deviation() const {
    double sum = 0;
    for (const double ms : runs_ms) sum += (ms - mean()) * (ms - mean());
    return std::sqrt(sum / static_cast<double>(runs_ms.size()));
  }
};

/// One run of so many calls: milliseconds per call. Collective, with a barrier before and after; all ranks
/// use rank 0's clock, so that they decide alike.
inline double milliseconds(const std::function<Array()>& f, int loops) {
  multihost::sync_global_devices("before");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < loops; ++i) block_until_ready(f());
  multihost::sync_global_devices("after");
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
  return multihost::broadcast_one_to_all(HostArray(std::vector<double>{passed.count() / loops}, {1}))
      .as<double>()[0];
}

/// Five runs of five calls after a call that plans, as `%timeit -n 5 -r 5`; fewer calls if they would take
/// more than about two seconds in all. If the planning call alone takes two seconds, its time is the result,
/// since planning is a negligible part of it.
inline Times measured(const std::function<Array()>& f) {
  constexpr double enough_ms = 2000;
  const double first = milliseconds(f, 1);
  if (first >= enough_ms) return {{first}};
  const auto calls = static_cast<int>(std::min(25.0, enough_ms / std::max(first, 1e-3)));
  Times times{{}, std::clamp(calls / 5, 1, 5)};
  for (int run = 0; run < std::clamp(calls, 1, 5); ++run)
    times.runs_ms.push_back(milliseconds(f, times.loops));
  return times;
}

/// Times f and prints the result: milliseconds per call.
inline double timed(const std::string& what, const std::function<Array()>& f) {
  const Times times = measured(f);
  char text[128];
  std::snprintf(text, sizeof text, "%.2f ms ± %.2f ms per loop (mean ± std. dev. of %zu runs, %d loops each)",
                times.mean(), times.deviation(), times.runs_ms.size(), times.loops);
  say_of_this_machine("time of " + what + ": " + text);
  record("ms", std::to_string(times.mean()));
  return times.mean();
}

/// Whether the text of a compiled program contains a collective.
inline bool names(const std::string& text, const std::string& collective) {
  return text.find(collective) != std::string::npos;
}

inline void say_gathers(const std::string& what, const std::string& text) {
  const bool gathers = names(text, "all-gather");
  say(what + " does an all-gather: " + (gathers ? "True" : "False"));
  record("collective", gathers ? "true" : "false");
}

/// Parses the command line, starts the devices and runs the steps on eight of them.
inline int main_of(CLI::App& app, int argc, char** argv, const std::function<void()>& steps) {
  std::string facts_path;
  app.add_option("--facts", facts_path, "file for values, layouts and times, for scripts/compare_jax");
  if (const auto status = apps::status_of_words(app, argc, argv)) return *status;
  return run(argc, argv, [&] {
    if (device_count() != 8)
      throw ArgumentError(app.get_name() + ": this tutorial is about 8 devices and the job has " +
                          std::to_string(device_count()) + "; start it as: tessera run -n 8 " +
                          std::string(argv[0]));
    if (!facts_path.empty() && is_main_process()) facts().file.open(facts_path);
    steps();
    say("\nall steps checked");
  });
}

}  // namespace tutorial
