#include "io/save_target.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <vector>

#include <tessera/error.hpp>

#include "base/text.hpp"
#include "io/fault_point.hpp"
#include "io/file.hpp"

namespace tessera::io {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

void check_target(const std::string& call, const std::string& path) {
  struct stat facts {};
  const bool exists = ::stat(path.c_str(), &facts) == 0;
  if (exists && !S_ISREG(facts.st_mode))
    throw IoError(call + ": " + in_quotes(path) +
                  (S_ISDIR(facts.st_mode) ? " is a directory" : " is not a regular file") +
                  "; give the path of a file");
  if (exists && ::access(path.c_str(), W_OK) != 0)
    throw IoError(call + ": " + in_quotes(path) + " is write-protected; give another name, or chmod u+w it");
  const std::string folder = folder_of(path).empty() ? "." : folder_of(path);
  if (::stat(folder.c_str(), &facts) != 0 && errno == ENOENT)
    throw IoError(call + ": " + in_quotes(path) + " cannot be created: there is no folder " +
                  in_quotes(folder) + "; make it first");
}

void remove_dead(const std::string& target) {
  std::error_code none;
  const fs::path folder = folder_of(target).empty() ? "." : folder_of(target);
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.is_regular_file(none) &&
        is_temporary(entry.path().filename().string(), fs::path(target).filename().string()))
      fs::remove(entry.path(), none);
}

// Copies extended attributes: the ACL, and the user's own.
void copy_attributes(int from, int to) {
  std::vector<char> names(1 << 16);
  const auto bytes = ::flistxattr(from, names.data(), names.size());
  for (ssize_t at = 0; at < bytes;) {
    const std::string name = names.data() + at;
    at += static_cast<ssize_t>(name.size()) + 1;
    if (name != "system.posix_acl_access" && !name.starts_with("user.")) continue;
    std::vector<char> value(1 << 16);
    const auto length = ::fgetxattr(from, name.c_str(), value.data(), value.size());
    if (length >= 0) ::fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(length), 0);
  }
}

// Gives the new file the old file's permissions, and its owner and group as far as this user may set them. If
// neither can be set, the set-user-id and set-group-id bits are dropped.
void keep_permissions(const std::string& old_file, const std::string& new_file) {
  const int from = ::open(old_file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK),
            to = ::open(new_file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (::stat(old_file.c_str(), &facts) == 0 && to >= 0) {
    const bool has_owner = ::fchown(to, facts.st_uid, facts.st_gid) == 0;
    const bool has_group = has_owner || ::fchown(to, static_cast<uid_t>(-1), facts.st_gid) == 0;
    ::fchmod(to, facts.st_mode & (has_owner ? 07777 : has_group ? 03777 : 0777));
    if (from >= 0) copy_attributes(from, to);
    ::fsync(to);
  }
  if (from >= 0) ::close(from);
  if (to >= 0) ::close(to);
}

}  // namespace

std::string random_name() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
    number = std::uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

bool is_temporary(const std::string& name, const std::string& of) {
  const std::string start = of + ".tmp-";
  return name.size() == start.size() + 16 && name.starts_with(start) &&
         name.find_first_not_of("0123456789abcdef", start.size()) == std::string::npos;
}

std::string resolved(const std::string& call, const std::string& path) {
  if (path.empty()) throw IoError(call + ": the path is empty; give the name of a file");
  std::string at = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    const auto next = fs::read_symlink(at, error);
    if (error) return at;  // not a link: a file, or nothing yet
    at = next.is_absolute() ? next.string() : folder_of(at) + next.string();
  }
  throw IoError(call + ": " + in_quotes(path) + " is a symbolic link that leads in a circle; remove it");
}

void check_length_of_name(const std::string& call, const std::string& path) {
  constexpr long ending = 21;  // ".tmp-" or ".old-" and random_name()
  const std::string folder = folder_of(path), name = path.substr(folder.size());
  long most = ::pathconf(folder.empty() ? "." : folder.c_str(), _PC_NAME_MAX);
  if (most <= 0) most = 255;
  if (static_cast<long>(name.size()) + ending <= most) return;
  throw IoError(call + ": the name " + in_quotes(name) + " has " + std::to_string(name.size()) +
                " bytes; a save needs " + std::to_string(ending) +
                " more for its temporary file beside it, and this file system takes " + std::to_string(most) +
                "; use a name of at most " + std::to_string(most - ending) + " bytes");
}

void copy_file(const std::string& call, const std::string& from, const std::string& to) {
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC),
            out = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const bool shares = in >= 0 && out >= 0 && ::ioctl(out, FICLONE, in) == 0;
  if (in >= 0) ::close(in);
  if (out >= 0) ::close(out);
  if (shares) return;
  std::error_code error;
  do {
    error.clear();
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  } while (error == std::errc::interrupted);
  if (!error) return;
  ::unlink(to.c_str());
  throw IoError(call + ": " + in_quotes(from) + " cannot be copied to " + in_quotes(to) + ": " +
                error.message() +
                "; free some space: a copy is kept so that a failure cannot damage the file");
}

SaveTarget::SaveTarget(const std::string& call, const std::string& path)
    : call_(call), target_(resolved(call, path)) {
  check_target(call_, target_);
  check_length_of_name(call_, target_);
  lock_.emplace(call_, target_, target_ + ".lock");
  fault_point("locked");
  if (lock_->is_inherited()) remove_dead(target_);
  temporary_ = target_ + ".tmp-" + random_name();
}

SaveTarget::~SaveTarget() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void SaveTarget::commit() {
  keep_permissions(target_, temporary_);
  fault_point("renaming");
  if (uninterrupted([&] { return std::rename(temporary_.c_str(), target_.c_str()); }) != 0)
    throw IoError(call_ + ": " + in_quotes(temporary_) + " cannot be renamed to " + in_quotes(target_) +
                  ": " + std::strerror(errno) + "; check the permissions of the directory");
  temporary_.clear();
  fault_point("renamed");
  sync_folder_of(call_, target_);
}

void SaveTarget::commit_and_go_on() {
  const std::string copy = target_ + ".tmp-" + random_name();
  copy_file(call_, temporary_, copy);
  try {
    commit();
  } catch (...) {
    ::unlink(copy.c_str());
    throw;
  }
  temporary_ = copy;
}

NoSizeSignal::NoSizeSignal() {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  if (pthread_sigmask(SIG_BLOCK, &set, &before) == 0) was_blocked_ = sigismember(&before, SIGXFSZ) == 1;
}
NoSizeSignal::~NoSizeSignal() {
  if (was_blocked_) return;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  const timespec now{};
  while (sigtimedwait(&set, nullptr, &now) == SIGXFSZ) {}
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace tessera::io
