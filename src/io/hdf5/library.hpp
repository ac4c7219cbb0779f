// The HDF5 library in C++: identifiers that close themselves, HDF5 types for dtypes, failure reasons as
// texts.
#pragma once
#include <hdf5.h>

#include <tessera/array/index.hpp>
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "io/file.hpp"

namespace tessera::io {

// An HDF5 identifier that closes itself.
class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_), std::swap(close_, other.close_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  // Closes early and returns whether that worked.
  bool close() {
    const hid_t id = std::exchange(id_, -1);
    return id < 0 || close_(id) >= 0;
  }
  operator hid_t() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

// Sets the library's global behaviour during one of our calls and restores it afterwards, since the program
// may use HDF5 as well. The error stack goes into our message instead of stderr. Filter plugins that a file
// asks for are not loaded, unless the user has named a folder of plugins in HDF5_PLUGIN_PATH.
//
// One thread at a time: the library has no locks, and streamed slabs are read on a thread of their own.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> alone_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
  unsigned loads_ = 0;
};
std::string hdf5_reason();
// Repeats the call if a signal interrupts the opening of the file, where the library gives up.
Handle hdf5_opened(const std::string& path, unsigned mode);
Handle hdf5_created(const std::string& path);  // fails if the file exists

// A request and its file: for messages, and for opening.
struct Hdf5Source {
  std::string call, path, dataset;
  bool other_files = false;
  std::vector<Slice> slices = {};
  [[noreturn]] void fail(const std::string& facts, const std::string& mend) const;
};

// netCDF files before version 4 are no HDF5 files.
void refuse_netcdf3(const Hdf5Source&, const File&);

std::vector<std::string> names_of_datasets(hid_t file);  // from the root: /group/x
// This machine's HDF5 type for a dtype; bool and complex as in h5py.
Handle hdf5_memory_type(Dtype);
Dtype dtype_of_dataset(const Hdf5Source&, hid_t dataset);
Shape shape_of_dataset(const Hdf5Source&, hid_t dataset);
// IoError that names the filter of the dataset's values if it is not available.
void check_filters(const Hdf5Source&, hid_t dataset);

}  // namespace tessera::io
