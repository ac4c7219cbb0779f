#include "batch_script.hpp"

#include <tessera/preemption.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "base/text.hpp"
#include "launcher.hpp"

namespace cli {
namespace {

// Integers between colons; UsageError for any other text.
std::vector<std::int64_t> numbers_of(const std::string& text, const std::string& whole) {
  std::vector<std::int64_t> numbers{0};
  int digits = 0;
  for (const char c : text + ":") {
    const bool is_digit = c >= '0' && c <= '9';
    if ((!is_digit && c != ':') || (c == ':' && digits == 0) || digits > 6)
      throw UsageError(
          "--time " + tessera::in_quotes(whole) +
          " is no time limit; SLURM reads 90 (minutes), 1:30 (minutes:seconds), 1:00:00 (hours), "
          "1-12 (days-hours) and 1-12:30:00");
    if (is_digit) numbers.back() = numbers.back() * 10 + (c - '0'), ++digits;
    if (c == ':') numbers.push_back(0), digits = 0;
  }
  numbers.pop_back();
  return numbers;
}

// Quotes a value for sbatch, which reads a line up to a blank or a #. Refuses characters that would end the
// line or the quotes, since they could inject lines into the script.
std::string directive_value(const std::string& option, const std::string& value) {
  const auto is_refused = [](unsigned char c) { return c < 32 || c == 127 || c == '"' || c == '\\'; };
  if (std::any_of(value.begin(), value.end(), is_refused))
    throw UsageError("--" + option + " " + tessera::in_quotes(value) +
                     " cannot stand in a batch script: it has a quote, a backslash or a control character");
  const bool is_plain = !value.empty() && shell_word(value) == value;
  return "--" + option + "=" + (is_plain ? value : "\"" + value + "\"");
}

std::string directive(const std::string& words, const std::string& why = "") {
  std::string line = "#SBATCH " + words;
  if (!why.empty()) line.append(line.size() < 40 ? 40 - line.size() : 1, ' ').append("# " + why);
  return line + "\n";
}

std::string name_of(const BatchOrder& order) {
  return order.name.empty() ? name_of_program(order.words) : order.name;
}

std::string directives(const BatchOrder& order, const JobEnvironment& place) {
  std::string text = directive(directive_value("job-name", name_of(order)));
  if (order.nodes > 0) text += directive("--nodes=" + std::to_string(order.nodes));
  text += directive("--ntasks=" + std::to_string(order.ranks));
  if (order.nodes > 0 && order.ranks % order.nodes == 0)
    text += directive("--ntasks-per-node=" + std::to_string(order.ranks / order.nodes));
  text += directive("--cpus-per-task=" + std::to_string(order.cpus_per_task));
  for (const auto& [option, value] : {std::pair{"mem", order.memory},
                                      {"partition", order.partition},
                                      {"account", order.account},
                                      {"array", order.array}})
    if (!value.empty()) text += directive(directive_value(option, value));
  if (!order.time.empty()) {
    const auto limit = seconds_of_limit(order.time);
    text += directive("--time=" + limit_text(limit), limit_words(limit));
  }
  text += directive(directive_value("chdir", place.folder));
  text += directive(std::string("--output=") + (order.array.empty() ? "%x.%j.log" : "%x.%A_%a.log"));
  text += directive("--open-mode=append", "a job that starts again goes on in its log");
  text += directive("--export=ALL");
  text += order.no_requeue ? directive("--no-requeue") : directive("--requeue", "after the death of a node");
  if (order.warn_s > 0)
    text += directive("--signal=B:USR1@" + std::to_string(order.warn_s), "seconds before the time limit");
  return text;
}

std::string settings_text(const JobEnvironment& place) {
  std::string text;
  for (const auto& [name, value] : place.settings) text += "export " + name + "=" + shell_word(value) + "\n";
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

// The signal is sent to this shell only (B:), which forwards it; launchers send it to every rank. A trap
// interrupts `wait`; bash keeps the status of an ended process for further ones.
std::string command(const BatchOrder& order, const JobEnvironment& place) {
  return joined(place.launcher) + " " + joined(order.words) +
         " &\nranks=$!\n"
         "trap 'warned=1; kill -USR1 $ranks 2>/dev/null' USR1   # every rank: save, and end with status " +
         std::to_string(tessera::status_preempted) +
         "\n"
         "trap 'warned=; kill -TERM $ranks 2>/dev/null' TERM   # scancel: the end\n"
         "while kill -0 $ranks 2>/dev/null; do wait $ranks; done   # a trap cuts a wait short\n"
         "wait $ranks; status=$?\n";
}

std::string ending(const BatchOrder& order) {
  if (order.no_requeue) return "exit $status\n";
  return "case $status in " + std::to_string(tessera::status_preempted) +
         "|143)   # 143: srun ended a rank that had saved and left after the others\n"
         "  if [ -n \"${warned:-}\" ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt 100 ]; then\n"
         "    echo \"saved before the end of its time; job $SLURM_JOB_ID goes back into the queue\"\n"
         "    scontrol requeue \"$SLURM_JOB_ID\" && exit 0\n"
         "  fi\n"
         "esac\n"
         "exit $status\n";
}

}  // namespace

std::int64_t seconds_of_limit(const std::string& text) {
  const auto dash = text.find('-');
  const bool has_days = dash != std::string::npos;
  const auto days = has_days ? numbers_of(text.substr(0, dash), text) : std::vector<std::int64_t>{0};
  auto parts = numbers_of(has_days ? text.substr(dash + 1) : text, text);
  if (days.size() != 1 || parts.size() > 3) numbers_of("", text);  // reports the accepted formats
  std::int64_t hours = 0, minutes = 0, seconds = 0;
  if (has_days || parts.size() == 3) {
    parts.resize(3);
    hours = parts[0], minutes = parts[1], seconds = parts[2];
  } else {
    minutes = parts[0], seconds = parts.size() == 2 ? parts[1] : 0;
  }
  const auto all = ((days[0] * 24 + hours) * 60 + minutes) * 60 + seconds;
  if (all == 0) throw UsageError("--time " + tessera::in_quotes(text) + " leaves no time");
  return all;
}

std::string name_of_program(const std::vector<std::string>& words) {
  const auto name = [](const std::string& word) { return std::filesystem::path(word).filename(); };
  auto named = words.begin();
  if (name(*named).string().starts_with("python")) {
    const auto is_file = [](const std::string& word) { return word.ends_with(".py"); };
    const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
    const auto after = std::next(named), file = std::find_if(after, words.end(), is_file);
    const auto word = file != words.end() ? file : std::find_if_not(after, words.end(), is_option);
    if (word != words.end()) named = word;
  }
  return name(*named).extension() == ".py" ? name(*named).stem() : name(*named);
}

std::string limit_text(std::int64_t seconds) {
  char text[64];
  const long long days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
  std::snprintf(text, sizeof text, "%02lld:%02lld:%02lld", hours, minutes,
                static_cast<long long>(seconds % 60));
  return (days > 0 ? std::to_string(days) + "-" : "") + text;
}

std::string limit_words(std::int64_t seconds) {
  std::string words;
  for (const auto& [bytes, name] : {std::pair{seconds / 86400, "day"},
                                    {seconds / 3600 % 24, "hour"},
                                    {seconds / 60 % 60, "minute"},
                                    {seconds % 60, "second"}})
    if (bytes > 0) words += (words.empty() ? "" : " ") + tessera::format_count(bytes, name);
  return words;
}

int warning_of(std::int64_t limit_seconds) {
  return static_cast<int>(std::min<std::int64_t>(120, limit_seconds / 4));
}

std::string batch_script(const BatchOrder& order, const JobEnvironment& place) {
  return "#!/bin/bash\n# Written by tessera sbatch\n" + directives(order, place) + "\n" +
         settings_text(place) + "\n" + command(order, place) + ending(order);
}

}  // namespace cli
