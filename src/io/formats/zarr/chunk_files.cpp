#include "io/formats/zarr/chunk_files.hpp"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/text.hpp"

namespace tessera::io::zarr {
namespace {

constexpr std::size_t most_open = 64;

}  // namespace

ChunkFiles::ChunkFiles(std::string call, std::string folder)
    : call_(std::move(call)), folder_(std::move(folder)) {
  folders_.insert(folder_);
}

// Creates the key's folders and records the new ones for sync(), up to the common folder.
void ChunkFiles::make_folders(const std::string& key) {
  const auto last = key.rfind('/');
  if (last == std::string::npos || folders_.contains(folder_ + "/" + key.substr(0, last))) return;
  std::error_code error;
  std::filesystem::create_directories(folder_ + "/" + key.substr(0, last), error);
  if (error)
    throw IoError(call_ + ": the folder " + tessera::quoted(folder_ + "/" + key.substr(0, last)) +
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
  if (written_.size() < most_open) return;
  for (File& one : written_) one.sync();
  written_.clear();
}

void ChunkFiles::sync() {
  for (File& file : written_) file.sync();
  written_.clear();
  for (const auto& folder : folders_) sync_folder_of(call_, folder + "/x");
}

}  // namespace tessera::io::zarr
