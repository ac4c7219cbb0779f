// Chunk files below one folder, written by this rank; sync() brings them and their folders to the disk.
#pragma once
#include <cstddef>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "io/file.hpp"

namespace tessera::io::zarr {

class ChunkFiles {
 public:
  ChunkFiles(std::string call, std::string folder);
  // Thread-safe. Replaces an existing file of that key by a new one instead of overwriting it: the old one
  // may be a hard link of a file that others read.
  void write(const std::string& key, std::span<const std::byte> bytes);
  void sync();

 private:
  void make_folders(const std::string& key);
  void sync_written();
  std::string call_, folder_;
  std::size_t most_open_;
  std::mutex guard_;
  std::vector<File> written_;  // not yet on the disk
  std::set<std::string> folders_;
};

}  // namespace tessera::io::zarr
