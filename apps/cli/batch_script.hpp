// The text of a SLURM batch script. Pure: what is known of the place comes as arguments.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"

namespace cli {

// "90", "1:30", "1:00:00", "1-12", "1-12:30", "1-12:30:00" as SLURM reads them: minutes, minutes:seconds,
// hours:minutes:seconds, days-hours[:minutes[:seconds]]. UsageError for what is none.
std::int64_t seconds_of_limit(const std::string& text);
std::string limit_text(std::int64_t seconds);   // 1-12:30:00
std::string limit_words(std::int64_t seconds);  // "1 day 12 hours 30 minutes"

// How long before the limit a job is warned: two minutes, a quarter of a short job. SLURM keeps such times to
// the minute: the warning may come a minute early, and the end half a minute late.
int warning_of(std::int64_t limit_seconds);

struct Place {
  std::string folder;                                         // where the job runs
  std::vector<std::string> launcher;                          // srun or tessera run, with options
  std::vector<std::pair<std::string, std::string>> settings;  // that the job takes along
};
std::string batch_script(const BatchOrder&, const Place&);

}  // namespace cli
