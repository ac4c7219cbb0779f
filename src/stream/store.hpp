// The file that a streamed value is written to, slab by slab.
#pragma once
#include <optional>

#include "io/file.hpp"
#include "io/save_target.hpp"
#include "stream/sink.hpp"

namespace tessera::stream {

enum class StoreFormat { npy, hdf5 };
// By the path's end; ArgumentError for others, and for a dataset's name that is missing or too much.
StoreFormat store_format(const std::string& path, const std::string& name);

class StoredFile : public SlabSink {
 public:
  // Prepares the temporary file for an array of x's shape and dtype; collective over all ranks.
  StoredFile(const io::Team& team, std::string call, const std::string& path, StoreFormat format,
             const std::string& name, const Array& x);
  Array placed(const Array& slab) override { return io::with_long_runs(slab); }
  void write(const Array& slab, int dim, std::int64_t start) override { writer_.write(slab, dim, start); }
  // Brings everything to the disk and gives the file its name; collective over all ranks.
  void commit();

 private:
  const io::Team& team_;
  std::string call_, temporary_;
  io::DenseInFile dense_;
  const io::NoSizeSignal size_is_an_error_;
  std::optional<io::SaveTarget> target_;  // on the first rank
  std::optional<io::File> file_;
  BlockWriter writer_;  // ends before what it writes to
};

}  // namespace tessera::stream
