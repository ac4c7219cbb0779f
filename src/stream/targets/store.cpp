#include "stream/targets/store.hpp"

#include <tessera/io/netcdf.hpp>
#include <tessera/io/zarr.hpp>

#include <algorithm>

#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/fault_point.hpp"
#include "io/formats/netcdf/new_variable.hpp"
#include "io/formats/zarr/metadata/new_array.hpp"
#include "io/formats/zarr/metadata/node.hpp"
#include "io/hdf5/dataset.hpp"
#include "io/npy_header.hpp"

namespace tessera::stream {
namespace {

bool ends_with_any(const std::string& path, std::initializer_list<const char*> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](const char* end) { return path.ends_with(end); });
}

// Creates a .npy file of the result's size with its header, without data; returns the offset of the data.
std::int64_t prepare_npy(const std::string& call, const std::string& temporary, const Array& x) {
  io::File file(call, temporary, io::File::Mode::create);
  const std::string header = io::npy_header_text(x.shape(), x.dtype());
  file.write(header.data(), std::ssize(header), 0);
  file.resize(std::ssize(header) + x.nbytes());
  return std::ssize(header);
}

std::vector<std::string> dims_of(const io::StoreOptions& options, const Array& x) {
  std::vector<std::string> dims = options.dims;
  for (std::size_t d = dims.size(); d < x.shape().size(); ++d) dims.push_back("dim_" + std::to_string(d));
  return dims;
}

std::int64_t prepare_netcdf(const std::string& call, const std::string& temporary,
                            const io::StoreOptions& options, const Array& x) {
  const auto offset = io::prepare_hdf5_dataset(call, temporary, options.name, x);
  io::name_dims(call, temporary, options.name, dims_of(options, x));
  io::File file(call, temporary, io::File::Mode::write);  // closing may have cut it behind the names
  if (file.bytes() < offset + x.nbytes()) file.resize(offset + x.nbytes());
  return offset;
}

// One file, in which each rank writes its boxes at their places.
class StoredFile : public StoreTarget {
 public:
  using Prepare = std::function<std::int64_t(const std::string& call, const std::string& temporary)>;
  StoredFile(const io::Team& team, const std::string& path, const Array& x, const Prepare& prepare)
      : team_(team), writer_(team, [this](const Box& box, const std::byte* data) {
          io::write_box(*file_, dense_, box, data);
          file_->begin_sync();
        }) {
    const std::string call = call_text();
    std::string temporary;
    std::int64_t offset = 0;
    team_.once([&] {
      target_.emplace(call, path);
      temporary = target_->temporary();
      offset = prepare(call, temporary);
      io::fault_point("prepared");
    });
    temporary = team_.from_first(temporary);
    dense_ = {x.shape(), static_cast<std::int64_t>(itemsize(x.dtype())), team_.from_first(offset)};
    team_.together([&] { file_.emplace(call, temporary, io::File::Mode::write); });
  }
  Array placed(const Array& slab) override { return io::with_long_runs(slab); }
  void write(const Array& part, const Place& at) override { writer_.write(part, at); }
  void finish() override {
    team_.together([&] {
      writer_.wait();
      file_->sync();
      io::fault_point("written");
    });
  }
  void commit() override {
    team_.once([&] {
      target_->commit();
      target_.reset();
      io::fault_point("saved");
    });
  }

 private:
  const io::Team& team_;
  io::DenseInFile dense_;
  const io::NoSizeSignal size_is_an_error_;
  std::optional<io::SaveTarget> target_;  // on the first rank
  std::optional<io::File> file_;
  BlockWriter writer_;  // ends before what it writes to
};

}  // namespace

