#include "io/team.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <tessera/runtime.hpp>

#include "api/evaluate.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "graph/op.hpp"

namespace tessera::io {

Team::Team(const std::vector<int>& device_ids, const std::string& call) {
  const int me = process_index();
  if (std::find(device_ids.begin(), device_ids.end(), me) == device_ids.end()) return;
  group_ = &comm::group(device_ids);
  comm::agree_on_call(*group_, call);
}
bool Team::is_first() const { return is_member() && group_->rank() == 0; }

void Team::together(const std::function<void()>& work) const {
  std::string wrong;
  try {
    work();
  } catch (const std::exception& error) {
    wrong = *error.what() != '\0' ? error.what() : "unknown error";
  }
  if (!is_member()) {
    if (!wrong.empty()) throw IoError(wrong);
    return;
  }
  const auto first = comm::first_error(*group_, wrong);
  if (first.empty()) return;
  // "rank 2: text" where ranks differ; the bare text where all say the same.
  const auto text =
      first.substr(std::min(first.size(), first.find(": ") == std::string::npos ? 0 : first.find(": ") + 2));
  throw IoError(comm::all_ok(*group_, wrong == text) ? text : first);
}

void Team::once(const std::function<void()>& work) const {
  together([&] {
    if (is_first()) work();
  });
}

std::int64_t Team::from_first(std::int64_t value) const {
  comm::broadcast(*group_, &value, sizeof value, 0);
  return value;
}

void Team::same(const std::string& call, const std::string& path, const std::string& facts) const {
  if (!is_member() || group_->size() == 1) return;
  std::uint64_t hash = 1469598103934665603ull;  // FNV-1a
  for (const char c : facts) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  try {
    comm::agree(*group_, hash, [&] { return "finds " + facts; });
  } catch (const comm::DisagreementError& error) {
    throw IoError(call + ": the ranks see different files under " + quoted(path) +
                  ". Put it on a file system that all hosts share. " + error.what());
  }
}

Array load_blocks(const std::string& call, const std::string& path, const Sharding& sharding,
                  const Reader& reader) {
  const Mesh mesh = sharding.mesh();
  if (mesh.is_abstract())
    throw ShardingError(call +
                        ": the sharding lies on an abstract mesh, which has no processes; make_mesh gives "
                        "one of this job's devices");
  const Team team(mesh.device_ids(), call);
  FileInfo info{{}, float32, {}};
  team.together([&] { info = reader.header(); });
  team.same(call, path,
            "an array of shape " + to_string(info.shape) + ", " + name(info.dtype) + ", " + info.detail);
  sharding.check_fits(info.shape, (call + " of " + quoted(path)).c_str());
  check_memory(sharding.shard_shape(info.shape).elements() * static_cast<std::int64_t>(itemsize(info.dtype)),
               call + " of " + quoted(path));
  Buffer buffer;
  if (team.is_member()) {
    const Box box = sharding.local_box(info.shape, process_index());
    team.together([&] {
      buffer = Buffer::allocate(static_cast<std::size_t>(box_elements(box)) * itemsize(info.dtype));
      reader.block(box, buffer.data());
    });
  }
  return make_leaf({info.shape, info.dtype}, sharding, std::move(buffer), true,
                   std::source_location::current());
}

namespace {

// Narrow columns would be written in runs of a few bytes: rearranged into rows first, each rank writes one
// piece.
Array with_long_runs(const Array& x) {
  constexpr std::int64_t long_enough = 4096;
  const Sharding sharding = x.sharding();
  const Mesh mesh = sharding.mesh();
  if (x.ndim() < 2 || mesh.size() == 1 || x.shape()[0] < mesh.size()) return x;
  const DenseInFile dense{x.shape(), static_cast<std::int64_t>(itemsize(x.dtype())), 0};
  if (run_bytes(dense, whole_box(sharding.shard_shape(x.shape()))) >= long_enough) return x;
  std::vector<std::vector<int>> rows(x.ndim());
  for (int a = 0; a < mesh.ndim(); ++a) rows[0].push_back(a);
  return device_put(x, Sharding::from_dim_axes(mesh, rows));
}

void check_target(const std::string& call, const std::string& path) {
  struct stat facts {};
  if (path.empty()) throw IoError(call + ": the path is empty; give the name of a file");
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    throw IoError(call + ": " + quoted(path) +
                  (S_ISDIR(facts.st_mode) ? " is a directory" : " is not a regular file") +
                  "; give the path of a file");
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::stat(folder.c_str(), &facts) != 0 && errno == ENOENT)
    throw IoError(call + ": " + quoted(path) + " cannot be created: there is no folder " + quoted(folder) +
                  "; make it first");
}

}  // namespace

void save_blocks(const std::string& call, const std::string& path, const Array& x, const Prepare& prepare) {
  check_usable(x, call.c_str());
  const Array placed = with_long_runs(x);
  eval({placed});
  const auto& stored = *output_of(placed).stored;
  const Team team(stored.layout.mesh().device_ids(), call + " to " + quoted(path));
  if (!team.is_member()) return;
  const auto number = team.from_first(::getpid());
  const std::string temporary = path + ".tmp-" + std::to_string(number);
  std::int64_t offset = 0;
  try {
    team.once([&] {
      check_target(call, path);
      ::unlink(temporary.c_str());
      offset = prepare(temporary);
    });
    offset = team.from_first(offset);
    const DenseInFile dense{x.shape(), static_cast<std::int64_t>(itemsize(x.dtype())), offset};
    team.together([&] {
      if (stored.layout.replica_id(x.shape(), local_devices()[0]) != 0) return;
      File file(call, temporary, File::Mode::write);
      write_box(file, dense, stored.layout.local_box(x.shape(), process_index()), stored.buffer.data());
      file.sync();
    });
    team.once([&] {
      const auto bytes = File(call, temporary, File::Mode::read).bytes();
      if (bytes < offset + x.nbytes())
        throw IoError(call + ": " + quoted(temporary) + " has " + std::to_string(bytes) +
                      " bytes after all ranks wrote " + std::to_string(offset + x.nbytes()) +
                      "; check the file system");
      if (std::rename(temporary.c_str(), path.c_str()) != 0)
        throw IoError(call + ": " + quoted(temporary) + " cannot be renamed to " + quoted(path) + ": " +
                      std::strerror(errno) + "; check the permissions of the directory");
      sync_folder_of(call, path);
    });
  } catch (...) {
    if (team.is_first()) ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace tessera::io
