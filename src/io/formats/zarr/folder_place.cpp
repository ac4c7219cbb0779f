#include "io/formats/zarr/folder_place.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/text.hpp"
#include "io/fault_point.hpp"
#include "io/file.hpp"
#include "io/formats/zarr/metadata/node.hpp"
#include "io/save_target.hpp"

namespace tessera::io::zarr {
namespace {

namespace fs = std::filesystem;

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}
bool is_there(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0;
}
std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Whether `name` is a name for an old store, such as "x.zarr.old-0123456789abcdef" for "x.zarr".
bool is_put_aside(const std::string& name, const std::string& of) {
  return name.starts_with(of + ".old-") && is_temporary(of + ".tmp-" + name.substr(of.size() + 5), of);
}

// Entries beside the target whose names a save has given.
std::vector<std::string> beside(const std::string& target,
                                bool (*is_one)(const std::string&, const std::string&)) {
  std::vector<std::string> found;
  std::error_code none;
  const std::string name = fs::path(target).filename().string();
  for (const auto& entry : fs::directory_iterator(parent_of(target), none))
    if (is_one(entry.path().filename().string(), name)) found.push_back(entry.path().string());
  return found;
}

void put_back(const std::string& target) {
  for (const auto& aside : beside(target, is_put_aside))
    if (!is_there(target) && std::rename(aside.c_str(), target.c_str()) == 0) return;
}
// Restores arrays inside the store that a dead save had renamed, on file systems that cannot exchange names.
void mend_inside(const std::string& target) {
  std::error_code none;
  std::vector<std::string> aside;
  for (fs::recursive_directory_iterator at(target, none), end; at != end; at.increment(none))
    if (const auto name = at->path().filename().string(); name.find(".old-") != std::string::npos)
      aside.push_back(at->path().string());
  for (const auto& path : aside) {
    const std::string of = path.substr(0, path.rfind(".old-"));
    if (!is_put_aside(fs::path(path).filename().string(), fs::path(of).filename().string())) continue;
    if (is_there(of) || std::rename(path.c_str(), of.c_str()) != 0) remove_folder(path);
  }
}
void remove_dead(const std::string& target) {
  mend_inside(target);
  for (const auto& dead : beside(target, is_temporary)) remove_folder(dead);
  for (const auto& dead : beside(target, is_put_aside)) remove_folder(dead);
}

void check_target(const std::string& call, const std::string& target) {
  std::error_code none;
  if (!fs::is_directory(parent_of(target), none))
    throw IoError(call + ": " + in_quotes(target) + " cannot be created: there is no folder " +
                  in_quotes(parent_of(target)) + "; make it first");
  if (!is_there(target)) return;
  if (!fs::is_directory(target, none))
    throw IoError(call + ": " + in_quotes(target) +
                  " is a file, and a Zarr store is a folder; give another name");
  bool is_store = fs::is_empty(target, none);
  for (const char* file : {"/zarr.json", "/.zgroup", "/.zarray"})
    is_store = is_store || is_there(target + file);
  if (!is_store)
    throw IoError(
        call + ": " + in_quotes(target) +
        " is a folder that holds no Zarr store, and would be lost; give another name, or remove it");
  if (::access(target.c_str(), W_OK) != 0)
    throw IoError(call + ": " + in_quotes(target) +
                  " is write-protected; give another name, or chmod u+w it");
}

void rename_or_fail(const std::string& call, const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    throw IoError(call + ": " + in_quotes(from) + " cannot be renamed to " + in_quotes(to) + ": " +
                  std::strerror(errno) + "; check the permissions of the directory");
}

// Exchanges two names atomically. False if the file system cannot; other errors show when the names are
// changed one by one.
bool exchange_names(const std::string& a, const std::string& b) {
  return !is_faulty("no_exchange") &&
         ::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

FolderPlace::FolderPlace(const std::string& call, const std::string& path)
    : call_(call), target_(resolved(call, without_slash(path))) {
  std::error_code none;
  if (fs::is_directory(parent_of(target_), none)) {
    check_length_of_name(call_, target_);
    lock_.emplace(call_, target_, target_ + ".lock");
    put_back(target_);
    if (lock_->is_inherited()) remove_dead(target_);
  }
  fault_point("locked");
  check_target(call_, target_);
}
FolderPlace::~FolderPlace() { drop_temporary(); }

void FolderPlace::drop_temporary() {
  if (!temporary_.empty()) remove_folder(temporary_);
  temporary_.clear();
}

const std::string& FolderPlace::new_temporary() {
  drop_temporary();
  const std::string made = target_ + ".tmp-" + random_name();
  if (::mkdir(made.c_str(), 0777) != 0)
    throw IoError(call_ + ": the folder " + in_quotes(made) + " cannot be made: " + std::strerror(errno) +
                  "; check the permissions of the directory and the free space");
  return temporary_ = made;
}

void FolderPlace::commit(const std::string& at) {
  struct stat old {};
  const bool exists = ::stat(at.c_str(), &old) == 0;
  if (exists) ::chmod(temporary_.c_str(), old.st_mode & 0777);
  sync_folder_of(call_, temporary_ + "/x");
  fault_point("renaming");
  if (!exists) {
    rename_or_fail(call_, temporary_, at);
    temporary_.clear();
  } else if (!exchange_names(temporary_, at)) {
    const std::string aside = at + ".old-" + random_name();
    rename_or_fail(call_, at, aside);
    fault_point("put_aside");
    rename_or_fail(call_, temporary_, at);
    temporary_ = aside;
  }
  fault_point("renamed");
  sync_folder_of(call_, at);
  drop_temporary();
}

void recover(const std::string& call, const std::string& path) {
  std::string at = without_slash(path);
  while (!is_there(at) && !is_there(parent_of(at)) && parent_of(at) != "." && parent_of(at) != "/")
    at = parent_of(at);
  if (is_there(at) || beside(at, is_put_aside).empty()) return;
  const FileLock lock(call, at, at + ".lock");
  put_back(at);
}

void link_folder(const std::string& call, const std::string& from, const std::string& to) {
  std::error_code error;
  constexpr auto with_links = fs::copy_options::recursive | fs::copy_options::create_hard_links |
                              fs::copy_options::overwrite_existing;
  fs::copy(from, to, with_links, error);
  if (error) {
    error.clear();
    remove_folder(to);
    fs::copy(from, to, fs::copy_options::recursive, error);
  }
  if (error)
    throw IoError(call + ": " + in_quotes(from) + " cannot be copied to " + in_quotes(to) + ": " +
                  error.message() +
                  "; free some space: a copy is kept so that a failure cannot damage the array");
}

}  // namespace tessera::io::zarr
