// The folders of a job's steps: dir/step_00000042. A step is written as step_00000042.tmp-<random> under the
// lock dir/save.lock, and renamed when it is complete.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "io/file_lock.hpp"
#include "io/manifest.hpp"

namespace tessera::io::checkpoint {

std::string step_name(int step);
// The steps that have a manifest, newest first, by number. AccessError if the folder cannot be read.
std::map<int, std::string, std::greater<>> steps_in(const std::string& call, const std::string& dir);
// Whether the manifest is valid and the files have their lengths; their bytes are not read.
bool is_complete(const std::string& folder);
// Renames a damaged step to step_00000042.damaged, which no longer counts as a step. IoError.
void set_aside(const std::string& call, const std::string& folder);

// The folder that a step is written into, on the rank that does the work that is done once. Without commit()
// the destructor removes it.
class StepFolder {
 public:
  // IoError if the step exists, or the folder cannot be created.
  StepFolder(std::string call, const std::string& dir, int step);
  ~StepFolder();
  StepFolder(const StepFolder&) = delete;
  StepFolder& operator=(const StepFolder&) = delete;

  const std::string& make_temporary() const;
  void commit(const Manifest& manifest);
  // For ranks that cannot communicate: leaves the folder, since other ranks may still write to it. The next
  // save in `dir` removes it.
  void abandon();
  // Removes all but the newest `keep` steps up to the committed one. Each is renamed first, so that no step
  // is ever half removed. The committed step stays, incomplete steps do not count, and later numbers belong
  // to another run.
  void keep_newest(int keep) const;

 private:
  std::string call_, dir_, target_, temporary_;
  int step_;
  std::optional<FileLock> lock_;
};

}  // namespace tessera::io::checkpoint
