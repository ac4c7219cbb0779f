#include "stream/spill/spill_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "io/fault_point.hpp"
#include "io/file_lock.hpp"
#include "io/save_target.hpp"
#include "kernels/move/copy.hpp"
#include "types/buffer.hpp"

namespace tessera::stream {
namespace {

constexpr const char* prefix = ".tessera-spill-";

// A tile that a box overlaps: its offset in the file, and the part of it in the box, in the array's indices.
struct TilePart {
  Box tile, part;
  std::int64_t offset = 0;
};

void for_each_tile(const Shape& shape, const std::vector<std::int64_t>& tile, std::int64_t itemsize,
                   const Box& box, const std::function<void(const TilePart&)>& work) {
  const auto ndim = shape.size();
  std::vector<std::int64_t> at(ndim), first(ndim), last(ndim), count(ndim);
  std::int64_t slot = itemsize;
  for (std::size_t d = 0; d < ndim; ++d) {
    count[d] = (shape[d] + tile[d] - 1) / tile[d], slot *= tile[d];
    at[d] = first[d] = box[d].start / tile[d], last[d] = (box[d].stop - 1) / tile[d];
  }
  while (true) {
    TilePart piece;
    std::int64_t number = 0;
    for (std::size_t d = 0; d < ndim; ++d) {
      const Range range{at[d] * tile[d], std::min(shape[d], (at[d] + 1) * tile[d])};
      piece.tile.push_back(range);
      piece.part.push_back({std::max(range.start, box[d].start), std::min(range.stop, box[d].stop)});
      number = number * count[d] + at[d];
    }
    piece.offset = number * slot;
    work(piece);
    std::size_t d = ndim;
    while (d > 0 && at[d - 1] == last[d - 1]) at[d - 1] = first[d - 1], --d;
    if (d == 0) return;
    ++at[d - 1];
  }
}

Box moved_by(Box box, const Box& origin) {
  for (std::size_t d = 0; d < box.size(); ++d)
    box[d] = {box[d].start - origin[d].start, box[d].stop - origin[d].start};
  return box;
}
std::int64_t bytes_before(const Box& part, const Box& box, std::int64_t itemsize) {
  const auto strides = row_major_strides(box_shape(box));
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < box.size(); ++d) offset += (part[d].start - box[d].start) * strides[d];
  return offset * itemsize;
}

// Whether nobody holds the file's lock; where the file system has no locks, whether it is old.
bool is_left_over(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  bool is_free = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  if (!is_free && errno != EWOULDBLOCK && errno != EINTR) {
    std::error_code failed;
    const auto written = std::filesystem::last_write_time(path, failed);
    is_free = !failed && std::filesystem::file_time_type::clock::now() - written > std::chrono::minutes(10);
  }
  ::close(descriptor);
  return is_free;
}
// Files of processes that died between creating one and taking its name away.
void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(prefix) && is_left_over(entry.path()))
      std::filesystem::remove(entry.path(), ignored);
}

}  // namespace

std::vector<std::int64_t> tile_for(const Shape& shape, int dim, std::int64_t block, std::int64_t itemsize) {
  constexpr std::int64_t most = 1 << 20;
  if (shape.ndim() < 2) return {};
  const auto along = static_cast<std::size_t>(dim);
  block = std::clamp<std::int64_t>(block, 1, shape[along]);
  std::vector<std::int64_t> tile(shape.size());
  std::int64_t bytes = itemsize;
  // A slab of another dim with as many elements has this part of that dim.
  for (std::size_t d = 0; d < tile.size(); ++d) {
    const double part = static_cast<double>(block) / static_cast<double>(shape[along]);
    tile[d] = std::max<std::int64_t>(1, static_cast<std::int64_t>(part * static_cast<double>(shape[d])));
    if (d == along) tile[d] = block;
    bytes *= tile[d];
  }
  while (bytes > most) {
    auto& longest = *std::max_element(tile.begin(), tile.end());
    bytes = bytes / longest * ((longest + 1) / 2);
    longest = (longest + 1) / 2;
  }
  return tile;
}