StoreFormat store_format(const std::string& path, const io::StoreOptions& options, const Array& x) {
  const std::string call = call_text() + ": ";
  const auto& name = options.name;
  if (!options.dims.empty() && options.dims.size() != x.shape().size())
    throw ArgumentError(call + format_count(std::ssize(options.dims), "name") +
                        " of dims for an array of shape " + to_string(x.shape()));
  for (const auto& extents : {options.chunks, options.shards})
    if (!extents.empty() &&
        (extents.size() != x.shape().size() || *std::min_element(extents.begin(), extents.end()) < 1))
      throw ArgumentError(call + "chunks or shards " + to_string(Shape(extents)) +
                          " do not suit an array of shape " + to_string(x.shape()) +
                          "; give an extent of at least 1 for each dimension");
  const bool is_zarr = path.ends_with(".zarr");
  if (!is_zarr && (!options.chunks.empty() || !options.shards.empty()))
    throw ArgumentError(call + in_quotes(path) + " is stored without chunks; only .zarr has them");
  if (is_zarr) {
    if (!name.empty() && !io::zarr::is_good_name(name))
      throw ArgumentError(call + in_quotes(name) +
                          " cannot be the name of an array in a store; give one as in "
                          "\"group/x\"");
    return StoreFormat::zarr;
  }
  if (path.ends_with(".npy")) {
    if (!name.empty())
      throw ArgumentError(call + in_quotes(path) + " holds one array, without the name " + in_quotes(name));
    return StoreFormat::npy;
  }
  const bool is_netcdf = ends_with_any(path, {".nc", ".nc4"});
  if (!is_netcdf && !ends_with_any(path, {".h5", ".hdf5"}))
    throw ArgumentError(call + in_quotes(path) +
                        " does not end in .npy, .h5, .hdf5, .nc or .zarr, which tell the format");
  if (name.empty() || name.ends_with('/'))
    throw ArgumentError(call + "the dataset in " + in_quotes(path) + " needs a name: {.name = \"x\"}");
  if (is_netcdf) io::check_netcdf_dtype(name, x.dtype());
  return is_netcdf ? StoreFormat::netcdf : StoreFormat::hdf5;
}

std::string options_text(const io::StoreOptions& options) {
  return ", name " + in_quotes(options.name) + ", dims " + join(options.dims) + ", chunks " +
         to_string(Shape(options.chunks)) + ", shards " + to_string(Shape(options.shards)) + ", " +
         options.compression;
}

std::optional<TargetChunks> chunks_of_target(StoreFormat format, const io::StoreOptions& options) {
  if (format != StoreFormat::zarr) return std::nullopt;
  return TargetChunks{options.shards.empty() ? options.chunks : options.shards};
}

void save_whole(const std::string& path, StoreFormat format, const io::StoreOptions& options,
                const Array& x) {
  const auto where = std::source_location::current();
  if (format == StoreFormat::npy) return io::save_npy(path, x, where);
  if (format == StoreFormat::hdf5)
    return io::save_hdf5(path, options.name, x, {.mode = io::Hdf5Mode::replace}, where);
  if (format == StoreFormat::netcdf)
    return io::save_netcdf(path, {{options.name, x}}, {{options.name, dims_of(options, x)}}, where);
  const io::ZarrOptions stored{.chunks = options.chunks,
                               .shards = options.shards,
                               .compression = options.compression,
                               .dims = options.dims};
  if (options.name.empty()) return io::save_zarr(path, x, stored, where);
  io::save_zarr(path, std::map<std::string, Array>{{options.name, x}}, stored, where);
}

std::unique_ptr<StoreTarget> store_target(const io::Team& team, const std::string& path, StoreFormat format,
                                          const io::StoreOptions& options, const Array& x,
                                          const SlabShape& slabs) {
  if (format == StoreFormat::zarr) return zarr_target(team, path, options, x, slabs);
  return std::make_unique<StoredFile>(team, path, x,
                                      [&](const std::string& call, const std::string& temporary) {
                                        if (format == StoreFormat::npy)
                                          return prepare_npy(call, temporary, x);
                                        if (format == StoreFormat::netcdf)
                                          return prepare_netcdf(call, temporary, options, x);
                                        return io::prepare_hdf5_dataset(call, temporary, options.name, x);
                                      });
}

}  // namespace tessera::stream
