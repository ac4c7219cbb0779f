// Saves that are under way, and the way back: what checkpoint.cpp and manager.cpp share.
#pragma once
#include <tessera/array.hpp>

#include <optional>
#include <string>
#include <vector>

#include "io/team.hpp"

namespace tessera::io::checkpoint {

// A Manager's save in this folder ends first. Collective; IoError where it fails.
void finish_saves_in(const Team& team, const std::string& dir);

struct Candidate {
  int step;
  std::string folder;
};
// The numbers of the steps, newest first, as the first rank sees them.
std::vector<int> common_steps(const Team& team, const std::string& dir);
// The steps to try, best first. IoError: there is none, or not that one.
std::vector<Candidate> candidates(const Team& team, const std::string& dir, std::optional<int> step);

// Whether a Manager of this job saves there.
bool is_managed(const std::string& dir);
// Whether all of a step can be read and has its sums: each rank reads its share. Collective.
bool is_step_whole(const Team& team, const std::string& folder);

struct Restored {
  int step = 0;
  std::vector<Array> leaves;
  std::vector<std::string> damaged;  // folders that were passed over
};
// In a folder that this job saves in, what was passed over must not count among the steps that are kept, and
// must not stand in the way of the step that is saved under its number. Collective.
void set_aside_what_is_damaged(const Team& team, const Restored&);
// The first that can be read, with a warning where an earlier one cannot. Collective.
Restored restore_first_whole(const Team& team, const std::vector<Candidate>& steps,
                             const std::vector<Array>& like, const std::string& structure);

}  // namespace tessera::io::checkpoint
