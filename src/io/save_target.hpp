// The temporary file of a save before it gets its name; used by the one rank that does the work that is done
// once.
#pragma once
#include <optional>
#include <string>

#include "io/file_lock.hpp"

namespace tessera::io {

// 16 random hexadecimal digits; process numbers would repeat, in containers and after a restart.
std::string random_name();
bool is_temporary(const std::string& name, const std::string& of);  // "x.npy.tmp-0123456789abcdef" of "x.npy"
// The path with its symbolic links followed to the existing or future file.
std::string resolved(const std::string& call, const std::string& path);

// IoError where the file system has no room for the name that a save of this path has for a while:
// the path's own and 21 bytes.
void check_length_of_name(const std::string& call, const std::string& path);

// Copies a file to a new name; shares the data blocks if the file system can.
void copy_file(const std::string& call, const std::string& from, const std::string& to);

// x.npy.tmp-<random> beside x.npy, under the lock x.npy.lock. Leftovers of an earlier save that died are
// removed. Without commit() the destructor removes the temporary, and the old file stays.
class SaveTarget {
 public:
  SaveTarget(const std::string& call, const std::string& path);
  ~SaveTarget();
  SaveTarget(const SaveTarget&) = delete;
  SaveTarget& operator=(const SaveTarget&) = delete;

  const std::string& target() const { return target_; }
  const std::string& temporary() const { return temporary_; }
  // Renames the temporary to the target, with the mode, owner and ACL of the old file.
  void commit();
  // The same, then continues with a copy of the file as the temporary.
  void commit_and_go_on();

 private:
  std::string call_, target_, temporary_;
  std::optional<FileLock> lock_;
};

// During its lifetime a write beyond the file size limit (ulimit -f) fails with EFBIG instead of killing the
// process in the middle of a save.
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
