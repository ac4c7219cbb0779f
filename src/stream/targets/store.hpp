// The files that a streamed value is written to, slab by slab.
#pragma once
#include <tessera/io/stream.hpp>

#include <memory>
#include <optional>
#include <string>

#include "io/file.hpp"
#include "io/save_target.hpp"
#include "stream/passes.hpp"
#include "stream/sink.hpp"

namespace tessera::stream {

enum class StoreFormat { npy, hdf5, netcdf, zarr };
// By the path's end; ArgumentError for others, and for a name, dims or chunks that are missing or too much.
StoreFormat store_format(const std::string& path, const io::StoreOptions&, const Array& x);
std::string options_text(const io::StoreOptions&);  // for the agreement of the ranks
// The chunks of a new Zarr array; nullopt for other formats.
std::optional<TargetChunks> chunks_of_target(StoreFormat, const io::StoreOptions&);
// Saves a value in memory.
void save_whole(const std::string& path, StoreFormat, const io::StoreOptions&, const Array&);

// A target with a name that it gets at the end.
class StoreTarget : public SlabSink {
 public:
  virtual void finish() = 0;  // brings everything to the disk; collective over all ranks
  virtual void commit() = 0;  // gives it its name; collective over all ranks
};
// The slabs of a value: along which dim, and how long.
struct SlabShape {
  int dim = 0;
  std::int64_t length = 0;
};
// Prepares the target for an array of x's shape and dtype, under a temporary name; collective over all ranks.
std::unique_ptr<StoreTarget> store_target(const io::Team&, const std::string& path, StoreFormat,
                                          const io::StoreOptions&, const Array& x, const SlabShape&);
std::unique_ptr<StoreTarget> zarr_target(const io::Team&, const std::string& path, const io::StoreOptions&,
                                         const Array& x, const SlabShape&);

}  // namespace tessera::stream
