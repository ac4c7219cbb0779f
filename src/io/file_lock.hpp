// One job at a time saves under a name. The lock is the kernel's (flock): it ends with the process that
// holds it, on whatever host and in whatever container, so no process number is ever compared.
#pragma once
#include <chrono>
#include <string>

namespace tessera::io {

// How long a rank waits for what others do with files: shorter than the time after which they give it up.
std::chrono::duration<double> longest_wait();

class FileLock {
 public:
  // Waits for a while, a minute at most; IoError that names the holder (host, process, job, since when). A
  // file system without locks is reported, and nothing is locked there.
  FileLock(const std::string& call, const std::string& target, const std::string& lock_file);
  ~FileLock();  // removes the file
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Gives the lock back and lets its file stand, as if this process had died: see is_inherited().
  void abandon();
  // The file was there, and nobody held it: who made it died in the middle of a save. What that one left
  // behind is nobody's.
  bool is_inherited() const { return is_inherited_; }

 private:
  bool try_once(const std::string& call);
  std::string path_, holder_;
  int descriptor_ = -1;
  bool is_inherited_ = false;
};

}  // namespace tessera::io
