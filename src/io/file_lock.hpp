// Lets one job at a time save under a name. The lock is the kernel's (flock): it ends with the process that
// holds it, on any host and in any container, so process numbers are never compared.
#pragma once
#include <chrono>
#include <string>

namespace tessera::io {

// The longest time that a rank waits for other ranks' file operations: shorter than their own time limit.
std::chrono::duration<double> longest_wait();

class FileLock {
 public:
  // Waits for a minute at most; IoError that names the holder (host, process, job, since when). A file system
  // without locks is reported, and nothing is locked there.
  FileLock(const std::string& call, const std::string& target, const std::string& lock_file);
  ~FileLock();  // removes the file
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Releases the lock but keeps its file, as if this process had died: see is_inherited().
  void abandon();
  // The file existed and was not locked: the process that created it died during a save, and its leftovers
  // may be removed.
  bool is_inherited() const { return is_inherited_; }

 private:
  bool try_once(const std::string& call);
  std::string path_, holder_;
  int descriptor_ = -1;
  bool is_inherited_ = false;
};

}  // namespace tessera::io
