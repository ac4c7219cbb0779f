#include "io/formats/zarr/chunk_files.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.hpp"
#include "io/many.hpp"

namespace tessera::io::zarr {
namespace {

// The files that stay open until they are synced together: several for each thread of a sync, and at most a
// quarter of what the process may open.
std::size_t most_open() {
  rlimit limit{};
  const rlim_t most = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
  return std::clamp<rlim_t>(most / 4, 1, 16 * sync_threads);
}

}  // namespace

ChunkFiles::ChunkFiles(std::string call, std::string folder)
    : call_(std::move(call)), folder_(std::move(folder)), most_open_(most_open()) {
  folders_.insert(folder_);
}

// Creates the key's folders and records the new ones for sync(), up to the common folder.
void ChunkFiles::make_folders(const std::string& key) {
  const auto last = key.rfind('/');
  if (last == std::string::npos || folders_.contains(folder_ + "/" + key.substr(0, last))) return;
  std::error_code error;
  std::filesystem::create_directories(folder_ + "/" + key.substr(0, last), error);
  if (error)
    throw IoError(call_ + ": the folder " + in_quotes(folder_ + "/" + key.substr(0, last)) +
                  " cannot be made: " + error.message() + "; check the permissions and the free space");
  for (auto slash = key.find('/'); slash != std::string::npos; slash = key.find('/', slash + 1))
    folders_.insert(folder_ + "/" + key.substr(0, slash));
}

void ChunkFiles::write(const std::string& key, std::span<const std::byte> bytes) {
  const std::string path = folder_ + "/" + key;
  {
    const std::scoped_lock lock(guard_);
    make_folders(key);
  }
  ::unlink(path.c_str());
  File file(call_, path, File::Mode::create);
  file.write(bytes.data(), std::ssize(bytes), 0);
  file.begin_sync();
  const std::scoped_lock lock(guard_);
  written_.push_back(std::move(file));
  if (written_.size() >= most_open_) sync_written();
}

void ChunkFiles::sync_written() {
  side_by_side(std::ssize(written_), sync_threads,
               [&](std::int64_t i) { written_[static_cast<std::size_t>(i)].sync(); });
  written_.clear();
}

void ChunkFiles::sync() {
  sync_written();
  sync_folders(call_, {folders_.begin(), folders_.end()});
}

}  // namespace tessera::io::zarr
