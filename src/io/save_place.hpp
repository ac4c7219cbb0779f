// The temporary file of a save before it has its name; used by the one rank that does what is done once.
#pragma once
#include <optional>
#include <string>

#include "io/file_lock.hpp"

namespace tessera::io {

// 16 hexadecimal digits by chance: process numbers repeat, in containers and after a restart.
std::string random_name();
bool is_temporary(const std::string& name, const std::string& of);  // "x.npy.tmp-0123456789abcdef" of "x.npy"
// The path with its symbolic links followed to where the file is, or will be.
std::string resolved(const std::string& call, const std::string& path);

// A copy under a new name; no bytes are moved where the file system lets files share their blocks.
void copy_file(const std::string& call, const std::string& from, const std::string& to);

// x.npy.tmp-<random> beside x.npy, under the lock x.npy.lock. What an earlier save that died left there is
// removed. Without commit() the temporary goes at the end, and the old file stays.
class SavePlace {
 public:
  SavePlace(const std::string& call, const std::string& path);
  ~SavePlace();
  SavePlace(const SavePlace&) = delete;
  SavePlace& operator=(const SavePlace&) = delete;

  const std::string& target() const { return target_; }
  const std::string& temporary() const { return temporary_; }
  // The temporary takes the place of the target, with the mode, owner and ACL that the old file had.
  void commit();
  // The same, and a copy of it is the temporary from then on.
  void commit_and_go_on();

 private:
  std::string call_, target_, temporary_;
  std::optional<FileLock> lock_;
};

// For as long as it lives, a write beyond the limit of a file's size (ulimit -f) is an error of that write
// (EFBIG), and not the end of the process in the middle of a save.
class NoSizeSignal {
 public:
  NoSizeSignal();
  ~NoSizeSignal();
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  bool was_blocked_ = true;
};

}  // namespace tessera::io
