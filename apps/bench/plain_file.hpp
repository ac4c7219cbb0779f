// The peer of rows about files: write(2), fsync and read(2) of the same bytes in the same folder.
#pragma once
#include <fcntl.h>
#include <unistd.h>
#include <tessera/multihost.hpp>

#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bench.hpp"

namespace bench {

using tessera::HostArray;
using tessera::IoError;
using tessera::Shape;
namespace multihost = tessera::multihost;

// A temporary folder, removed on destruction.
class Folder {
 public:
  Folder() {
    const std::vector<std::int32_t> number{static_cast<std::int32_t>(getpid())};
    const HostArray of_rank_0 = multihost::broadcast_one_to_all(HostArray(number, Shape{1}));
    path_ = std::filesystem::temp_directory_path() /
            ("tessera_bench_" + std::to_string(of_rank_0.as<std::int32_t>()[0]));
    if (rank() == 0 && !std::filesystem::create_directory(path_))
      throw IoError("bench: the folder " + path_ + " is there already; remove it");
    multihost::sync_global_devices("the folder is there");
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    if (std::uncaught_exceptions() == 0) multihost::sync_global_devices("nobody writes any more");
    std::error_code ignored;
    if (rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One rank's share in one file.
class PlainFile {
 public:
  PlainFile(const std::string& folder, std::span<const float> values)
      : path_(folder + "/plain" + std::to_string(rank())), values_(values), back_(values.size()) {}
  void write_all() const {
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    move_all(values_.size_bytes(), [&](std::size_t at, std::size_t bytes) {
      return write(file, reinterpret_cast<const char*>(values_.data()) + at, bytes);
    });
    fsync(file);
    close(file);
  }
  void read_all() {
    const int file = open(path_.c_str(), O_RDONLY);
    move_all(values_.size_bytes(), [&](std::size_t at, std::size_t bytes) {
      return read(file, reinterpret_cast<char*>(back_.data()) + at, bytes);
    });
    close(file);
  }

 private:
  template <class Call> static void move_all(std::size_t bytes, Call call) {
    for (std::size_t at = 0; at < bytes;) {
      const auto moved = call(at, bytes - at);
      if (moved <= 0) throw IoError("bench: a plain file cannot be written or read");
      at += static_cast<std::size_t>(moved);
    }
  }
  std::string path_;
  std::span<const float> values_;
  std::vector<float> back_;
};

}  // namespace bench
