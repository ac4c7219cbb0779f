// The temporary folder of a store before it gets its name, as save_target.hpp has it for files; used by the
// one rank that does the work that is done once.
#pragma once
#include <optional>
#include <string>

#include "io/file_lock.hpp"

namespace tessera::io::zarr {

// x.zarr.tmp-<random> beside x.zarr, under the lock x.zarr.lock. Leftovers of an earlier save that died are
// removed, or put back if it died between two renames. The destructor removes temporary folders.
class FolderPlace {
 public:
  // IoError if the target is a folder that is not a Zarr store.
  FolderPlace(const std::string& call, const std::string& path);
  ~FolderPlace();
  FolderPlace(const FolderPlace&) = delete;
  FolderPlace& operator=(const FolderPlace&) = delete;

  const std::string& target() const { return target_; }
  // Creates an empty folder beside the target, which replaces the last one.
  const std::string& new_temporary();
  const std::string& temporary() const { return temporary_; }
  // Renames the temporary folder to `at`, the target or a folder in it; the old one is removed afterwards.
  // One rename if the file system can exchange names, two otherwise.
  void commit(const std::string& at);

 private:
  void drop_temporary();
  std::string call_, target_, temporary_;
  std::optional<FileLock> lock_;
};

// Restores the name of the target, or of a folder above it, that a dead save had renamed.
void recover(const std::string& call, const std::string& path);
// Hard-links all files into a second folder: later writes then replace files instead of changing shared ones.
void link_folder(const std::string& call, const std::string& from, const std::string& to);

}  // namespace tessera::io::zarr
