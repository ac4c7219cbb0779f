// HDF5: the library handles metadata (groups, types, offsets), the ranks move the data.
//
// A dataset is written contiguously: the first rank creates it with its space allocated and asks for its file
// offset; then every rank writes its own box there, as in a .npy file, and each write is checked. (Parallel
// H5Dwrite was seen to report success on the ranks that did not hit the full disk, and the library hangs when
// ranks disagree.) For reading, every rank opens the file for itself.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/call.hpp"
#include "base/text.hpp"
#include "io/blocks.hpp"
#include "io/fault_point.hpp"
#include "io/file.hpp"
#include "io/formats/part.hpp"
#include "io/hdf5/attributes.hpp"
#include "io/hdf5/chunk_read.hpp"
#include "io/hdf5/dataset.hpp"
#include "io/hdf5/library.hpp"
#include "io/save_target.hpp"

namespace tessera::io {
namespace {

using Source = Hdf5Source;

void refuse_other_files(const Source& source, hid_t dataset) {
  if (source.other_files) return;
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  const bool outside = H5Pget_external_count(creation) > 0,
             is_virtual = H5Pget_layout(creation) == H5D_VIRTUAL;
  if (outside || is_virtual)
    source.fail("takes the values of its dataset " + in_quotes(source.dataset) + " from other files (" +
                    (outside ? "external storage" : "a virtual dataset") + ")",
                "pass {.other_files = true} if you trust it, or copy it with h5repack");
}

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

Handle open_file(const Source& source, unsigned mode) {
  // Opened first because File's error messages are clearer than the library's.
  const File exists(source.call, source.path, File::Mode::read);
  refuse_netcdf3(source, exists);
  Handle file = hdf5_opened(source.path, mode);
  if (!file.ok())
    source.fail("cannot be opened as HDF5: " + hdf5_reason(),
                "check that it is an HDF5 file, whole and not open for writing elsewhere");
  return file;
}
std::string shown(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::vector<std::string> texts;
  for (std::size_t n = 0; n < std::min(most, names.size()); ++n) texts.push_back(in_quotes(names[n]));
  return join(texts) + (names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "");
}

std::vector<std::string> names_under(const std::vector<std::string>& names, const std::string& group) {
  std::vector<std::string> inside;
  for (const auto& name : names)
    if (name.starts_with(group + "/")) inside.push_back(name);
  return inside;
}

// Callback of the library for paths that lead through a link to another file.
herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void* was_found) {
  *static_cast<bool*>(was_found) = true;
  return -1;
}

Handle open_dataset(const Source& source, hid_t file) {
  bool link_was_found = false;
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  if (!source.other_files) H5Pset_elink_cb(access, refuse_link, &link_was_found);
  Handle dataset(H5Dopen2(file, source.dataset.c_str(), access), H5Dclose);
  if (link_was_found)
    source.fail("has a link to another file on the way to " + in_quotes(source.dataset),
                "pass {.other_files = true} if you trust it, or open that file itself");
  if (dataset.ok()) {
    refuse_other_files(source, dataset);
    return dataset;
  }
  const std::string reason = hdf5_reason();
  const auto names = names_of_datasets(file);
  const std::string full_name = (source.dataset.starts_with('/') ? "" : "/") + source.dataset;
  if (std::find(names.begin(), names.end(), full_name) != names.end())
    source.fail("has a dataset " + in_quotes(source.dataset) + " that HDF5 " + library_version() +
                    " cannot open: " + reason,
                "if a newer version wrote it, write it for older ones (h5py: libver='earliest')");
  const auto inside = names_under(names, full_name);
  if (!inside.empty())
    source.fail("has a group " + in_quotes(source.dataset) + " and no dataset of that name",
                "it has " + shown(inside));
  source.fail(
      "has no dataset " + in_quotes(source.dataset),
      names.empty() ? "it has none at all" : "it has " + shown(names) + did_you_mean(source.dataset, names));
}

Selection selection_of(const Source& source, const Shape& shape) {
  return part_of(source.call, "the dataset " + in_quotes(source.dataset), source.slices, shape);
}

// The type of the values in memory. The library converts no enumeration to integers: its numbers are read as
// one with the same names, in the machine's byte order.
Handle read_type(hid_t dataset, Dtype dtype) {
  const Handle stored(H5Dget_type(dataset), H5Tclose);
  if (H5Tget_class(stored) != H5T_ENUM || dtype == bool_) return hdf5_memory_type(dtype);
  return Handle(H5Tget_native_type(stored, H5T_DIR_ASCEND), H5Tclose);
}

// The cure for a dataset whose values are in another file that cannot be read; nullopt for other datasets.
std::optional<std::string> raw_file_of(hid_t dataset) {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_external_count(creation) <= 0) return std::nullopt;
  char name[1024] = "";
  H5Pget_external(creation, 0, sizeof name - 1, name, nullptr, nullptr);
  return "its values are in " + in_quotes(name) +
         ", which is looked for in the working directory: start there, or copy the file with h5repack there";
}

