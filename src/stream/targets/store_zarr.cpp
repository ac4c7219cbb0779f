// A new Zarr store with one array that is written slab by slab.
#include <tessera/device.hpp>
#include <tessera/io/zarr.hpp>

#include <filesystem>

#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/fault_point.hpp"
#include "io/formats/zarr/chunk_write.hpp"
#include "io/formats/zarr/folder_place.hpp"
#include "io/formats/zarr/metadata/new_array.hpp"
#include "io/formats/zarr/metadata/node.hpp"
#include "stream/background.hpp"
#include "stream/targets/store.hpp"

namespace tessera::stream {
namespace {

namespace fs = std::filesystem;

// Without given ones the chunks are the blocks of the slabs, so that none is written twice.
io::zarr::ArrayMeta metadata(const std::string& call, const io::StoreOptions& options, const Array& x,
                             const SlabShape& slabs) {
  io::ZarrOptions stored{.chunks = options.chunks,
                         .shards = options.shards,
                         .compression = options.compression,
                         .dims = options.dims};
  if (stored.chunks.empty() && stored.shards.empty() && x.ndim() > 0) {
    Shape block = x.shape();
    const auto ranks = static_cast<std::int64_t>(device_count());
    block[static_cast<std::size_t>(slabs.dim)] = (slabs.length + ranks - 1) / ranks;
    stored.chunks = io::zarr::chosen_chunk(block, static_cast<std::int64_t>(itemsize(x.dtype()))).vector();
  }
  return io::zarr::new_array(call, x.shape(), x.dtype(), slab_layout(x.ndim(), slabs.dim), stored);
}

class StoredZarr : public StoreTarget {
 public:
  StoredZarr(const io::Team& team, const std::string& path, const io::StoreOptions& options, const Array& x,
             const SlabShape& slabs)
      : team_(team), call_(call_text()), dim_(slabs.dim), meta_(metadata(call_, options, x, slabs)) {
    team_.once([&] {
      place_.emplace(call_, path);
      root_ = place_->new_temporary();
      make_groups(options.name);
      const std::string folder = options.name.empty() ? root_ : root_ + "/" + options.name;
      io::zarr::write_document(call_, folder + "/zarr.json", io::zarr::array_document(meta_));
      if (!options.name.empty()) consolidate();
      io::fault_point("prepared");
    });
    root_ = team_.from_first(root_);
    folder_ = options.name.empty() ? root_ : root_ + "/" + options.name;
    files_.emplace(call_, folder_);
  }

  // A chunk that two slabs share is written by the first of them, and read and written again by the second.
  void write(const Array& slab, const Place& at) override {
    team_.together([&] { writer_.wait(); });
    Shape before = meta_.shape;
    const auto d = static_cast<std::size_t>(dim_);
    before[d] = at[d];
    const auto put =
        io::zarr::prepared_write(team_, {call_, meta_, folder_, at, folder_, before}, *files_, slab);
    team_.together([&] { writer_.start([put] { put(); }); });
  }
  void finish() override {
    team_.together([&] {
      writer_.wait();
      files_->sync();  // once: a sync with each slab would hold up the next one
      io::fault_point("written");
    });
  }
  void commit() override {
    team_.once([&] {
      place_->commit(place_->target());
      place_.reset();
      io::fault_point("saved");
    });
  }

 private:
  // The store's group and those on the way to the array.
  void make_groups(const std::string& name) const {
    if (name.empty()) return;
    const auto group = io::zarr::group_document(io::zarr::Json::object());
    std::size_t end = 0;
    for (std::string folder = root_;; folder = root_ + "/" + name.substr(0, end)) {
      std::error_code ignored;
      fs::create_directory(folder, ignored);
      const bool is_array = end == name.size();
      if (is_array) return;
      io::zarr::write_document(call_, folder + "/zarr.json", group);
      end = std::min(name.find('/', end + 1), name.size());
    }
  }
  void consolidate() const {
    io::zarr::Json metadata = io::zarr::Json::object();
    for (auto& [name, child] : io::zarr::documents_below(call_, root_)) metadata[name] = std::move(child);
    auto document = io::zarr::group_document(io::zarr::Json::object());
    document["consolidated_metadata"] = {
        {"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(metadata)}};
    fs::remove(root_ + "/zarr.json");
    io::zarr::write_document(call_, root_ + "/zarr.json", document);
  }

  const io::Team& team_;
  std::string call_, root_, folder_;
  int dim_;  // of the slabs
  io::zarr::ArrayMeta meta_;
  const io::NoSizeSignal size_is_an_error_;
  std::optional<io::zarr::FolderPlace> place_;  // on the first rank
  std::optional<io::zarr::ChunkFiles> files_;
  Background writer_;  // ends before what it writes to
};

}  // namespace

std::unique_ptr<StoreTarget> zarr_target(const io::Team& team, const std::string& path,
                                         const io::StoreOptions& options, const Array& x,
                                         const SlabShape& slabs) {
  return std::make_unique<StoredZarr>(team, path, options, x, slabs);
}

}  // namespace tessera::stream