void SpillFile::open(const io::Team& team, const std::string& call, const std::string& folder) {
  std::string path;
  std::optional<io::FileLock> named;  // on the first rank; its end takes the name away
  team.once([&] {
    remove_leftovers(folder);
    path = folder + "/" + prefix + io::random_name();
    named.emplace(call, path, path);
    if (!std::filesystem::exists(path)) io::File(call, path, io::File::Mode::create);
  });
  path = team.from_first(path);
  const auto remove = [&] {
    named.reset();
    if (team.is_first()) unlink(path.c_str());  // where there are no locks
  };
  try {
    team.together([&] {
      io::fault_point("spill");
      out_.emplace(call, path, io::File::Mode::write);
      in_.emplace(call, path, io::File::Mode::read);
    });
  } catch (...) {
    remove();
    throw;
  }
  remove();
}

std::int64_t SpillFile::tile_bytes() const {
  return tile_.empty() ? 0 : Shape(tile_).elements() * static_cast<std::int64_t>(itemsize(dtype_));
}

void SpillFile::write(const Box& box, const std::byte* from) {
  if (is_empty(box)) return;
  const auto width = static_cast<std::int64_t>(itemsize(dtype_));
  if (tile_.empty()) return io::write_box(*out_, {shape_, width, 0}, box, from);
  const Buffer dense = Buffer::allocate(static_cast<std::size_t>(tile_bytes()));
  const auto strides = row_major_strides(box_shape(box));
  for_each_tile(shape_, tile_, width, box, [&](const TilePart& piece) {
    const Shape part = box_shape(piece.part);
    kernels::copy_strided(dense.data(), row_major_strides(part), from + bytes_before(piece.part, box, width),
                          strides, part, static_cast<std::size_t>(width));
    io::write_box(*out_, {box_shape(piece.tile), width, piece.offset}, moved_by(piece.part, piece.tile),
                  dense.data());
  });
}

void SpillFile::read(const Box& box, std::byte* to) const {
  if (is_empty(box)) return;
  const auto width = static_cast<std::int64_t>(itemsize(dtype_));
  if (tile_.empty()) return io::read_box(*in_, {shape_, width, 0}, box, to);
  const Buffer dense = Buffer::allocate(static_cast<std::size_t>(tile_bytes()));
  const auto strides = row_major_strides(box_shape(box));
  for_each_tile(shape_, tile_, width, box, [&](const TilePart& piece) {
    // From the part's first element to its last, with what lies between.
    const auto in_tile = row_major_strides(box_shape(piece.tile));
    std::int64_t span = 1;
    for (std::size_t d = 0; d < in_tile.size(); ++d) span += (piece.part[d].size() - 1) * in_tile[d];
    in_->read(dense.data(), span * width, piece.offset + bytes_before(piece.part, piece.tile, width));
    kernels::copy_strided(to + bytes_before(piece.part, box, width), strides, dense.data(), in_tile,
                          box_shape(piece.part), static_cast<std::size_t>(width));
  });
}

FileSourcePtr source_of_spill(const SpillFilePtr& file) {
  auto source = std::make_shared<FileSource>();
  source->path = file->name(), source->info = {file->shape(), file->dtype(), "temporary"};
  source->chunks = file->tile();
  source->temporary_bytes = [file](const Shape&) { return file->tile_bytes(); };
  source->read = [file](const std::string&, const Box& box, std::byte* out) { file->read(box, out); };
  return source;
}

std::string spill_folder(const std::string& result_path) {
  if (!result_path.empty()) {
    const auto parent = std::filesystem::path(result_path).parent_path();
    return parent.empty() ? "." : parent.string();
  }
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : ".";
}

}  // namespace tessera::stream
