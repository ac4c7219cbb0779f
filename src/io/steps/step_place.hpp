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
// The steps that have a manifest, newest first, by number. AccessError: nobody can tell.
std::map<int, std::string, std::greater<>> steps_in(const std::string& call, const std::string& dir);
// The manifest is right and the files have their lengths; their bytes are not read.
bool is_complete(const std::string& folder);
// A damaged step loses its name and becomes step_00000042.damaged, where nobody takes it for a step. IoError.
void set_aside(const std::string& call, const std::string& folder);

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
  // Of the steps up to the committed one, all but the newest `keep` go: each first loses its name, so that
  // none is ever half there. The committed one stays, one that is not complete does not count, and later
  // numbers are another run's.
  void keep_newest(int keep) const;

 private:
  std::string call_, dir_, target_, temporary_;
  int step_;
  std::optional<FileLock> lock_;
};

}  // namespace tessera::io::checkpoint
