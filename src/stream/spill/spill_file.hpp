// A temporary file with one array, between two stages of a program.
//
//   rows -> columns   a stage writes slabs of rows, the next one reads slabs of columns: the file holds
//                     tiles, so that both find long runs
//
// All ranks open the file and write and read their boxes in it. It loses its name as soon as all have it
// open: its space is free again when the last rank closes it, or dies.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/file.hpp"
#include "io/team.hpp"
#include "stream/file_source.hpp"

namespace tessera::stream {

// Extents of a tile for slabs whose block of a rank has `block` indices along `dim`. {}: not cut into tiles.
std::vector<std::int64_t> tile_for(const Shape& shape, int dim, std::int64_t block, std::int64_t itemsize);

class SpillFile {
 public:
  SpillFile(std::string name, Shape shape, Dtype dtype)
      : name_(std::move(name)), shape_(std::move(shape)), dtype_(dtype) {}
  // Before it is opened; extents of tiles as tile_for gives them.
  void set_tile(std::vector<std::int64_t> tile) { tile_ = std::move(tile); }
  // Creates the file in the folder; collective over all ranks. IoError on all of them.
  void open(const io::Team&, const std::string& call, const std::string& folder);
  void close() { in_.reset(), out_.reset(); }
  // Safe on a thread of its own; IoError on this rank alone. Boxes are dense memory.
  void write(const Box&, const std::byte*);
  void read(const Box&, std::byte*) const;
  std::int64_t bytes() const { return shape_.elements() * static_cast<std::int64_t>(itemsize(dtype_)); }
  std::int64_t tile_bytes() const;               // memory that writing or reading takes besides the box
  const io::File& file() const { return *in_; }  // once it is open
  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  const std::vector<std::int64_t>& tile() const { return tile_; }

 private:
  std::string name_;
  Shape shape_;
  Dtype dtype_;
  std::vector<std::int64_t> tile_;
  std::optional<io::File> in_, out_;
};
using SpillFilePtr = std::shared_ptr<SpillFile>;
FileSourcePtr source_of_spill(const SpillFilePtr&);

// The folder for temporary files: that of the result (if there is one), TMPDIR, the current one.
std::string spill_folder(const std::string& result_path);

}  // namespace tessera::stream