// A selection of a dataspace of these extents. A space in memory has the dims of that in the file: the
// library goes through elements one by one where they differ.
Handle selected(Handle space, const std::vector<hsize_t>& start, const std::vector<hsize_t>& step,
                const std::vector<hsize_t>& count) {
  if (!count.empty())
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), step.data(), count.data(), nullptr);
  return space;
}

// Reads a part of the box, which lies in dense memory.
void read_by_library(const Source& source, hid_t dataset, hid_t memory_type, const Selection& selection,
                     const Box& box, const Box& part, std::byte* out) {
  std::vector<hsize_t> start, step, count, extents, first;
  for (std::size_t d = 0; d < box.size(); ++d) {
    start.push_back(static_cast<hsize_t>(selection.start[d] + part[d].start * selection.step[d]));
    step.push_back(static_cast<hsize_t>(selection.step[d]));
    count.push_back(static_cast<hsize_t>(part[d].size()));
    extents.push_back(static_cast<hsize_t>(box[d].size()));
    first.push_back(static_cast<hsize_t>(part[d].start - box[d].start));
  }
  const Handle in_file = selected({H5Dget_space(dataset), H5Sclose}, start, step, count);
  const Handle in_memory =
      selected({box.empty() ? H5Screate(H5S_SCALAR)
                            : H5Screate_simple(static_cast<int>(box.size()), extents.data(), nullptr),
                H5Sclose},
               first, std::vector<hsize_t>(box.size(), 1), count);
  if (H5Dread(dataset, memory_type, in_memory, in_file, H5P_DEFAULT, out) >= 0) return;
  const std::string reason = hdf5_reason();  // the next call of the library forgets it
  source.fail(
      "cannot be read at " + to_string(box) + " of its dataset " + in_quotes(source.dataset) + ": " + reason,
      raw_file_of(dataset).value_or("it may be damaged: write it again"));
}

void read_hyperslab(const Source& source, const FileInfo& info, const Box& box, std::byte* out) {
  const Quiet quiet;
  if (is_empty(box)) return;
  const Handle file = open_file(source, H5F_ACC_RDONLY), dataset = open_dataset(source, file);
  check_filters(source, dataset);
  const Handle type = read_type(dataset, info.dtype);
  const Selection selection = selection_of(source, shape_of_dataset(source, dataset));
  if (!selection.has_no_steps()) return read_by_library(source, dataset, type, selection, box, box, out);
  for (Box part : read_deflated(source, dataset, type, selection.span_of(box), out)) {
    for (std::size_t d = 0; d < part.size(); ++d)
      part[d].start -= selection.start[d], part[d].stop -= selection.start[d];
    read_by_library(source, dataset, type, selection, box, part, out);
  }
}

FileInfo read_info(const Source& source) {
  const Quiet quiet;
  const Handle file = open_file(source, H5F_ACC_RDONLY), dataset = open_dataset(source, file);
  return {Shape(selection_of(source, shape_of_dataset(source, dataset)).count),
          dtype_of_dataset(source, dataset), "hdf5 dataset " + source.dataset};
}

