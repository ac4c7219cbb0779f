// Running saves and restoring: shared by checkpoint.cpp and manager.cpp.
#pragma once
#include <tessera/array.hpp>

#include <optional>
#include <string>
#include <vector>

#include "io/team.hpp"

namespace tessera::io::checkpoint {

// Waits for a Manager's save in this folder. Collective; IoError if it fails.
void finish_saves_in(const Team& team, const std::string& dir);

struct StoredStep {
  int step;
  std::string folder;
};
// The numbers of the existing steps, newest first, as seen by the first rank.
std::vector<int> common_steps(const Team& team, const std::string& dir);
// The steps to try, best first. IoError if there is none, or the requested one does not exist.
std::vector<StoredStep> candidates(const Team& team, const std::string& dir, std::optional<int> step);

// Whether a Manager of this job saves there.
bool is_managed(const std::string& dir);
// Whether a step can be read completely and matches its sums: each rank reads its share. Collective.
bool is_step_whole(const Team& team, const std::string& folder);

struct Restored {
  int step = 0;
  std::vector<Array> leaves;
  std::vector<std::string> damaged;  // folders that were skipped
};
// Renames skipped damaged steps in a folder that this job saves in: they must not count among the kept steps,
// nor block the step that is saved under their number. Collective.
void set_aside_what_is_damaged(const Team& team, const Restored&);
// Restores the first readable step, with a warning for each earlier one that is not. Collective.
Restored restore_first_whole(const Team& team, const std::vector<StoredStep>& steps,
                             const std::vector<Array>& like, const std::string& structure);

}  // namespace tessera::io::checkpoint
