// Where a store is written before it has its name, as save_place.hpp has it for files; used by the one rank
// that does what is done once.
#pragma once
#include <optional>
#include <string>

#include "io/file_lock.hpp"

namespace tessera::io::zarr {

// x.zarr.tmp-<random> beside x.zarr, under the lock x.zarr.lock. What an earlier save that died left there is
// removed, or put back where it died between two renames. Temporary folders go at the end.
class FolderPlace {
 public:
  // IoError where the target is a folder that holds something else than a Zarr store.
  FolderPlace(const std::string& call, const std::string& path);
  ~FolderPlace();
  FolderPlace(const FolderPlace&) = delete;
  FolderPlace& operator=(const FolderPlace&) = delete;

  const std::string& target() const { return target_; }
  // An empty folder of its own beside the target, which replaces the last one.
  const std::string& new_temporary();
  const std::string& temporary() const { return temporary_; }
  // The temporary folder becomes `at`, the target or a folder in it; what was there is removed afterwards.
  // One rename where the file system can exchange names, two where not.
  void commit(const std::string& at);

 private:
  void drop_temporary();
  std::string call_, target_, temporary_;
  std::optional<FileLock> lock_;
};

// The target, or a folder above it, that a save which died had put aside, gets its name again.
void recover(const std::string& call, const std::string& path);
// The same files under a second name each: new files take the place of what is written later.
void link_folder(const std::string& call, const std::string& from, const std::string& to);

}  // namespace tessera::io::zarr
