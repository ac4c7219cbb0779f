#include "io/steps/marks.hpp"

#include <unistd.h>

#include <sstream>

#include "io/fault_point.hpp"
#include "io/file.hpp"

namespace tessera::io::checkpoint {
namespace {

std::string mark_file(const std::string& folder, int rank) {
  const std::string name = rank_file(rank);
  return folder + "/" + name.substr(0, name.rfind('.')) + ".done";
}

}  // namespace

void leave_mark(const std::string& call, const std::string& folder, int rank, const Mark& mark) {
  const std::string text = mark.has_failed
                               ? "failed\n"
                               : std::to_string(mark.file.data_bytes) + " " + mark.file.sum_of_sums + "\n";
  File file(call, mark_file(folder, rank), File::Mode::create);
  file.write(text.data(), static_cast<std::int64_t>(text.size()), 0);
  fault_point("marked");
}

std::optional<Mark> find_mark(const std::string& folder, int rank) {
  std::string text;
  try {
    text = read_text("", mark_file(folder, rank));
  } catch (const IoError&) {
    return std::nullopt;
  }
  if (!text.ends_with('\n')) return std::nullopt;  // still being written
  Mark mark;
  std::istringstream words(text);
  mark.has_failed = !(words >> mark.file.data_bytes >> mark.file.sum_of_sums);
  return mark;
}

void remove_marks(const std::string& folder, int ranks) {
  for (int r = 0; r < ranks; ++r) ::unlink(mark_file(folder, r).c_str());
}

}  // namespace tessera::io::checkpoint
