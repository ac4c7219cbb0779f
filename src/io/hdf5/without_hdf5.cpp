// Compiled instead of hdf5.cpp if the build found no HDF5.
#include <tessera/io/hdf5_writer.hpp>

#include "base/call.hpp"
#include "base/text.hpp"
#include "io/hdf5/dataset.hpp"

namespace tessera::io {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& path, std::source_location where) {
  const Call call(name, where);
  throw IoError(
      call_text() + ": " + in_quotes(path) +
      " needs HDF5, and this build of tessera was made without HDF5; save .npy or .npz, or build with HDF5 "
      "(-D TESSERA_HDF5=ON says what is missing)");
}

[[noreturn]] void refuse(const std::string& call, const std::string& path) {
  throw IoError(
      call + ": " + in_quotes(path) +
      " needs HDF5, and this build of tessera was made without HDF5; use .npy or Zarr, or build with HDF5 "
      "(-D TESSERA_HDF5=ON says what is missing)");
}

}  // namespace

FileInfo info_of_dataset(const Hdf5Dataset& dataset) { refuse(dataset.call, dataset.path); }
std::vector<std::int64_t> chunks_of_dataset(const Hdf5Dataset& dataset) {
  refuse(dataset.call, dataset.path);
}
std::int64_t dataset_reading_bytes(std::int64_t) { return 0; }
void read_dataset_box(const Hdf5Dataset& dataset, const FileInfo&, const Box&, std::byte*) {
  refuse(dataset.call, dataset.path);
}
std::int64_t prepare_hdf5_dataset(const std::string& call, const std::string& file, const std::string&,
                                  const Array&) {
  refuse(call, file);
}

FileInfo hdf5_info(const std::string& path, const std::string&, std::source_location where) {
  refuse("hdf5_info", path, where);
}
std::vector<std::string> hdf5_datasets(const std::string& path, std::source_location where) {
  refuse("hdf5_datasets", path, where);
}
Array load_hdf5(const std::string& path, const std::string&, const Sharding&, Hdf5LoadOptions,
                std::source_location where) {
  refuse("load_hdf5", path, where);
}
Array load_hdf5(const std::string& path, const std::string&, Hdf5LoadOptions, std::source_location where) {
  refuse("load_hdf5", path, where);
}
void save_hdf5(const std::string& path, const std::string&, const Array&, Hdf5SaveOptions,
               std::source_location where) {
  refuse("save_hdf5", path, where);
}

std::map<std::string, Hdf5Attribute> hdf5_attributes(const std::string& path, const std::string&,
                                                     std::source_location where) {
  refuse("hdf5_attributes", path, where);
}

// The constructor always throws, so the other functions are never called.
struct Hdf5Writer::State {};
Hdf5Writer::Hdf5Writer(const std::string& path, Hdf5WriterOptions, std::source_location where) {
  refuse("Hdf5Writer", path, where);
}
Hdf5Writer::~Hdf5Writer() = default;
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer::State& Hdf5Writer::open_state() const { return *state_; }
void Hdf5Writer::write(const std::string&, const Array&, const Hdf5DatasetOptions&, std::source_location) {}
void Hdf5Writer::append(const std::string&, const Array&, const Hdf5DatasetOptions&, std::source_location) {}
void Hdf5Writer::group(const std::string&, std::source_location) {}
void Hdf5Writer::attribute(const std::string&, const std::string&, const Hdf5Attribute&,
                           std::source_location) {}
void Hdf5Writer::flush(std::source_location) {}
void Hdf5Writer::close(std::source_location) {}

}  // namespace tessera::io
