// open: which format a file has, and its array as an operand.
#include <sys/stat.h>
#include <tessera/array/read.hpp>
#include <tessera/io/stream.hpp>
#include <tessera/ops.hpp>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "base/call.hpp"
#include "base/session.hpp"
#include "base/text.hpp"
#include "io/blocks.hpp"
#include "io/formats/netcdf/unpack.hpp"
#include "io/formats/zarr/chunk_files.hpp"
#include "io/formats/zarr/chunk_read.hpp"
#include "io/formats/zarr/folder_place.hpp"
#include "io/formats/zarr/metadata/node.hpp"
#include "io/hdf5/dataset.hpp"
#include "io/npy_file.hpp"
#include "kernels/move/copy.hpp"
#include "ops/create/scalar.hpp"
#include "stream/file_source.hpp"
#include "types/buffer.hpp"

namespace tessera::stream {
namespace {

// A box in Fortran order is read in the file's order and transposed, at most 2 MiB of it at a time; short
// runs are read with the gaps between them.
std::int64_t npy_temporary_bytes(const io::NpyHeader& header, Shape box) {
  Shape shape = header.shape;
  const auto width = static_cast<std::int64_t>(itemsize(header.dtype));
  const std::int64_t transposed =
      header.fortran_order ? std::min(box.elements() * width, std::int64_t{2} << 20) : 0;
  if (header.fortran_order) {
    std::reverse(&shape[0], &shape[0] + shape.size());
    std::reverse(&box[0], &box[0] + box.size());
  }
  return transposed + io::window_bytes_of({shape, width, 0}, whole_box(box));
}

FileSource npy_source(const std::string& call, const std::string& path, const std::string& name) {
  if (!name.empty())
    throw IoError(call + ": " + in_quotes(path) + " holds one array, without the name " + in_quotes(name));
  const auto file = std::make_shared<const io::File>(call, path, io::File::Mode::read);
  const auto header = io::read_npy_header(*file, 0, file->bytes());
  FileSource source;
  source.path = path, source.info = io::npy_file_info(header);
  source.temporary_bytes = [header](const Shape& box) { return npy_temporary_bytes(header, box); };
  source.read = [file, header](const std::string&, const Box& box, std::byte* out) {
    io::read_npy_box(*file, header, box, out);
  };
  source.mapped = [file, header](const Box& box) { return io::mapped_npy_box(*file, header, box); };
  return source;
}

FileSource hdf5_source(const std::string& path, const io::Hdf5Dataset& dataset) {
  FileSource source;
  source.path = path, source.name = dataset.name, source.info = io::info_of_dataset(dataset);
  source.chunks = io::chunks_of_dataset(dataset);
  const std::int64_t chunk = source.chunks.empty() ? 0 : Shape(source.chunks).elements();
  source.temporary_bytes =
      [bytes = io::dataset_reading_bytes(chunk * static_cast<std::int64_t>(itemsize(source.info.dtype)))](
          const Shape&) { return bytes; };
  source.read = [dataset, info = source.info](const std::string& call, const Box& box, std::byte* out) {
    auto again = dataset;
    again.call = call;
    io::read_dataset_box(again, info, box, out);
  };
  return source;
}

// The variable at the length of its dims: beyond what is stored stands its fill value.
FileSource longer_source(FileSource stored, const io::NetcdfLonger& longer) {
  FileSource source = stored;
  source.info.shape = longer.shape;
  source.read = [stored = std::move(stored), fill = longer.fill](const std::string& call, const Box& box,
                                                                 std::byte* out) {
    const auto width = itemsize(stored.info.dtype);
    const Box part = intersect(box, whole_box(stored.info.shape));
    if (!is_empty(part) && part == box) return stored.read(call, box, out);
    std::byte element[16] = {};
    write_scalar({fill}, stored.info.dtype, element);
    kernels::fill(out, element, width, box_elements(box));
    if (is_empty(part)) return;
    const Buffer values = Buffer::allocate(static_cast<std::size_t>(box_elements(part)) * width);
    stored.read(call, part, values.data());
    const auto strides = row_major_strides(box_shape(box));
    std::int64_t first = 0;
    for (std::size_t d = 0; d < box.size(); ++d) first += (part[d].start - box[d].start) * strides[d];
    kernels::copy_strided(out + first * static_cast<std::int64_t>(width), strides, values.data(),
                          row_major_strides(box_shape(part)), box_shape(part), width);
  };
  source.temporary_bytes = [bytes = source.temporary_bytes,
                            width = static_cast<std::int64_t>(itemsize(source.info.dtype))](
                               const Shape& box) { return bytes(box) + box.elements() * width; };
  return source;
}

FileSource zarr_source(const std::string& call, const std::string& path, const std::string& name) {
  const std::string folder = name.empty() ? path : path + "/" + name;
  io::zarr::recover(call, folder);
  const auto meta = io::zarr::read_array(call, folder);
  FileSource source;
  source.path = path, source.name = name;
  source.info = {meta.shape, meta.dtype, io::zarr::detail_of(meta)};
  source.chunks = meta.chunk.vector();
  source.temporary_bytes = [bytes = 2 * meta.chunk.elements() *
                                    static_cast<std::int64_t>(itemsize(meta.dtype))](const Shape&) {
    return bytes;
  };  // a chunk packed and unpacked
  source.read = [folder, meta](const std::string& caller, const Box& box, std::byte* out) {
    io::zarr::read_box(caller, folder, meta, box, out);
  };
  return source;
}

std::string bytes_at(const io::File& file, std::int64_t offset) {
  std::string bytes(static_cast<std::size_t>(std::clamp<std::int64_t>(file.bytes() - offset, 0, 8)), '\0');
  file.read(bytes.data(), std::ssize(bytes), offset);
  return bytes;
}
// HDF5's signature stands at the start or, behind bytes of others such as those of MATLAB 7.3, at 512, 1024,
// 2048 and so on.
bool is_hdf5(const io::File& file) {
  for (std::int64_t at = 0; at < file.bytes(); at = at == 0 ? 512 : 2 * at)
    if (bytes_at(file, at).starts_with("\x89HDF")) return true;
  return false;
}
// The fact and the cure for a file in a format that is not streamed.
std::string cure_of(const std::string& first) {
  static constexpr std::pair<std::string_view, const char*> known[] = {
      {"CDF", "is a file of netCDF-3, which tessera does not read; convert it with nccopy -k nc4"},
      {"PK", "is a zip archive; load its arrays with load_npz, or unpack it"},
      {"\x1f\x8b", "is packed by gzip; unpack it with gunzip"},
      {"PAR1", "is a Parquet file; read it with pandas.read_parquet, and save its columns with numpy.save"},
      {"GGUF",
       "is a GGUF file, whose blocks of quantized numbers tessera does not have; convert it to "
       "safetensors"},
      {"{",
       "is JSON, which refers to the chunks of other files (kerchunk) or holds no array; open the files "
       "that it names, or copy the data set with xarray's to_zarr"}};
  for (const auto& [magic, cure] : known)
    if (first.starts_with(magic)) return cure;
  return "is no .npy, HDF5, netCDF-4 or Zarr file; load it by its own function";
}

struct Openings {
  std::int64_t count = 0;
};

FileParams params_of_opened(FileSourcePtr source) {
  FileParams p;
  p.path = source->path, p.name = source->name, p.dtype = source->info.dtype;
  p.opening = ++tessera::state<Openings>().count;
  p.count = source->info.shape.vector();
  p.start.assign(p.count.size(), 0), p.step.assign(p.count.size(), 1);
  p.source = std::move(source);
  return p;
}

}  // namespace

Array record_opened(FileSourcePtr source) { return record_file(params_of_opened(std::move(source))); }

FileSourcePtr source_of(const std::string& call, const std::string& path, const std::string& name,
                        bool other_files) {
  if (std::filesystem::is_directory(path)) return std::make_shared<FileSource>(zarr_source(call, path, name));
  const io::File file(call, path, io::File::Mode::read);
  const std::string first = bytes_at(file, 0);
  if (first.starts_with("\x93NUMPY")) return std::make_shared<FileSource>(npy_source(call, path, name));
  if (!is_hdf5(file)) throw IoError(call + ": " + in_quotes(path) + " " + cure_of(first));
  if (name.empty())
    throw IoError(call + ": " + in_quotes(path) + " is an HDF5 file; name the dataset: {.name = \"x\"}");
  FileSource source = hdf5_source(path, {call, path, name, other_files});
  if (const auto longer = io::netcdf_longer(call, path, name, source.info))
    source = longer_source(std::move(source), *longer);
  return std::make_shared<FileSource>(std::move(source));
}

}  // namespace tessera::stream