// Turns the library's failures during the creation of a dataset into one IoError.
struct Maker {
  const Source& source;
  void check(bool ok, const char* what) const {
    if (!ok)
      source.fail(
          std::string(what) + " of the dataset " + in_quotes(source.dataset) + " failed: " + hdf5_reason(),
          "check the dataset's path and the free space");
  }
  std::string full_name() const {
    return source.dataset.front() == '/' ? source.dataset : "/" + source.dataset;
  }
  bool is_there(hid_t file) const {
    const auto names = names_of_datasets(file);
    return std::find(names.begin(), names.end(), full_name()) != names.end();
  }
  Handle make(hid_t file, const Array& x) const {
    std::vector<hsize_t> extents(x.shape().begin(), x.shape().end());
    const Handle space(extents.empty()
                           ? H5Screate(H5S_SCALAR)
                           : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                       H5Sclose);
    const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose),
        creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links, 1);
    H5Pset_layout(creation, H5D_CONTIGUOUS);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    Handle dataset(H5Dcreate2(file, full_name().c_str(), hdf5_memory_type(x.dtype()), space, links, creation,
                              H5P_DEFAULT),
                   H5Dclose);
    check(dataset.ok(), "creation");
    return dataset;
  }
};

// Whether an existing dataset is dense, in this file, and of this dtype and shape: new values can overwrite
// the old ones.
bool can_be_overwritten(hid_t dataset, const Array& x) {
  const Handle type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose),
      creation(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Tequal(type, hdf5_memory_type(x.dtype())) <= 0 || H5Pget_layout(creation) != H5D_CONTIGUOUS ||
      H5Pget_external_count(creation) != 0 || H5Dget_offset(dataset) == HADDR_UNDEF)
    return false;
  std::vector<hsize_t> extents(std::max(0, H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return H5Sget_simple_extent_type(space) != H5S_NULL &&
         std::equal(extents.begin(), extents.end(), x.shape().begin(), x.shape().end(),
                    [](hsize_t a, std::int64_t b) { return a == static_cast<hsize_t>(b); });
}

Handle dataset_for(const Maker& maker, hid_t file, const Array& x, Hdf5Mode mode) {
  if (maker.is_there(file)) {
    if (mode != Hdf5Mode::replace)
      maker.source.fail("has a dataset " + in_quotes(maker.full_name()) + " already",
                        "save with {.mode = io::Hdf5Mode::replace}, or choose another "
                        "name or file");
    Handle old(H5Dopen2(file, maker.full_name().c_str(), H5P_DEFAULT), H5Dclose);
    if (old.ok() && can_be_overwritten(old, x)) return old;
    maker.check(H5Ldelete(file, maker.full_name().c_str(), H5P_DEFAULT) >= 0, "removal");
  }
  return maker.make(file, x);
}

// The file that receives the dataset: the copy of the existing one, or a new one.
Handle file_to_extend(const Source& source, const std::string& file_name) {
  const bool exists = std::filesystem::exists(file_name);
  Handle file = exists ? hdf5_opened(file_name, H5F_ACC_RDWR) : hdf5_created(file_name);
  if (!file.ok())
    source.fail("cannot be opened as HDF5: " + hdf5_reason(),
                "check that it is an HDF5 file; remove it to start a new one");
  return file;
}

// Creates the dataset with its space allocated and returns its file offset.
std::int64_t prepare_dataset(const Source& source, const std::string& file_name, const Array& x,
                             Hdf5Mode mode) {
  const Quiet quiet;
  const Maker maker{source};
  std::int64_t offset = 0;
  {
    const Handle file = file_to_extend(source, file_name), dataset = dataset_for(maker, file, x, mode);
    fault_point("half_prepared");
    if (x.nbytes() > 0) {
      const haddr_t place = H5Dget_offset(dataset);
      maker.check(place != HADDR_UNDEF, "allocation");
      offset = static_cast<std::int64_t>(place);
    }
    maker.check(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "flush");
  }
  // Restores the file's length, since closing may truncate it behind the last byte that the library itself
  // wrote.
  File file(source.call, file_name, File::Mode::write);
  if (file.bytes() < offset + x.nbytes()) file.resize(offset + x.nbytes());
  file.sync();
  return offset;
}

Array load(const Source& source, const std::optional<Sharding>& sharding) {
  FileInfo info{{}, float32, {}};
  Reader reader;
  reader.header = [&] { return info = read_info(source); };
  reader.block = [&](const Box& box, std::byte* out) { read_hyperslab(source, info, box, out); };
  return load_blocks(
      in_quotes(source.path) + ", dataset " + in_quotes(source.dataset) + slices_text(source.slices),
      sharding, reader);
}

Source source_of(const Hdf5Dataset& dataset) {
  return {dataset.call, dataset.path, dataset.name, dataset.other_files};
}

}  // namespace

