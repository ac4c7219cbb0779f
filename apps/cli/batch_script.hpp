// The text of a SLURM batch script. Pure: facts about the machine are passed as arguments.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"

namespace cli {

// "90", "1:30", "1:00:00", "1-12", "1-12:30", "1-12:30:00" with SLURM's meaning: minutes, minutes:seconds,
// hours:minutes:seconds, days-hours[:minutes[:seconds]]. UsageError for any other text.
std::int64_t seconds_of_limit(const std::string& text);
std::string limit_text(std::int64_t seconds);   // 1-12:30:00
std::string limit_words(std::int64_t seconds);  // "1 day 12 hours 30 minutes"

// The number of seconds before the limit at which a job is warned: two minutes, or a quarter of a short job.
// SLURM has a resolution of a minute: the warning may come a minute early, and the end half a minute late.
int warning_of(std::int64_t limit_seconds);

// The name of a job and its script: of the program, or of what Python runs; without folder and ".py".
std::string name_of_program(const std::vector<std::string>& words);

struct JobEnvironment {
  std::string folder;                                         // working directory of the job
  std::vector<std::string> launcher;                          // srun or tessera run, with options
  std::vector<std::pair<std::string, std::string>> settings;  // environment variables that the job keeps
};
std::string batch_script(const BatchOrder&, const JobEnvironment&);

}  // namespace cli