namespace tessera::io {

struct FileArray::State {
  stream::FileParams params;
  bool unpack = false;  // a netCDF variable's numbers
  std::string detail;
  // A new node each time: its value is not kept by this handle.
  Array recorded() const {
    const Array stored = stream::record_file(params);
    return unpack ? netcdf_unpacked(call_text(), params.path, params.name, stored) : stored;
  }
};

FileArray::FileArray(std::shared_ptr<const State> state)
    : Array(state->recorded()), state_(std::move(state)) {}
const std::string& FileArray::path() const { return state_->params.path; }
const std::string& FileArray::detail() const { return state_->detail; }
const std::vector<std::int64_t>& FileArray::chunks() const { return state_->params.source->chunks; }

FileArray FileArray::part(const std::vector<Slice>& slices, std::source_location where) const {
  const Call call("part", where);
  State state = *state_;
  auto& p = state.params;
  const Selection inner = part_of(call_text(), in_quotes(p.path), slices, Shape(p.count));
  for (std::size_t d = 0; d < p.count.size(); ++d) {
    p.start[d] += inner.start[d] * p.step[d];
    p.step[d] *= inner.step[d];
  }
  p.count = inner.count;
  return FileArray(std::make_shared<const State>(std::move(state)));
}

Array FileArray::load(const Sharding& sharding, std::source_location where) const {
  const Call call("load", where);
  const Array values = device_put(state_->recorded(), sharding);
  eval({values});
  return values;
}
Array FileArray::load(std::source_location where) const {
  const Call call("load", where);
  const Array values = state_->recorded();
  eval({values});
  return values;
}

std::string to_string(const FileArray& x) {
  return name(x.dtype()) + to_string(x.shape()) + " in " + in_quotes(x.path()) + ", " + x.detail();
}

std::ostream& operator<<(std::ostream& out, const FileArray& x) { return out << to_string(x); }

FileArray open(const std::string& path, const OpenOptions& options, std::source_location where) {
  const Call call("open", where);
  const Team team(current_call().name + (" of " + in_quotes(path)) + ", name " + in_quotes(options.name));
  FileArray::State state;
  stream::FileSourcePtr source;
  team.together([&] { source = stream::source_of(call_text(), path, options.name, options.other_files); });
  state.params = stream::params_of_opened(source);
  state.detail = source->info.detail;
  state.unpack = options.unpack && !options.name.empty() && !std::filesystem::is_directory(path) &&
                 !is_complex(source->info.dtype) && !is_bool(source->info.dtype);
  team.same(call_text(), path,
            "an array of shape " + to_string(source->info.shape) + ", " + name(source->info.dtype) + ", " +
                state.detail);
  std::optional<FileArray> opened;
  team.together([&] { opened.emplace(std::make_shared<const FileArray::State>(std::move(state))); });
  return *opened;
}

}  // namespace tessera::io
