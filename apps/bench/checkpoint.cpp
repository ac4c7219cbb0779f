// Checkpoints of 512 MiB beside write(2), fsync and read(2) of as many bytes in the same folder (TMPDIR).
#include <fcntl.h>
#include <unistd.h>

#include <tessera/io.hpp>
#include <tessera/multihost.hpp>

#include <exception>
#include <filesystem>
#include <span>

#include "bench.hpp"

namespace {

using namespace tessera;
namespace checkpoint = io::checkpoint;

constexpr std::int64_t elements = std::int64_t{128} << 20;

// A folder of this run, gone with it.
class Folder {
 public:
  Folder() {
    const std::vector<std::int32_t> number{static_cast<std::int32_t>(getpid())};
    const HostArray of_rank_0 = multihost::broadcast_one_to_all(HostArray(number, Shape{1}));
    path_ = std::filesystem::temp_directory_path() /
            ("tessera_bench_" + std::to_string(of_rank_0.as<std::int32_t>()[0]));
    if (bench::rank() == 0 && !std::filesystem::create_directory(path_))
      throw IoError("bench: the folder " + path_ + " is there already; remove it");
    multihost::sync_global_devices("the folder is there");
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    if (std::uncaught_exceptions() == 0) multihost::sync_global_devices("nobody writes any more");
    std::error_code ignored;
    if (bench::rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One rank's share in one file.
class PlainFile {
 public:
  PlainFile(const std::string& folder, std::span<const float> values)
      : path_(folder + "/plain" + std::to_string(bench::rank())), values_(values), back_(values.size()) {}
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

void rows() {
  const std::string save = "checkpoint_save_512MiB", load = "checkpoint_load_512MiB";
  const bool saves = bench::wanted(save), loads = bench::wanted(load);
  if (!saves && !loads) return;
  const Folder folder;
  const Sharding rows = bench::split(P("x"));
  const Array x = device_put(astype(arange(elements), float32), rows);
  eval(x);
  PlainFile plain(folder.path(), local<float>(x));
  const std::string steps = folder.path() + "/steps";
  const auto remove_steps = [&] {
    if (bench::rank() == 0) std::filesystem::remove_all(steps);
    multihost::sync_global_devices("the steps are gone");
  };
  if (saves)
    bench::compare(
        save, [&] { checkpoint::save(steps, 1, x); }, {{"write and fsync", [&] { plain.write_all(); }}},
        bench::Repeat{5, remove_steps});
  if (!loads) return;
  remove_steps();
  checkpoint::save(steps, 1, x), plain.write_all();
  bench::compare(
      load, [&] { eval(checkpoint::restore(steps, x)); }, {{"read", [&] { plain.read_all(); }}}, 5);
}

const bench::Group group(rows);

}  // namespace
