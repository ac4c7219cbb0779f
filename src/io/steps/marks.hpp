// The mark that a rank's writer leaves beside its file when it has ended, so that the first rank's writer
// knows without a message that a step is complete: rank_00002.done, "bytes sum" or "failed".
#pragma once
#include <optional>
#include <string>

#include "io/manifest.hpp"

namespace tessera::io::checkpoint {

struct Mark {
  bool has_failed = false;
  Manifest::File file;
};
void leave_mark(const std::string& call, const std::string& folder, int rank, const Mark&);
std::optional<Mark> find_mark(const std::string& folder, int rank);  // nullopt: not there yet
void remove_marks(const std::string& folder, int ranks);

}  // namespace tessera::io::checkpoint
