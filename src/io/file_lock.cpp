#include "io/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include <tessera/error.hpp>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "io/file.hpp"

namespace tessera::io {
namespace {

using Clock = std::chrono::steady_clock;

std::string own_facts() {
  char host[256] = "?", since[64] = "?";
  ::gethostname(host, sizeof host - 1);
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  if (::localtime_r(&now, &parts) != nullptr) std::strftime(since, sizeof since, "%F %T", &parts);
  const char* job = std::getenv("SLURM_JOB_ID");
  return std::string("host ") + host + ", process " + std::to_string(::getpid()) + ", " +
         (job != nullptr ? "job " + std::string(job) : "no SLURM job") + ", since " + since;
}

bool same_file(int descriptor, const std::string& path) {
  struct stat open_one {
  }, named{};
  return ::fstat(descriptor, &open_one) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

std::string first_line_of(int descriptor) {
  char text[400];
  const auto bytes = ::pread(descriptor, text, sizeof text, 0);
  const std::string all(text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return all.substr(0, all.find('\n'));
}

void note_facts(int descriptor) {
  const auto facts = own_facts() + "\n";
  if (::ftruncate(descriptor, 0) != 0 || ::pwrite(descriptor, facts.data(), facts.size(), 0) < 0)
    log(LogLevel::debug, "the lock does not say who holds it");  // the save itself will report a full disk
}

}  // namespace

std::chrono::duration<double> longest_wait() {
  const double timeout_s = settings().timeout_s;
  return std::chrono::duration<double>(timeout_s > 0 ? std::min(60.0, timeout_s / 4) : 60.0);
}

FileLock::FileLock(const std::string& call, const std::string& target, const std::string& lock_file)
    : path_(lock_file) {
  const auto give_up = Clock::now() + longest_wait();
  auto pause = std::chrono::milliseconds(5);
  while (!try_once(call)) {
    if (Clock::now() >= give_up)
      throw IoError(call + ": " + in_quotes(target) + " is being saved by another job (" +
                    (holder_.empty() ? "which does not say who it is" : in_quotes(holder_)) +
                    "); wait for it, or save under another name");
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(200));
  }
}

// True when the lock is held, or when this file system has no locks.
bool FileLock::try_once(const std::string& call) {
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  bool made = true;
  int descriptor = uninterrupted([&] { return ::open(path_.c_str(), flags | O_CREAT | O_EXCL, 0666); });
  if (descriptor < 0 && errno == EEXIST)
    made = false, descriptor = uninterrupted([&] { return ::open(path_.c_str(), flags); });
  if (descriptor < 0 && !made && errno == ENOENT) return false;  // the file was removed in between
  if (descriptor < 0)
    throw IoError(call + ": the lock " + in_quotes(path_) + " cannot be opened: " + std::strerror(errno) +
                  "; check the permissions of the directory and the free space");
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    if (same_file(descriptor, path_)) {
      descriptor_ = descriptor;
      is_inherited_ = !made;
      note_facts(descriptor);
      return true;
    }
  } else if (errno != EWOULDBLOCK && errno != EINTR) {
    log(LogLevel::warn, call + ": the file system of " + in_quotes(path_) + " has no locks (" +
                            std::strerror(errno) + "): see to it that one job at a time saves there");
    if (made) ::unlink(path_.c_str());
    ::close(descriptor);
    return true;
  } else {
    holder_ = first_line_of(descriptor);
  }
  ::close(descriptor);
  return false;
}

void FileLock::abandon() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());  // while locked: the next process finds no file, or sees that it was removed
  ::close(descriptor_);
}

}  // namespace tessera::io
