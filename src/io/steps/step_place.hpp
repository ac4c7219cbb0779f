// The folders of a job's steps: dir/step_00000042. One is written under step_00000042.tmp-<random> and the
// lock dir/save.lock, and renamed when it is whole.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "io/file_lock.hpp"
#include "io/manifest.hpp"

namespace tessera::io::checkpoint {

std::string step_name(int step);
// The steps that have a manifest, newest first, by number.
std::map<int, std::string, std::greater<>> steps_in(const std::string& dir);

// The folder that a step is written into, on the rank that does what is done once. Without commit() it goes
// at the end.
class StepPlace {
 public:
  // IoError: the step exists, or the folder cannot be made.
  StepPlace(std::string call, const std::string& dir, int step);
  ~StepPlace();
  StepPlace(const StepPlace&) = delete;
  StepPlace& operator=(const StepPlace&) = delete;

  const std::string& make_temporary() const;
  void commit(const Manifest& manifest);
  // Nobody can meet any more: other ranks may still write here. The next save in this folder removes it.
  void abandon();
  // All but the newest `keep` steps go: each first loses its name, so that none is ever half there.
  void keep_newest(int keep) const;

 private:
  std::string call_, dir_, target_, temporary_;
  std::optional<FileLock> lock_;
};

}  // namespace tessera::io::checkpoint