FileInfo info_of_dataset(const Hdf5Dataset& dataset) { return read_info(source_of(dataset)); }
std::vector<std::int64_t> chunks_of_dataset(const Hdf5Dataset& dataset) {
  const Quiet quiet;
  const Source source = source_of(dataset);
  const Handle file = open_file(source, H5F_ACC_RDONLY), opened = open_dataset(source, file);
  check_filters(source, opened);
  const Handle creation(H5Dget_create_plist(opened), H5Pclose);
  std::vector<hsize_t> extents(H5S_MAX_RANK);
  if (H5Pget_layout(creation) != H5D_CHUNKED) return {};
  const int ndim = H5Pget_chunk(creation, H5S_MAX_RANK, extents.data());
  return {extents.begin(), extents.begin() + std::max(0, ndim)};
}
void read_dataset_box(const Hdf5Dataset& dataset, const FileInfo& info, const Box& box, std::byte* out) {
  read_hyperslab(source_of(dataset), info, box, out);
}
std::int64_t prepare_hdf5_dataset(const std::string& call, const std::string& file, const std::string& name,
                                  const Array& x) {
  return prepare_dataset({call, file, name}, file, x, Hdf5Mode::fail);
}

FileInfo hdf5_info(const std::string& path, const std::string& dataset, std::source_location where) {
  const Call call("hdf5_info", where);
  return read_info({call_text(), path, dataset});
}

std::vector<std::string> hdf5_datasets(const std::string& path, std::source_location where) {
  const Call call("hdf5_datasets", where);
  const Quiet quiet;
  const Handle file = open_file({call_text(), path, ""}, H5F_ACC_RDONLY);
  return names_of_datasets(file);
}

std::map<std::string, Hdf5Attribute> hdf5_attributes(const std::string& path, const std::string& object,
                                                     std::source_location where) {
  const Call call("hdf5_attributes", where);
  const Quiet quiet;
  const Source source{call_text(), path, object.starts_with('/') ? object : "/" + object};
  return read_attributes(source, open_file(source, H5F_ACC_RDONLY));
}

Array load_hdf5(const std::string& path, const std::string& dataset, const Sharding& sharding,
                Hdf5LoadOptions options, std::source_location where) {
  const Call call("load_hdf5", where);
  return load({call_text(), path, dataset, options.other_files, std::move(options.slices)}, sharding);
}
Array load_hdf5(const std::string& path, const std::string& dataset, Hdf5LoadOptions options,
                std::source_location where) {
  const Call call("load_hdf5", where);
  return load({call_text(), path, dataset, options.other_files, std::move(options.slices)}, std::nullopt);
}

void save_hdf5(const std::string& path, const std::string& dataset, const Array& x, Hdf5SaveOptions options,
               std::source_location where) {
  const Call call("save_hdf5", where);
  const Source source{call_text(), path, dataset};
  if (dataset.empty() || dataset.back() == '/')
    throw ArgumentError(call_text() + ": the dataset " + in_quotes(dataset) +
                        " has no name; give one, as in \"/group/x\"");
  const std::string mode = options.mode == Hdf5Mode::append    ? "append"
                           : options.mode == Hdf5Mode::replace ? "replace"
                                                               : "fail";
  save_blocks(path, ", dataset " + in_quotes(dataset) + ", mode " + mode, x,
              [&](const std::string& temporary, const std::string& target) {
                if (options.mode == Hdf5Mode::fail && std::filesystem::exists(target))
                  source.fail("exists, and the mode is fail",
                              "save with {.mode = io::Hdf5Mode::append} or replace, or to another file");
                if (std::filesystem::exists(target)) copy_file(source.call, target, temporary);
                return prepare_dataset(source, temporary, x, options.mode);
              });
}

}  // namespace tessera::io
